"""Embed new samples, and find those of which the used views have no entries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from mkclust.data.samples import Samples
from mkclust.engine.eigen import Relaxation
from mkclust.exceptions import UncoveredSamplesWarning, warn
from mkclust.linalg import (
    arrays_to_host,
    astype,
    hstack,
    is_foreign,
    is_on_accelerator,
    namespace,
    precision_of,
    to_device,
    to_host,
    zeros,
)
from mkclust.stack import Kernel, Observed, Source, Stack, Standardization, Standardized
from mkclust.stack.compare import draw
from mkclust.stack.discretize import normalize_rows
from mkclust.stack.kernel import multiply
from mkclust.stack.observed import (
    FillRule,
    SampleMap,
    maps_of,
    observed_samples,
    rescaling,
    with_maps,
)
from mkclust.text import join_words
from mkclust.types import Array, Float

# The label of samples of which nothing is known: no view that is used has an entry, or
# finds a neighbor, of them.
UNCOVERED = -1
# Damping of predictions for missing kernels: the observed ones are amplified at most
# ten times.
TRUST = 0.9
# Ridge penalty, for kernels of unit diagonal: the best of 0.1, 1 and 10 on BBCSport and
# MSRC-v5 with 10 to 50 % missing, four seeds of benchmarks/missing_views.py.
RIDGE = 1.0


def inverse(eigenvalues: Float, n_samples: int, precision: float) -> Float:
    """Return reciprocals of falling eigenvalues, zero for those of only rounding."""
    is_positive = eigenvalues > n_samples * precision * max(eigenvalues[0], 0)
    return is_positive / np.where(is_positive, eigenvalues, 1)


def active_kernels(stack: Stack, active: Sequence[int] | None) -> np.ndarray:
    """Return which kernels are active, (m,) of bool, by numbers, or None for all."""
    is_active = np.full(stack.n_kernels, active is None)
    is_active[list(active or ())] = True
    return is_active


def used_kernels(
    stack: Stack, coefficients: np.ndarray | None, active: Sequence[int] | None = None
) -> np.ndarray:
    """Return which kernels a mix uses, (m,) of bool; all if a method mixes none."""
    if coefficients is None:
        return np.ones(stack.n_kernels, bool)
    # What was learned of a sample counts for it in all kernels that are not set aside.
    if any(each and each.fill is not None for each in maps_of(stack.kernels)):
        return active_kernels(stack, active)
    return np.asarray(coefficients) != 0


def observed_of(stack: Stack) -> np.ndarray | None:
    """Return which kernels have which samples, (n, m) of bool; None if all have all."""
    if stack.features is not None:
        return stack.features.observed
    return observed_samples(stack.kernels)


def without_entries(
    empty: np.ndarray, is_used: np.ndarray | slice = slice(None)
) -> np.ndarray:
    """Return sorted indices of samples without entries in used views, given (n, m)."""
    used = empty[:, is_used]
    return np.flatnonzero(used.all(axis=1) & (used.shape[1] > 0))


def numbers_of(some: np.ndarray | None, n: int) -> np.ndarray:
    """Return the numbers of some of n, or of all for None."""
    return np.arange(n) if some is None else some


def called(samples: np.ndarray, ids: np.ndarray | None) -> np.ndarray:
    """Return what samples are called: by their ids, or else by their numbers."""
    return samples if ids is None else ids[samples]


def warn_of_uncovered(
    uncovered: np.ndarray,
    samples: Samples,
    aside: Sequence[str] = (),
) -> None:
    """Warn of samples of which no used view says anything, and name views set aside."""
    if not len(uncovered):
        return
    have = "has" if len(uncovered) == 1 else "have"
    only = ""
    if aside:
        only = f", only in {join_words(aside)}, which a method such as AverageKKM uses"
    warn(
        f"{len(uncovered)} of {samples.n_samples:,} samples {have} no entry, or no "
        f"neighbor, in any view that is used{only}: "
        f"{join_words(called(uncovered, samples.ids))}. Nothing is known of them, and "
        f"the label is {UNCOVERED}",
        UncoveredSamplesWarning,
    )


def embedded_rows(relaxation: Relaxation, precision: float) -> Array:
    """Embed the samples of a mix as new ones: ``K H / L``, zero beyond its rank."""
    k = relaxation.n_clusters
    products = astype(relaxation.products[:, :k], "float64")
    scale = inverse(relaxation.eigenvalues[:k], products.shape[0], precision)
    return products * to_device(scale, products)


def matrix_at(matrices: Array, place: int | slice) -> Array:
    """Return one of several matrices, or some rows of one, of any library."""
    if is_foreign(matrices):
        return matrices[place, ...]
    return matrices[place]


def grams_of(H: Array, products: Array) -> Float:
    """Return every ``H^T K_p H``, (m, k, k), given the products K_p H, (m, n, k)."""
    products = astype(products, precision_of(H))
    grams = np.stack(
        [to_host(H.T @ products[p, ...]) for p in range(products.shape[0])]
    )
    return (grams + grams.transpose(0, 2, 1)) / 2


@dataclass(frozen=True)
class LearnedRows:
    r"""The embedding of samples that some kernels lack, from what the others say.

    With a partition :math:`H = \sum_p K_p P_p`, a kernel :math:`K_p = \Phi_p^\top
    \Phi_p` contributes :math:`\varphi_p(x)^\top \Phi_p P_p` to the embedding of x. If
    it lacks x, it contributes a share :math:`\tau` of that for the features
    :math:`\Phi_p H h(x)` that the embedding predicts. With b(x) the sum of what the
    others contribute,

    .. math:: h(x) = b(x)
              \Big(I - \tau \sum_{p\ \mathrm{lacks}\ x} H^\top K_p P_p\Big)^{-1}.

    A sample in exactly the kernels of a regression is embedded by that instead.
    """

    # H^T K_p P_p for every kernel, (n_kernels, k, k).
    predictions: Float
    # The patterns of kernels, (m,) of bool, for which there are regressions.
    patterns: Sequence[np.ndarray] = ()
    # The kernels that are mixed at all: whether others have a sample does not matter.
    active: np.ndarray | None = None

    def complete(self, rows: Array, seen: np.ndarray) -> Array:
        """Return the embedding, (n, k), of sums with k more columns per regression."""
        k = self.predictions.shape[1]
        given = to_host(rows)
        completed = given[:, :k].copy()
        found, of_row = np.unique(seen, axis=0, return_inverse=True)
        for number, pattern in enumerate(found):
            is_pattern = of_row.ravel() == number
            lacking = self.predictions[~pattern].sum(axis=0)
            completed[is_pattern] @= np.linalg.inv(np.eye(k) - TRUST * lacking)
        for number, pattern in enumerate(self.patterns, start=1):
            is_pattern = ((seen & self.active) == pattern).all(axis=1)
            completed[is_pattern] = given[is_pattern, number * k : (number + 1) * k]
        return to_device(completed, rows)


def learn_regressions(
    stack: Stack,
    H: Array,
    observed: np.ndarray,
    *,
    fewest_per_cluster: int = 5,
    most_samples: int = 2000,
    most_patterns: int = 16,
) -> list[tuple[np.ndarray, Float]]:
    r"""Learn to embed samples by the kernels that have them, for every such pattern.

    If enough samples T are in the kernels S of a pattern and in others, the row is that
    of kernel ridge regression on S,

    .. math:: h(x) = \sum_{i \in T} \bar k_S(x, x_i)\, \alpha_i, \qquad
              \alpha = (\bar K_S + \lambda I)^{-1} H_T,

    where :math:`\bar K_S` is the mean of the kernels of S among T, and :math:`H_T` are
    the rows of T in the embedding, all of one length.

    H is the embedding, and observed is for the kernels that are mixed. Returned are
    patterns, (m,) of bool, each with what every training sample contributes by its
    similarity, (n_samples, k). A regression learns from at least a number of samples
    per cluster, and from at most a number in all; of many patterns, those of the fewest
    samples are not learned.
    """
    rows = to_host(H)
    n_seen = observed.sum(axis=1)
    incomplete = (n_seen > 0) & (n_seen < n_seen.max())
    patterns, counts = np.unique(observed[incomplete], axis=0, return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:most_patterns]
    lengths = np.linalg.norm(rows, axis=1)
    targets = normalize_rows(rows) * np.median(lengths[lengths > 0])
    # Samples in all kernels of a pattern are learned from: how missing ones are filled
    # is not used.
    maps = maps_of(stack.kernels)
    plain = [each and replace(each, scale=None, fill=None) for each in maps]
    stack = replace(stack, kernels=with_maps(stack.kernels, plain))

    regressions = []
    for seen in patterns[frequent]:
        samples = np.flatnonzero(observed[:, seen].all(axis=1) & (n_seen > seen.sum()))
        if len(samples) < fewest_per_cluster * rows.shape[1]:
            continue
        samples = samples[draw(len(samples), most_samples)]
        used = stack.subset(np.flatnonzero(seen).tolist()).among(samples)
        K = to_host(used.mix(np.full(used.n_kernels, 1 / used.n_kernels)).dense())
        K += RIDGE * np.trace(K) / len(K) * np.eye(len(K))
        coefficients = np.zeros_like(targets)
        coefficients[samples] = scipy.linalg.solve(K, targets[samples], assume_a="pos")
        regressions.append((seen, coefficients))
    return regressions


class Similarities(NamedTuple):
    """The similarities of those new samples that some kernels have."""

    kernels: Sequence[int]  # the numbers of these kernels among all
    rows: np.ndarray  # the numbers of the new samples that they have, rising
    # Similarities of these to the training samples that each kernel has, (n_seen,
    # n_observed) by kernel; or an object whose ``blocks()`` yields some rows of all
    # kernels at a time.
    cross: Any
    # (n_kernels, n_seen); None if it follows from the fit.
    self_similarity: Array | None = None
    # Whether they are all training samples that the kernels have, in their order.
    is_training: bool = False

    def blocks(self) -> Iterable[tuple[slice, Array | list[Array]]]:
        """Return some rows at a time, with the similarities of these by kernel."""
        if isinstance(self.cross, Source):
            return self.cross.blocks()
        return [(slice(0, len(self.rows)), self.cross)]

    def rows_at(self, some: slice) -> Array | list[Array]:
        """Return some rows, by kernel."""
        if isinstance(self.cross, Source):
            return self.cross.rows(some.start, some.stop)
        if isinstance(self.cross, list):
            return [matrix_at(each, some) for each in self.cross]
        return self.cross[:, some, ...]


@dataclass(frozen=True)
class Extension:
    r"""The embedding as a function of similarities to the training samples.

    .. math:: h(x) = \sum_p P_p^\top k_p(x)

    The sum is over the kernels that have x; what makes up for the others is a rule, or
    learned. Eigenvectors H of a mix with eigenvalues :math:`\Lambda` have :math:`P_p =
    c_p H \Lambda^{-1}`.
    """

    names: Sequence[str]
    # How similarities by each kernel are centered and scaled, ...
    standardizations: Sequence[Standardization]
    # ... which training samples it has and how others are filled, None if it has all,
    # ...
    maps: Sequence[SampleMap | None]
    # ... and its projection, (n_observed, k); none if the method embeds no new samples.
    projections: Sequence[Array]
    # Which kernels count when samples are scaled up for those that lack them, (m,) of
    # bool.
    active: np.ndarray
    rule: FillRule = "rescale"
    # Learned completion of samples that kernels lack; it replaces the rule.
    learned: LearnedRows | None = None

    @classmethod
    def by(
        cls,
        stack: Stack,
        projections: Sequence[Array] = (),
        rule: FillRule = "rescale",
        active: Sequence[int] | None = None,
    ) -> "Extension":
        """Return the extension of ``sum_p K_p P_p``, scaled up by active kernels."""
        maps = maps_of(stack.kernels)
        is_active = active_kernels(stack, active)
        if all(each is None for each in maps):
            is_active = np.array([bool(namespace(P).any(P != 0)) for P in projections])
        standards = [observed_part(kernel).standardization for kernel in stack.kernels]
        pairs = zip(maps, projections, strict=False)
        gathered = [P if each is None else each.gather(P) for each, P in pairs]
        return cls(stack.names, standards, maps, gathered, is_active, rule)

    def __getstate__(self) -> dict[str, Any]:
        return {name: arrays_to_host(value) for name, value in vars(self).items()}

    def with_regressions(
        self, regressions: Sequence[tuple[np.ndarray, Float]]
    ) -> "Extension":
        """Return a copy with the predictions of regressions in further columns."""
        projections = []
        for p, (P, each) in enumerate(zip(self.projections, self.maps, strict=True)):
            further = [P]
            for seen, a in regressions:
                rows = numbers_of(getattr(each, "samples", None), len(a))
                further.append(to_device(a[rows] * (seen[p] / seen.sum()), P))
            projections.append(hstack(*further))
        assert self.learned is not None
        patterns = [seen for seen, _ in regressions]
        learned = replace(self.learned, patterns=patterns, active=self.active)
        return replace(self, projections=projections, learned=learned)

    def embed_training(self, stack: Stack) -> Array:
        """Embed training samples as new ones: H but for rounding, (n_samples, k)."""
        kernels = list(map(observed_part, stack.kernels))
        pairs = zip(kernels, self.projections, strict=True)
        thin = [to_device(P, kernel.like) for kernel, P in pairs]
        if is_on_accelerator(kernels[0].like) and kernels[0].storage != "streamed":
            # By rows in float64, as new samples: other products there are as precise as
            # the kernel.
            products = list(map(Kernel.__matmul__, kernels, thin))
        else:
            products = multiply(kernels, thin)
        n = stack.n_samples
        rows = [numbers_of(getattr(each, "samples", None), n) for each in self.maps]
        numbers = [[p] for p in range(len(rows))]
        return self._sum(list(zip(numbers, rows, products, strict=True)), n)

    def embed(self, similarities: Sequence[Similarities], n_new: int) -> Array:
        """Embed new samples, (n_new, k), on the device of their similarities."""
        found = [part for part in similarities if len(part.rows) or not n_new]
        parts = [(part.kernels, part.rows, self._embed_some(part)) for part in found]
        if not parts:
            raise ValueError("X is empty, it has no samples: pass at least one")
        return self._sum(parts, n_new)

    def _sum(
        self, parts: Sequence[tuple[Sequence[int], np.ndarray, Array]], n: int
    ) -> Array:
        """Return the embedding, given what kernels contribute to samples they have."""
        seen = np.zeros((n, len(self.names)), bool)
        total = None
        for kernels, rows, contribution in parts:
            seen[np.ix_(rows, np.asarray(kernels))] = True
            if len(rows) < n:
                contribution = SampleMap(rows, n).scatter(contribution)
            total = contribution if total is None else total + contribution
        if self.learned is not None:
            return self.learned.complete(total, seen)
        if self.rule == "zero" or seen.all():
            return total
        return total * to_device(rescaling(seen, self.active), total)[:, None]

    def _embed_some(self, part: Similarities) -> Array:
        """Return what kernels contribute to the samples that they have, (n_seen, k)."""
        embedded = []
        for rows, matrices in part.blocks():
            parts = []
            for place, p in enumerate(part.kernels):
                cross = matrix_at(matrices, place)
                lengths = self.lengths(part, place, cross, rows)
                contribution = self.standardizations[p].project(
                    cross, self.projections[p], lengths, is_training=part.is_training
                )
                parts.append(contribution)
            embedded.append(sum(parts[1:], parts[0]))
        return namespace(*embedded).concat(embedded)

    def lengths(
        self, part: Similarities, place: int, cross: Array, rows: slice
    ) -> Array | None:
        """Return the similarities of new samples to themselves, if scaling needs them.

        They are some ``rows`` of a part, with similarities ``cross`` by the kernel at a
        place among its own.
        """
        p = part.kernels[place]
        how = self.standardizations[p]
        xp = namespace(cross)
        if part.self_similarity is not None:
            given = part.self_similarity[place, rows]
            # NaN is what follows from the fit, and need not be passed.
            if not bool(xp.any(xp.isnan(given[:1]))):
                return given
        if how.scale is None:
            return None
        if part.is_training:
            return (how.diagonal - how.shift)[rows]

        constant = how.constant_self_similarity()
        if constant is None:
            raise ValueError(
                f"{self.names[p]}: scaling new samples needs their similarity to "
                "themselves, and it is not constant for this kernel; pass "
                "self_similarity, an array of k(x, x) with a row for each kernel and a "
                "column for each new sample, or fit with normalize=False"
            )
        return zeros((cross.shape[0],), cross) + constant


def observed_part(kernel: Kernel) -> Standardized:
    """Return a kernel over the samples that it has."""
    inner: Any = kernel.kernel if isinstance(kernel, Observed) else kernel
    return inner


def is_training(standardization: Standardization, cross: Array) -> bool:
    """Return whether similarities are all those among the training samples."""
    # They are if they have the diagonal, and are symmetric but for rounding, by one
    # product.
    n = standardization.diagonal.shape[0]
    if tuple(cross.shape) != (n, n):
        return False
    xp = namespace(cross)
    expected = to_device(standardization.diagonal, cross) - standardization.shift
    diagonal = xp.linalg.diagonal(cross) if is_foreign(cross) else cross.diagonal()
    difference = xp.abs(xp.astype(diagonal, xp.float64) - expected)
    if not bool(xp.all(difference <= 1e-6 * xp.abs(expected))):
        return False
    probe = np.random.default_rng(0).standard_normal((n, 1))
    columns = to_device(probe, cross, precision_of(cross))
    left = to_host(cross @ columns)
    right = to_host(cross.T @ columns)
    return bool(np.abs(left - right).max() <= 1e-3 * np.abs(left).max())
