"""The mixed kernel in which clusters are looked for: of samples, and of draws without clusters."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from mkclust.data.samples import Samples, as_views
from mkclust.data.tables import TABLE
from mkclust.kernels.kinds import RULES
from mkclust.linalg import eigh, eigvalsh, is_sparse, to_host
from mkclust.methods import AverageKKM
from mkclust.methods.training import open_samples
from mkclust.stack import Mix, Stack, as_stack
from mkclust.stack.observed import FillRule, rescaling
from mkclust.types import Float

# Directions of less than this share of the longest are rounding.
RANK_TOLERANCE = 1e-9
# A squared distance may be off a Euclidean one by this share.
EUCLIDEAN_TOLERANCE = 1e-6
# Diagonals of kernels that are one in theory are so to this.
SAME_DIAGONAL = 1e-6
# Draws in search of one that can be scaled.
MOST_TRIES = 20


@dataclass(frozen=True)
class MixSettings:
    """How samples become one kernel: as in ``fit``, then mixed by fixed coefficients.

    Attributes
    ----------
    kernels : "precomputed" or KernelBank
        What the samples are, or what makes kernels of them.
    center, normalize, psd
        As in every estimator.
    coefficients : ndarray of shape (n_kernels,) or None
        Coefficients of the mix; None takes the average.
    fill : {"rescale", "zero"}
        How samples are treated that are missing from views.
    """

    kernels: Any
    center: bool
    normalize: bool
    psd: Literal["error", "clip", "shift"]
    coefficients: Float | None = None
    fill: FillRule = "rescale"

    def stack(self, X: Any, *, validate: bool = True) -> Any:
        """Return the kernels of some samples, centered and scaled as in ``fit``."""
        settings: dict[str, Any] = {"center": self.center, "normalize": self.normalize}
        if isinstance(self.kernels, str):
            return as_stack(X, psd=self.psd, validate=validate, fill=self.fill, **settings)
        if missing_of(X) is not None:
            return self._stack_of_views(X)
        bank = clone(self.kernels).set_params(on_the_fly=False)
        # The bank's own kernels are positive semidefinite by construction.
        settings |= {"validate": False, "names": bank.fit(X).kernel_names_}
        return as_stack(bank.transform(X), views=bank.kernel_views_, **settings)

    def _stack_of_views(self, samples: Samples) -> Stack:
        """Return the kernels of views that lack samples, as a fit makes them."""
        model = AverageKKM(
            1,
            kernels=clone(self.kernels).set_params(on_the_fly=False),
            center=self.center,
            normalize=self.normalize,
            missing_views=self.fill,
        )
        source, kernels = open_samples(model, samples)
        return source.stack(model, kernels)

    def shares(self, n_kernels: int) -> Float:
        """Return the coefficients of so many kernels, summing to one."""
        if self.coefficients is None:
            return np.full(n_kernels, 1 / n_kernels)
        if len(self.coefficients) != n_kernels:
            raise ValueError(
                f"{len(self.coefficients)} coefficients for {n_kernels} kernels: pass one for each"
            )
        return self.coefficients / self.coefficients.sum()

    def mix(self, X: Any, *, validate: bool = True) -> Float:
        """Return the mixed kernel of some samples, centered, (n, n)."""
        return self.mix_stack(self.stack(X, validate=validate))

    def mix_kernels(self, kernels: Sequence[Any], missing: np.ndarray | None = None) -> Float:
        """Return the mix of kernels that need no check, centered, (n, n).

        Of kernels that lack samples, (n, m) of bool, they are those of the samples that they have.
        """
        given: Any = list(kernels)
        if missing is not None:
            names = tuple(map(str, range(len(given))))
            given = Samples("kernels", names, tuple(given), missing=missing)
        stack = as_stack(
            given, center=self.center, normalize=self.normalize, validate=False, fill=self.fill
        )
        return self.mix_stack(stack)

    def mix_stack(self, stack: Stack) -> Float:
        """Return the mix of kernels that are centered and scaled, itself centered, (n, n)."""
        return centered(to_host(Mix(self.shares(stack.n_kernels), stack.kernels).dense()))

    def mixes(self, X: Any, n_views: int) -> "ViewMixes":
        """Return what each view, or single kernel, contributes to the mix."""
        missing = missing_of(X)
        # Of samples that are missing from views, what is scaled is the sum of the shuffled.
        settings = self if missing is None else replace(self, fill="zero")
        stack = settings.stack(X)
        shares = self.shares(stack.n_kernels)
        view = np.asarray(stack.views)
        parts = [np.where(view == v, shares, 0) for v in range(n_views)]
        kernels = [to_host(Mix(part, stack.kernels).dense()) for part in parts]
        if missing is None:
            return ViewMixes([centered(K) for K in kernels])
        scale = np.ones(len(missing))
        if self.fill == "rescale":
            scale = rescaling(~missing[:, view], np.ones(len(view), dtype=bool))
        return ViewMixes(kernels, [np.flatnonzero(~lacks) for lacks in missing.T], scale)


def centered(K: Float) -> Float:
    """Return a kernel centered, whatever was done to it before."""
    K = K - K.mean(axis=0)
    return K - K.mean(axis=1)[:, None]


def missing_of(X: Any) -> np.ndarray | None:
    """Return which samples are missing from which views or kernels, None where none is."""
    return X.missing if isinstance(X, Samples) else None


@dataclass(frozen=True)
class ViewMixes:
    """What each view contributes to the mix.

    Attributes
    ----------
    kernels : list of ndarray of shape (n, n)
        Centered, but where samples are missing: zero for those that a view lacks.
    observed : list of ndarray of int or None
        The numbers of the samples that each view has; None where all have all.
    scale : ndarray of shape (n,) or None
        What every sample of the sum is multiplied with, where some are missing.
    """

    kernels: list[Float]
    observed: list[np.ndarray] | None = None
    scale: Float | None = None

    def shuffled(self, rng: np.random.Generator) -> Float:
        """Return the mix with the samples of every view shuffled for themselves, centered.

        What each view has of its own stays; what views share is gone. A view has the samples that
        it has.
        """
        total = self.kernels[0].copy()
        for v, K in enumerate(self.kernels[1:], start=1):
            order = np.arange(len(K))
            some = order.copy() if self.observed is None else self.observed[v]
            order[some] = rng.permutation(some)
            total += K[np.ix_(order, order)]
        return total if self.scale is None else centered(np.outer(self.scale, self.scale) * total)


class NullSamples:
    """Draws of samples that have no clusters, but the mean and covariance of given ones.

    All coordinates of all views together keep their covariance exactly, within views and between
    them; beyond that they are as random as can be, which for many samples means normally
    distributed. So what is linear in the samples, be it shared by all views, stays; what is not,
    such as clusters, goes.

    Of precomputed kernels the coordinates are those of their feature space. Of one that could be a
    Gaussian kernel (of a constant diagonal, positive, and minus its logarithm a squared Euclidean
    distance) they are those of the space in which it measures distances. Counts, shares, links and
    distances cannot be drawn so without turning negative: of such views the coordinates are those
    of the feature space of their kernels, too.

    Parameters
    ----------
    X : dict of kernels or views, table, or Samples
        Some samples, in memory. Where some are missing from views they are drawn for all, and those
        of the same samples are left out of the draws.
    settings : MixSettings
        How they become one kernel.
    """

    def __init__(self, X: Any, settings: MixSettings):
        self._settings, missing = settings, missing_of(X)
        self._maker = _DrawnKernels(X, settings)
        coordinates = self._maker.coordinates
        self._names, self._observed = list(coordinates), None
        if missing is not None:
            # The row of the most similar sample that a view has stands for one that it lacks: for
            # the covariance alone.
            K, by_name = settings.mix(X), self._maker.observed(X)
            self._observed = [by_name[name] for name in self._names]
            coordinates = {
                name: rows[_nearest(K, by_name[name])] for name, rows in coordinates.items()
            }
        self._means = [view.mean(axis=0) for view in coordinates.values()]
        apart = [view - mean for view, mean in zip(coordinates.values(), self._means, strict=True)]
        # Of one size, so that no view is taken for the rounding of another.
        self._sizes = [np.linalg.norm(view) or 1.0 for view in apart]
        scaled = [view / size for view, size in zip(apart, self._sizes, strict=True)]
        self._ends = np.cumsum([view.shape[1] for view in scaled])[:-1]
        _, lengths, axes = np.linalg.svd(np.hstack(scaled), full_matrices=False)
        has_length = lengths > RANK_TOLERANCE * lengths[0]
        self._axes = lengths[has_length][:, None] * axes[has_length]
        self._n_samples = len(apart[0])

    def draw(self, rng: np.random.Generator) -> Float:
        """Return the mixed kernel of one draw, centered, (n_samples, n_samples)."""
        for _ in range(MOST_TRIES - 1):
            # A sample may be at the very mean of a kernel, and then has no length to be scaled by:
            # rare in a draw, but certain in some of many draws of few columns.
            with suppress(ValueError):
                return self._try(rng)
        return self._try(rng)

    def _try(self, rng: np.random.Generator) -> Float:
        """Return the mixed kernel of one draw, or refuse it as what was given would be refused."""
        rotated = rng.normal(size=(self._n_samples, len(self._axes)))
        rotated = np.linalg.qr(rotated - rotated.mean(axis=0))[0]
        parts = np.split(rotated @ self._axes, self._ends, axis=1)
        views = {
            name: mean + size * part
            for name, mean, size, part in zip(
                self._names, self._means, self._sizes, parts, strict=True
            )
        }
        if self._observed is None:
            return self._settings.mix_kernels(self._maker.kernels(views))
        seen = {
            name: view[some]
            for (name, view), some in zip(views.items(), self._observed, strict=True)
        }
        return self._settings.mix_kernels(self._maker.kernels(seen), self._maker.missing)


def _nearest(K: Float, observed: np.ndarray) -> np.ndarray:
    """Return for every sample the place of the most similar one of some: of these, themselves."""
    places = np.argmax(K[:, observed], axis=1)
    places[observed] = np.arange(len(observed))
    return places


class _DrawnKernels:
    """The coordinates of samples that are drawn anew, and the kernels of such draws.

    Parameters
    ----------
    X : dict of kernels or views, table, or Samples
        Some samples, in memory.
    settings : MixSettings
        How they become kernels.

    Attributes
    ----------
    coordinates : dict of str to ndarray of shape (n_samples, n_coordinates)
        Rows of views, and coordinates of the feature space of kernels: of the samples that they
        have.
    missing : ndarray of bool of shape (n_samples, n_kernels) or None
        Which samples the kernels lack; None where they lack none.
    """

    def __init__(self, X: Any, settings: MixSettings):
        self._settings, self._bank, self.missing = settings, None, missing_of(X)
        if isinstance(settings.kernels, str):
            rows: dict[str, Float] = {}
            kernels = X.by_name if isinstance(X, Samples) else X
        else:
            rows, kernels = self._learn(X)
        coordinates, self._gaussian = _coordinates(kernels, settings) if kernels else ({}, {})
        self.coordinates: dict[str, Float] = rows | coordinates

    def observed(self, samples: Samples) -> dict[str, np.ndarray]:
        """Return the numbers of the samples that are there, by the names of coordinates."""
        bank = self._bank
        if bank is None:
            return samples.observed
        views = samples.observed
        names = list(views)
        of_kernels = zip(bank.kernel_names_, bank.kernel_views_, strict=True)
        # Coordinates are those of a view, or of a kernel of a view.
        return {name: views[names[view]] for name, view in of_kernels} | views

    def _learn(self, X: Any) -> tuple[dict[str, Float], dict[str, Float]]:
        """Return the views whose rows can be drawn, and the kernels of the others."""
        bank = clone(self._settings.kernels).set_params(on_the_fly=False).fit(X)
        self._one_table = not isinstance(X, Mapping | Samples)
        views = X.views if isinstance(X, Samples) else as_views(X)
        rules = dict(zip(views, bank.rules_.values(), strict=True))
        asked = bank.rules if isinstance(bank.rules, Mapping) else {}
        rows = {
            name: view
            for name, view in views.items()
            if _can_be_drawn(rules[name], asked.get(name)) and not is_sparse(view)
        }
        of_rows = [list(views)[view] in rows for view in bank.kernel_views_]
        self._places = [place for place, each in enumerate(of_rows) if each]
        others = [place for place, each in enumerate(of_rows) if not each]
        if self.missing is not None:
            self.missing = self.missing[:, list(bank.kernel_views_)]
            parts = [bank.of_view(name).training_kernels() for name in views] if others else []
            made = [kernel for part in parts for kernel in part]
        else:
            made = bank.transform(X) if others else []
        if bank.rules is not None:
            bank.set_params(rules={name: rules[name] for name in rows})
        self._bank, self._other_places = bank, others
        return rows, {bank.kernel_names_[place]: _written_out(made[place]) for place in others}

    def kernels(self, drawn: dict[str, Float]) -> list[Any]:
        """Return the kernels of drawn coordinates, in the order of those that were given."""
        kernels = [_inner_products(drawn[name], each) for name, each in self._gaussian.items()]
        rows = {name: each for name, each in drawn.items() if name not in self._gaussian}
        if self._bank is None or not rows:
            return kernels
        if self.missing is None:
            made = clone(self._bank).fit_transform(rows[TABLE] if self._one_table else rows)
        else:  # of different samples: one view after another
            made = [
                K for name in rows for K in self._bank_of(name).fit_transform({name: rows[name]})
            ]
        by_place = dict(zip(self._other_places, kernels, strict=True))
        by_place |= dict(zip(self._places, made, strict=True))
        return [by_place[place] for place in sorted(by_place)]

    def _bank_of(self, name: str) -> Any:
        """Return the bank for one of the views alone, not fitted."""
        bank = clone(self._bank)
        return bank if bank.rules is None else bank.set_params(rules={name: bank.rules[name]})


def _can_be_drawn(kind: str, asked: Any) -> bool:
    """Return whether rows of views of a kind, and what transforms them, take any numbers."""
    return RULES[kind].takes_any_numbers and getattr(asked, "preprocess", None) is None


def _inner_products(F: Float, is_gaussian: bool) -> Float:
    """Return the kernel of coordinates: their inner products, or the Gaussian of distances."""
    K = F @ F.T
    if is_gaussian:
        lengths = np.diag(K)
        K = np.exp(K - lengths / 2 - lengths[:, None] / 2)
    return (K + K.T) / 2


def _written_out(kernel: Any) -> Float:
    """Return the entries of a kernel, (n, n)."""
    return kernel.toarray() if is_sparse(kernel) else np.asarray(kernel)


def _coordinates(kernels: dict[str, Float], settings: MixSettings) -> tuple[dict[str, Float], dict]:
    """Return coordinates of the samples for each kernel, and whether it could be Gaussian."""
    coordinates, gaussian = {}, {}
    for name, given in kernels.items():
        stack: Any = as_stack(
            {name: given},
            center=settings.center,
            normalize=False,
            psd=settings.psd,
        )
        K = to_host(stack.kernels[0].dense())
        inner = _gaussian_inner_products(given)
        gaussian[name] = inner is not None
        values, vectors = eigh(K if inner is None else inner)
        coordinates[name] = vectors * np.sqrt(np.maximum(values, 0))
    return coordinates, gaussian


def _gaussian_inner_products(K: Float) -> Float | None:
    """Return the inner products of points of which K is the Gaussian kernel, None if of none."""
    diagonal = np.diag(K)
    constant = np.ptp(diagonal) <= SAME_DIAGONAL * abs(diagonal[0])
    if not constant or K.min() <= 0:
        return None
    inner = centered(np.log(K / diagonal[0]))
    values = eigvalsh(inner)
    return inner if values[0] >= -EUCLIDEAN_TOLERANCE * max(values[-1], 0) else None
