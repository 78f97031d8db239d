"""Feature maps: few columns whose inner products are, or are about, a kernel."""

from dataclasses import field
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse
from sklearn.base import TransformerMixin
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mkclust.data.check import check_masks
from mkclust.data.distances import (
    mean_squared_norm,
    median_distance,
    middle,
    squared_norms,
)
from mkclust.linalg import (
    as_csr,
    as_floats,
    astype,
    dense_rows,
    eigh,
    is_foreign,
    namespace,
    precision_of,
    row_products,
    stored_entries,
    subtract_origin,
    to_device,
    to_host,
)
from mkclust.parameters import Choice, Count, Number, Parameters, check_parameter
from mkclust.types import Array


class _FeatureMap(TransformerMixin, Parameters):
    """Checked rows in, features of the same number type out, on their device."""

    def _check(self, X: Any, *, reset: bool) -> Array:
        """Return rows as float32 or float64, checked as scikit-learn does."""
        if not reset:
            check_is_fitted(self)
        if not is_foreign(X):
            check_masks(X, "X")
            types = [np.float64, np.float32]
            X = validate_data(self, X, reset=reset, dtype=types, accept_sparse="csr")
            if issparse(X):
                return as_csr(X)
            return X
        # Only the shape is checked on the host.
        shape = (min(X.shape[0], 1), *X.shape[1:])
        validate_data(self, np.zeros(shape), reset=reset)
        X = as_floats(X, "X")
        xp = namespace(X)
        if not bool(xp.all(xp.isfinite(X))):
            raise ValueError(
                "Input X contains NaN or infinity: impute such values, or drop their "
                "rows."
            )
        return X

    def self_similarity(self, X: Any) -> Array:
        """Return k(x, x) of rows by a Gaussian kernel: always one."""
        return namespace(X).ones_like(squared_norms(X))


class Nystroem(_FeatureMap):
    r"""Approximate a Gaussian kernel by similarities to a few landmarks.

    .. math:: k(x, y) \approx k(x, Z)\, k(Z, Z)^{+}\, k(Z, y), \qquad
              k(x, y) = \exp\Bigl(-\frac{\|x - y\|^2}{2 (w s)^2}\Bigr)

    with landmarks Z and s the median distance between two rows. Features are
    :math:`k(x, Z) U \Lambda^{-1/2}`, with :math:`U \Lambda U^\top` the kernel of the
    landmarks.

    Parameters
    ----------
    n_components : int, default=100
        Number of landmarks.
    width : float, default=1.0
        Standard deviation w of the kernel, in median distances.
    landmarks : {"uniform", "kmeans"}, default="uniform"
        Rows drawn at random, or the centers of k-means, which cost more and approximate
        better.
    random_state : int, RandomState instance or None, default=None
        Seed of the landmarks. Within a model None takes a seed from that of the model
        (zero if it has none) and the name of the view; an integer draws the same rows
        in every view.

    Attributes
    ----------
    landmarks_ : ndarray or CSR array of shape (n_components, n_features)
        The landmarks; sparse if they are rows of a sparse view.
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

    n_components: int = field(default=100, kw_only=False)
    width: float = 1.0
    landmarks: Literal["uniform", "kmeans"] = "uniform"
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> "Nystroem":
        """Choose the landmarks among rows, and the width of the kernel."""
        check_parameter("n_components", self.n_components, Count())
        check_parameter("width", self.width, Number(0, open_low=True))
        check_parameter("landmarks", self.landmarks, Choice(("uniform", "kmeans")))
        X = to_host(self._check(X, reset=True), None)
        n = X.shape[0]
        if self.n_components > n:
            raise ValueError(
                f"n_components={self.n_components} landmarks of {n} rows: ask for at "
                "most as many landmarks as there are samples"
            )
        rng = check_random_state(self.random_state)
        # Rows are measured from their mean; sparse ones from zero, to stay sparse.
        self._origin = middle(X) if issparse(X) else X.mean(axis=0, dtype=np.float64)
        moved = subtract_origin(self._origin, X)
        if stored_entries(moved).any():
            mean_squared_norm("X", moved)  # refuses entries that cannot be squared
        # Of few rows if there are many, not to take longer than the features.
        self.median_ = median_distance("", moved, drawn=1_000)
        if self.landmarks == "uniform":
            drawn = rng.choice(n, self.n_components, replace=False)
            self.landmarks_ = X[np.sort(drawn)]
        else:
            some = X
            most = max(20_000, 10 * self.n_components)
            if most < n:
                some = X[np.sort(rng.choice(n, most, replace=False))]
            means = KMeans(self.n_components, n_init=1, random_state=rng).fit(some)
            self.landmarks_ = means.cluster_centers_
        # In float64: small eigenvalues decide about the rank.
        Z = subtract_origin(self._origin, self.landmarks_)
        values, U = eigh(self._similarities(Z, Z))
        # Smaller directions are rounding.
        tolerance = max(1e-12, 10 * np.finfo(X.dtype).eps)
        significant = values > tolerance * values[-1]
        self._whitening = U[:, significant] / np.sqrt(values[significant])
        return self

    def transform(self, X: Any) -> Array:
        """Return features, (n_samples, at most n_components), like the rows."""
        X = self._check(X, reset=False)
        Z = self.landmarks_
        precision = precision_of(X)
        if self._origin.any():
            X = dense_rows(X)
            X = X - to_device(self._origin, X, precision)
            Z = np.subtract(Z, self._origin)
        S = self._similarities(X, to_device(Z, X, precision))
        return S @ to_device(self._whitening, S, precision)

    def _similarities(self, X: Array, Z: Array) -> Array:
        """Return the Gaussian kernel between rows measured from the origin."""
        xp = namespace(X)
        scale = -0.5 / float(self.width * self.median_) ** 2
        exponents = row_products(X, Z * (-2 * scale))
        exponents += astype(scale * squared_norms(X), precision_of(X))[:, None]
        exponents += astype(scale * squared_norms(Z), precision_of(X))
        # Rounding must not make a similarity exceed one.
        return xp.exp(xp.where(exponents > 0, 0.0, exponents))


class Linear(_FeatureMap):
    """Take a view as its own features: the kernel is the inner product of its rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.kernels import Linear
    >>> Linear().fit_transform(np.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def fit(self, X: Any, y: Any = None) -> "Linear":
        """Check the rows; there is nothing to learn."""
        self._check(X, reset=True)
        return self

    def transform(self, X: Any) -> Array:
        """Return the rows themselves, (n_samples, n_features), as dense ones."""
        return dense_rows(self._check(X, reset=False))

    def self_similarity(self, X: Any) -> Array:
        """Return the squared norms of rows."""
        return squared_norms(X)
