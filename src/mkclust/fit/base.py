"""What all methods share."""

import time
from dataclasses import field, replace
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from mkclust.agreements import Agreement
from mkclust.data.check import n_dims
from mkclust.data.options import TABLE_RULES, TableOptions
from mkclust.data.samples import Samples
from mkclust.engine.eigen import Relaxation
from mkclust.exceptions import ClusterNumberWarning, warn
from mkclust.fit.embedding import Extension, observed_of
from mkclust.fit.rounding import ROUNDINGS
from mkclust.fit.same_input import mixed_kernel
from mkclust.fit.solution import Solution
from mkclust.fit.steps import learn, read_training
from mkclust.fit.training_input import TrainingInput
from mkclust.kernels import KernelBank
from mkclust.kernels.kinds import check_scale
from mkclust.linalg import arrays_to_host, to_host
from mkclust.parameters import (
    Allowed,
    Choice,
    Count,
    Flag,
    Number,
    Parameters,
    check_parameter,
    learned,
)
from mkclust.stack import Mix, Stack
from mkclust.stack.discretize import assign
from mkclust.text import printable, text_table
from mkclust.types import Array, Float, Labels

# How to read weights, in the words that stand beside them wherever they are shown.
MIXING_WEIGHT = "A weight says how the kernels are mixed; it is not importance."
# The same for methods that minimize over the weights.
LARGE_WEIGHT = (
    "A large weight means little agreement with the consensus; it is not importance."
)
# The similarities that clusters of most methods follow.
SUM = "the sum of the kernels by their coefficients"
# Those of methods without coefficients.
COSINES = "cosines between rows of the embedding; no kernels are mixed"
# What the parameters that many methods share may be.
COMMON: dict[str, Allowed] = {
    "n_clusters": Count(
        "; mkclust.suggest_n_clusters(X) finds one that the data support"
    ),
    "center": Flag(),
    "normalize": Flag(),
    "n_init": Count(),
    "max_iter": Count(),
    "rounding": Choice(ROUNDINGS),
    "tol": Number(0, 1, open_low=True, open_high=True),
} | TABLE_RULES


class MultipleKernelClusterer(ClusterMixin, Parameters):
    """Base of all methods.

    A child defines its parameters as annotated fields, their values in ``ALLOWED``, and
    ``_solve(stack) -> Solution``. It may add attributes in ``_learned(stack, solution,
    labels, *further)``, with the labels of further partitions that it asked for in
    ``_further``. Reports, displays and the command line describe a method by the
    attributes of its class.
    """

    n_clusters: int = field(default=8, kw_only=False)
    kernels: Any = "auto"
    center: bool = True
    normalize: bool = True
    psd: Literal["error", "shift"] = "error"
    n_init: int = 10
    random_state: Any = None
    views: Any = None
    join: Literal["exact", "inner", "outer"] = "exact"
    impute: Literal["median"] | None = None
    missing_views: Literal["learn", "zero", "rescale"] | None = None
    scale: Any = "auto"

    # What every fit learns; what some fits learn is in the docstrings.
    labels_: Labels = learned()
    weights_: Float = learned()
    alignments_: Float = learned()
    embedding_: Array = learned()
    objective_: float = learned()
    history_: Float = learned()
    converged_: bool = learned()
    n_iter_: int = learned()
    n_features_in_: int = learned()
    kernel_names_: tuple[str, ...] = learned()
    agreement_: Agreement = learned()
    # The names that `name_clusters` has given, if any.
    cluster_names_: tuple[str, ...] = learned()
    # What it was fitted on, which also reads new samples.
    _source: TrainingInput = learned()
    # The centers of the clusters among the rows, (k, k).
    _centers: Float = learned()
    # The numbers of the samples that were fitted; None if all were.
    _covered: np.ndarray | None = learned(None)
    # Which kernels have a part in the clusters, (m,) of bool.
    _used_kernels: np.ndarray = learned()
    # The attributes of the last fit, which the next one replaces.
    _learned_names: tuple[str, ...] = learned(())
    # Features that stand for the kernels: a parameter of the methods that can use them.
    approximation = cast(Any, None)
    # Which rows k-means clusters: a parameter of the methods of kernel k-means.
    rounding = cast(Any, None)
    # What the rows of the partition are multiplied with, (k, k); None for unit length.
    _root: Float | None = learned(None)

    # The grid that the authors of a method search, as scikit-learn's ParameterGrid
    # takes it.
    GRID: ClassVar[dict[str, list]] = {}
    # What a method's own parameters may be; it may narrow or widen the common ones.
    ALLOWED: ClassVar[dict[str, Allowed]] = {}
    # How it uses the kernels. Continues the sentence after the method's name; may be
    # empty.
    SUMMARY: ClassVar[str] = ""
    # The papers it is from, one entry each.
    REFERENCES: ClassVar[tuple[str, ...]] = ()
    # How to read its weights, in a sentence: it stands beside them wherever they are
    # shown.
    WEIGHT_MEANING: ClassVar[str] = MIXING_WEIGHT
    # What `mixed_kernel` holds, in words.
    SIMILARITIES: ClassVar[str] = SUM
    # About how many times as long a fit takes as those of the quick methods.
    SLOWNESS: ClassVar[int] = 1
    # How many n x n matrices it needs in addition to the kernels, and how many copies
    # of these.
    MATRICES: ClassVar[int] = 1
    COPIES: ClassVar[int] = 0
    # Whether it reads the rows of kernels once or twice, so that none need be stored.
    READS_ROWS: ClassVar[bool] = False
    # Whether kernels are made of some of many samples, so that any number can be
    # fitted.
    LEARNS_FROM_ANCHORS: ClassVar[bool] = False
    # Whether samples that lack views are scaled up, unless something else is asked for.
    SCALES_MISSING: ClassVar[bool] = True
    # Whether it can learn what stands for samples that are missing from views.
    LEARNS_MISSING: ClassVar[bool] = False
    # Whether it works on the entries of the kernels, all of them, rather than on
    # products alone.
    NEEDS_ENTRIES: ClassVar[bool] = True

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        observed: Any = None,
        groups: Any = None,
        adjust: Any = None,
    ) -> Self:
        """Find the weights and the clusters.

        Parameters
        ----------
        X : array of shape (m, n, n), list or dict of kernels or views, or table (n, d)
            See the class documentation.
        y : Ignored
            Present for scikit-learn's conventions.
        observed : array of bool (n_samples, n_views) or dict of columns, default=None
            Which views, or kernels, have which samples; what else they hold is ignored.
            None if it follows from rows that are NaN throughout, or from ids.
        groups : Series, frame of one column or array-like (n_samples,), default=None
            The family, patient, batch or plate of every sample, if samples of one are
            alike: by id, or in the order of the samples. Whether views agree is tested
            within and between groups.
        adjust : frame, Series or array-like of shape (n_samples, q), default=None
            Covariates, such as age, purity or batch: by id, or in the order of the
            samples. What is linear in them is removed from every column of numbers,
            before kernels are computed; integers are numbers, and text is categories.
            What they change otherwise, such as variances or the shape of a cloud,
            stays. If clusters differ in a covariate, their difference is removed with
            it. New samples need theirs in ``predict``. The test of agreement knows of
            what was removed. Empty cells are filled with ``impute="median"``. To adjust
            hazard ratios instead, use ``adjust`` of `mkclust.annotate`.

        Returns
        -------
        self
        """
        self.check_parameters()
        if n_dims(y) == 2 and np.shape(y)[1] > 1:
            raise ValueError(
                f"y has the shape {np.shape(y)}, and fit ignores labels: pass several "
                "views as one list or dict, such as fit({'a': a, 'b': b}), and a mask "
                "of samples as observed="
            )
        started = time.perf_counter()
        learned = self._learn(read_training(self, X, observed, groups, adjust))
        learned["fit_seconds_"] = time.perf_counter() - started
        # All at once and last, so that a failed fit leaves nothing half-learned behind.
        for name in self._learned_names:
            delattr(self, name)
        learned["_learned_names"] = (*learned, "_learned_names")
        for name, value in learned.items():
            setattr(self, name, value)
        return self

    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> Labels:
        """Fit, and return ``labels_``; the parameters are those of :meth:`fit`."""
        return self.fit(X, y, **options).labels_

    def solve(self, stack: Stack) -> Solution:
        """Solve the relaxed problem, without labels and without changing the model.

        Parameters
        ----------
        stack : Stack
            The kernels, as `mkclust.stack.as_stack` returns them.

        Returns
        -------
        Solution
            With the seconds that the solve took, checks not counted.

        Examples
        --------
        >>> import numpy as np
        >>> from mkclust import SimpleMKKM
        >>> from mkclust.stack import as_stack
        >>> X = np.random.default_rng(0).normal(size=(2, 30, 4))
        >>> stack = as_stack(X @ X.transpose(0, 2, 1))
        >>> solution = SimpleMKKM(n_clusters=3).solve(stack)
        >>> solution.partition.shape, solution.weights.shape
        ((30, 3), (2,))
        """
        self.check_parameters()
        self._check_n_clusters(stack)
        started = time.perf_counter()
        solution = self._solve(stack)
        return replace(solution, seconds=time.perf_counter() - started)

    def summary(self) -> str:
        """Return how the input was read, and every kernel's weight and alignment."""
        check_is_fitted(self)
        columns = (self.kernel_names_, self.weights_, self.alignments_)
        rows = [
            [name, f"{weight:.4f}", f"{alignment:.2f}"]
            for name, weight, alignment in zip(*columns, strict=True)
        ]
        table = text_table([["kernel", "weight", "alignment"], *rows])
        lines = [*self._source.given.notes, *table.splitlines(), self.WEIGHT_MEANING]
        return "\n".join(map(printable, lines))

    def mixed_kernel(self, X: Any, samples: Any = None) -> Float:
        """Return the similarities by which the samples, all or some, are clustered.

        For most methods that is ``sum_p coefficients_p K_p``, every kernel centered and
        scaled as in the fit; :meth:`describe_mixed_kernel` says what it is for others.

        Parameters
        ----------
        X : array of shape (m, n, n), list or dict of kernels or views, or table (n, d)
            What the model was fitted on.
        samples : array-like of int of shape (s,), default=None
            Indices of the samples, in any order; None for all.

        Returns
        -------
        ndarray of shape (s, s)
            In float64, exactly symmetric.

        Examples
        --------
        >>> import numpy as np
        >>> from mkclust import SimpleMKKM
        >>> from mkclust.datasets import load
        >>> views = {name: view[:300] for name, view in load("digits").views.items()}
        >>> model = SimpleMKKM(n_clusters=10, random_state=0).fit(views)
        >>> K = model.mixed_kernel(views, samples=[0, 10, 20])
        >>> K.shape, bool(np.allclose(K.diagonal(), model.coefficients_.sum()))
        ((3, 3), True)
        """
        check_is_fitted(self)
        return mixed_kernel(self, X, samples)

    def describe_mixed_kernel(self) -> str:
        """Return what :meth:`mixed_kernel` holds, in words for a caption."""
        done = ["centered"] * self.center
        done += ["scaled to a unit diagonal"] * self.normalize
        is_mixed = self._mixes_kernels or not hasattr(self, "labels_")
        said = [
            f"kernels {' and '.join(done) or 'neither centered nor scaled'}",
            *["approximated by features"] * (self.approximation is not None),
            *["without the anchor"] * bool(getattr(self, "anchor_", 0)),
        ]
        return f"{self.SIMILARITIES if is_mixed else COSINES} ({'; '.join(said)})"

    def _mixed_among(self, stack: Stack, samples: np.ndarray | None) -> Array:
        """Return similarities among covered samples, symmetric but for rounding.

        The kernels are those of the fit. A method that mixes them in another way, or
        clusters by a kernel of its own, overrides this, and says so in `SIMILARITIES`.
        """
        if samples is None:
            return Mix(self.coefficients_, stack.kernels).dense()
        return stack.among(samples).mix(self.coefficients_).dense()

    @property
    def _mixes_kernels(self) -> bool:
        """Whether `mixed_kernel` holds mixed kernels, or what the method says it does.

        Otherwise it holds cosines between rows of the embedding.
        """
        is_base = type(self)._mixed_among is MultipleKernelClusterer._mixed_among
        has_own = not is_base and self.approximation is None
        return has_own or hasattr(self, "coefficients_")

    def _learn(self, samples: Samples) -> dict[str, Any]:
        """Return what is learned of samples, by name."""
        return learn(self, samples)

    def _solve(self, stack: Stack) -> Solution:
        raise NotImplementedError(f"{type(self).__name__} must define _solve")

    def _learned(
        self, stack: Stack, solution: Solution, labels: Array, *further: Array
    ) -> dict[str, Any]:
        """Return what the method learns beyond the common attributes."""
        return {}

    def _further(self, stack: Stack, solution: Solution) -> list[Relaxation]:
        """Return what else a method turns into labels, as it does the partition."""
        return []

    def _rows(self, stack: Stack, solution: Solution) -> tuple[Array, Extension | None]:
        """Return the rows that k-means clusters, and what embeds new samples alike."""
        return solution.partition, Extension.by(stack)

    def _rows_of(self, embedding: Array) -> Float:
        """Return the rows, but for their form, by which an embedding is clustered."""
        return to_host(embedding)

    def _assign(self, rows: Array) -> Labels:
        """Return the clusters of rows like the partition's, by the nearest center."""
        return assign(rows, self._centers, self._root)

    def _explain_stop(self, solution: Solution) -> str:
        """Say why the solver stopped before its rule was met, and what to do."""
        if not solution.cycle:
            return (
                f"{solution.n_iter} iterations were not enough: raise max_iter or tol"
            )
        is_cut = solution.n_iter >= getattr(self, "max_iter", solution.n_iter)
        return (
            f"after {solution.n_iter} iterations the weights "
            f"{'all but ' * is_cut}repeat themselves in a cycle of {solution.cycle}; a "
            "higher max_iter shows whether they settle. The best of them is returned"
        )

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for parameters that no data make valid."""
        parameters = self.get_params(deep=False)
        for name, allowed in (COMMON | self.ALLOWED).items():
            if name in parameters:
                check_parameter(name, parameters[name], allowed)
        try:
            check_random_state(self.random_state)
        except ValueError as error:
            raise ValueError(f"random_state={self.random_state!r}: {error}") from None
        check_scale(self.scale)
        features = self.approximation
        is_map = hasattr(features, "transform") and not isinstance(
            features, type | KernelBank
        )
        if features is not None and not is_map:
            raise ValueError(
                f"approximation={features!r}: pass None, or a feature map such as "
                "mkclust.kernels.Nystroem(n_components=200)"
            )
        can_learn = self.LEARNS_MISSING and features is None
        if self.missing_views == "learn" and not can_learn:
            raise ValueError(
                "missing_views='learn': only SimpleMKKM, MKKM and AverageKKM with "
                "exact kernels learn to fill in samples that are missing from views; "
                "use one of these with approximation=None, or pass "
                "missing_views='rescale' or 'zero'"
            )

    def _check_n_clusters(self, stack: Stack) -> None:
        """Refuse as many clusters as samples; warn of one and of too many."""
        k = self.n_clusters
        n = stack.n_samples
        has_features = stack.features is not None
        if k > n and has_features:
            # Features stand for samples by a number of directions.
            raise ValueError(
                f"n_clusters={k}, but the features span only {n} directions: pass more "
                "features; ask for fewer clusters"
            )
        if k >= n and not has_features:
            raise ValueError(
                f"n_clusters={k}, with n_samples={n}: there must be fewer clusters "
                "than samples; ask for fewer clusters"
            )
        if k == 1:
            warn(
                "n_clusters=1 puts all samples into one cluster: ask for 2 or more, or "
                "let suggest_n_clusters choose the number",
                ClusterNumberWarning,
            )
        elif 2 * k > n and not has_features:
            warn(
                f"n_clusters={k} with n_samples={n}: most clusters have one or two "
                "samples; ask for fewer clusters",
                ClusterNumberWarning,
            )

    @property
    def n_clusters_(self) -> int:
        """The number of clusters of a fit, which may have found it."""
        found: Any = getattr(self, "suggestion_", self)
        return found.n_clusters

    def _learns_missing(self, stack: Stack) -> bool:
        """Return whether values for samples that are missing from views are learned."""
        asks = self.table_options.missing_views == "learn"
        return asks and observed_of(stack) is not None

    @property
    def table_options(self) -> TableOptions:
        """How tables become views."""
        can_learn = self.LEARNS_MISSING and self.approximation is None
        missing_views = self.missing_views or ("learn" if can_learn else "rescale")
        return TableOptions(self.views, self.join, self.impute, missing_views)

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: arrays_to_host(value)
            for name, value in super().__getstate__().items()
        }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        return tags


class RelaxedClusterer(MultipleKernelClusterer):
    """Base of the methods that end with k-means on the relaxed partition of a kernel.

    It adds the parameter ``rounding``. The solution says which kernel: by
    ``coefficients``, or by a ``kernel`` of its own.
    """

    rounding: Literal["best", "unit", "components"] = "best"

    rounding_: str = learned()
