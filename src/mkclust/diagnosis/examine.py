"""Examine the kernels of a fitted model."""

import numbers
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mkclust.diagnosis.noise import (
    BEYOND_CHANCE,
    EIGEN_TOLERANCE,
    SAME,
    Centered,
    centered_products,
    chances,
    has_clusters,
    judged_together,
    redundancies,
)
from mkclust.diagnosis.reading import Diagnosis
from mkclust.discretize import discretize
from mkclust.generalize import inverse
from mkclust.linalg import to_host
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.inputs import kind_of_input
from mkclust.metrics import adjusted_rand_index
from mkclust.relaxation import Relaxation, relax
from mkclust.stack import DenseStack, as_stack
from mkclust.types import Array

# Alignments, of which eigenvalue sums are known to a thousandth, differ by less than this.
SAME_ALIGNMENT = 0.01
# With fewer samples than this even kernels of the same clusters may not get beyond chance.
FEWEST_SAMPLES = 30


def diagnose(model: Any, X: Any, *, leave_one_out: bool = True) -> Diagnosis:
    r"""Say what each kernel of a fitted model brings: structure, agreement, a copy, or noise.

    **When a kernel looks like noise.** If it shares nothing with any other kernel beyond chance,
    and has no clear clusters of its own. Labels and weights play no part in that, nor does the
    consensus, which noise may have ruined.

    - *Shares.* :math:`\langle K_p, K_q \rangle` of the centered kernels is compared with what it
      would be if the samples of one of them were shuffled. The mean and the variance over all
      permutations are known exactly [1]_, and a gamma distribution with these says how likely
      that is. So it is done with every other kernel and with the average of the others; the
      least likely of these, times their number, is ``chance``. Less than 1e-4 is beyond chance.
      Kernels of a redundancy above 0.99 are judged together, by their average, and so are the
      kernels that a bank made of one of several views: what they share with each other proves
      nothing.
    - *Clusters of its own.* For some number c of clusters, from two to k + 2, the spectrum of the
      centered kernel drops by a quarter or more after c - 1 eigenvalues, and few samples
      (8 percent) lie in the middle third of the way between the clusters that k-means finds in
      these eigenvectors. Such a kernel stands alone: it is no noise.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
        What the model was fitted on, with two kernels or more.
    leave_one_out : bool, default=True
        Fit the model again without each kernel in turn, which takes most of the time.

    Returns
    -------
    Diagnosis

    Notes
    -----
    Everything is deterministic: where ``random_state`` is no integer, k-means starts from the
    seed zero.

    Limits of the rule. Clusters that overlap and that no other kernel shares cannot be told from
    noise: they are called noise. Whatever two kernels share counts, be it a batch effect, and the
    more samples the less of it is needed. Two unlike kernels that were precomputed from one noise
    view share that view's features, so that neither is called noise; the same holds for the
    kernels of a single table. With fewer than thirty samples, or where all kernels are copies of
    one, no kernel is called noise. If all kernels are noise, all are named.

    References
    ----------
    .. [1] F. Kazi-Aoual, S. Hitier, R. Sabatier, J.-D. Lebreton. Refined approximations to
       permutation tests for multivariate inference. Computational Statistics & Data Analysis 20,
       1995.

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
    if not isinstance(model, MultipleKernelClusterer):
        raise TypeError(f"model is a {type(model).__name__}: pass a fitted estimator of mkclust")
    check_is_fitted(model)
    kernels = _rebuilt_kernels(model, X)
    k, names = model.n_clusters, model.kernel_names_
    # Seeds that change from call to call would make a diagnosis do so, too.
    integral = isinstance(model.random_state, numbers.Integral)
    seed = int(model.random_state) if integral else 0
    # What was checked in fit need not be checked again, but what was repaired must be.
    repaired = model.psd != "error" and model.validate and not hasattr(model, "bank_")

    def standardized(normalize: bool) -> DenseStack:
        return as_stack(
            kernels,
            center=model.center,
            normalize=normalize,
            psd=model.psd,
            validate=repaired,
            names=names,
        )

    with warnings.catch_warnings():
        # The model itself has warned when it was fitted.
        warnings.simplefilter("ignore")
        stack = standardized(model.normalize)
        gram, diagonals = centered_products(stack)
        redundancy = redundancies(gram)
        own = [relax(kernel, k, tol=EIGEN_TOLERANCE) for kernel in stack.kernels]
        _check_same(model, stack, own)
        structure, traces = own, stack.traces()
        if not model.center:
            structure = [relax(Centered(K), k, tol=EIGEN_TOLERANCE) for K in stack.kernels]
            traces = diagonals.sum(axis=1)
        agreement = [
            adjusted_rand_index(model.labels_, _labels(found, stack, model.n_init, seed))
            for found in own
        ]
        without = [
            _agreement_without(p, kernels, model, repaired, seed) if leave_one_out else np.nan
            for p in range(len(names))
        ]
        together = judged_together(model, redundancy)
        chance = chances(gram, diagonals, together)
        alone, noise = np.zeros((2, len(names)), bool)
        if stack.n_samples >= FEWEST_SAMPLES and not together.all():
            # Scaling to unit length would push the samples of few dimensions apart.
            plain = standardized(False).kernels
            unshared = chance >= BEYOND_CHANCE
            for p in np.flatnonzero(unshared).tolist():
                alone[p] = has_clusters(Centered(plain[p]), k)
            alone = together @ alone
            noise = unshared & ~alone
    values, known = np.array([found.value for found in structure]), traces > 0
    return Diagnosis(
        method=type(model).__name__,
        n_clusters=k,
        names=names,
        weights=model.weights_.copy(),
        alignments=model.alignments_.copy(),
        top_share=np.where(known, values / np.where(known, traces, 1), np.nan),
        cluster_gap=np.array([found.cluster_gap for found in structure]),
        agreement=np.array(agreement),
        leave_one_out=np.array(without),
        redundancy=redundancy,
        chance=chance,
        noise=chosen(names, noise),
        alone=chosen(names, alone),
        duplicates=tuple(
            (names[p], names[q]) for p, q in np.argwhere(np.triu(redundancy > SAME, 1))
        ),
    )


def _rebuilt_kernels(model: MultipleKernelClusterer, X: Any) -> Sequence[Array]:
    """Return the kernels that the model was fitted on, neither centered nor scaled."""
    names, n = model.kernel_names_, len(model.labels_)
    if len(names) < 2:
        raise ValueError(
            "the model was fitted on one kernel: there is nothing to compare it with; a diagnosis "
            "takes two kernels or more"
        )
    if hasattr(model, "bank_"):
        kernels = model.bank_.transform(model._views(X, model, reset=False))
        if kernels.shape[1] != n:
            raise ValueError(f"X has {kernels.shape[1]} samples, the model was fitted on {n}")
        # The bank's kernels are exactly symmetric where, and only where, it knows the samples.
        if not all(np.array_equal(K, K.T) for K in kernels):
            raise ValueError("X holds other samples than the model was fitted on: pass the same")
        return kernels
    kind_of_input(X, "precomputed")  # refuses all that is not several matrices
    if len(X) != len(names):
        raise ValueError(f"X has {len(X)} kernels, the model was fitted on {len(names)}")
    if isinstance(X, Mapping):
        X = {str(name): kernel for name, kernel in X.items()}
        if missing := [name for name in names if name not in X]:
            raise ValueError(f"X lacks the kernel {missing[0]!r}, it has {list(X)}")
        X = [X[name] for name in names]
    for name, K in zip(names, X, strict=True):
        if np.shape(K) != (n, n):
            raise ValueError(
                f"{name} has the shape {np.shape(K)}, the model was fitted on {n} samples: pass "
                f"the same {n} x {n} kernels"
            )
    return X


def _labels(found: Relaxation, stack: DenseStack, n_init: int, seed: int) -> np.ndarray:
    """Return the clusters of one kernel alone."""
    k = found.n_clusters
    # As in fit: where the kernel has a rank below k, the coordinate is zero.
    scale = inverse(found.eigenvalues[:k], stack.n_samples, stack.precision)
    rows = to_host(found.products[:, :k] * scale)
    return discretize(rows, k, n_init=n_init, random_state=seed)[0]


def _check_same(
    model: MultipleKernelClusterer, stack: DenseStack, own: Sequence[Relaxation]
) -> None:
    """Refuse kernels that the model's partition does not fit as it fitted those of the fit."""
    H = model.embedding_
    captured = to_host((stack.apply(H) * H).sum(axis=(1, 2)))
    alignments = captured / np.array([found.value for found in own])
    for name, now, then in zip(stack.names, alignments, model.alignments_, strict=True):
        if abs(now - then) > SAME_ALIGNMENT:
            raise ValueError(
                f"X is not what the model was fitted on: kernel {name!r} is aligned with the "
                f"consensus to {now:.2f}, and was to {then:.2f}; pass the same kernels and samples "
                "in the same order"
            )


def _agreement_without(
    p: int, kernels: Sequence[Array], model: MultipleKernelClusterer, validate: bool, seed: int
) -> float:
    """Return how far the clusters stay the same without one kernel, NaN where none are found."""
    others = [K for q, K in enumerate(kernels) if q != p]
    refitted = clone(model)
    refitted.set_params(kernels="precomputed", validate=validate, random_state=seed)
    if len(others) == 1 and "anchor" in refitted.get_params():
        refitted.set_params(anchor=0)  # one kernel has no weights, and so nothing to anchor
    try:
        refitted.fit(others)
    except ValueError:  # the other kernels may tell too few samples apart
        return float("nan")
    return adjusted_rand_index(model.labels_, refitted.labels_)


def chosen(names: Sequence[str], mask: np.ndarray) -> tuple[str, ...]:
    """Return the names that a mask chooses."""
    return tuple(name for name, chosen in zip(names, mask, strict=True) if chosen)
