"""Turn views of the samples into a bank of Gaussian, polynomial and linear kernels."""

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mkclust.kernels.rows import CrossRows, KernelRows, power
from mkclust.kernels.tiles import integer_power
from mkclust.linalg import (
    astype,
    copied,
    free_bytes,
    is_foreign,
    namespace,
    on_host,
    precision_of,
    to_device,
)
from mkclust.linalg.memory import require_memory
from mkclust.samples.distances import (
    drawn_rows,
    mean_squared_norm,
    median_distance,
    middle,
    safe_norms,
    squared_distances,
    squared_norms,
)
from mkclust.samples.forms import TABLE
from mkclust.samples.local import fingerprint
from mkclust.samples.samples import Expected, Samples, read_views
from mkclust.types import Array

BLOCK_ROWS = 256


class KernelBank(TransformerMixin, BaseEstimator):
    r"""Turn views into a bank of kernels.

    By default each view gives twelve kernels, the customary make-up of a bank in the multiple
    kernel clustering literature: seven Gaussian, four polynomial and one linear,

    .. math:: \exp\Bigl(-\frac{\|x - y\|^2}{2 (w s)^2}\Bigr), \qquad
              \Bigl(a + \frac{x^\top y}{c}\Bigr)^b, \qquad \frac{x^\top y}{c}

    where :math:`s` is the median distance between two training rows and :math:`c` the mean
    squared norm of a training row. Both are learned, so multiplying a view by a constant changes
    none of its kernels.

    Parameters
    ----------
    widths : sequence of float, default=(1/8, 1/4, 1/2, 1, 2, 4, 8)
        One Gaussian kernel for each: its standard deviation :math:`w`, in median distances.
    polynomials : sequence of (float, int), default=((0, 2), (0, 4), (1, 2), (1, 4))
        One polynomial kernel for each: its offset :math:`a`, in units of the mean squared norm,
        and its degree :math:`b`.
    linear : {"linear", "cosine"} or None, default="linear"
        One more kernel: the inner product :math:`x^\top y / c`, or the cosine of the angle
        between two rows (zero where a row is zero), or none.
    on_the_fly : bool, default=False
        Return no arrays but sources of rows, which compute the kernels from the views some rows at
        a time, as often as they are asked for. Memory is then as long as the views and not their
        square, and every product with the kernels takes the time to compute them.

    Attributes
    ----------
    views_ : dict of str to array of shape (n_samples, n_features)
        The training views, against which new rows are compared: copies, so that nothing changes
        with the arrays that were passed. Memory maps are not copied; where their files hold other
        numbers later, new rows are refused.
    medians_ : dict of str to float
        Median distance between two training rows, for each view; empty without Gaussian kernels.
    scales_ : dict of str to float
        Mean squared norm of a training row, for each view.
    kernel_views_ : tuple of int
        The number of the view that each kernel is of.
    kernel_names_ : tuple of str
        One name a kernel, in their order: view by view, Gaussian, then polynomial, then linear.
    n_features_in_ : int
        Number of columns over all views.

    Notes
    -----
    The median is taken over all pairs of rows up to 5,000 rows, and over the pairs of 5,000 rows
    drawn with a fixed seed beyond that. Where more than half of the pairs are identical rows,
    the mean of the distances that are not zero stands in for it.

    Kernels are float32 if every training view is, and float64 otherwise. Distances and inner
    products are computed in float64 in both cases.

    Of views of another library than NumPy, such as torch or CuPy, the kernels are arrays of that
    library, computed and kept on the device of the views; new rows are brought there. They are
    computed in their own precision: those of float32 views are good to about 1e-6, Gaussian ones
    narrower than the median distance to fewer digits (1e-5 at an eighth of it), and so are those
    of rows far from the rest. Identical rows have a similarity of exactly one in float64, and one
    up to that rounding in float32. A pickled bank, and pickled rows of kernels on the fly, hold
    their arrays on the host, so that they can be loaded where that device is not.

    Examples
    --------
    One Gaussian kernel a view, and the kernels of two new samples against the thirty known ones:

    >>> import numpy as np
    >>> from mkclust.kernels import KernelBank
    >>> rng = np.random.default_rng(0)
    >>> views = {"pixels": rng.normal(size=(30, 5)), "words": rng.normal(size=(30, 8))}
    >>> bank = KernelBank(widths=(1.0,), polynomials=(), linear=None).fit(views)
    >>> bank.kernel_names_
    ('pixels', 'words')
    >>> bank.transform({name: view[:2] + 0.1 for name, view in views.items()}).shape
    (2, 2, 30)

    The same kernels for more samples than their matrices would fit into memory for:

    >>> from mkclust import SimpleMKKM
    >>> bank = KernelBank(widths=(1.0,), polynomials=(), linear=None, on_the_fly=True)
    >>> bank.fit_transform(views).rows(0, 4).shape
    (2, 4, 30)
    >>> SimpleMKKM(2, kernels=bank, random_state=0).fit(views).labels_.shape
    (30,)
    """

    def __init__(
        self,
        *,
        widths=(1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0),
        polynomials=((0, 2), (0, 4), (1, 2), (1, 4)),
        linear="linear",
        on_the_fly=False,
    ):
        self.widths = widths
        self.polynomials = polynomials
        self.linear = linear
        self.on_the_fly = on_the_fly

    def fit(self, X: Any, y: Any = None) -> "KernelBank":
        """Learn the width and scale of each view and keep the views for new rows.

        Parameters
        ----------
        X : mapping, list, tuple, array or data frame
            Views, each of shape (n_samples, n_features), in any form that `as_views` accepts.
        y : None
            Ignored; present for pipelines.

        Returns
        -------
        KernelBank
            The fitted bank itself.
        """
        self._check_parameters()
        return self._learn(read_views(X))

    def _learn(self, samples: Samples) -> "KernelBank":
        """Learn from views, and from the names of their columns."""
        views = samples.views
        if next(iter(views.values())).shape[0] < 2:
            advice = "but the typical distance between samples takes at least two"
            raise ValueError(f"Found n_samples=1, {advice}.")
        fingerprints = {name: fingerprint(view) for name, view in views.items()}
        views = {name: view if fingerprints[name] else copied(view) for name, view in views.items()}
        scales = {name: mean_squared_norm(name, view) for name, view in views.items()}
        # Distances do not depend on the origin, and inner products give them to more digits the
        # closer it is; the median stays close despite outliers.
        origins = {name: middle(view) for name, view in views.items()}
        medians = {
            name: median_distance(name, _moved(view, origins[name]))
            for name, view in views.items()
            if len(self.widths) > 0
        }
        self.views_, self.scales_, self.medians_, self._origins = views, scales, medians, origins
        self._columns, self._fingerprints = samples.columns, fingerprints
        self.kernel_names_ = tuple(self._names())
        n_views = len(self.views_)
        self.kernel_views_ = tuple(np.repeat(range(n_views), len(self.kernel_names_) // n_views))
        self.n_features_in_ = sum(view.shape[1] for view in views.values())
        return self

    def __copy__(self) -> "KernelBank":
        """Return a bank over the same views, where they are."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: arrays on the host, wherever they live."""
        state = dict(super().__getstate__())
        for name in {"views_", "_origins"} & state.keys():
            state[name] = {view: on_host(array) for view, array in state[name].items()}
        return state

    def fit_transform(self, X: Any, y: Any = None) -> Array | KernelRows:
        """Fit to views and return their kernels.

        Parameters
        ----------
        X : mapping, list, tuple, array or data frame
            Views, each of shape (n_samples, n_features), in any form that `as_views` accepts.
        y : None
            Ignored; present for pipelines.

        Returns
        -------
        array of shape (n_kernels, n_samples, n_samples)
            The kernels, exactly symmetric. On the fly, their rows: ``rows(start, stop)`` gives
            those of all kernels, symmetric up to rounding.
        """
        self._check_parameters()
        samples = read_views(X)
        views = samples.views
        n = next(iter(views.values())).shape[0]
        self._require_memory(len(views), n, n, views, "")
        return self._learn(samples)._kernels(self.views_)

    def transform(self, X: Any) -> Array | CrossRows:
        """Return the kernels of new rows against the training rows, where these live.

        Parameters
        ----------
        X : mapping, list, tuple, array or data frame
            New views, of shape (n_new, n_features), with the names and columns of the known ones.

        Returns
        -------
        array of shape (n_kernels, n_new, n_samples)
            Cross kernels; exactly symmetric, with the diagonal that :meth:`self_similarity`
            gives, where `X` holds the training views. On the fly, their rows: ``blocks()`` gives
            them one after another, ``rows(start, stop)`` those of some samples.
        """
        views, training_views = self._check_new(X), self.views_
        n_new, n = (next(iter(rows.values())).shape[0] for rows in (views, training_views))
        advice = ", or pass fewer new samples at a time"
        self._require_memory(len(training_views), n_new, n, training_views, advice)
        return self._kernels(views)

    def announce(self, X: Any) -> tuple[int, int, np.dtype]:
        """Tell the size of the kernels of views, without looking at more than their shapes.

        Parameters
        ----------
        X : mapping, list, tuple, array or data frame
            Views, as :meth:`fit` takes them; they need not be sound.

        Returns
        -------
        n_kernels, n_samples : int
            How many kernels there will be, and of how many samples.
        dtype : dtype
            Their number type, as NumPy names it.
        """
        self._check_parameters()
        views = read_views(X).parts
        n = max((_length(view) for view in views), default=0)
        single = all(map(_is_single, views))
        return self._kinds() * len(views), n, np.dtype(np.float32 if single else np.float64)

    def self_similarity(self, X: Any) -> Array:
        """Return each kernel between every new row and itself.

        Parameters
        ----------
        X : mapping, list, tuple, array or data frame
            New views, of shape (n_new, n_features), with the names and columns of the known ones.

        Returns
        -------
        array of shape (n_kernels, n_new)
            The values k(x, x), which scaling a kernel to a unit diagonal needs.
        """
        return self._self_similarity(self._check_new(X))

    def _check_parameters(self) -> None:
        """Say which parameter cannot be used, and why."""
        for name in ("widths", "polynomials"):
            if not hasattr(value := getattr(self, name), "__len__"):
                expected = "a sequence, with one entry for each kernel of a view"
                raise ValueError(f"{name} must be {expected}; found {value!r}.")
        for width in self.widths:
            if not (_is_number(width) and 0 < width < np.inf):
                expected = "positive numbers, in units of the median distance"
                raise ValueError(f"widths must be {expected}; found {width!r}.")
        for pair in self.polynomials:
            if not hasattr(pair, "__len__") or len(pair) != 2:
                expected = "pairs of an offset and a degree"
                raise ValueError(f"polynomials must be {expected}; found {pair!r}.")
            offset, degree = pair
            if not (_is_number(offset) and 0 <= offset < np.inf):
                raise ValueError(
                    f"polynomials has the offset {offset!r} in {pair!r}; it must be a number of "
                    "zero or more, or the kernel may not be positive semi-definite."
                )
            if not (isinstance(degree, Integral) and _is_number(degree) and int(degree) > 0):
                problem = f"the degree {degree!r} in {pair!r}"
                raise ValueError(f"polynomials has {problem}; it must be a positive integer.")
        if not (self.linear is None or self.linear in ("linear", "cosine")):
            raise ValueError(f"linear must be 'linear', 'cosine' or None; found {self.linear!r}.")
        if not isinstance(self.on_the_fly, bool | np.bool_):
            raise ValueError(f"on_the_fly must be True or False; found {self.on_the_fly!r}.")
        if len(self.widths) == len(self.polynomials) == 0 and self.linear is None:
            problem = "widths and polynomials are empty and linear is None"
            raise ValueError(f"{problem}, which leaves no kernel; ask for at least one.")

    def _kinds(self) -> int:
        """Count the kernels of one view."""
        return len(self.widths) + len(self.polynomials) + (self.linear is not None)

    def _require_memory(
        self, n_views: int, n_new: int, n: int, training_views: dict[str, Array], advice: str
    ) -> None:
        """Refuse kernels that do not fit into memory, before anything is learned or computed."""
        if self.on_the_fly:
            return
        m, itemsize = self._kinds() * n_views, np.dtype(self._precision(training_views)).itemsize
        require_memory(
            m * n_new * n * itemsize,
            f"holding {m} kernels of {n_new} x {n} entries",
            f"pass on_the_fly=True to compute them when they are asked for{advice}",
            available=free_bytes(next(iter(training_views.values()))),
        )

    @staticmethod
    def _precision(views: dict[str, Array]) -> str:
        """Return the number type of the kernels of training views."""
        single = all(precision_of(view) == "float32" for view in views.values())
        return "float32" if single else "float64"

    def _check_new(self, X: Any) -> dict[str, Array]:
        """Return new views in the order and place of the training views, or say how they differ."""
        check_is_fitted(self)
        self._check_files()
        samples = read_views(X)
        views = samples.views
        if views.keys() != self.views_.keys():
            raise ValueError(
                f"The bank was fitted on {_listed(self.views_)}, but found {_listed(views)}; "
                "pass the new samples in the same form as the training ones."
            )
        samples.check_columns(self._columns, "bank")
        for name, training_view in self.views_.items():
            n_columns, expected = views[name].shape[1], training_view.shape[1]
            if n_columns != expected and list(views) == [TABLE]:
                # The wording that scikit-learn's checks of estimators look for.
                needs = f"{type(self).__name__} is expecting {expected} features as input"
                raise ValueError(f"X has {n_columns} features, but {needs}.")
            if n_columns != expected:
                raise ValueError(
                    f"View {name!r} has {n_columns} columns, but {expected} when the bank was "
                    "fitted; pass the same features in the same order."
                )
        return {
            name: to_device(views[name], training_view)
            for name, training_view in self.views_.items()
        }

    def _check_files(self) -> None:
        """Refuse training views in files that no longer hold what the bank was fitted on."""
        for name, fitted in self._fingerprints.items():
            # Of a bank that was stored and loaded, what was in a file may be in memory.
            if fitted is not None and fingerprint(self.views_[name]) not in (None, fitted):
                raise ValueError(
                    f"View {name!r} is in a file that has changed since the bank was fitted, and "
                    "new samples are compared with what it holds: fit again, or fit on an array "
                    "in memory, such as numpy.array(view)."
                )

    def _names(self) -> Iterator[str]:
        """Name the kernels of every view."""
        kinds = [f"gaussian x{float(width):g}" for width in self.widths]
        for offset, degree in self.polynomials:
            base = f"{float(offset):g}+xy" if offset else "xy"
            kinds.append(f"polynomial {base} ^{degree}")
        if self.linear is not None:
            kinds.append(self.linear)
        for view in self.views_:
            if len(kinds) == 1:
                yield view
            elif list(self.views_) == [TABLE]:
                yield from kinds
            else:
                yield from (f"{view} {kind}" for kind in kinds)

    def _allocate(self, *shape: int) -> np.ndarray:
        """Allocate one result for all kernels, in the type of the training views."""
        dtype = np.dtype(self._precision(self.views_))
        return np.empty((len(self.kernel_names_), *shape), dtype=dtype)

    def _kernels(self, views: dict[str, Array]) -> Any:
        """Compute the kernels of checked views against the training views, or get ready to."""
        training_views = self.views_
        same = all(
            views[v] is training_views[v] or _equal(views[v], training_views[v])
            for v in training_views
        )
        foreign = is_foreign(next(iter(training_views.values())))
        if self.on_the_fly or foreign:
            rows = KernelRows(self, training_views) if same else CrossRows(self, views)
            if self.on_the_fly:
                return rows
            return rows.whole() if isinstance(rows, KernelRows) else rows.rows(0, rows.shape[1])
        n_new, n_samples = (len(next(iter(rows.values()))) for rows in (views, training_views))
        kernels = self._allocate(n_new, n_samples)
        for part, name in zip(np.split(kernels, len(training_views)), training_views, strict=True):
            self._fill(part, name, views[name], same)
        if same:
            np.einsum("pii->pi", kernels)[...] = self._self_similarity(views)
        return kernels

    def _fill(self, kernels: np.ndarray, name: str, view: np.ndarray, same: bool) -> None:
        """Write the kernels of one view in place, by blocks of rows."""
        training = self.views_[name].astype(np.float64, copy=False)
        view = training if same else view.astype(np.float64, copy=False)
        training_moved = training - self._origins[name]
        view_moved = training_moved if same else view - self._origins[name]
        for start in range(0, len(view), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            columns = slice(start if same else 0, None)
            parts = iter(kernels[:, rows, columns])
            if len(self.widths) > 0:
                squared = squared_distances(view_moved[rows], training_moved[columns])
                for width in self.widths:
                    part = next(parts)
                    np.multiply(squared, -0.5 / (width * self.medians_[name]) ** 2, out=part)
                    np.exp(part, out=part)
            if len(self.polynomials) > 0 or self.linear is not None:
                inner = view[rows] @ training[columns].T
                inner /= self.scales_[name]
                for offset, degree in self.polynomials:
                    power(inner + offset, degree, out=next(parts))
                if self.linear == "linear":
                    next(parts)[...] = inner
                elif self.linear == "cosine":
                    inner *= self.scales_[name]
                    inner /= safe_norms(view[rows])[:, None]
                    np.divide(inner, safe_norms(training[columns]), out=next(parts))
            if same:
                _mirror(kernels, start, start + BLOCK_ROWS)

    def _self_similarity(self, views: dict[str, Array]) -> Array:
        """Compute k(x, x) for the rows of checked views."""
        if is_foreign(first := next(iter(views.values()))):
            diagonals = [
                diagonal
                for name, view in views.items()
                for diagonal in self._diagonals_on_device(name, view)
            ]
            return astype(namespace(first).stack(diagonals), self._precision(self.views_))
        result = self._allocate(len(next(iter(views.values()))))
        for part, name in zip(np.split(result, len(views)), views, strict=True):
            squared = squared_norms(views[name]) / self.scales_[name]
            part[: len(self.widths)] = 1
            rest = iter(part[len(self.widths) :])
            for offset, degree in self.polynomials:
                power(squared + offset, degree, out=next(rest))
            if self.linear is not None:
                next(rest)[...] = squared if self.linear == "linear" else squared > 0
        return result

    def _diagonals_on_device(self, name: str, view: Array) -> Iterator[Array]:
        """Compute k(x, x) for the rows of one view on a device, kernel by kernel."""
        xp, squared = namespace(view), squared_norms(view) / self.scales_[name]
        for _ in self.widths:
            yield xp.ones_like(squared)
        for offset, degree in self.polynomials:
            yield integer_power(squared + float(offset), degree)
        if self.linear is not None:
            yield squared if self.linear == "linear" else astype(squared > 0, "float64")


def default_bank(several_views: bool) -> KernelBank:
    """Return the bank where none is asked for: one Gaussian a view, or all kernels of one."""
    return KernelBank(widths=(1.0,), polynomials=(), linear=None) if several_views else KernelBank()


def _length(view: Any) -> int:
    """Return the number of rows of what may be a view, zero where it cannot be told."""
    shape = getattr(view, "shape", None)
    if shape is None:
        return len(view) if hasattr(view, "__len__") else 0
    return int(shape[0]) if len(shape) and shape[0] == shape[0] else 0


def _is_single(view: Any) -> bool:
    """Return whether what may be a view is all of float32."""
    if is_foreign(view):
        floating = namespace(view).isdtype(view.dtype, "real floating")
        return floating and precision_of(view) == "float32"
    dtypes = view.dtypes if hasattr(view, "dtypes") else [getattr(view, "dtype", None)]
    return all(kind == np.float32 for kind in dtypes)


def _is_number(value: Any) -> bool:
    """Tell real numbers from everything else, booleans and NaN included."""
    return isinstance(value, Real) and not isinstance(value, bool) and bool(value == value)


def _equal(A: Array, B: Array) -> bool:
    """Return whether two views hold the same numbers."""
    return A.shape == B.shape and bool(namespace(A).all(A == B))


def _moved(view: Array, origin: Array) -> Array:
    """Return rows from an origin, in float64; on a device those that are drawn anyway."""
    if is_foreign(view):
        return astype(drawn_rows(view), "float64") - origin
    return np.subtract(view, origin, dtype=np.float64)


def _listed(views: dict[str, Array]) -> str:
    """Name views in an error message."""
    if list(views) == [TABLE]:
        return "one table"
    return f"{len(views)} view{'s' * (len(views) > 1)} ({', '.join(map(repr, views))})"


def _mirror(kernels: np.ndarray, start: int, stop: int) -> None:
    """Copy rows ``start`` to ``stop``, right of the diagonal, to the same columns below it."""
    # Kernel by kernel, since NumPy may buffer a copy within one array.
    for kernel in kernels:
        kernel[stop:, start:stop] = kernel[start:stop, stop:].T
        square = kernel[start:stop, start:stop]
        above = np.triu_indices(len(square), k=1)
        square.T[above] = square[above]


def expected_input(kernels: Any) -> Expected:
    """Return what input the parameter ``kernels`` of an estimator asks for, or refuse it."""
    if isinstance(kernels, str) and kernels in ("auto", "precomputed"):
        return "auto" if kernels == "auto" else "precomputed"
    on_the_fly = isinstance(kernels, str) and kernels == "on-the-fly"
    if not (on_the_fly or isinstance(kernels, KernelBank)):
        raise ValueError(
            f"kernels={kernels!r}: pass 'auto', 'on-the-fly', 'precomputed' or a KernelBank "
            "instance"
        )
    return "views"
