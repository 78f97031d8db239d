"""What all methods share: from input to labels, and from new samples to labels."""

import time
import warnings
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, cast

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mkclust.exceptions import FewerClustersWarning, MissingnessWarning, MissingViewsWarning, warn
from mkclust.kernels import KernelBank
from mkclust.kernels.neighbors import NeighborCount
from mkclust.linalg import arrays_to_host, copy_array, select, to_host
from mkclust.linalg.threads import one_thread_if_small
from mkclust.methods.agreement import Agreement, measure_agreement, warn_of_agreement
from mkclust.methods.documentation import fill
from mkclust.methods.fields import Parameters, learned
from mkclust.methods.leading_shares import leading_shares
from mkclust.methods.missingness import advise_on_missing, measure_missingness
from mkclust.methods.neighborhoods import check_neighborhoods
from mkclust.methods.out_of_sample import Extension
from mkclust.methods.solution import Solution
from mkclust.methods.source import Source
from mkclust.methods.stopwatch import Stopwatch
from mkclust.methods.training import (
    Training,
    check_samples,
    embedding_cosines,
    in_order_of_fit,
    open_training,
    read_training,
)
from mkclust.methods.uncovered import (
    NOBODY,
    UNCOVERED,
    check_covered,
    empty_in_kernels,
    kernels_that_have,
    leaves_samples,
    observed_of,
    only_covered,
    spread_over_all,
    spread_samples,
    used_kernels,
    warn_of_uncovered,
    without_entries,
)
from mkclust.parameters import (
    Allowed,
    Choice,
    ClusterCount,
    Count,
    Flag,
    Number,
    check_parameter,
)
from mkclust.plots import MIXING_WEIGHT
from mkclust.samples.options import FILLS, IMPUTATIONS, JOINS, Selection, TableOptions
from mkclust.samples.samples import Samples
from mkclust.stack import Mix, Stack
from mkclust.stack.discretize import assign, count_clusters, discretize
from mkclust.stack.distinct import count_distinct, has_distinct
from mkclust.stack.kernel import dense_of
from mkclust.text import printable, text_table
from mkclust.types import Array, Float, Labels

# What the similarities of most methods are, and those of methods without coefficients.
SUM = "the sum of the kernels by their coefficients"
COSINES = "cosines between rows of the embedding; no kernels are mixed"
# What the parameters that many methods share may be.
COMMON: dict[str, Allowed] = {
    "n_clusters": ClusterCount(),
    "center": Flag(),
    "normalize": Flag(),
    "neighbors": NeighborCount(),
    "n_init": Count(),
    "max_iter": Count(),
    "tol": Number(0, 1, open_low=True, open_high=True),
    "views": Selection(),
    "join": Choice(JOINS),
    "impute": Choice((None, *IMPUTATIONS)),
    "missing_views": Choice((None, *FILLS)),
}


class _Solved(NamedTuple):
    """A solution, and what it is of."""

    training: Training
    noted: dict[str, Any]  # of neighborhoods
    stack: Stack  # as given
    filled: Stack  # with what was learned of missing samples
    solution: Solution
    unused: np.ndarray  # samples that only kernels have that are not used
    aside: list[str]  # the names of these kernels


class MultipleKernelClusterer(ClusterMixin, Parameters):
    """Base of all methods: a child stores its parameters and solves; this does the rest.

    A child defines ``__init__`` and ``_solve(stack) -> Solution``, names in ``ALLOWED`` what its
    own parameters may be, and may add what it has learned beyond the common attributes in
    ``_learned(stack, solution, labels, *further)``, further being the labels of what it asked for
    in ``_further_rows``. Its docstring may name sections of
    ``mkclust.methods.documentation``. Pages, displays and the command line read what there is to
    say about a method from its class, so that all of them say the same.
    """

    n_clusters: int = field(default=8, kw_only=False)
    kernels: Any = "auto"
    center: bool = True
    normalize: bool = True
    psd: Literal["error", "clip", "shift"] = "error"
    neighbors: Any = None
    n_init: int = 10
    random_state: Any = None
    views: Any = None
    join: Literal["exact", "inner", "outer"] = "exact"
    impute: Literal["median"] | None = None
    missing_views: Literal["learn", "zero", "rescale"] | None = None

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
    # The numbers of the samples that were fitted; None if all were.
    _covered: np.ndarray | None = learned(None)
    # The attributes of the last fit, which the next one replaces.
    _learned_names: tuple[str, ...] = learned(())
    # Features that stand for the kernels: a parameter of the methods that can use them.
    approximation = cast(Any, None)

    # The grid that the authors of a method search, as scikit-learn's ParameterGrid takes it.
    GRID: ClassVar[dict[str, list]] = {}
    # What a method's own parameters may be; it may narrow or widen the common ones.
    ALLOWED: ClassVar[dict[str, Allowed]] = {}
    # What it does to the kernels, in words that go on from its name; empty where the name must do.
    SUMMARY: ClassVar[str] = ""
    # The papers it is from, one entry each.
    REFERENCES: ClassVar[tuple[str, ...]] = ()
    # How to read its weights, in a sentence: it stands beside them wherever they are shown.
    WEIGHT_MEANING: ClassVar[str] = MIXING_WEIGHT
    # What `mixed_kernel` holds, in words.
    SIMILARITIES: ClassVar[str] = SUM
    # About how many times as long a fit takes as those of the quick methods.
    SLOWNESS: ClassVar[int] = 1
    # How many n x n matrices it needs beside the kernels, and how many copies of all kernels.
    MATRICES: ClassVar[int] = 1
    COPIES: ClassVar[int] = 0
    # Whether it can learn what stands for samples that are missing from views.
    LEARNS_MISSING: ClassVar[bool] = False
    # Whether it works on the entries of the kernels, all of them, rather than on products alone.
    NEEDS_ENTRIES: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        """Write the shared parts into the docstring of a method."""
        super().__init_subclass__(**options)
        cls.__doc__ = fill(cls.__doc__, cls.REFERENCES)

    def fit(self, X: Any, y: Any = None, *, observed: Any = None) -> Self:
        """Find the weights and the clusters.

        Parameters
        ----------
        X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
            See the class documentation.
        y : Ignored
            Present for scikit-learn's conventions.
        observed : array of bool of shape (n_samples, n_views) or dict of such columns, default=None
            Which views, or kernels, have which samples; what else they hold is not looked at. None
            where rows that are NaN throughout, or ids, tell.

        Returns
        -------
        self
        """
        self.check_parameters()
        if getattr(y, "ndim", 0) == 2 and y.dtype == bool:
            raise ValueError(
                f"y is an array of bool of shape {tuple(y.shape)}, and fit ignores labels: "
                "pass observed=mask if it says which views have which samples"
            )
        watch = Stopwatch()
        solved = self._solve_covered(read_training(self, X, observed), watch)
        learned = self._learn(solved, watch)
        self._warn_of_fit(learned, solved.solution)
        learned |= solved.noted | watch.attributes()
        samples, fitted = solved.training.samples, solved.training.fitted
        if fitted is not None or len(solved.unused):
            uncovered = spread_over_all(learned, samples, fitted, solved.unused)
            warn_of_uncovered(uncovered, samples.n_samples, samples.ids, solved.aside)
        # All at once and last, so that a failed fit leaves nothing half-learned behind.
        for name in self._learned_names:
            delattr(self, name)
        for name, value in (learned | {"_learned_names": (*learned, "_learned_names")}).items():
            setattr(self, name, value)
        return self

    def _solve_covered(self, samples: Samples, watch: Stopwatch) -> _Solved:
        """Solve; once more without samples of which nothing turns out to be known."""
        fitted, lost, aside = None, without_entries(samples.missing), list[str]()
        while True:
            watch.switch("kernel")
            training = open_training(self, samples, fitted, lost)
            source, fitted = training.source, training.fitted
            noted = check_neighborhoods(
                source.neighborhoods, source.ids, self.n_clusters, source.observed
            )
            watch.switch("check")
            stack = source.stack(self, training.kernels)
            self._check_n_clusters(stack)
            watch.switch("solve")
            with one_thread_if_small(stack.n_samples):
                solution = self._timed_solution(stack)
            watch.switch("agreement")
            filled = stack if solution.stack is None else solution.stack
            empty = empty_in_kernels(filled, training.empty)
            used = used_kernels(filled, solution.coefficients, solution.included)
            unused = without_entries(empty, used)
            aside += kernels_that_have(unused, filled, empty)
            # Samples that the used views lack change nothing; empty rows of them would.
            lost = np.setdiff1d(unused, without_entries(empty_in_kernels(filled), used))
            if not len(lost) or not leaves_samples(filled, lost):
                names = list(dict.fromkeys(aside))
                return _Solved(training, noted, stack, filled, solution, unused, names)

    def _learn(self, solved: _Solved, watch: Stopwatch) -> dict[str, Any]:
        """Return what a fit learns, by name."""
        solution, stack, unused = solved.solution, solved.filled, solved.unused
        with one_thread_if_small(stack.n_samples):
            if solution.agreement is None and stack.n_kernels > 1:
                # Of what was observed: what was learned of missing samples agrees with all views.
                solution = replace(solution, agreement=measure_agreement(solved.stack))
            watch.switch("label")
            learned, further = self._common_attributes(
                solved.training.source, stack, solution, unused
            )
            learned |= self._learned(stack, solution, learned["labels_"], *further)
            watch.switch("alignment")
            learned["alignments_"] = self._alignments(stack, solution)
            watch.switch("label")
        if solution.agreement is not None:
            learned["agreement_"] = solution.agreement
        if "observed_" in learned:
            views = learned.get("view_names_in_", learned["kernel_names_"])
            labels, seen = (
                np.delete(learned[name], unused, 0) for name in ("labels_", "observed_")
            )
            learned["missingness_"] = measure_missingness(labels, seen, views)
        return learned

    def _warn_of_fit(self, learned: dict[str, Any], solution: Solution) -> None:
        """Warn of what a fit has learned that its user should know."""
        if "agreement_" in learned:
            warn_of_agreement(learned["agreement_"])
        if "missingness_" in learned:
            if learned["missingness_"].follows:
                warn(learned["missingness_"].warning(), MissingnessWarning)
            is_scaled = self.missing_views is None and not self._asks_to_learn
            if is_scaled and (advice := advise_on_missing(learned["observed_"])) is not None:
                warn(advice, MissingViewsWarning)
        n_found = count_clusters(learned["labels_"])
        if n_found < self.n_clusters:
            warn(self._explain_fewer_clusters(n_found), FewerClustersWarning)
        if not solution.converged:
            reason = self._explain_stop(solution)
            warn(f"{type(self).__name__} did not converge: {reason}", ConvergenceWarning)

    if TYPE_CHECKING:  # scikit-learn's, which has no types

        def fit_predict(self, X: Any, y: Any = None, **options: Any) -> Labels:
            """Return the clusters of a fit."""

    def solve(self, stack: Stack) -> Solution:
        """Solve the method's relaxed problem, without labels and without a change of the model.

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
        >>> solution = SimpleMKKM(n_clusters=3).solve(as_stack(X @ X.transpose(0, 2, 1)))
        >>> solution.partition.shape, solution.weights.shape
        ((30, 3), (2,))
        """
        self.check_parameters()
        self._check_n_clusters(stack)
        return self._timed_solution(stack)

    def summary(self) -> str:
        """Return what was understood of the input, and how every kernel counts.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        rows = [["kernel", "weight", "alignment"]]
        for name, *values in zip(self.kernel_names_, self.weights_, self.alignments_, strict=True):
            rows.append([name, f"{values[0]:.4f}", f"{values[1]:.2f}"])
        lines = [*self._source.notes, *text_table(rows).splitlines(), self.WEIGHT_MEANING]
        return "\n".join(map(printable, lines))

    def mixed_kernel(self, X: Any, samples: Any = None) -> Float:
        """Return the similarities by which the samples are clustered, all or among some.

        For most methods that is ``sum_p coefficients_p K_p``, every kernel centered and scaled as
        in the fit. LMKKM mixes by the weights of both samples; ONKC has a kernel of its own near
        the mix, found again by one eigendecomposition; LKAM and LocalizedSimpleMKKM count the mix
        by the neighborhoods that two samples have in common; LF-MVC mixes no kernels, and what it
        has are the cosines between rows of its embedding. With an approximation the kernels are
        those of the features. What draws the partition of AnchoredMKKM to its anchor is part of
        it, except with an approximation.

        Nothing as large as the samples squared is made where few are asked for, except by ONKC,
        LKAM and LocalizedSimpleMKKM, whose similarities of two samples depend on all others.

        Parameters
        ----------
        X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
            What the model was fitted on.
        samples : array-like of int of shape (s,), default=None
            Numbers of the samples to look at, in any order; None looks at all.

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
        indices = check_samples(samples, len(self.labels_))
        if self._covered is not None:
            return self._mixed_among_covered(X, indices, self._covered)
        if self._mixes_kernels:
            return _symmetric(self._source.mixed_entries(self, X, indices))
        self._source.check(self, X)
        return _symmetric(embedding_cosines(self, indices))

    def _mixed_among_covered(
        self, X: Any, indices: np.ndarray | None, covered: np.ndarray
    ) -> Float:
        """Return the mixed kernel among some samples, zero for those that are not covered."""
        wanted = np.arange(len(self.labels_)) if indices is None else indices
        numbers = np.full(len(self.labels_), -1)
        numbers[covered] = np.arange(len(covered))
        places = np.flatnonzero(numbers[wanted] >= 0)
        entries = np.zeros((len(wanted), len(wanted)))
        entries[np.ix_(places, places)] = only_covered(self).mixed_kernel(
            in_order_of_fit(self, X), numbers[wanted[places]]
        )
        return entries

    def mixed_kernel_of(self, stack: Stack, samples: Any = None) -> Float:
        """Return the same as `mixed_kernel` by the kernels of the fit, where they are at hand.

        Parameters
        ----------
        stack : Stack
            The kernels that the model was fitted on, centered and scaled as in the fit.
        samples : array-like of int of shape (s,), default=None
            Numbers of the samples to look at, in any order; None looks at all.

        Returns
        -------
        ndarray of shape (s, s)
        """
        indices = check_samples(samples, len(self.labels_))
        if self._mixes_kernels:
            return _symmetric(self._mixed_among(stack, indices))
        return _symmetric(embedding_cosines(self, indices))

    def describe_mixed_kernel(self) -> str:
        """Return what :meth:`mixed_kernel` holds, in words that fit below a picture of it.

        Returns
        -------
        str
        """
        done = [("centered", self.center), ("scaled to a unit diagonal", self.normalize)]
        standard = " and ".join(word for word, was in done if was) or "neither centered nor scaled"
        if hasattr(self, "n_neighbors_"):
            standard = f"of {self.n_neighbors_} shared neighbors, {standard}"
        what = self.SIMILARITIES
        if what == SUM and self.__sklearn_is_fitted__() and not self._has_coefficients:
            what = COSINES
        sentence = f"{what} (kernels {standard}"
        if self.approximation is not None:
            sentence += "; approximated by features"
        if getattr(self, "anchor_", 0):
            sentence += f"; {'with' if hasattr(self, '_anchor_rows') else 'without'} the anchor"
        return sentence + ")"

    def _mixed_among(self, stack: Stack, samples: np.ndarray | None) -> Array:
        """Return the similarities among samples that exist, symmetric but for rounding."""
        if samples is None:
            return dense_of(Mix(self.coefficients_, stack.kernels))
        return dense_of(stack.among(samples).mix(self.coefficients_))

    @property
    def _mixes_kernels(self) -> bool:
        """Whether the similarities by which samples are clustered are those of mixed kernels."""
        return self._has_coefficients

    @property
    def _has_coefficients(self) -> bool:
        """Whether the fit mixes the kernels by one coefficient each."""
        return hasattr(self, "coefficients_")

    def _timed_solution(self, stack: Stack) -> Solution:
        """Return the solution of a checked problem, with the seconds that it took."""
        started = time.perf_counter()
        solution = self._solve(stack)
        return replace(solution, seconds=time.perf_counter() - started)

    def _solve(self, stack: Stack) -> Solution:
        """Solve the method's relaxed problem."""
        raise NotImplementedError(f"{type(self).__name__} must define _solve")

    def _learned(
        self, stack: Stack, solution: Solution, labels: Array, *further: Array
    ) -> dict[str, Any]:
        """Return what the method learns beyond the common attributes."""
        return {}

    def _explain_stop(self, solution: Solution) -> str:
        """Say why the solver stopped before its rule was met, and what to do about it."""
        if solution.cycle:
            cap = getattr(self, "max_iter", solution.n_iter)
            how = "all but repeat themselves" if solution.n_iter >= cap else "repeat themselves"
            return (
                f"after {solution.n_iter} iterations the weights {how} in a cycle of "
                f"{solution.cycle}; a higher max_iter tells whether they settle. The best of them "
                "is returned"
            )
        return f"{solution.n_iter} iterations were not enough: raise max_iter or tol"

    def _explain_fewer_clusters(self, n_found: int) -> str:
        """Say why there may be fewer clusters than were asked for, and what to do about it."""
        clusters = "cluster" if n_found == 1 else "clusters"
        return (
            f"{type(self).__name__} found {n_found} {clusters} where n_clusters={self.n_clusters} "
            f"were asked for: the embedding tells the samples apart by {n_found} directions only. "
            "Either the kernels have fewer independent directions than there are to be clusters, "
            "or many samples are alike; ask for fewer clusters, or add kernels or views that tell "
            "the samples apart"
        )

    def check_parameters(self) -> None:
        """Refuse parameters that no data could make sense of.

        Raises
        ------
        ValueError or TypeError
            With the parameter, its value and what it may be.
        """
        parameters = self.get_params(deep=False)
        for name, allowed in (COMMON | self.ALLOWED).items():
            if name in parameters:
                check_parameter(name, parameters[name], allowed)
        try:
            check_random_state(self.random_state)
        except ValueError as error:
            raise ValueError(f"random_state={self.random_state!r}: {error}") from None
        if self.approximation is not None:
            self._check_approximation()
        if self.missing_views == "learn":
            self._check_learns_missing()

    @property
    def _asks_to_learn(self) -> bool:
        """Whether what stands for samples that are missing from views is to be learned."""
        return self.table_options.missing_views == "learn"

    def _learns_missing(self, stack: Stack) -> bool:
        """Return whether it is, and anything is missing."""
        return self._asks_to_learn and observed_of(stack) is not None

    def _check_learns_missing(self) -> None:
        """Refuse to learn what is missing where a method, or a feature map, cannot."""
        advice = "pass missing_views='rescale' or missing_views='zero'"
        if not self.LEARNS_MISSING:
            raise ValueError(
                f"missing_views='learn': {type(self).__name__} cannot learn to fill in samples "
                f"that are missing from views; {advice}, or use SimpleMKKM, MKKM, "
                "AverageKKM or AgreementKKM"
            )
        if self.approximation is not None:
            raise ValueError(
                "missing_views='learn' with an approximation: samples that are missing from "
                "views can be learned with exact kernels, not with features; pass "
                f"approximation=None, or {advice.removeprefix('pass ')}"
            )

    @property
    def kernel_neighbors(self) -> Any:
        """Whether kernels are replaced by their shared neighborhoods, and of how many neighbors.

        None where they are not: a method may mean something else by a parameter of this name.
        """
        return None if "neighbors" in self.ALLOWED else self.neighbors

    @property
    def table_options(self) -> TableOptions:
        """How tables become views."""
        can_learn = self.LEARNS_MISSING and self.approximation is None
        best = "learn" if can_learn else "rescale"
        return TableOptions(self.views, self.join, self.impute, self.missing_views or best)

    def _check_approximation(self) -> None:
        """Refuse what is no feature map, and any where a method needs entries of the kernels."""
        approximation = self.approximation
        is_map = hasattr(approximation, "transform")
        if not is_map or isinstance(approximation, type | KernelBank):
            raise ValueError(
                f"approximation={approximation!r}: pass None, or a feature map such as "
                "mkclust.kernels.Nystroem(n_components=200)"
            )
        if self.kernel_neighbors is not None:
            raise ValueError(
                f"neighbors={self.neighbors!r} with an approximation: features have no neighbors; "
                "pass neighbors=None, or approximation=None, which takes as little memory with "
                "neighbors"
            )
        if self.NEEDS_ENTRIES:
            raise ValueError(
                f"{type(self).__name__} needs the entries of the kernels, which features "
                "do not give: pass approximation=None, or use a method that mixes whole "
                "kernels, such as SimpleMKKM"
            )

    def _check_n_clusters(self, stack: Stack) -> None:
        """Refuse more clusters than there are samples, or distinct samples."""
        if stack.features is not None:
            if self.n_clusters > stack.n_samples:
                raise ValueError(
                    f"n_clusters={self.n_clusters}, but the features span only "
                    f"{stack.n_samples} directions: ask for fewer clusters, or for more "
                    "features"
                )
            return
        if self.n_clusters > stack.n_samples:
            raise ValueError(
                f"n_clusters={self.n_clusters} with n_samples={stack.n_samples}: there cannot be "
                "more clusters than samples"
            )
        if self.n_clusters == 1:
            return
        if not has_distinct(stack, self.n_clusters):
            n_distinct = count_distinct(stack)
            raise ValueError(
                f"n_clusters={self.n_clusters}, but only {n_distinct} of the {stack.n_samples} "
                "samples are distinct: ask for fewer clusters"
            )

    def _common_attributes(
        self, source: Source, stack: Stack, solution: Solution, lost: np.ndarray
    ) -> tuple[dict[str, Any], list[Array]]:
        """Return what every method learns, labels included, and the further labels of some.

        Lost are samples that only kernels have that are not used.
        """
        H = solution.partition
        rows, extension = self._rows(stack, solution)
        source = source.extended(stack, rows, extension)
        vectors = H, rows, *self._further_rows(stack, solution)
        if stack.features is not None:
            vectors = stack.features.lift(*vectors)
        embedding, rows, *further = vectors
        learned: dict[str, Any] = source.attributes(stack) | {
            "_source": source,
            # A copy, or what was lifted beside it would live as long as the model.
            "embedding_": copy_array(embedding),
            "weights_": solution.weights,
            "objective_": solution.objective,
            "history_": solution.history,
            "converged_": solution.converged,
            "n_iter_": solution.n_iter,
            "kernel_names_": stack.names,
        }
        if solution.coefficients is not None:
            learned["coefficients_"] = solution.coefficients
        if solution.fill_history is not None:
            learned["fill_history_"] = solution.fill_history
        if source.ids is not None:
            learned["sample_ids_"] = source.ids
        if source.view_names is not None:
            learned["view_names_in_"] = source.view_names
        order = _order_by_id(source.ids)
        learned["labels_"], learned["_centers"] = self._discretize(rows, order, lost)
        learned["labels_"][lost] = UNCOVERED
        uncovered = lost
        if further and solution.agreement is not None:  # they are of the views' compromise
            used = used_kernels(stack, solution.agreement.coefficients(), solution.included)
            uncovered = np.union1d(lost, without_entries(empty_in_kernels(stack), used))
        return learned, [self._discretize(rows, order, uncovered)[0] for rows in further]

    def _further_rows(self, stack: Stack, solution: Solution) -> list[Array]:
        """Return what else a method wants to discretize, as rows like those of the partition."""
        return []

    def _rows(self, stack: Stack, solution: Solution) -> tuple[Array, Extension | None]:
        """Return the rows that k-means clusters, and what embeds new samples alike, if anything."""
        return solution.partition, None

    def _discretize(
        self,
        rows: Array,
        order: np.ndarray | None,
        uncovered: np.ndarray = NOBODY,
    ) -> tuple[Array, Float]:
        """Return labels and centers by the estimator's own k-means settings.

        Starts are drawn among the rows in an order, if there is one. Samples that are not covered
        have no part in the centers, and are given to the nearest.
        """
        if len(uncovered):
            order = np.arange(rows.shape[0]) if order is None else order
            order = order[~np.isin(order, uncovered)]
            check_covered(len(order), rows.shape[0], self.n_clusters)
        with warnings.catch_warnings():
            # Said in words of our own, once it is known how many clusters there are.
            warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
            labels, centers = discretize(
                rows if order is None else select(rows, order),
                self.n_clusters,
                n_init=self.n_init,
                random_state=self.random_state,
            )
        if order is not None:
            labels = select(labels, np.argsort(order))
            if len(uncovered):
                # Without a direction, whatever rounding has left of them.
                nearest = int(assign(np.zeros((1, self.n_clusters)), centers)[0])
                labels = spread_samples(labels, np.sort(order), rows.shape[0], nearest)
        return labels, centers

    def _alignments(self, stack: Stack, solution: Solution) -> Float:
        """Return the share of each kernel's own top-k eigenvalue sum that a partition captures."""
        return leading_shares(stack, solution)

    def __copy__(self) -> "MultipleKernelClusterer":
        """Return a model with the same arrays, where they are."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Return what is stored: arrays on the host, which load anywhere."""
        return {name: arrays_to_host(value) for name, value in super().__getstate__().items()}

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there are labels."""
        return hasattr(self, "labels_")

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: kernels have three dimensions, tables may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        return tags


def _symmetric(similarities: Array) -> Float:
    """Return similarities on the host, exactly symmetric."""
    entries = to_host(similarities)
    return (entries + entries.T) / 2


def _order_by_id(ids: np.ndarray | None) -> np.ndarray | None:
    """Return the samples in the order of their ids as text, None where they are or have none.

    What is random is then the same for the same samples, whatever the order of their rows.
    """
    if ids is None:
        return None
    order = np.argsort([str(sample) for sample in ids], kind="stable")
    return None if np.array_equal(order, np.arange(len(order))) else order
