"""What was done, in a paragraph to paste into a paper, with its references."""

from typing import Any

import mkclust
from mkclust.report.fit.words import counted, listed

SIMPLE = (
    "X. Liu, E. Zhu, J. Liu, T. Hospedales, Y. Wang, M. Wang. SimpleMKKM: Simple Multiple Kernel "
    "K-means. ICML, 2020."
)
# Of each method: what it does to the kernels, in a sentence that goes on from its name, and the
# paper it is from.
METHODS: dict[str, tuple[str, str]] = {
    "SimpleMKKM": (
        "which mixes the kernels by the squares of weights on the simplex; the weights minimize "
        "the alignment with a relaxed partition that the partition maximizes",
        SIMPLE,
    ),
    "AverageKKM": (
        "relaxed kernel k-means of the average of the kernels",
        "H. Zha, X. He, C. Ding, M. Gu, H. D. Simon. Spectral Relaxation for K-means Clustering. "
        "NIPS, 2001.",
    ),
    "MKKM": (
        "which mixes the kernels by the squares of weights on the simplex, found in turn with a "
        "relaxed partition so that both leave least of the mixed kernel unexplained",
        "H.-C. Huang, Y.-Y. Chuang, C.-S. Chen. Multiple Kernel Fuzzy Clustering. IEEE "
        "Transactions on Fuzzy Systems 20(1), 2012.",
    ),
    "LMKKM": (
        "which mixes the kernels by weights of their own for every sample, found in turn with a "
        "relaxed partition",
        "M. Gönen, A. A. Margolin. Localized Data Fusion for Kernel k-Means Clustering with "
        "Application to Cancer Biology. NIPS, 2014.",
    ),
    "ONKC": (
        "which learns a kernel in the neighborhood of a mix of the given ones, in turn with the "
        "weights of the mix and a relaxed partition",
        "X. Liu, S. Zhou, Y. Wang, M. Li, Y. Dou, E. Zhu, J. Yin. Optimal Neighborhood Kernel "
        "Clustering with Multiple Kernels. AAAI, 2017.",
    ),
    "MKKMMiR": (
        "multiple kernel k-means with a regularization by the products of the kernels, which "
        "keeps kernels that say the same from being chosen together",
        "X. Liu, Y. Dou, J. Yin, L. Wang, E. Zhu. Multiple Kernel k-Means Clustering with "
        "Matrix-Induced Regularization. AAAI, 2016.",
    ),
    "LKAM": (
        "which aligns the mixed kernel with the partition among the nearest neighbors of each "
        "sample only",
        "M. Li, X. Liu, L. Wang, Y. Dou, J. Yin, E. Zhu. Multiple Kernel Clustering with Local "
        "Kernel Alignment Maximization. IJCAI, 2016.",
    ),
    "LFMVC": (
        "which fuses the relaxed partitions of the single kernels: a consensus is aligned with "
        "their weighted, rotated sum and with the partition of the average kernel",
        "S. Wang, X. Liu, E. Zhu, C. Tang, J. Liu, J. Hu, J. Xia, J. Yin. Multi-view Clustering "
        "via Late Fusion Alignment Maximization. IJCAI, 2019.",
    ),
    "MKKMMM": (
        "which finds the relaxed partition that is best for the weights, of unit length, under "
        "which most of the kernels is left unexplained",
        "S. Bang, Y. Yu, W. Wu. Robust Multiple Kernel k-means Clustering using Min-Max "
        "Optimization. arXiv:1803.02458, 2018.",
    ),
    "KAMMR": (
        "an ablation of SimpleMKKM that maximizes the alignment over the weights, too, by "
        "reduced gradients",
        SIMPLE,
    ),
    "KAMMA": (
        "an ablation of SimpleMKKM that alternates between the partition and the weights",
        SIMPLE,
    ),
}
OWN_PARAMETERS = ("reg", "neighbors", "proximity", "init", "solver", "stopping", "iterate")


def methods_paragraph(
    model: Any, n_samples: int, versions: dict[str, str], resamples: str = ""
) -> list[str]:
    """Return what was done in words, and the references below it.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator.
    n_samples : int
        Number of samples, n.
    versions : dict of str to str
        Software by name.
    resamples : str, default=""
        How stability was found out, as a sentence.

    Returns
    -------
    list of str
        The paragraph, then one entry a reference.
    """
    name = type(model).__name__
    does, paper = METHODS[name]
    k, m = model.n_clusters, len(model.kernel_names_)
    kernels = f"the {m} kernels" if m > 1 else "the kernel"
    cited = versions | {"mkclust": f"{mkclust.__version__} [2]"}
    sentences = [
        f"We clustered {counted(n_samples, 'sample')} into {counted(k, 'cluster')} by multiple "
        f"kernel clustering. {_kernels(model)} {_standardized(model)}",
        f"We combined {kernels} by {name} [1], {does}{_settings(model)}.",
        _solved(model),
        f"Clusters were read off by k-means with {counted(model.n_init, 'start')} on the rows of "
        f"the relaxed partition, scaled to unit length ({_seed(model)}).",
        resamples,
        "Computations were done with "
        + listed([f"{used} {version}" for used, version in cited.items()], 8)
        + ".",
    ]
    software = f"The mkclust developers. mkclust, version {mkclust.__version__}. Software."
    return [" ".join(text for text in sentences if text), f"[1] {paper}", f"[2] {software}"]


def _kernels(model: Any) -> str:
    """Say where the kernels came from."""
    names = model.kernel_names_
    m = len(names)
    if hasattr(model, "approximation_error_"):
        kind, count = _approximation(model.approximation), len(names)
        what = f"{counted(count, 'view')} ({listed(names)})"
        return f"The similarities within {what} were those of {kind}."
    if not hasattr(model, "bank_"):
        return f"{counted(m, 'kernel')} {'was' if m == 1 else 'were'} given ({listed(names)})."
    bank, views = model.bank_, list(model.bank_.views_)
    parts = []
    if len(bank.widths):
        widths = listed([f"{width:g}" for width in bank.widths], 10)
        times = "" if tuple(bank.widths) == (1.0,) else f"{widths} times "
        parts.append(f"Gaussian, {times}the median distance between two samples as width")
    if len(bank.polynomials):
        degrees = listed([f"({a:g} + x'y)^{b:g}" for a, b in bank.polynomials], 10)
        parts.append(f"polynomial, {degrees} with x'y in units of the mean squared norm")
    if bank.linear is not None:
        parts.append("cosine" if bank.linear == "cosine" else "linear")
    source = "the table" if views == ["table"] else f"{counted(len(views), 'view')}"
    named = "" if views == ["table"] else f" ({listed(views)})"
    return f"From {source}{named} we computed {counted(m, 'kernel')}: {'; '.join(parts)}."


def _approximation(map_: Any) -> str:
    """Say which features stood for the kernels."""
    count = getattr(map_, "n_components", None)
    number = f"{count} " if isinstance(count, int) else ""
    if type(map_).__name__ == "Nystroem":
        return f"Nyström features, {number}landmarks a view, in place of full kernels"
    return f"{number}features a view by {type(map_).__name__}, in place of full kernels"


def _standardized(model: Any) -> str:
    """Say how the kernels were standardized."""
    done = []
    if model.center:
        done.append("centered in its feature space")
    if model.normalize:
        done.append("scaled to a unit diagonal")
    return f"Each kernel was {' and '.join(done)}." if done else ""


def _settings(model: Any) -> str:
    """Return the method's own parameters, in brackets."""
    given = model.get_params(deep=False)
    own = [f"{name} = {given[name]}" for name in OWN_PARAMETERS if name in given]
    if getattr(model, "anchor_", 0):
        own.append(f"anchor = {model.anchor_:g}")
    return f" ({', '.join(own)})" if own else ""


def _solved(model: Any) -> str:
    """Say how far the solver got."""
    steps = counted(int(model.n_iter_), "iteration")
    if hasattr(model, "duality_gap_"):
        kind = "approximated, relaxed" if hasattr(model, "approximation_error_") else "relaxed"
        return (
            f"The {kind} problem was solved to a certified relative gap of "
            f"{model.duality_gap_:.1e} in {steps}."
        )
    if type(model).__name__ == "AverageKKM":
        return ""
    end = "converged after" if model.converged_ else "was stopped, not converged, after"
    return f"The method {end} {steps}."


def _seed(model: Any) -> str:
    """Say which seed k-means had."""
    seed = model.random_state
    return "no fixed seed" if seed is None else f"random seed {seed_text(seed)}"


def seed_text(seed: Any) -> str:
    """Return a seed; a generator, whose state nobody can read, by its name."""
    return str(seed) if isinstance(seed, int) else f"from a {type(seed).__name__}"
