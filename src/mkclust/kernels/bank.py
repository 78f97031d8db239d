"""Turn views of the samples into a bank of kernels."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mkclust.kernels.chosen_rules import ChosenRule, asked_of_views, check_rules, choose_rules
from mkclust.kernels.formulas import Formula, Tile, read_formulas
from mkclust.kernels.kinds import RULES, Rule, formulas_of
from mkclust.kernels.learned_view import LearnedView, NeighborhoodPart
from mkclust.kernels.links import Links
from mkclust.kernels.neighborhoods import KernelList, NeighborCount, count_neighbors
from mkclust.kernels.rows import CrossRows, KernelRows, mix_with_ones
from mkclust.kernels.sanity import warn_of_kernels, warn_of_lost_digits
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
from mkclust.parameters import Choice, check_parameter
from mkclust.samples.distances import (
    squared_norms,
)
from mkclust.samples.forms import TABLE
from mkclust.samples.local import fingerprint
from mkclust.samples.samples import Samples, read_views
from mkclust.types import Array, Float

# What a bank knows of each view, by its name.
OF_VIEWS = (
    *("views_", "rules_", "scales_", "medians_", "_columns", "_fingerprints", "_encodings"),
    *("_origins", "_preparations", "_formulas", "_neighbors"),
)
# Of fewer samples neighborhoods by rule would hold most, and say little.
FEWEST_SAMPLES = 10


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
    rules : None, "kind", str, view or dict of str to str or view, default=None
        None makes these kernels of the rows of every view as they are. "kind" tells the kind of
        each view from its numbers, prepares its rows accordingly, and makes the kernels that suit
        it: see the notes. The name of a kernel, or a kind, is that of all views. A dict asks for
        kernels or kinds by the names of views; views that it does not name go by their kinds. A
        `mkclust.view` says what transformer rows go through before.
    on_the_fly : bool, default=False
        Return no arrays but sources of rows, which compute the kernels from the views some rows at
        a time, as often as they are asked for. Memory is then as long as the views and not their
        square, and every product with the kernels takes the time to compute them.
    neighbors : None, int, float or "auto", default=None
        Replace every kernel by its shared neighborhoods: the similarity of two samples is the share
        of neighborhoods that hold both, the neighborhood of a sample being itself and so many
        others that are the most similar to it, with all that are as similar as the last. An
        integer of at least 2, a share of the samples, or "auto": 20, and fewer of less than 60
        samples. Kernels are then sparse (`mkclust.linalg.FactoredMatrix`), never n x n but for
        ties, and kept on the host, wherever the views are. Similarities are compared as by kernels
        of unit diagonal: all Gaussian kernels of a view have the same neighbors, and so have
        "linear" and "cosine".
    neighborhoods : {"shared", "graph"}, default="shared"
        What becomes of `neighbors`: the share of neighborhoods that two samples share, or the
        graph of who is a neighbor of whom, normalized by degrees and shifted by the identity,
        :math:`(I + D^{-1/2} W D^{-1/2}) / 2`, which has as many entries as there are neighbors.

    Attributes
    ----------
    views_ : dict of str to array, or CSR array, of shape (n_samples, n_features)
        The training views, against which new rows are compared: copies, so that nothing changes
        with the arrays that were passed. Memory maps are not copied; where their files hold other
        numbers later, new rows are refused.
    medians_ : dict of str to float
        Median distance between two training rows, prepared, for each view with Gaussian kernels,
        or others that are as wide as the median of their dissimilarities.
    scales_ : dict of str to float
        Mean squared norm of a training row, prepared, for each view.
    rules_ : dict of str to str
        The rule of each view: its kind, or the name of its kernel; "gaussian" for rows as they are.
    kernel_views_ : tuple of int
        The number of the view that each kernel is of.
    kernel_names_ : tuple of str
        One name a kernel, in their order: view by view, Gaussian, then polynomial, then linear.
    n_features_in_ : int
        Number of columns over all views.
    neighborhoods_ : dict of int to Neighborhoods
        The neighborhoods by those kernels that are, or are mixed with, shared neighborhoods, by
        their places among all kernels.

    Notes
    -----
    The median is taken over all pairs of rows up to 5,000 rows, and over the pairs of 5,000 rows
    drawn with a fixed seed beyond that; of more than 4,000 columns, fewer rows are drawn. Where
    more than half of the pairs are identical rows, the mean of the distances that are not zero
    stands in for it.

    Kernels are float32 if every training view is, and float64 otherwise. Distances and inner
    products are computed in float64 in both cases.

    Kinds of views, the first that fits, told from at most 1,000 rows drawn with a fixed seed:

    - "categories": 0 and 1, in groups of columns with one 1 in every row. One cosine kernel, the
      share of equal categories.
    - "distances": one column a sample, symmetric, with a zero diagonal and few other zeros. One
      kernel: shared neighborhoods of the 20 nearest.
    - "graph": one column a sample, symmetric, nonnegative and mostly zero. One kernel: the cosine
      of the links of two samples, of which each is linked to itself by its largest link.
    - "sparse": nonnegative, with less than 10 % of the entries not zero, as counts of words. One
      kernel: shared neighborhoods of the 20 nearest by the cosine of logarithms, log(1 + x / u)
      with u the median of the positive entries, weighted by the inverse document frequency of
      their columns.
    - "binary": two values only. The kernels of the parameters.
    - "histogram": nonnegative, with rows that add up to about the same. The kernels of the
      parameters, of the square roots of each row's shares.
    - "directions": all rows of one length, with entries of both signs. One cosine kernel.
    - "dense": all others. The kernels of the parameters, of columns of which none varies more than
      twice as much as the median one: those that do are scaled down to that.

    The one kernel of a view that is "histogram", "directions" or "dense" is mixed with its shared
    neighborhoods, which are a third of it; where a view has several kernels they are not mixed.
    Kernels by name, each alone, with s the median dissimilarity of two training rows (other than
    Euclidean ones: of at most 2,000 rows):

    - "gaussian": the kernels of the parameters, of rows as they are.
    - "self-tuning": :math:`\exp(-\|x - y\|^2 / (s_x s_y))` with :math:`s_x` the distance to the
      seventh nearest training sample (Zelnik-Manor and Perona, 2004).
    - "linear", "cosine", "polynomial": :math:`x^\top y / c`, its cosine,
      :math:`(1 + x^\top y / c)^2`.
    - "laplacian": :math:`\exp(-\sum_j |x_j - y_j| / s)`.
    - "chi2": :math:`\exp(-\frac1s \sum_j (x_j - y_j)^2 / (x_j + y_j))`, of nonnegative rows.
    - "hellinger": :math:`\sum_j \sqrt{p_j q_j}` of the shares p and q of nonnegative rows.
    - "jaccard": :math:`\sum_j \min(x_j, y_j) / \sum_j \max(x_j, y_j)`, of nonnegative rows: of
      zeros and ones the share of common marks.
    - "overlap", or "categorical": the share of columns in which two rows are equal; of marks, one
      in each group of columns, that of equal groups.
    - "from_distances": :math:`\exp(-d^2 / (2 s^2))` of distances d that the view consists of, one
      column a training sample. New rows hold the distances of new samples to these.

    All are positive semidefinite but "self-tuning" and "from_distances", which may not be: models
    check these as kernels that are precomputed, and repair them where ``psd`` says so.

    Kernels that are shared neighborhoods alone are sparse on the host (`FactoredMatrix`); of views
    on a device, beside others that are not, they are written out there.

    Sparse views of SciPy are never written out, but for the rows that their kinds are told from;
    their distances are computed from zero and not from their median, which takes digits from rows
    that are far from zero and close to each other. New rows may be sparse or not.

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

    Kernels by the kind of each view, and what was found:

    >>> views["words"] = rng.poisson(0.05, size=(30, 40)).astype(float)
    >>> bank = KernelBank(widths=(1.0,), polynomials=(), linear=None, rules="kind").fit(views)
    >>> bank.rules_
    {'pixels': 'dense', 'words': 'sparse'}

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
        widths: Sequence[float] = (1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0),
        polynomials: Sequence[tuple[float, int]] = ((0, 2), (0, 4), (1, 2), (1, 4)),
        linear: str | None = "linear",
        rules: Any = None,
        on_the_fly: bool = False,
        neighbors: Any = None,
        neighborhoods: Literal["shared", "graph"] = "shared",
    ):
        self.widths = widths
        self.polynomials = polynomials
        self.linear = linear
        self.rules = rules
        self.on_the_fly = on_the_fly
        self.neighbors = neighbors
        self.neighborhoods = neighborhoods

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the kind, width and scale of each view and keep the views for new rows.

        Parameters
        ----------
        X : mapping, list, tuple, array or data frame
            Views, each of shape (n_samples, n_features), in any form that `as_views` accepts; or
            what `mkclust.samples.read_samples` made of tables that are to be joined or filled.
        y : None
            Ignored; present for pipelines.

        Returns
        -------
        KernelBank
            The fitted bank itself.
        """
        formulas, samples = self._read_parameters(), read_views(X)
        return self._learn(samples, formulas, self._read_rules(samples.views))

    def _learn(
        self, samples: Samples, formulas: tuple[Formula, ...], rules: dict[str, ChosenRule]
    ) -> "KernelBank":
        """Learn from views by their rules, and from the names of their columns."""
        views = samples.views
        warn_of_lost_digits(views, samples.columns)
        fingerprints = {name: fingerprint(view) for name, view in views.items()}
        views = {
            name: view if fingerprints[name] else copy_array(view) for name, view in views.items()
        }
        learned = {
            name: LearnedView.of(name, view, rules[name], formulas) for name, view in views.items()
        }
        self.views_, self._columns, self._fingerprints = views, samples.columns, fingerprints
        self._encodings = samples.encodings
        self.rules_ = {name: chosen.rule.kind for name, chosen in rules.items()}
        self.scales_ = {name: each.scale for name, each in learned.items()}
        self.medians_ = {
            name: each.median for name, each in learned.items() if each.median is not None
        }
        self._origins = {name: each.origin for name, each in learned.items()}
        self._preparations = {name: each.preparation for name, each in learned.items()}
        self._formulas = {name: each.formulas for name, each in learned.items()}
        self.kernel_names_ = tuple(self._names())
        counts = [len(each.formulas) for each in learned.values()]
        self.kernel_views_ = tuple(np.repeat(range(len(views)), counts))
        self.n_features_in_ = sum(view.shape[1] for view in views.values())
        self._neighbors = {
            name: neighbors
            for name, view in views.items()
            if (
                neighbors := self._neighborhood_part(
                    rules[name].rule, len(self._formulas[name]), view.shape[0]
                )
            )
        }
        self.neighborhoods_: dict[int, Any] = {}  # of kernels whose rows are looked at for them
        self.neighborhoods_ = view_neighborhoods(self)
        if self.neighbors is not None and self.neighborhoods == "graph":
            self.neighborhoods_ = {
                place: Links.of(each) for place, each in self.neighborhoods_.items()
            }
        warn_of_kernels(self)
        return self

    def _neighborhood_part(
        self, rule: Rule, n_kernels: int, n_samples: int
    ) -> NeighborhoodPart | None:
        """Return the neighborhoods that kernels of a view are mixed with; None where with none."""
        if self.neighbors is not None:
            return NeighborhoodPart(count_neighbors(self.neighbors, n_samples), 1.0)
        # Of several kernels of a view somebody has said what they are to be.
        if rule.neighbors is None or n_kernels > 1 or n_samples < FEWEST_SAMPLES:
            return None
        size = min(rule.neighbors, count_neighbors("auto", n_samples))
        return NeighborhoodPart(size, rule.neighborhood_share)

    def of_view(self, name: str) -> "KernelBank":
        """Return a bank of one of the views, as if it had been fitted on that alone.

        Parameters
        ----------
        name : str
            The view.

        Returns
        -------
        KernelBank
            Its kernels have the names that they have among all.
        """
        check_is_fitted(self)
        other, number = copy(self), list(self.views_).index(name)
        for attribute in OF_VIEWS:
            values = getattr(self, attribute)
            setattr(other, attribute, {name: values[name]} if name in values else {})
        places = [place for place, view in enumerate(self.kernel_views_) if view == number]
        other.kernel_names_ = tuple(self.kernel_names_[place] for place in places)
        other.kernel_views_ = (0,) * len(places)
        other.n_features_in_ = int(self.views_[name].shape[1])
        other.neighborhoods_ = {
            place - places[0]: each
            for place, each in self.neighborhoods_.items()
            if place in places
        }
        return other

    @property
    def _shares(self) -> Float:
        """The share of shared neighborhoods in every kernel, (m,)."""
        shares = {name: each.share for name, each in self._neighbors.items()}
        names = list(self.views_)
        return np.array([shares.get(names[view], 0.0) for view in self.kernel_views_])

    @property
    def is_definite(self) -> bool:
        """Whether every kernel is positive semidefinite by construction."""
        rules = map(RULES.__getitem__, self.rules_.values())
        return self.neighbors is not None or all(rule.is_definite for rule in rules)

    @property
    def only_neighborhoods(self) -> bool:
        """Whether every kernel is one of shared neighborhoods."""
        return bool(np.all(self._shares == 1))

    def empty_rows(self, views: Mapping[str, Array]) -> dict[str, np.ndarray]:
        """Return which rows of views say nothing.

        Parameters
        ----------
        views : mapping of str to array of shape (n_rows, n_features)
            The training views, or new ones with their columns.

        Returns
        -------
        dict of str to ndarray of bool of shape (n_rows,)
            Rows of zeros, once prepared, of those views whose kernels compare directions or
            entries that two rows have in common. Of other views any row says something.
        """
        names = self.views_ignoring_zeros
        return {name: self._preparations[name].zero_rows(views[name]) for name in names}

    @property
    def views_ignoring_zeros(self) -> list[str]:
        """The views of which rows of zeros say nothing."""
        return [
            name
            for name, preparation in self._preparations.items()
            if not RULES[self.rules_[name]].of_pairs
            and (
                preparation.ignores_zeros
                or all(formula.ignores_zeros for formula in self._formulas[name])
            )
        ]

    def _prepared(self, name: str, rows: Array) -> Array:
        """Return rows of a view as its kernels take them."""
        preparation = self._preparations[name]
        if rows is self.views_[name]:
            return preparation.apply_to_training(rows)
        return preparation.apply(rows)

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

    def fit_transform(self, X: Any, y: Any = None) -> Array | KernelRows | KernelList:
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
        if samples.missing is not None:
            raise ValueError(
                f"{int(samples.missing.any(axis=1).sum())} of {samples.n_samples} samples "
                "are missing from views, and kernels of different samples do not form one "
                "array: pass the views to a method such as SimpleMKKM, or fit the bank "
                "and call of_view(name)"
            )
        rules = self._read_rules(samples.views)
        n = next(iter(samples.views.values())).shape[0]
        m = sum(len(formulas_of(chosen.rule, formulas)) for chosen in rules.values())
        self._require_memory(m, n, n, samples.views, "")
        return self._learn(samples, formulas, rules)._kernels(self.views_)

    def transform(self, X: Any) -> Array | CrossRows | KernelList:
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
        self._require_memory(len(self.kernel_names_), n_new, n, training_views, advice)
        return self._kernels(views)

    def training_kernels(self) -> Array | KernelRows | KernelList:
        """Return the kernels of the views that the bank was fitted on, where these live.

        Returns
        -------
        array of shape (n_kernels, n_samples, n_samples), KernelRows or KernelList
            As :meth:`fit_transform` does.
        """
        check_is_fitted(self)
        n = next(iter(self.views_.values())).shape[0]
        self._require_memory(len(self.kernel_names_), n, n, self.views_, "")
        return self._kernels(self.views_)

    def announce(self, X: Any) -> tuple[int, int, np.dtype]:
        """Tell the size of the kernels of views, without looking at more than their shapes.

        Parameters
        ----------
        X : mapping, list, tuple, array or data frame
            Views, as :meth:`fit` takes them; they need not be sound.

        Returns
        -------
        n_kernels, n_samples : int
            How many kernels there will be, and of how many samples; by kind, how many at most.
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
        if self.only_neighborhoods:
            values = [each.self_similarity() for each in self.neighborhoods_.values()]
            return np.outer(values, np.ones(next(iter(views.values())).shape[0]))
        return mix_with_ones(self._self_similarity(views), self._shares)

    def explain(self) -> str:
        r"""Say what was made of each view, and why.

        Returns
        -------
        str
            One line a view: its kind and how that was told, what is done to its rows, and its
            kernels with the median distance that their widths are multiples of.

        Examples
        --------
        >>> import numpy as np
        >>> from mkclust.kernels import KernelBank
        >>> rng = np.random.default_rng(0)
        >>> colors = np.eye(3)[rng.integers(3, size=30)]
        >>> views = {"pixels": rng.normal(size=(30, 5)), "color": colors}
        >>> bank = KernelBank(widths=(1.0,), polynomials=(), linear=None, rules="kind")
        >>> print(bank.fit(views).explain())  # doctest: +NORMALIZE_WHITESPACE
        pixels: dense (none of the other kinds); rows as they are; gaussian x1 and shared
        neighborhoods of 10 neighbors, median distance 2.79
        color: categories (groups of columns with one mark in every row); rows as they are; cosine
        """
        check_is_fitted(self)
        return "\n".join(map(self._explain_view, self.views_))

    def _explain_view(self, name: str) -> str:
        """Say what was made of one view, and why."""
        rule, formulas = RULES[self.rules_[name]], self._formulas[name]
        asked = asked_of_views(self.rules, self.views_).get(name)
        asked_for = asked is not None and getattr(asked, "kernel", "") != "auto"
        reason = "asked for" if asked_for else rule.why
        kind = f"{rule.kind} ({reason}); " if self.rules is not None else ""
        kernels = str(formulas[0]) if len(formulas) == 1 else f"{len(formulas)} kernels"
        width = f", median distance {self.medians_[name]:.3g}" if name in self.medians_ else ""
        if neighbors := self._neighbors.get(name):
            near = f"shared neighborhoods of {neighbors.size} neighbors"
            if rule.kind == "distances":
                return f"{name}: {kind}{self._preparations[name]}; {near} by these distances"
            kernels = f"{near} by {kernels}" if neighbors.share == 1 else f"{kernels} and {near}"
        return f"{name}: {kind}{self._preparations[name]}; {kernels}{width}"

    def _read_parameters(self) -> tuple[Formula, ...]:
        """Return the kernels of a view that the parameters ask for, or refuse them."""
        formulas = read_formulas(self.widths, self.polynomials, self.linear)
        if not isinstance(self.on_the_fly, bool | np.bool_):
            raise ValueError(f"on_the_fly must be True or False; found {self.on_the_fly!r}.")
        check_rules(self.rules)
        check_parameter("neighbors", self.neighbors, NeighborCount())
        check_parameter("neighborhoods", self.neighborhoods, Choice(("shared", "graph")))
        return formulas

    def _read_rules(self, views: dict[str, Array]) -> dict[str, ChosenRule]:
        """Return the rule of every view, or say why one cannot be used."""
        if min(view.shape[0] for view in views.values()) < 2:
            advice = "but the typical distance between samples takes at least two"
            raise ValueError(f"Found n_samples=1, {advice}.")
        return choose_rules(self.rules, views)

    def _require_memory(
        self, m: int, n_new: int, n: int, training_views: dict[str, Array], advice: str
    ) -> None:
        """Refuse kernels that do not fit into memory, before anything is learned or computed."""
        if self.on_the_fly or self.neighbors is not None:
            return
        precision = precision_of_all(training_views)
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
        for view in self.views_:
            kinds = list(map(str, self._formulas[view]))
            if len(kinds) == 1:
                yield view
            elif list(self.views_) == [TABLE]:
                yield from kinds
            else:
                yield from (f"{view} {kind}" for kind in kinds)

    def _kernels(self, views: dict[str, Array]) -> Any:
        """Compute the kernels of checked views against the training views, or get ready to."""
        is_training = are_equal(views, self.views_)
        if is_training:
            # Kernels with the same neighborhoods are one and the same.
            by_id = {id(each): each.kernel() for each in self.neighborhoods_.values()}
            shared = {place: by_id[id(each)] for place, each in self.neighborhoods_.items()}
        else:
            shared = new_neighborhoods(self, views)
        if self.only_neighborhoods:
            return KernelList(tuple(shared[place] for place in sorted(shared)), is_training)
        shares, source_type = self._shares, KernelRows if is_training else CrossRows
        parts = {place: (each, float(shares[place])) for place, each in shared.items()}
        source = source_type(self, self.views_ if is_training else views, neighborhoods=parts)
        if self.on_the_fly:
            return source
        alone = [place for place, share in enumerate(shares) if share == 1]
        # Sparse matrices are of the host: kernels of a device are all written out there.
        if not alone or is_foreign(source.like):
            return source.all_rows()
        # Each is held as if no other were there, whatever that is.
        others = [place for place in range(len(shares)) if place not in alone]
        rows = source.only(others).all_rows()
        matrices = {place: rows[i, ...] for i, place in enumerate(others)}
        matrices |= {place: shared[place] for place in alone}
        return KernelList(tuple(matrices[place] for place in sorted(matrices)), is_training)

    def _self_similarity(self, views: dict[str, Array]) -> Array:
        """Compute k(x, x) for the rows of checked views, by the formulas alone."""
        precision, diagonals = precision_of_all(self.views_), []
        for name, view in views.items():
            rows = self._prepared(name, view)
            xp, squared = namespace(view), squared_norms(rows) / self.scales_[name]
            # Of a row with itself, the squared norm is what both lengths come to.
            lengths = xp.where(squared > 0, squared, 1.0), 1.0
            tile = Tile(xp.zeros_like(squared), squared, lengths, 1.0, precision)
            formulas = self._formulas[name]
            diagonals += [astype(formula.of_themselves(tile), precision) for formula in formulas]
        return namespace(*diagonals).stack(diagonals)
