"""Feature maps: few columns whose inner products approximate a Gaussian kernel, or are one."""

from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mkclust.linalg import (
    as_floats,
    astype,
    device,
    eigh,
    is_foreign,
    is_sparse,
    namespace,
    precision_of,
    to_device,
    to_host,
)
from mkclust.linalg.sparse_rows import (
    as_csr,
    dense_rows,
    row_products,
    rows_from,
    stored_entries,
)
from mkclust.samples.check import check_masks
from mkclust.samples.distances import median_distance, middle, squared_norms
from mkclust.types import Array, Float

# Landmarks by k-means are learned on at most so many rows.
KMEANS_ROWS = 20_000
# Or on so many per landmark, if these are more.
ROWS_PER_LANDMARK = 10
# The median distance of more than 5,000 rows is computed from so many, not to take longer than the
# features.
MEDIAN_ROWS = 1_000
# Directions of the landmarks' kernel below this share of the largest are rounding; for features in
# single precision, below ten times that precision.
RANK_TOLERANCE = 1e-12


class _FeatureMap(TransformerMixin, BaseEstimator):
    """What feature maps share: checked rows in, rows of the same precision out.

    What is learned is NumPy's, whatever the rows; features are made where the rows live.
    """

    def _check(self, X: Any, *, reset: bool) -> Array:
        """Return rows as float32 or float64, checked by scikit-learn or in its words."""
        if not is_foreign(X):
            check_masks(X, "X")
            types = [np.float64, np.float32]
            X = validate_data(self, X, reset=reset, dtype=types, accept_sparse="csr")
            return as_csr(X) if is_sparse(X) else X
        if len(X.shape) != 2:
            raise ValueError(
                f"Expected 2D array, got {len(X.shape)}D array instead. Reshape your data to "
                "samples by features."
            )
        # Of the shape alone, which is all that remains to be checked on the host.
        validate_data(self, np.zeros((min(X.shape[0], 1), X.shape[1])), reset=reset)
        X, xp = as_floats(X, "X"), namespace(X)
        if not bool(xp.all(xp.isfinite(X))):
            problem = "NaN" if bool(xp.any(xp.isnan(X))) else "infinity"
            raise ValueError(
                f"Input X contains {problem}.\n{type(self).__name__} does not accept such values: "
                "impute them, or drop their rows."
            )
        return X


class Nystroem(_FeatureMap):
    r"""Approximate a Gaussian kernel by similarities to a few landmarks.

    .. math:: k(x, y) \approx k(x, Z)\, k(Z, Z)^{+}\, k(Z, y), \qquad
              k(x, y) = \exp\Bigl(-\frac{\|x - y\|^2}{2 (w s)^2}\Bigr)

    with landmarks Z and s the median distance between two rows. Features are
    :math:`k(x, Z) U \Lambda^{-1/2}`, with :math:`U \Lambda U^\top` the kernel of the landmarks.

    Parameters
    ----------
    n_components : int, default=100
        Number of landmarks.
    width : float, default=1.0
        Standard deviation w of the kernel, in median distances.
    landmarks : {"uniform", "kmeans"}, default="uniform"
        Rows drawn at random, or the centers of k-means, which cost more and approximate better.
    random_state : int, RandomState instance or None, default=None
        Seed of the landmarks. Within a model None takes a seed from that of the model (zero if it
        has none) and the name of the view; an integer draws the same rows in every view.

    Attributes
    ----------
    landmarks_ : ndarray or CSR array of shape (n_components, n_features)
        The landmarks; sparse where they are rows of a sparse view.
    median_ : float
        Median distance between two of the rows seen.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.kernels import KernelBank, Nystroem
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> F = Nystroem(n_components=150, random_state=0).fit_transform(X)
    >>> K = KernelBank(widths=(1.0,), polynomials=(), linear=None).fit_transform(X)[0]
    >>> bool(np.abs(F @ F.T - K).max() < 1e-3)
    True
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        width: float = 1.0,
        landmarks: Literal["uniform", "kmeans"] = "uniform",
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.width = width
        self.landmarks = landmarks
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "Nystroem":
        """Choose the landmarks among rows, and the width of the kernel."""
        _check_count("n_components", self.n_components)
        _check_width(self.width)
        if self.landmarks not in ("uniform", "kmeans"):
            raise ValueError(f"landmarks={self.landmarks!r}: choose 'uniform' or 'kmeans'")
        X = to_host(self._check(X, reset=True), None)
        n = X.shape[0]
        if self.n_components > n:
            raise ValueError(
                f"n_components={self.n_components} landmarks of {n} rows: ask for at most as "
                "many landmarks as there are samples"
            )
        rng = check_random_state(self.random_state)
        origin = _mean_row(X)
        median = _median(X, origin)
        if self.landmarks == "uniform":
            chosen = X[np.sort(rng.choice(n, self.n_components, replace=False))]
        else:
            some = X
            if n > (most := max(KMEANS_ROWS, ROWS_PER_LANDMARK * self.n_components)):
                some = X[np.sort(rng.choice(n, most, replace=False))]
            means = KMeans(self.n_components, n_init=1, random_state=rng).fit(some)
            chosen = means.cluster_centers_
        self.landmarks_, self.median_, self._origin = chosen, median, origin
        # In float64: small eigenvalues decide about the rank.
        Z = rows_from(origin, chosen)
        values, U = eigh(self._similarities(Z, Z))
        significant = values > max(RANK_TOLERANCE, 10 * np.finfo(X.dtype).eps) * values[-1]
        self._whitening = U[:, significant] / np.sqrt(values[significant])
        return self

    def transform(self, X: Any) -> Array:
        """Return the features of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of the view.

        Returns
        -------
        array of shape (n_samples, n_directions)
            In the precision of X and where X lives; at most one column a landmark.
        """
        S = self.similarities(X)
        return S @ _to_same_device(self._whitening, S)

    def similarities(self, X: Any) -> Array:
        """Return k(x, z) of rows and landmarks, (n_samples, n_components)."""
        check_is_fitted(self)
        X = self._check(X, reset=False)
        origin, Z = self._origin, self.landmarks_
        if origin.any():
            X, Z = dense_rows(X), np.subtract(Z, origin)
            X = X - _to_same_device(origin, X)
        return self._similarities(X, _to_same_device(Z, X))

    @property
    def mixing(self) -> Float:
        """What takes similarities to features, (n_components, n_directions)."""
        return self._whitening

    def self_similarity(self, X: Any) -> Array:
        """Return k(x, x) of rows, which the features approximate from below: always one."""
        return _ones(X)

    def _similarities(self, X: Array, Z: Array) -> Array:
        """Return the Gaussian kernel between rows measured from the origin, in their precision."""
        scale = -0.5 / float(self.width * self.median_) ** 2
        squared = row_products(X, Z * (-2 * scale))
        squared += astype(scale * squared_norms(X), precision_of(X))[:, None]
        squared += astype(scale * squared_norms(Z), precision_of(X))
        # Rounding must not make a similarity exceed one.
        if is_foreign(squared):
            xp = namespace(squared)
            return xp.exp(xp.where(squared > 0, 0.0, squared))
        np.minimum(squared, 0, out=squared)
        return np.exp(squared, out=squared)


class RandomFourier(_FeatureMap):
    r"""Approximate a Gaussian kernel by random waves.

    .. math:: k(x, y) \approx \phi(x)^\top \phi(y), \qquad
              \phi(x) = \sqrt{2 / D}\, \cos(\Omega^\top x + b)

    scikit-learn's ``RBFSampler`` with the width of ``Nystroem``, the median distance. It needs no
    landmarks; for as many columns, Nystroem's are usually the better approximation.

    Parameters
    ----------
    n_components : int, default=100
        Number of waves D.
    width : float, default=1.0
        Standard deviation of the kernel, in median distances.
    random_state : int, RandomState instance or None, default=None
        Seed of the waves. Within a model None takes a seed from that of the model and the name of
        the view; an integer draws the same in views of the same width.

    Attributes
    ----------
    median_ : float
        Median distance between two of the rows seen.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.kernels import RandomFourier
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> RandomFourier(n_components=80, random_state=0).fit_transform(X).shape
    (50, 80)
    """

    def __init__(self, n_components: int = 100, *, width: float = 1.0, random_state: Any = None):
        self.n_components = n_components
        self.width = width
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "RandomFourier":
        """Draw the waves, for the width that rows ask for."""
        from sklearn.kernel_approximation import RBFSampler

        _check_count("n_components", self.n_components)
        _check_width(self.width)
        X = to_host(self._check(X, reset=True), None)
        median = _median(X, _mean_row(X))
        sampler = RBFSampler(
            gamma=0.5 / (self.width * median) ** 2,
            n_components=self.n_components,
            random_state=self.random_state,
        )
        self.median_, self._sampler = median, sampler.fit(X)
        return self

    def transform(self, X: Any) -> Array:
        """Return the features of rows, (n_samples, n_components), where the rows live."""
        check_is_fitted(self)
        X, sampler = self._check(X, reset=False), self._sampler
        if not is_foreign(X):
            return sampler.transform(X)
        waves = X @ _to_same_device(sampler.random_weights_, X)
        waves += _to_same_device(sampler.random_offset_, X)
        return (2 / sampler.n_components) ** 0.5 * namespace(X).cos(waves)

    def self_similarity(self, X: Any) -> Array:
        """Return k(x, x) of rows, which the features hit on average: always one."""
        return _ones(X)


class Linear(_FeatureMap):
    """Take a view as its own features: the kernel is the inner product of its rows, exactly.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.kernels import Linear
    >>> Linear().fit_transform(np.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def fit(self, X: Any, y: Any = None) -> "Linear":
        """Note the number of columns."""
        self._check(X, reset=True)
        return self

    def transform(self, X: Any) -> Array:
        """Return the rows themselves, (n_samples, n_features); sparse ones written out."""
        check_is_fitted(self)
        return dense_rows(self._check(X, reset=False))

    def self_similarity(self, X: Any) -> Array:
        """Return k(x, x) of rows."""
        return squared_norms(X if is_foreign(X) or is_sparse(X) else np.asarray(X))


def _to_same_device(learned: np.ndarray, X: Array) -> Array:
    """Return what was learned where rows live, in their precision."""
    return to_device(learned, X, precision_of(X))


def _ones(X: Any) -> Array:
    """Return a one for every row, where the rows live."""
    if not is_foreign(X):
        return np.ones(X.shape[0] if is_sparse(X) else len(X))
    xp = namespace(X)
    return xp.ones(X.shape[0], dtype=xp.float64, device=device(X))


def _mean_row(X: Array) -> Float:
    """Return what rows are measured from: their mean, or zero for sparse ones to stay sparse."""
    return middle(X) if is_sparse(X) else X.mean(axis=0, dtype=np.float64)


def _median(X: Array, origin: Float) -> float:
    """Return the median distance between two rows, of fewer pairs than exact kernels take."""
    moved = rows_from(origin, X)
    with np.errstate(over="ignore"):
        longest = float(squared_norms(moved).max())
    if stored_entries(moved).any() and not np.finfo(np.float64).tiny <= longest < np.inf:
        size = "too small" if longest < 1 else "too large"
        raise ValueError(f"distances between rows are {size} to square; rescale the view")
    return median_distance("", moved, drawn=MEDIAN_ROWS)


def _check_count(name: str, value: Any) -> None:
    """Refuse what is no count."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r}: pass a whole number of at least 1")


def _check_width(value: Any) -> None:
    """Refuse what is no width."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 < value < np.inf:
        raise ValueError(f"width={value!r}: pass a positive number, in median distances")
