"""Turn views of the samples into a bank of Gaussian, polynomial and linear kernels."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mkclust.kernels.formulas import Formula, Tile, read_formulas
from mkclust.kernels.neighborhoods import NeighborCount, NeighborhoodKernels, count_neighbors
from mkclust.kernels.rows import CrossRows, KernelRows
from mkclust.kernels.training import (
    are_equal,
    is_single,
    length_of,
    precision_of_all,
    read_new_views,
)
from mkclust.kernels.view_neighborhoods import new_neighborhoods, view_neighborhoods
from mkclust.linalg import arrays_to_host, astype, copy_array, free_bytes, is_foreign, namespace
from mkclust.linalg.memory import require_memory
from mkclust.parameters import check_parameter
from mkclust.samples.distances import (
    drawn_rows,
    mean_squared_norm,
    median_distance,
    middle,
    squared_norms,
)
from mkclust.samples.forms import TABLE
from mkclust.samples.local import fingerprint
from mkclust.samples.samples import Expected, Samples, read_views
from mkclust.types import Array


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
    neighbors : None, int, float or "auto", default=None
        Replace every kernel by its shared neighborhoods: the similarity of two samples is the share
        of neighborhoods that hold both, the neighborhood of a sample being itself and so many
        others that are the most similar to it. An integer of at least 2, a share of the samples,
        or "auto": 20, and fewer of less than 60 samples. Kernels are then sparse
        (`mkclust.linalg.FactoredMatrix`), never n x n, and kept on the host, wherever the views
        are. Similarities are compared as by kernels of unit diagonal: all Gaussian kernels of a
        view have the same neighbors, and so have "linear" and "cosine".

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
    n_neighbors_ : int
        With `neighbors`: how many every sample has.
    neighborhoods_ : tuple of Neighborhoods
        With `neighbors`: the neighborhoods by every kernel.

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
        neighbors=None,
    ):
        self.widths = widths
        self.polynomials = polynomials
        self.linear = linear
        self.on_the_fly = on_the_fly
        self.neighbors = neighbors

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
        return self._learn(read_views(X), self._read_parameters())

    def _learn(self, samples: Samples, formulas: tuple[Formula, ...]) -> "KernelBank":
        """Learn from views, and from the names of their columns."""
        views = samples.views
        n_samples = next(iter(views.values())).shape[0]
        if n_samples < 2:
            advice = "but the typical distance between samples takes at least two"
            raise ValueError(f"Found n_samples=1, {advice}.")
        fingerprints = {name: fingerprint(view) for name, view in views.items()}
        views = {
            name: view if fingerprints[name] else copy_array(view) for name, view in views.items()
        }
        scales = {name: mean_squared_norm(name, view) for name, view in views.items()}
        # Distances do not depend on the origin, and inner products give them to more digits the
        # closer it is; the median stays close despite outliers.
        origins = {name: middle(view) for name, view in views.items()}
        medians = {
            name: median_distance(name, _rows_from(origins[name], view))
            for name, view in views.items()
            if any(formula.steepness for formula in formulas)
        }
        self.views_, self.scales_, self.medians_, self._origins = views, scales, medians, origins
        self._columns, self._fingerprints = samples.columns, fingerprints
        self._formulas = formulas
        self.kernel_names_ = tuple(self._names())
        n_views = len(self.views_)
        self.kernel_views_ = tuple(np.repeat(range(n_views), len(self.kernel_names_) // n_views))
        self.n_features_in_ = sum(view.shape[1] for view in views.values())
        if self.neighbors is not None:
            self.n_neighbors_ = count_neighbors(self.neighbors, n_samples)
            self.neighborhoods_ = view_neighborhoods(self, self.n_neighbors_)
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
            state[name] = {view: arrays_to_host(array) for view, array in state[name].items()}
        return state

    def fit_transform(self, X: Any, y: Any = None) -> Array | KernelRows | NeighborhoodKernels:
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
            those of all kernels, symmetric up to rounding. With `neighbors`, a sequence of
            factored matrices, whose ``toarray()`` writes one out.
        """
        formulas, samples = self._read_parameters(), read_views(X)
        n = next(iter(samples.views.values())).shape[0]
        self._require_memory(len(formulas), n, n, samples.views, "")
        return self._learn(samples, formulas)._kernels(self.views_)

    def transform(self, X: Any) -> Array | CrossRows | NeighborhoodKernels:
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
            them one after another, ``rows(start, stop)`` those of some samples. With `neighbors`,
            a sequence of factored matrices, of shape (n_new, n_samples).
        """
        views, training_views = self._check_new(X), self.views_
        n_new, n = (next(iter(rows.values())).shape[0] for rows in (views, training_views))
        advice = ", or pass fewer new samples at a time"
        self._require_memory(len(self._formulas), n_new, n, training_views, advice)
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
        formulas, views = self._read_parameters(), read_views(X).parts
        n = max(map(length_of, views), default=0)
        single = all(map(is_single, views)) and self.neighbors is None
        return len(formulas) * len(views), n, np.dtype(np.float32 if single else np.float64)

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
        views = self._check_new(X)
        if self.neighbors is not None:
            return np.ones((len(self.kernel_names_), next(iter(views.values())).shape[0]))
        return self._self_similarity(views)

    def _read_parameters(self) -> tuple[Formula, ...]:
        """Return the kernels of a view that the parameters ask for, or refuse them."""
        formulas = read_formulas(self.widths, self.polynomials, self.linear)
        if not isinstance(self.on_the_fly, bool | np.bool_):
            raise ValueError(f"on_the_fly must be True or False; found {self.on_the_fly!r}.")
        check_parameter("neighbors", self.neighbors, NeighborCount())
        return formulas

    def _require_memory(
        self, kinds: int, n_new: int, n: int, training_views: dict[str, Array], advice: str
    ) -> None:
        """Refuse kernels that do not fit into memory, before anything is learned or computed."""
        if self.on_the_fly or self.neighbors is not None:
            return
        m, precision = kinds * len(training_views), precision_of_all(training_views)
        require_memory(
            m * n_new * n * np.dtype(precision).itemsize,
            f"holding {m} kernels of {n_new} x {n} entries",
            f"pass on_the_fly=True to compute them when they are asked for{advice}",
            available=free_bytes(next(iter(training_views.values()))),
        )

    def _check_new(self, X: Any) -> dict[str, Array]:
        """Return new views in the order and place of the training views, or say how they differ."""
        check_is_fitted(self)
        return read_new_views(X, self)

    def _names(self) -> Iterator[str]:
        """Name the kernels of every view."""
        kinds = list(map(str, self._formulas))
        for view in self.views_:
            if len(kinds) == 1:
                yield view
            elif list(self.views_) == [TABLE]:
                yield from kinds
            else:
                yield from (f"{view} {kind}" for kind in kinds)

    def _kernels(self, views: dict[str, Array]) -> Any:
        """Compute the kernels of checked views against the training views, or get ready to."""
        is_training = are_equal(views, self.views_)
        if self.neighbors is not None and is_training:
            kernels = {id(each): each.kernel() for each in self.neighborhoods_}
            return NeighborhoodKernels(
                tuple(kernels[id(each)] for each in self.neighborhoods_), True
            )
        if self.neighbors is not None:
            return new_neighborhoods(self, views)
        if is_training:
            square = KernelRows(self, self.views_)
            return square if self.on_the_fly else square.whole()
        rows = CrossRows(self, views)
        return rows if self.on_the_fly else rows.rows(0, rows.shape[1])

    def _self_similarity(self, views: dict[str, Array]) -> Array:
        """Compute k(x, x) for the rows of checked views, whatever neighborhoods replace."""
        precision, diagonals = precision_of_all(self.views_), []
        for name, view in views.items():
            xp, squared = namespace(view), squared_norms(view) / self.scales_[name]
            # Of a row with itself, the squared norm is what both lengths come to.
            lengths = xp.where(squared > 0, squared, 1.0), 1.0
            tile = Tile(xp.zeros_like(squared), squared, lengths, 1.0, precision)
            diagonals += [astype(formula.entries(tile), precision) for formula in self._formulas]
        return namespace(*diagonals).stack(diagonals)


def default_bank(several_views: bool) -> KernelBank:
    """Return the bank where none is asked for: one Gaussian a view, or all kernels of one."""
    return KernelBank(widths=(1.0,), polynomials=(), linear=None) if several_views else KernelBank()


def _rows_from(origin: Array, view: Array) -> Array:
    """Return rows from an origin, in float64; on a device those that are drawn anyway."""
    if is_foreign(view):
        return astype(drawn_rows(view), "float64") - origin
    return np.subtract(view, origin, dtype=np.float64)


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
