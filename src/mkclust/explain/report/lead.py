"""The first lines of a report: how many groups, what is known of them, and doubts."""

from collections.abc import Iterator, Sequence

from mkclust.explain.annotation import SMALL_P
from mkclust.explain.report.collect import ReportData
from mkclust.fit.same_input import is_approximated
from mkclust.methods.certified import OTHER_CLUSTERS
from mkclust.text import count, join_words

# The sizes of more clusters are given by the smallest and the largest.
MOST_SIZES = 8
# Features that miss more than this share of a kernel are too few.
MOST_MISSED = 0.2


def headline(data: ReportData) -> str:
    """Return the number of groups with their sizes, and whether survival differs.

    Such as "4 groups of 49, 56, 44 and 31 samples; survival differs (p = 6e-06)".
    """
    sizes = data.clusters["size"].tolist()
    k = len(sizes)
    if k == 1:
        groups = f"1 group of {count(sizes[0], 'sample')}"
    elif k > MOST_SIZES:
        groups = f"{k} groups of {min(sizes):,} to {max(sizes):,} samples"
    elif data.names is None:
        groups = f"{k} groups of {join_words(map('{:,}'.format, sizes), k)} samples"
    else:
        named = map("{} ({:,})".format, data.names, sizes)
        groups = f"{k} groups of samples: {join_words(named, k)}"
    return "; ".join([groups, *_survival(data)])


def _survival(data: ReportData) -> Iterator[str]:
    """Yield whether the groups differ in survival."""
    if data.annotation is None:
        return
    p_values = data.annotation.table.set_index("variable")["p_value"]
    for name in data.annotation.survival:
        which = "survival"
        if len(data.annotation.survival) > 1:
            which = f"survival ({name.partition(',')[0]})"
        differs = "differs" if p_values[name] < SMALL_P else "does not differ clearly"
        yield f"{which} {differs} (p {data.annotation.p_text(p_values[name], '= ')})"


def lead(data: ReportData) -> list[str]:
    """Return the verdict in sentences: how clear, how stable, how many, which views."""
    found = []
    clarity = data.clarity
    if clarity.separation is not None:
        found.append(
            f"The clusters are {clarity.separation} (mean silhouette "
            f"{clarity.silhouette:.2f}; 1 is best)."
        )
    if data.stability is not None:
        level, _, said = clarity.about_stability().partition(": ")
        refits = count(len(data.stability.agreements), "refit")
        found.append(
            f"Stability is {level.lower()}, {data.stability.mean:.2f} (mean adjusted "
            f"Rand index of {refits}; 1 is best): {said}"
        )
    if data.suggestion is not None:
        answer = data.suggestion.verdict().partition(". ")[0]
        k = int(data.model.n_clusters_)
        own = "" if k == data.suggestion.n_clusters else f"; this fit has {k}"
        found.append(f"{answer}{own}.")
    found.append(data.verdict)
    missing = getattr(data.model, "missingness_", None)
    if missing is not None and not missing.follows:
        found.append(missing.verdict())
    return found


def cautions(
    data: ReportData, verdict: str, warned: Sequence[str] | None = None
) -> list[str]:
    """Return doubts about a fit in sentences, but for what its verdict says.

    Warnings of the fit, if they are known, come first; without them, they are derived
    from the model.
    """
    said = verdict
    if data.agreement is not None:
        said += data.agreement.verdict()
    texts = [text.strip().rstrip(".") for text in warned or ()]
    found = [text for text in texts if text not in said]
    told = " ".join(found)
    if warned is None:
        found += _about_fit(data)
    return [_as_sentence(text) for text in [*found, *_about_views(data, told)]]


def _about_fit(data: ReportData) -> Iterator[str]:
    """Yield whether the solver stopped early, and which samples have no cluster."""
    model = data.model
    if not model.converged_:
        yield (
            f"{type(model).__name__} did not converge within "
            f"{count(model.n_iter_, 'step')}: weights and clusters are from the step "
            "at which it stopped"
        )
    if data.unknown:
        n = count(len(data.unknown), "sample")
        yield f"{n} without any entry in the views that are used: no cluster"


def _about_views(data: ReportData, told: str) -> Iterator[str]:
    """Yield doubts about weights, other clusters and features of kernels."""
    model = data.model
    method = type(model).__name__
    weights = dict(zip(model.kernel_names_, model.weights_, strict=True))
    if data.agreement is not None and not hasattr(model, "set_aside_"):
        unlike = data.agreement.set_aside
        share = sum(weights[name] for name in unlike) / sum(weights.values())
        if unlike:
            yield (
                f"{method} uses every view: {share:.0%} of the weight is on views that "
                f"share nothing with those that agree ({join_words(unlike)}). "
                "AgreementKKM does not use them"
            )

    is_other = data.agreed_ari is not None and data.agreed_ari < OTHER_CLUSTERS
    if is_other and "adjusted Rand index" not in told:
        yield (
            f"{method} finds other clusters than those that the views agree on, which "
            "AgreementKKM finds: the adjusted Rand index between the two is "
            f"{data.agreed_ari:.2f}"
        )
    missing = getattr(model, "missingness_", None)
    if missing is not None and missing.follows and missing.verdict() not in told:
        yield missing.warning()

    if is_approximated(model):
        for name, share in zip(weights, model.approximation_error_, strict=True):
            if share > MOST_MISSED:
                yield (
                    f"The features miss {share:.0%} of {data.noun} '{name}': use more "
                    "of them"
                )


def _as_sentence(text: str) -> str:
    """Return a text with a capital at its start and a stop at its end."""
    if text.partition(" ")[0].isalpha():  # not a name, such as that of a file
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
