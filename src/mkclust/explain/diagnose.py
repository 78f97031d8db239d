"""What each kernel of a model contributes: structure, agreement, a copy or noise."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from mkclust.agreements import Agreement, p_text
from mkclust.agreements.result import COPY_ALIGNMENT, FULL_WEIGHT_DIRECTIONS
from mkclust.data import Samples, as_blocks
from mkclust.engine.certificate import rounding_of_entries
from mkclust.engine.eigen import relax
from mkclust.exceptions import silence
from mkclust.explain.fitted import (
    Parts,
    check_fitted,
    features_of,
    integer_seed,
    unfitted_copy,
)
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.embedding import inverse
from mkclust.fit.missingness import Missingness
from mkclust.fit.rounding import root_of, root_of_gram
from mkclust.fit.same_input import (
    is_approximated,
    known_again,
    open_again,
    read_again,
)
from mkclust.linalg import select, to_device, to_host
from mkclust.metrics import agreement_of_labels
from mkclust.plots.style import noun_of_kernels, sample_clusters
from mkclust.stack import Stack, Standardization, Standardized
from mkclust.stack.discretize import discretize
from mkclust.stack.observed import with_active
from mkclust.text import count, join_words, text_table
from mkclust.types import Array, Float

# Relative error of the eigenvalue sums; the gaps between single eigenvalues are read
# from them.
EIGEN_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What each kernel of a fitted model contributes; ``print`` it for a summary.

    Attributes
    ----------
    method : str
        Name of the model's class.
    n_clusters : int
        The model's number of clusters, k.
    table : pandas.DataFrame
        One row per kernel, in the model's order: ``weight`` (not importance),
        ``alignment`` (share of the kernel's top-k eigenvalue sum that the consensus
        captures), ``agreement`` (adjusted Rand index of the clusters of that kernel
        alone with the model's), ``leave_one_out`` (of the model without that kernel;
        NaN if not asked for, or if the others cannot be clustered), ``cluster_gap``
        (relative gap between eigenvalues k - 1 and k of the centered kernel),
        ``top_share`` (share of its trace in its k largest eigenvalues) and ``p_value``
        (the smallest of its agreement with another kernel).
    view_agreement : Agreement
        Which kernels agree: the model's ``agreement_``.
    missingness : Missingness or None
        The model's ``missingness_``, None if no samples are missing from views.
    n_samples, n_diagnosed : int
        Number of samples of the model, and of those on which it was fitted again to be
        diagnosed.
    refit_agreement : float
        Adjusted Rand index between the clusters of that fit and the model's.
    noun : {"kernel", "view"}
        What a kernel is called in sentences: a view, if every view has one kernel.
    """

    method: str
    n_clusters: int
    table: pd.DataFrame
    view_agreement: Agreement
    missingness: Missingness | None
    n_samples: int
    n_diagnosed: int
    refit_agreement: float = 1.0
    noun: str = "kernel"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels."""
        return tuple(self.table.index)

    @property
    def redundancy(self) -> Float:
        """Debiased alignment of every two centered kernels, (m, m): one for copies."""
        return self.view_agreement.alignments.copy()

    @property
    def noise(self) -> tuple[str, ...]:
        """Kernels without clear agreement with any other; none if not tested."""
        if not self.view_agreement.is_testable:
            return ()
        return tuple(self.table.index[~np.asarray(self.view_agreement.shares)])

    @property
    def duplicates(self) -> tuple[tuple[str, str], ...]:
        """Pairs of kernels that are nearly the same: of a redundancy above 0.99."""
        pairs = np.argwhere(np.triu(self.redundancy > COPY_ALIGNMENT, 1))
        return tuple((self.names[p], self.names[q]) for p, q in pairs)

    def summary(self) -> str:
        """Return which views agree, a table of kernels, and what stands out."""
        title = f"{self.method}, {count(self.n_clusters, 'cluster')}, {len(self.names)}"
        shown = self.table.dropna(axis=1, how="all")
        rows = [["kernel", *(column.replace("_", " ") for column in shown)]]
        for name, *values, p_value in shown.itertuples():
            cells = [
                f"{round(each, 2) + 0.0:.2f}".replace("nan", "-") for each in values
            ]
            rows.append([name, *cells, p_text(p_value)])
        verdict = self.view_agreement.verdict()
        lines = [f"{title} kernels", "", verdict, "", text_table(rows), ""]
        lines += self.sentences()
        if self.missingness is not None:
            lines += ["", self.missingness.summary()]
        return "\n".join(lines)

    __repr__ = summary

    def sentences(self) -> list[str]:
        """Return what stands out, in sentences."""
        return [*self._about_noise(), *self.about_clusters()]

    def about_clusters(self) -> list[str]:
        """Return how the clusters depend on single kernels, in sentences."""
        found = []
        without = self.table["leave_one_out"]
        alone = self.table["agreement"]
        directions = self.view_agreement.directions
        few = directions < FULL_WEIGHT_DIRECTIONS
        decisive = alone.argmax()
        # A kernel whose own clusters agree at least so much decides the clusters.
        decides = self.n_clusters > 1 and alone.max() >= 0.9
        if decides and few[decisive] and not few.all():
            found.append(
                f"{self.noun.capitalize()} {alone.idxmax()!r} decides the clusters: "
                f"alone it has the same to {alone.max():.2f} (adjusted Rand index), "
                "though it has few "
                f"effective directions ({directions[decisive]:.2g}), as a single "
                "column does."
            )

        # Which are shown as 1.00.
        if self.n_clusters > 1 and without.min() >= 0.995:
            found.append(f"No single {self.noun} changes the clusters.")
        elif self.n_clusters > 1 and without.notna().any():
            found.append(
                f"The clusters depend most on {self.noun} {without.idxmin()!r}: "
                "without it, the adjusted Rand index with them is "
                f"{without.min():.2f}."
            )
        if self.n_diagnosed < self.n_samples:
            found.append(
                f"Clusters of single {self.noun}s, and without them, are those of a "
                f"fit on {self.n_diagnosed:,} of the {self.n_samples:,} samples, whose "
                f"clusters agree with the model's to {self.refit_agreement:.2f} "
                "(adjusted Rand index)."
            )
        return found

    def _about_noise(self) -> list[str]:
        """Return a line on the kernels that agree with no other, if there are some."""
        noise = self.noise
        weights = self.table["weight"]
        if not self.view_agreement.is_testable:
            return [f"Too few samples or views to test which {self.noun}s agree."]
        if not noise:
            return [f"Each {self.noun} agrees with another one."]
        kernels = self.noun.capitalize()
        if len(noise) > 1:
            kernels += "s"
        sentences = [
            f"{kernels} {join_words(map(repr, noise), most=len(noise))} may be noise: "
            f"no clear agreement with another {self.noun}. Or it has structure of its "
            "own, or the agreement is too weak for this number of samples, or the "
            "samples are in another order."
        ]
        largest = weights.idxmax()
        if largest in noise and np.ptp(weights) > 0:
            sentences.append(
                f"Weights are not importance: {largest!r} has the largest."
            )
        if len(noise) < len(self.names) and weights[list(noise)].any():
            sentences.append(f"AgreementKKM sets such {self.noun}s aside.")
        return sentences


def diagnose(
    model: MultipleKernelClusterer,
    X: Any,
    *,
    leave_one_out: bool = True,
    max_samples: int = 2000,
) -> Diagnosis:
    r"""Say what each kernel contributes: structure, agreement, a copy or noise.

    A kernel **may be noise** if it has no clear agreement with any other kernel, as
    `mkclust.agreement` tests it: it is noise, or has structure that no other has, or
    agrees too weakly for this number of samples. Copies of a kernel (a redundancy above
    0.99), and kernels that a bank made from one view, prove nothing about each other.
    Labels, weights and the consensus, which noise may have ruined, are not used.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    X : array of shape (m, n, n) or (n, d), or list or dict of kernels or views
        What the model was fitted on, with two kernels or more.
    leave_one_out : bool, default=True
        Fit the model again without each kernel in turn, which takes most of the time.
    max_samples : int, default=2000
        If there are more samples, a fit on this many, drawn from all clusters, is
        diagnosed.

    Notes
    -----
    If ``random_state`` is not an integer, k-means starts from the seed zero. With an
    approximation the kernels are those of the features that the model learned.

    Any agreement counts, even that of a batch effect, or of two kernels precomputed
    from one noise view. If all kernels are from one view or copies, or samples are too
    few, none is called noise.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import AverageKKM, diagnose
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> views["dice"] = np.random.default_rng(0).normal(size=(300, 20))
    >>> model = AverageKKM(n_clusters=10, random_state=0).fit(views)
    >>> diagnosis = diagnose(model, views)
    >>> diagnosis.noise
    ('dice',)
    >>> print(diagnosis)  # doctest: +ELLIPSIS
    AverageKKM, 10 clusters, 5 kernels
    ...
    View 'dice' may be noise: no clear agreement with another view. ...
    """
    check_fitted(model)
    if len(model.kernel_names_) < 2:
        raise ValueError(
            "the model was fitted on one kernel: a diagnosis takes two or more"
        )
    with silence():  # the fit itself has warned
        model, samples = known_again(model, X)
        exact, stack, part = exact_kernels(model, samples, max_samples)
        table = _compare(exact, stack, leave_one_out)
    table.insert(0, "weight", model.weights_)
    table.insert(1, "alignment", model.alignments_)
    table["p_value"] = model.agreement_.p_values.min(axis=1)
    return Diagnosis(
        method=type(model).__name__,
        n_clusters=model.n_clusters_,
        table=table,
        view_agreement=model.agreement_,
        missingness=getattr(model, "missingness_", None),
        n_samples=len(model.labels_),
        n_diagnosed=len(part),
        refit_agreement=agreement_of_labels(
            to_host(model.labels_, None)[part], exact.labels_
        ),
        noun=noun_of_kernels(model),
    )


def exact_kernels(
    model: MultipleKernelClusterer, samples: Samples, max_samples: int
) -> tuple[MultipleKernelClusterer, Stack, np.ndarray]:
    """Return a fit, or one of some samples if these are many, its kernels and samples.

    Features of kernels, and kernels of anchors alone, are not the kernels themselves: a
    model with these is fitted again, too.
    """
    n = len(model.labels_)
    has_kernels = not is_approximated(model) and not hasattr(model, "anchors_")
    if n <= max_samples and has_kernels:
        return model, open_again(model, samples), np.arange(n)

    part = sample_clusters(to_host(model.labels_, None), max_samples)
    if is_approximated(model):
        X = _kernels_of_features(model, samples, part)
        refitted = unfitted_copy(model)
        refitted.set_params(approximation=None, kernels="precomputed", scale="auto")
    else:
        parts = Parts(model, samples)
        X = parts.take(part)
        refitted = parts.unfitted(model)
        if model.LEARNS_FROM_ANCHORS:
            refitted.set_params(anchors=max(len(part), 2))
    refitted.fit(X)
    return refitted, open_again(refitted, read_again(refitted, X)), part


def observed_kernels(model: MultipleKernelClusterer) -> np.ndarray | None:
    """Return which kernels have which samples, (n, m) of bool; None if all have all."""
    observed = getattr(model, "observed_", None)
    if observed is not None and hasattr(model, "bank_"):
        return np.asarray(observed)[:, list(model.bank_.kernel_views_)]
    return observed


def _kernels_of_features(
    model: MultipleKernelClusterer, samples: Any, part: np.ndarray
) -> Samples:
    """Return the kernels of the features of some samples, neither centered nor scaled.

    Kernels of one table stay one source, and groups stay groups.
    """
    maps = replace(features_of(model).features, means=None, floors=None)
    block = as_blocks(samples).take(part)
    return Samples(
        "kernels",
        model.kernel_names_,
        tuple(to_host(F @ F.T) for F in maps.of_observed(block)),
        missing=None if block.observed is None else ~block.observed,
        groups=None if samples.groups is None else samples.groups[part],
        encodings=samples.encodings,
    )


def _compare(
    model: MultipleKernelClusterer, stack: Stack, leave_one_out: bool
) -> pd.DataFrame:
    """Return a table of what kernels give alone, and what the others give."""
    k = model.n_clusters_
    rows = []
    rounding = rounding_of_entries(stack)
    for p, kernel in enumerate(stack.kernels):
        given = float(to_host(kernel.diagonal()).sum())
        relaxation = centered = relax(kernel, k, tol=EIGEN_TOLERANCE)
        if not model.center:
            uniform = np.full((kernel.n_samples, 1), 1 / kernel.n_samples)
            means = kernel @ to_device(uniform, kernel.like)
            standard = Standardization(kernel.diagonal(), row_means=means[:, 0])
            kernel = Standardized(kernel, standard)
            centered = relax(kernel, k, tol=EIGEN_TOLERANCE)
        # The rows that k-means clusters, as in fit: zero beyond the rank of a kernel.
        scale = inverse(relaxation.eigenvalues[:k], stack.n_samples, rounding)
        embedded = relaxation.products[:, :k] * to_device(scale, relaxation.products)
        values = np.diag(relaxation.eigenvalues[:k])
        row = {
            "agreement": _agreement(
                model, embedded, root_of_gram(values, stack.n_samples), [p]
            ),
            "leave_one_out": np.nan,
            "cluster_gap": centered.cluster_gap,
            "top_share": np.nan,
        }
        if leave_one_out:
            row["leave_one_out"] = _compare_without(model, stack, p)
        trace = float(to_host(kernel.diagonal()).sum())
        # A kernel is constant if centering leaves this many roundings of its trace.
        if trace <= 100 * rounding * given:
            row["cluster_gap"] = np.nan
        else:
            row["top_share"] = centered.value / trace
        rows.append(row)
    return pd.DataFrame(rows, pd.Index(model.kernel_names_))


def _compare_without(model: MultipleKernelClusterer, stack: Stack, p: int) -> float:
    """Return the Rand index of clusters without a kernel, NaN if there are none."""
    rest = [q for q in range(stack.n_kernels) if q != p]
    # The same kernels of the same views: read again, each kernel would be a view of its
    # own.
    others = stack.subset(rest)
    others = replace(others, kernels=with_active(others.kernels, range(len(rest))))
    refitted = unfitted_copy(model)
    try:
        solution = refitted.solve(others)
        others = solution.stack or others
        rows = refitted._rows(others, solution)[0]
        used = rest
        if solution.coefficients is not None:
            used = [rest[q] for q in np.flatnonzero(solution.coefficients)]
        root = root_of(others, solution) if _has_components(model) else None
        return _agreement(model, rows, root, used)
    except ValueError:  # the other kernels may hold too few different samples
        return np.nan


def _has_components(model: MultipleKernelClusterer) -> bool:
    """Return whether a model has clustered the components of its partition."""
    return getattr(model, "rounding_", "unit") == "components"


def _agreement(
    model: MultipleKernelClusterer,
    rows: Array,
    root: Float | None,
    kernels: Sequence[int],
) -> float:
    """Return how far clusters of rows agree with the model's, where kernels know."""
    seen = np.arange(len(model.labels_))
    observed = observed_kernels(model)
    if observed is not None:
        seen = np.flatnonzero(observed[:, kernels].any(axis=1))
    labels, *_ = discretize(
        select(rows, seen),
        model.n_clusters_,
        root=root if _has_components(model) else None,
        n_init=model.n_init,
        random_state=integer_seed(model),
    )
    return agreement_of_labels(model.labels_[seen], labels)
