"""What a reader of a report should know before everything else."""

from collections.abc import Sequence

import numpy as np

from mkclust.explain.fitted import is_approximated
from mkclust.explain.report.collect import ReportData
from mkclust.methods.simple_mkkm import OTHER_CLUSTERS
from mkclust.text import count, join_words

# From this share of a kernel that features miss on, there is a caution.
MUCH_MISSED = 0.2


def cautions(data: ReportData, warned: Sequence[str] | None) -> list[str]:
    """Return what a reader should know before everything else.

    Without a record of the warnings of the fit, they are derived from the model.
    """
    model, agreement = data.model, data.agreement
    name = type(model).__name__
    found = [text.strip() for text in warned or ()]
    if warned is None:
        if not model.converged_:
            found.append(
                f"{name} did not converge within {count(int(model.n_iter_), 'step')}: weights and "
                "clusters are from the step at which it stopped"
            )
        if n_unknown := int((~data.known).sum()):
            found.append(
                f"{count(n_unknown, 'sample')} without any entry in the views that are used: no "
                "cluster"
            )
    if agreement is not None:
        # The report begins with this verdict.
        first = {agreement.verdict(), agreement.verdict(sets_aside=False)}
        found = [text for text in found if text not in first]
        found += _about_agreement(data)
    told = " ".join(found)
    is_other = data.agreed_ari is not None and data.agreed_ari < OTHER_CLUSTERS
    if is_other and "adjusted Rand index" not in told:
        found.append(
            f"{name} finds other clusters than those that the views agree on: the adjusted Rand "
            f"index between the two is {data.agreed_ari:.2f}. AgreementKKM finds the clusters that "
            "the views agree on"
        )
    missingness = getattr(model, "missingness_", None)
    if missingness is not None and missingness.follows and missingness.verdict() not in told:
        found.append(missingness.warning())
    missed = np.nan_to_num(model.approximation_error_) if is_approximated(model) else np.zeros(1)
    if missed.max() > MUCH_MISSED:
        worst = model.kernel_names_[int(missed.argmax())]
        found.append(f"The features miss {missed.max():.0%} of kernel {worst!r}: use more of them")
    return [text[:1].upper() + text[1:] + "." * (text[-1:] not in ".!?") for text in found if text]


def _about_agreement(data: ReportData) -> list[str]:
    """Return that views do not agree, form groups, or are used without clear agreement."""
    model, agreement = data.model, data.agreement
    assert agreement is not None
    if agreement.is_testable and not agreement.any_share:
        return [
            "No two views agree clearly: nothing tells which view is right, and the clusters may "
            "match none of them. See the views below before you use the clusters"
        ]
    sentences, names = [], agreement.names
    sets_aside = hasattr(model, "set_aside_")
    if len(agreement.groups) > 1:
        groups = [join_words([names[p] for p in group]) for group in agreement.groups]
        whose = f"are those of {groups[0]}" if sets_aside else "belong to at most one of them"
        sentences.append(
            f"There are {len(groups)} groups of views without clear agreement between them "
            f"({'; '.join(groups)}), and so as many answers: these clusters {whose}"
        )
    if agreement.set_aside and not sets_aside:
        aside = np.array([name in agreement.set_aside for name in names])
        share = model.weights_[aside].sum() / model.weights_.sum()
        sentences.append(
            f"{type(model).__name__} sets no view aside: {share:.0%} of the weight is on views "
            f"without clear agreement with the others ({join_words(agreement.set_aside)}). "
            "AgreementKKM sets them aside"
        )
    return sentences
