"""What all methods share: from input to labels, and from new samples to labels."""

import numbers
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mkclust.discretize import discretize, nearest_center, normalize_rows
from mkclust.generalize import Extension
from mkclust.kernels import KernelBank
from mkclust.linalg import to_host
from mkclust.methods.distinct import count_distinct
from mkclust.methods.inputs import is_table, kind_of_input
from mkclust.methods.solution import Solution
from mkclust.relaxation import relax
from mkclust.stack import KernelStack, as_numbers, as_stack, row_sums
from mkclust.types import Array, Float

# How accurately each kernel's own top eigenvalue sum is found: its share is read, not computed on.
SHARE_TOLERANCE = 1e-3


class MultipleKernelClusterer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Base of all methods: a child stores its parameters and solves; this does the rest.

    A child defines ``__init__`` and ``_solve(stack) -> Solution``, and may add what it has
    learned beyond the common attributes in ``_learned(stack, solution, labels)``.
    """

    # The grid that the authors of a method search, as scikit-learn's ParameterGrid takes it.
    GRID: ClassVar[dict[str, list]] = {}

    n_clusters: int
    kernels: Any
    center: bool
    normalize: bool
    psd: Any
    validate: bool
    n_init: int
    random_state: Any

    def fit(self, X: Any, y: Any = None) -> "MultipleKernelClusterer":
        """Find the weights and the clusters.

        Parameters
        ----------
        X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
            See the class documentation.
        y : Ignored
            Present for scikit-learn's conventions.

        Returns
        -------
        self
        """
        self._check_parameters()
        learned: dict[str, Any] = {}
        started = time.perf_counter()
        kernels, names = self._kernels(X, learned)
        made = time.perf_counter()
        stack = as_stack(
            kernels,
            center=self.center,
            normalize=self.normalize,
            psd=self.psd,
            # The bank's own kernels are positive semidefinite by construction.
            validate=self.validate and "bank_" not in learned,
            names=names,
        )
        self._check_n_clusters(stack)
        checked = time.perf_counter()
        solution = self._solve(stack)
        solved = time.perf_counter()
        learned.setdefault("n_features_in_", stack.n_samples)
        learned |= self._common_attributes(stack, solution)
        learned |= self._learned(stack, solution, learned["labels_"])
        learned |= {
            "kernel_seconds_": made - started,
            "check_seconds_": checked - made,
            "solve_seconds_": solved - checked,
        }
        # All at once and last, so that a failed fit leaves nothing half-learned behind.
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        for name, value in learned.items():
            setattr(self, name, value)
        return self

    def predict(self, X: Any, self_similarity: Array | None = None) -> np.ndarray:
        """Give new samples the cluster whose center is nearest.

        Parameters
        ----------
        X : array of shape (m, n_new, n), list or dict of such kernels, or new views or table
            What ``fit`` was given, for other samples: similarities of the new samples to the
            training samples, or features.
        self_similarity : array of shape (m, n_new), default=None
            With precomputed kernels and ``normalize=True``: the new samples' similarities to
            themselves, k(x, x). None serves where they are known: kernels with a constant
            diagonal, and the training kernels themselves.

        Returns
        -------
        ndarray of shape (n_new,)
            The same as ``labels_`` for the training samples.
        """
        rows = self._embed(X, self_similarity)
        return nearest_center(normalize_rows(rows), self._centers)

    def transform(self, X: Any, self_similarity: Array | None = None) -> Float:
        """Embed new samples, with rows of their natural length.

        Parameters
        ----------
        X : array of shape (m, n_new, n), list or dict of such kernels, or new views or table
            As in ``predict``.
        self_similarity : array of shape (m, n_new), default=None
            As in ``predict``.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
        """
        return self._embed(X, self_similarity)

    def _embed(self, X: Any, self_similarity: Array | None) -> Float:
        """Embed new samples, having checked them."""
        check_is_fitted(self)
        if hasattr(self, "bank_"):
            if self_similarity is not None:
                raise ValueError("self_similarity belongs to precomputed kernels: leave it out")
            views = self._views(X, self, reset=False)
            kernels, own = self.bank_.transform(views), self.bank_.self_similarity(views)
            return self._extension.embed(kernels, own)
        cross = self._cross_kernels(X)
        if self_similarity is not None:
            self_similarity = np.asarray(self_similarity, dtype=np.float64)
            expected = (len(cross), cross[0].shape[0])
            if self_similarity.shape != expected:
                raise ValueError(
                    f"self_similarity has the shape {self_similarity.shape}, expected {expected}: "
                    "one row a kernel, one column a new sample"
                )
            if not np.all(np.isfinite(self_similarity)) or np.any(self_similarity < 0):
                raise ValueError(
                    "self_similarity has entries that are NaN, infinite or negative: pass k(x, x)"
                )
        return self._extension.embed(cross, self_similarity)

    def _solve(self, stack: KernelStack) -> Solution:
        """Solve the method's relaxed problem."""
        raise NotImplementedError(f"{type(self).__name__} must define _solve")

    def _learned(
        self, stack: KernelStack, solution: Solution, labels: np.ndarray
    ) -> dict[str, Any]:
        """Return what the method learns beyond the common attributes."""
        return {}

    def _check_parameters(self) -> None:
        """Refuse parameters that no data could make sense of."""
        for name in ("n_clusters", "n_init", "max_iter"):
            value = getattr(self, name, 1)
            if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name}={value!r}: pass an integer of at least 1")
        try:
            check_random_state(self.random_state)
        except ValueError as error:
            raise ValueError(f"random_state={self.random_state!r}: {error}") from None
        tol = getattr(self, "tol", 1.0)
        if not isinstance(tol, numbers.Real) or not 0 < float(tol) < 1:
            raise ValueError(f"tol={tol!r}: pass a number between 0 and 1, such as 1e-6")

    def _check_n_clusters(self, stack: KernelStack) -> None:
        """Refuse more clusters than there are samples, or distinct samples."""
        if self.n_clusters > stack.n_samples:
            raise ValueError(
                f"n_clusters={self.n_clusters} with n_samples={stack.n_samples}: there cannot be "
                "more clusters than samples"
            )
        if self.n_clusters == 1:
            return
        n_distinct = count_distinct(stack)
        if n_distinct < self.n_clusters:
            raise ValueError(
                f"n_clusters={self.n_clusters}, but only {n_distinct} of the {stack.n_samples} "
                "samples are distinct: ask for fewer clusters"
            )

    def _kernels(self, X: Any, learned: dict[str, Any]) -> tuple[Any, Any]:
        """Return the kernels of X and their names; note what new samples will need."""
        kind = kind_of_input(X, self.kernels)
        if kind == "kernels":
            return X, None
        # A probe takes the notes of scikit-learn's validation, so that a failing fit leaves none.
        probe = clone(self)
        views = self._views(X, probe, reset=True)
        if isinstance(self.kernels, KernelBank):
            bank = clone(self.kernels)
        elif kind == "table":
            bank = KernelBank()
        else:
            bank = KernelBank(widths=(1.0,), polynomials=(), linear=None)
        kernels = bank.fit_transform(views)
        learned |= {"bank_": bank, "n_features_in_": bank.n_features_in_}
        if hasattr(probe, "feature_names_in_"):
            learned["feature_names_in_"] = probe.feature_names_in_
        return kernels, bank.kernel_names_

    def _views(self, X: Any, noted_by: Any, *, reset: bool) -> Any:
        """Return what the bank takes; a plain table goes through scikit-learn's validation."""
        if is_table(X):
            types = [np.float64, np.float32]
            least = 2 if reset else 1
            return validate_data(noted_by, X, reset=reset, dtype=types, ensure_min_samples=least)
        return X

    def _cross_kernels(self, X: Any) -> list[Array]:
        """Return the similarities of new samples to the training samples, checked."""
        kind_of_input(X, "precomputed")  # refuses all that is not several matrices
        names, n = self._extension.names, self.n_features_in_
        if len(X) != len(names):
            raise ValueError(f"X has {len(X)} kernels, the model was fitted on {len(names)}")
        if isinstance(X, Mapping):
            X = {str(name): kernel for name, kernel in X.items()}
            if missing := [name for name in names if name not in X]:
                raise ValueError(f"X lacks the kernel {missing[0]!r}, it has {list(X)}")
            X = [X[name] for name in names]
        cross = [as_numbers(K, name) for name, K in zip(names, X, strict=True)]
        for name, K in zip(names, cross, strict=True):
            if K.ndim != 2 or K.shape[1] != n or K.shape[0] != cross[0].shape[0]:
                raise ValueError(
                    f"{name} has the shape {K.shape}: expected similarities of "
                    f"{cross[0].shape[0]} new samples (rows) to the {n} training samples (columns)"
                )
            row_sums(K, name)  # refuses what is not finite
        return cross

    def _common_attributes(self, stack: KernelStack, solution: Solution) -> dict[str, Any]:
        """Return what every method learns, labels included."""
        k = self.n_clusters
        H = to_host(solution.partition)
        learned: dict[str, Any] = {
            "embedding_": H,
            "weights_": solution.weights,
            "alignments_": self._alignments(stack, H),
            "objective_": solution.objective,
            "history_": solution.history,
            "converged_": solution.converged,
            "n_iter_": solution.n_iter,
            "kernel_names_": stack.names,
            "_n_features_out": k,
        }
        rows = H
        if solution.coefficients is not None and solution.relaxation is not None:
            values = solution.relaxation.eigenvalues[:k]
            extension = Extension.of(stack, solution.coefficients, H, values)
            # k-means sees the training samples as it will see new ones.
            rows = extension.embed_training(stack)
            learned |= {"coefficients_": solution.coefficients, "_extension": extension}
        learned["labels_"], learned["_centers"] = self._discretize(rows)
        return learned

    def _discretize(self, rows: Float) -> tuple[np.ndarray, Float]:
        """Return labels and centers by the estimator's own k-means settings."""
        return discretize(rows, self.n_clusters, n_init=self.n_init, random_state=self.random_state)

    def _alignments(self, stack: KernelStack, H: Float) -> Float:
        """Return the share of each kernel's own top-k eigenvalue sum that H captures."""
        captured = to_host((stack.apply(H) * H).sum(axis=(1, 2)))
        own = [
            relax(stack.kernel(p), self.n_clusters, tol=SHARE_TOLERANCE, start=H).value
            for p in range(stack.n_kernels)
        ]
        return np.clip(captured / np.array(own), 0, 1)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "labels_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags
