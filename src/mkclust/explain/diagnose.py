"""What each kernel of a fitted model brings: structure, agreement, a copy, or noise."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

from mkclust.data import Samples, as_blocks
from mkclust.engine.certificate import rounding_of_entries
from mkclust.engine.eigen import relax
from mkclust.explain.fitted import (
    check_fitted,
    integer_seed,
    is_approximated,
    observed_of_kernels,
    unfitted_copy,
)
from mkclust.explain.parts import Parts
from mkclust.linalg import select, to_device, to_host
from mkclust.methods.agreement import BEYOND_CHANCE, COPY_ALIGNMENT, Agreement
from mkclust.methods.missingness import Missingness
from mkclust.methods.out_of_sample import inverse
from mkclust.methods.training import in_order_of_fit, open_again
from mkclust.methods.uncovered import only_covered
from mkclust.metrics import agreement_of_labels
from mkclust.plots.sampling import sample_clusters
from mkclust.stack import Kernel, Stack, Standardization, Standardized
from mkclust.stack.discretize import discretize
from mkclust.stack.observed import with_active
from mkclust.text import count, join_words, text_table
from mkclust.types import Array, Float

# Relative error of the eigenvalue sums; the gaps between single eigenvalues are read from them.
EIGEN_TOLERANCE = 1e-10
# Adjusted Rand indices of at least this are shown as 1.00.
SAME = 0.995


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What each kernel of a fitted model is and does; ``print`` it for a reading in words.

    Attributes
    ----------
    method : str
        Name of the model's class.
    n_clusters : int
        The model's number of clusters, k.
    table : pandas.DataFrame
        One row per kernel, in the model's order, with the columns ``weight`` (the mixing weight,
        which is not importance), ``alignment`` (the share of the kernel's own top-k eigenvalue sum
        that the consensus captures), ``agreement`` (adjusted Rand index between the clusters of
        that kernel alone and the model's, on the samples that the kernel has), ``leave_one_out``
        (the same between the clusters of the model without that kernel and the model's; NaN if not
        asked for, or if the other kernels cannot be clustered), ``cluster_gap`` (relative gap
        between eigenvalues k - 1 and k of the centered kernel; NaN for k = 1), ``top_share`` (the
        share of its trace in its k largest eigenvalues) and ``p_value`` (of the kernel that it is
        most like, corrected for the number of pairs: near zero if it shares something).
    view_agreement : Agreement
        What the kernels share beyond chance, and with which others: the model's ``agreement_``.
    missingness : Missingness or None
        Whether the clusters follow which views samples are missing from: the model's
        ``missingness_``; None if none are missing.
    n_samples : int
        Number of samples of the model.
    n_diagnosed : int
        Number of samples on which the model was fitted again to be diagnosed, or ``n_samples``.
    refit_agreement : float
        Adjusted Rand index between the clusters of that fit and the model's.
    """

    method: str
    n_clusters: int
    table: pd.DataFrame
    view_agreement: Agreement
    missingness: Missingness | None
    n_samples: int
    n_diagnosed: int
    refit_agreement: float = 1.0

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
        """Kernels that share nothing, by the rule of `diagnose`; none if it cannot be tested."""
        if not self.view_agreement.is_testable:
            return ()
        shares = zip(self.names, self.view_agreement.shares, strict=True)
        return tuple(name for name, some in shares if not some)

    @property
    def duplicates(self) -> tuple[tuple[str, str], ...]:
        """Pairs of kernels that are nearly the same: of a redundancy above 0.99."""
        pairs = np.argwhere(np.triu(self.redundancy > COPY_ALIGNMENT, 1))
        return tuple((self.names[p], self.names[q]) for p, q in pairs)

    def summary(self) -> str:
        """Return the reading in words: which views agree, all kernels, and what stands out.

        Returns
        -------
        str
        """
        title = f"{self.method}, {count(self.n_clusters, 'cluster')}, {len(self.names)} kernels"
        shown = self.table.dropna(axis=1, how="all")
        rows = [["kernel", *(column.replace("_", " ") for column in shown)]]
        for name, *values, p_value in shown.itertuples():
            rows.append([name, *map(_number, values), p_text(p_value)])
        verdict = self.view_agreement.verdict()
        lines = [title, "", verdict, "", text_table(rows), "", *self.sentences()]
        if self.missingness is not None:
            lines += ["", self.missingness.summary()]
        return "\n".join(lines)

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def sentences(self) -> list[str]:
        """Return what stands out, in sentences.

        Returns
        -------
        list of str
        """
        found = self._about_noise()
        number = connected_components(self.redundancy > COPY_ALIGNMENT, directed=False)[1]
        for group in [np.flatnonzero(number == each) for each in np.unique(number)]:
            if len(group) > 1:
                found.append(
                    f"Kernels {_listed([self.names[p] for p in group])} are nearly the same "
                    f"(redundancy above {COPY_ALIGNMENT}): they repeat the same information "
                    f"{len(group)} times."
                )
        without = self.table["leave_one_out"]
        if self.n_clusters > 1 and without.min() >= SAME:
            found.append("No single kernel changes the clusters.")
        elif self.n_clusters > 1 and without.notna().any():
            found.append(
                f"The clusters depend most on kernel {without.idxmin()!r}: without it they stay "
                f"the same to {without.min():.2f} (adjusted Rand index)."
            )
        if self.n_diagnosed < self.n_samples:
            found.append(
                f"Clusters of single kernels, and without them, are those of a fit on "
                f"{self.n_diagnosed:,} of the {self.n_samples:,} samples, whose clusters agree "
                f"with the model's to {self.refit_agreement:.2f} (adjusted Rand index)."
            )
        return found

    def _about_noise(self) -> list[str]:
        noise, weights = self.noise, self.table["weight"]
        if not self.view_agreement.is_testable:
            return ["Too few samples or views to tell which kernels are noise."]
        if not noise:
            return ["No kernel looks like noise: each shares something with another one."]
        if len(noise) == len(self.names):
            return [
                "All kernels look like noise: no two share anything beyond chance. Either there "
                "are no clusters to be found, or each kernel has structure that no other has. Are "
                "the samples in the same order in all of them?"
            ]
        sentences = [
            f"Kernel {name!r} looks like noise: it shares nothing with the other kernels beyond "
            f"chance (p = {p_text(row['p_value'])}), and its own clusters agree with the consensus "
            f"to {_number(row['agreement'])}."
            for name, row in self.table.loc[list(noise)].iterrows()
        ]
        largest = weights.idxmax()
        if largest in noise and np.ptp(weights) > 0:
            sentences.append(
                f"Weights are not importance: the largest of all, {weights.max():.2f}, is that of "
                f"{largest!r}."
            )
        others = [name for name in self.names if name not in noise]
        advice = f"{self.method} has set {_listed(noise)} aside."
        if weights[list(noise)].any():
            advice = f"check before you fit again with {_listed(others)}. AgreementKKM sets aside "
            advice += "what shares nothing."
        kind = "A kernel that shares nothing is noise, or structure that no other kernel has"
        return [*sentences, f"{kind}: {advice}"]


def diagnose(
    model: Any, X: Any, *, leave_one_out: bool = True, max_samples: int = 2000
) -> Diagnosis:
    r"""Say what each kernel of a fitted model brings: structure, agreement, a copy, or noise.

    **When a kernel looks like noise.** If it shares nothing with any other kernel beyond chance, as
    `mkclust.agreement` measures it: the debiased alignment of the two is no larger than it would be
    if the samples of one of them were permuted. The p-value is corrected for the number of pairs;
    less than 1e-5 is beyond chance. Copies of a kernel (a redundancy above 0.99), and kernels that
    a bank made from one view, prove nothing about each other. Labels, weights and the consensus,
    which noise may have ruined, are not used, nor is it whether a kernel has clusters of its own: a
    random category, one-hot coded, has perfect ones. So a kernel that shares nothing is noise, or
    structure that no other kernel has, and nothing in the kernels can tell which of the two.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
        What the model was fitted on, with two kernels or more.
    leave_one_out : bool, default=True
        Fit the model again without each kernel in turn, which takes most of the time.
    max_samples : int, default=2000
        If there are more samples, the model is fitted again on this many of them, drawn from all
        clusters, and that fit is diagnosed.

    Returns
    -------
    Diagnosis

    Notes
    -----
    Everything is deterministic: if ``random_state`` is not an integer, k-means starts from the
    seed zero. With an approximation the kernels are those of the features that the model learned;
    whether other landmarks would give other clusters, `mkclust.stability` with
    ``vary="landmarks"`` tells.

    Limits of the rule. Whatever two kernels share counts, be it a batch effect, and the more
    samples the less of it is needed. Two unlike kernels that were precomputed from one noise view
    share that view's features, so that neither is called noise. With too few samples, or if all
    kernels are from one view or copies of one, no kernel is called noise. If no two kernels share
    anything, all are named.

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
    Kernel 'dice' looks like noise: it shares nothing with the other kernels beyond chance ...
    """
    check_fitted(model)
    if len(model.kernel_names_) < 2:
        raise ValueError(
            "the model was fitted on one kernel: there is nothing to compare it with; a diagnosis "
            "takes two kernels or more"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit itself has warned
        samples, model = in_order_of_fit(model, X), only_covered(model)
        n, labels = len(model.labels_), to_host(model.labels_, None)
        if samples.n_samples != n:
            raise ValueError(f"X has {samples.n_samples} samples, the model was fitted on {n}")
        diagnosed, part = model, np.arange(n)
        if n > max_samples or is_approximated(model):
            part = sample_clusters(labels, max_samples)
            diagnosed, samples = _refit(model, samples, part)
        columns = _compare(diagnosed, open_again(diagnosed, samples), leave_one_out)
    columns = {"weight": model.weights_, "alignment": model.alignments_, **columns}
    columns["p_value"] = model.agreement_.chances.min(axis=1)
    return Diagnosis(
        method=type(model).__name__,
        n_clusters=model.n_clusters,
        table=pd.DataFrame(columns, pd.Index(model.kernel_names_)),
        view_agreement=model.agreement_,
        missingness=getattr(model, "missingness_", None),
        n_samples=n,
        n_diagnosed=len(part),
        refit_agreement=agreement_of_labels(labels[part], diagnosed.labels_),
    )


def _refit(model: Any, samples: Any, part: np.ndarray) -> tuple[Any, Any]:
    """Fit a model again on some samples, with exact kernels; return it, and its input."""
    if not is_approximated(model):
        parts = Parts.of_fit(model, samples)
        X, refitted = parts.take(part), parts.unfitted(model)
    else:
        # As the maps give them: the refit centers and scales them, as the fit did.
        maps, block = model._source.features, as_blocks(samples).take(part)
        features = replace(maps, means=None, floors=None).of_observed(block)
        kernels = tuple(to_host(F @ F.T) for F in features)
        missing = None if block.observed is None else ~block.observed
        X = Samples("kernels", model.kernel_names_, kernels, missing=missing)
        refitted = unfitted_copy(model).set_params(
            approximation=None,
            kernels="precomputed",
            scale="auto",
            random_state=integer_seed(model),
        )
    return refitted, in_order_of_fit(refitted.fit(X), X)


def _compare(model: Any, stack: Stack, leave_one_out: bool) -> dict[str, Any]:
    """Return what each kernel shows alone, and how the clusters change without it."""
    k, labels = model.n_clusters, model.labels_
    relaxations = [relax(K, k, tol=EIGEN_TOLERANCE) for K in stack.kernels]
    centered, traces = relaxations, stack.traces()
    if not model.center:
        kernels = tuple(map(_centered, stack.kernels))
        centered = [relax(K, k, tol=EIGEN_TOLERANCE) for K in kernels]
        traces = replace(stack, kernels=kernels).traces()
    agreement = []
    for p, relaxation in enumerate(relaxations):
        # The rows that k-means clusters, as in fit: zero beyond the rank of a kernel.
        scale = inverse(relaxation.eigenvalues[:k], stack.n_samples, rounding_of_entries(stack))
        rows = relaxation.products[:, :k] * to_device(scale, relaxation.products)
        seen = _samples_of(model, [p])
        agreement.append(agreement_of_labels(labels[seen], _discretize(model, select(rows, seen))))
    each = range(len(relaxations))
    return {
        "agreement": agreement,
        "leave_one_out": [
            _compare_without(model, stack, p) if leave_one_out else np.nan for p in each
        ],
        "cluster_gap": [relaxation.cluster_gap for relaxation in centered],
        "top_share": [
            r.value / t if t > 0 else np.nan for r, t in zip(centered, traces, strict=True)
        ],
    }


def _compare_without(model: Any, stack: Stack, p: int) -> float:
    """Return the adjusted Rand index of the clusters without a kernel, NaN if there are none."""
    rest = [q for q in range(stack.n_kernels) if q != p]
    # The same kernels of the same views: read again, each kernel would be a view of its own.
    others = stack.subset(rest)
    others = replace(others, kernels=with_active(others.kernels, range(len(rest))))
    refitted = unfitted_copy(model).set_params(random_state=integer_seed(model))
    try:
        solution = refitted.solve(others)
        others = others if solution.stack is None else solution.stack
        rows, used = refitted._rows(others, solution)[0], rest
        if solution.coefficients is not None:
            used = [rest[q] for q in np.flatnonzero(solution.coefficients)]
        seen = _samples_of(model, used)
        return agreement_of_labels(model.labels_[seen], _discretize(model, select(rows, seen)))
    except ValueError:  # the other kernels may tell too few samples apart
        return np.nan


def _samples_of(model: Any, kernels: Sequence[int]) -> np.ndarray:
    """Return the indices of the samples that some of the kernels have."""
    observed = observed_of_kernels(model)
    if observed is None:
        return np.arange(len(model.labels_))
    return np.flatnonzero(observed[:, list(kernels)].any(axis=1))


def _discretize(model: Any, rows: Array) -> Array:
    """Return the clusters of rows, by the model's own settings."""
    return discretize(
        rows, model.n_clusters, n_init=model.n_init, random_state=integer_seed(model)
    )[0]


def _centered(kernel: Kernel) -> Kernel:
    n = kernel.n_samples
    means = kernel @ to_device(np.full((n, 1), 1 / n), kernel.like)
    return Standardized(kernel, Standardization(kernel.diagonal(), row_means=means[:, 0]))


def _number(value: float) -> str:
    """Return a value in two decimals, a dash for NaN."""
    return "-" if np.isnan(value) else f"{value:.2f}".replace("-0.00", "0.00")


def _listed(names: Sequence[str]) -> str:
    """Return all names, in quotes."""
    return join_words([repr(name) for name in names], most=len(names))


def p_text(value: float) -> str:
    """Return a p-value in two digits; below what counts as beyond chance, only that it is less."""
    return f"{value:.2g}" if value >= BEYOND_CHANCE else f"<{BEYOND_CHANCE:g}"
