"""What a reader of a report should know before everything else."""

from collections.abc import Sequence

from mkclust.explain.report.collect import ReportData
from mkclust.fit.same_input import is_approximated
from mkclust.methods.certified import OTHER_CLUSTERS
from mkclust.text import count, join_words

# Features that miss more than this share of a kernel are too few.
MOST_MISSED = 0.2


def cautions(
    data: ReportData, verdict: str, warned: Sequence[str] | None = None
) -> list[str]:
    """Return doubts about a fit in sentences, but for what its verdict says.

    Warnings of the fit, if they are known, come first; without them, they are derived
    from the model.
    """
    told = _warnings(data, verdict, warned or ())
    found = list(told)
    if warned is None:
        found += _about_fit(data)
    found += _about_weights(data)
    found += _about_other_clusters(data, " ".join(told))
    found += _about_features(data)
    return [_as_sentence(text) for text in found]


def _warnings(data: ReportData, verdict: str, warned: Sequence[str]) -> list[str]:
    """Return the warnings of a fit that its verdict does not repeat."""
    texts = [text.strip().rstrip(".") for text in warned]
    said = verdict
    if data.agreement is not None:
        said += data.agreement.verdict()
        return [text for text in texts if text not in said]
    return texts


def _about_fit(data: ReportData) -> list[str]:
    """Return whether the solver stopped early, and which samples have no cluster."""
    model = data.model
    found = []
    if not model.converged_:
        steps = count(model.n_iter_, "step")
        found.append(
            f"{type(model).__name__} did not converge within {steps}: weights and "
            "clusters are from the step at which it stopped"
        )
    if data.unknown:
        n = count(len(data.unknown), "sample")
        found.append(f"{n} without any entry in the views that are used: no cluster")
    return found


def _about_weights(data: ReportData) -> list[str]:
    """Return how much weight is on views that agree with no other."""
    model = data.model
    if data.agreement is None or hasattr(model, "set_aside_"):
        return []
    unlike = data.agreement.set_aside
    if not unlike:
        return []
    weights = dict(zip(model.kernel_names_, model.weights_, strict=True))
    share = 100 * sum(weights[name] for name in unlike) / sum(weights.values())
    return [
        f"{type(model).__name__} uses every view: {share:.0f}% of the weight is on "
        "views that share nothing with those that agree "
        f"({join_words(unlike)}). AgreementKKM does not use them"
    ]


def _about_other_clusters(data: ReportData, told: str) -> list[str]:
    """Return whether clusters follow weights or missing views more than agreement."""
    found = []
    is_other = data.agreed_ari is not None and data.agreed_ari < OTHER_CLUSTERS
    if is_other and "adjusted Rand index" not in told:
        found.append(
            f"{type(data.model).__name__} finds other clusters than those that the "
            "views agree on, which AgreementKKM finds: the adjusted Rand index between "
            f"the two is {data.agreed_ari:.2f}"
        )
    missing = getattr(data.model, "missingness_", None)
    if missing is not None and missing.follows and missing.verdict() not in told:
        found.append(missing.warning())
    return found


def _about_features(data: ReportData) -> list[str]:
    """Return which kernels the features of a fit miss a part of."""
    model = data.model
    if not is_approximated(model):
        return []
    missed = zip(model.kernel_names_, model.approximation_error_, strict=True)
    return [
        f"The features miss {share:.0%} of {data.noun} '{name}': use more of them"
        for name, share in missed
        if share > MOST_MISSED
    ]


def _as_sentence(text: str) -> str:
    """Return a text with a capital at its start and a stop at its end."""
    if text.partition(" ")[0].isalpha():  # not a name, such as that of a file
        text = text[:1].upper() + text[1:]
    if text.endswith((".", "!", "?")):
        return text
    return f"{text}."
