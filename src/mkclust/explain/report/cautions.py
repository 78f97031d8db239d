"""What a reader of a report should know before everything else."""

from collections.abc import Sequence

import numpy as np

from mkclust.explain.fitted import is_approximated
from mkclust.explain.report.collect import ReportData
from mkclust.methods.simple_mkkm import OTHER_CLUSTERS
from mkclust.text import count, join_words

# From this share of a kernel that features miss on, there is a caution.
MUCH_MISSED = 0.2


def cautions(data: ReportData, warned: Sequence[str] | None, verdict: str) -> list[str]:
    """Return what a reader should know before everything else, and the verdict does not say.

    Without a record of the warnings of the fit, they are derived from the model.
    """
    model, name = data.model, type(data.model).__name__
    found = [text.strip() for text in warned or ()]
    # "All count" and "the first is used": the same verdict in the words of another method.
    if data.agreement is not None:
        verdict += data.agreement.verdict() + data.agreement.verdict(sets_aside=False)
    found = [text for text in found if text.rstrip(".") not in verdict]
    if warned is None and not model.converged_:
        found.append(
            f"{name} did not converge within {count(int(model.n_iter_), 'step')}: weights and "
            "clusters are from the step at which it stopped"
        )
    if warned is None and (n_unknown := int((~data.known).sum())):
        found.append(
            f"{count(n_unknown, 'sample')} without any entry in the views that are used: no cluster"
        )
    told = " ".join(found)
    unlike = data.agreement.set_aside if data.agreement is not None else ()
    if unlike and not hasattr(model, "set_aside_"):
        share = model.weights_[np.isin(model.kernel_names_, unlike)].sum() / model.weights_.sum()
        found.append(
            f"{name} uses every view: {share:.0%} of the weight is on views that share nothing "
            f"with those that agree ({join_words(unlike)}). AgreementKKM does not use them"
        )
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
