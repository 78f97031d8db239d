"""Turn views of the samples into a bank of kernels."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from mkclust.data.blocks import fingerprint
from mkclust.data.samples import Expected, Samples, read_views
from mkclust.data.tables import TABLE
from mkclust.kernels.computed import ComputedKernels
from mkclust.kernels.counts import CountComponents
from mkclust.kernels.formulas import Formula, read_formulas
from mkclust.kernels.kinds import RULES, check_scale, choose_rules, requests_of, view
from mkclust.kernels.neighbors import NEIGHBORS, Neighborhoods, count_neighbors
from mkclust.kernels.preparations import LogTfIdf
from mkclust.kernels.sanity import warn_of_kernels, warn_of_lost_digits
from mkclust.kernels.view_kernels import (
    ViewKernels,
    kernels_of,
    self_similarities_of,
)
from mkclust.linalg import as_csr, copy_array
from mkclust.parameters import Flag, Parameters, check_parameter
from mkclust.text import printable
from mkclust.types import Array


class KernelBank(TransformerMixin, Parameters):
    r"""Turn views into a bank of kernels.

    By default each view gives twelve kernels, the customary make-up of a bank in the
    multiple kernel clustering literature: seven Gaussian, four polynomial and one
    linear,

    .. math:: \exp\Bigl(-\frac{\|x - y\|^2}{2 (w s)^2}\Bigr), \qquad
              \Bigl(a + \frac{x^\top y}{c}\Bigr)^b, \qquad \frac{x^\top y}{c}

    where :math:`s` is the median distance between two training rows and :math:`c` the
    mean squared norm of a training row, so that multiplying a view by a constant
    changes nothing.

    Parameters
    ----------
    widths : sequence of float, default=(1/8, 1/4, 1/2, 1, 2, 4, 8)
        The standard deviations :math:`w` of Gaussian kernels, in median distances.
    polynomials : sequence of (float, int), default=((0, 2), (0, 4), (1, 2), (1, 4))
        The offsets :math:`a` and degrees :math:`b` of polynomial kernels.
    linear : {"linear", "cosine"} or None, default="linear"
        One more kernel: :math:`x^\top y / c`, or the cosine of the angle between two
        rows (zero if a row is zero), or none.
    rules : None, "kind", str, view or dict of str to str or view, default=None
        None makes these kernels of the rows of every view as they are. "kind"
        recognizes the kind of each view by its numbers, and makes the kernels that suit
        it: see the notes. The name of a kernel or kind applies to all views, a dict
        gives them by the names of views (others go by their kinds), and a
        `mkclust.view` adds a transformer of rows.
    scale : {"auto", "standard", "robust", "log", "none"} or dict, default="auto"
        How columns of numbers are scaled, in all views or by the name of a view: by the
        rule of its kind, their standard deviation, the distance between their
        quartiles, the standard deviation of log2(x + 1), or not at all. Whole numbers
        are taken for "counts" or "log-ratios" only with "auto". Sparse views,
        histograms, directions, categories, links and distances keep their rule.
    on_the_fly : bool, default=False
        Return a source that computes rows of the kernels whenever they are needed,
        instead of arrays: it takes less memory, and more time for every product.
    neighbors : None, int, float or "auto", default=None
        Replace every kernel by its shared neighborhoods: the similarity of two samples
        is the share of neighborhoods that contain both. The neighborhood of a sample is
        itself and this number of others that are most similar to it, with all that are
        as similar as the last. An integer of at least 2, a share of the samples, or
        "auto": 20, and fewer for less than 60 samples. Kernels are then sparse and on
        the host, and compared as scaled to a unit diagonal.

    Attributes
    ----------
    views_ : dict of str to array, or CSR array, of shape (n_samples, n_features)
        The training views: copies, except of memory maps; if their files change, new
        rows are refused.
    medians_, scales_ : dict of str to float
        The median distance, if a kernel depends on it, and the mean squared norm of the
        prepared training rows of each view.
    rules_ : dict of str to str
        The rule of each view: its kind, or the name of its kernel; "gaussian" for rows
        as they are.
    columns_ : dict of str to list of str
        The names of the columns of those views that have names.
    learned_views_ : tuple of ViewKernels
        What was learned of every view: its preparation, kernels and neighborhoods.
    kernel_names_, kernel_views_ : tuple of str, tuple of int
        The name of each kernel and the index of its view: view by view, Gaussian, then
        polynomial, then linear.
    n_features_in_ : int
        Number of columns over all views.
    neighborhoods_ : dict of int to Neighborhoods
        The neighborhoods of those kernels that contain some, by the indices of the
        kernels.

    Notes
    -----
    The median is that of all pairs of at most 5,000 rows (fewer with more than 4,000
    columns), drawn with a fixed seed; if it is zero, that is the mean of the positive
    distances.

    Kinds of views, the first that fits at most 1,000 rows drawn with a fixed seed, and
    their kernels; "Gaussian" means those of the parameters:

    - "categories" (groups of columns with a single 1 in every row): the cosine.
    - "distances" (one column per sample, symmetric, with a zero diagonal): shared
      neighborhoods of the 20 nearest.
    - "graph" (one column per sample, symmetric, mostly zero): the cosine of the links.
    - "counts" (whole numbers in at least 100 columns, distributed as counts, some
      columns positive in most rows): Gaussian, of 50 principal components of the
      logarithms of the 2,000 most variable columns, rows scaled to the same total.
    - "log-ratios" (whole numbers in 8 to 99 columns, distributed as counts): Gaussian,
      of log(1 + x) less its mean in the row.
    - "sparse" (nonnegative, less than 10 % not zero): shared neighborhoods of the 20
      nearest by the cosine of log(1 + x / u), with u the median of the positive
      entries, weighted by the inverse document frequency of the columns.
    - "binary" (two values): Gaussian.
    - "histogram" (nonnegative rows of about the same sum): Gaussian, of square roots of
      shares.
    - "directions" (rows of one length, entries of both signs): the cosine.
    - "components" (uncorrelated columns whose spreads fall, as those of principal
      components): Gaussian, of rows as they are.
    - "table" (at most 20 columns, or at most 100 whose spreads differ by a factor of
      1,000): Gaussian, of columns divided by their spread.
    - "dense" (all others): Gaussian; columns that vary more than twice as much as the
      median column are scaled down to that.

    The kernel of a view that is "counts", "log-ratios", "histogram", "directions",
    "components", "table" or "dense" consists of its shared neighborhoods by a third, if
    it is the only one of the view. Kernels by name, each alone, with s the median
    dissimilarity of two training rows (if not Euclidean, of at most 2,000 rows):

    - "gaussian": the kernels of the parameters, of rows as they are.
    - "self-tuning": :math:`\exp(-\|x - y\|^2 / (s_x s_y))` with :math:`s_x` the
      distance to the seventh nearest training sample (Zelnik-Manor and Perona, 2004).
    - "linear", "cosine", "polynomial": :math:`x^\top y / c`, its cosine,
      :math:`(1 + x^\top y / c)^2`.
    - "laplacian": :math:`\exp(-\sum_j |x_j - y_j| / s)`.
    - "chi2": :math:`\exp(-\frac1s \sum_j (x_j - y_j)^2 / (x_j + y_j))`, of nonnegative
      rows.
    - "hellinger": :math:`\sum_j \sqrt{p_j q_j}` of the shares p and q of nonnegative
      rows.
    - "jaccard": :math:`\sum_j \min(x_j, y_j) / \sum_j \max(x_j, y_j)`, of nonnegative
      rows.
    - "overlap", or "categorical": the share of columns in which two rows are equal; for
      one-hot rows, that of equal groups of columns.
    - "from_distances": :math:`\exp(-d^2 / (2 s^2))` of the distances d that the view
      consists of.
    - "precomputed": the view is the kernel. In both, columns are the training samples,
      and new rows hold the distances or similarities of new samples to these.

    All are positive semidefinite except "self-tuning", "from_distances" and
    "precomputed", which models check. Kernels are float32 if every training view is,
    and float64 otherwise; on the host they are computed in float64. Sparse views of
    SciPy are never written out. Kernels of views of torch or CuPy are arrays of that
    library on the device of the views, computed in the precision of each view (float32:
    about 1e-6); those of neighborhoods alone, and pickled arrays, are on the host.

    Examples
    --------
    One Gaussian kernel per view, and those of two new samples against the thirty known:

    >>> import numpy as np
    >>> from mkclust.kernels import KernelBank
    >>> rng = np.random.default_rng(0)
    >>> views = {"pixels": rng.normal(size=(30, 5)), "words": rng.normal(size=(30, 8))}
    >>> bank = KernelBank(widths=(1.0,), polynomials=(), linear=None).fit(views)
    >>> bank.kernel_names_
    ('pixels', 'words')
    >>> bank.transform({name: view[:2] + 0.1 for name, view in views.items()}).shape
    (2, 2, 30)

    >>> views["words"] = rng.poisson(0.05, size=(30, 40)).astype(float)
    >>> bank = KernelBank(widths=(1.0,), polynomials=(), linear=None)
    >>> bank = bank.set_params(rules="kind").fit(views)
    >>> bank.rules_
    {'pixels': 'table', 'words': 'sparse'}
    >>> bank.set_params(on_the_fly=True).fit_transform(views).rows(0, 4).shape
    (2, 4, 30)
    """

    widths: Sequence[float] = (1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)
    polynomials: Sequence[tuple[float, int]] = ((0, 2), (0, 4), (1, 2), (1, 4))
    linear: str | None = "linear"
    rules: Any = None
    scale: Any = "auto"
    on_the_fly: bool = False
    neighbors: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the kind, width and scale of each view and keep the views for new rows.

        Parameters
        ----------
        X : mapping, list, tuple, array or data frame
            Views, each of shape (n_samples, n_features), in any form that models
            accept; or the result of `mkclust.data.read_samples` for tables that are to
            be joined or filled.
        y : None
            Ignored; present for pipelines.
        """
        of_bank = self._read_parameters()
        samples = read_views(X)
        if min(view.shape[0] for view in samples.views.values()) < 2:
            raise ValueError(
                "Found n_samples=1, but the typical distance between samples takes at "
                "least two."
            )
        learned = []
        chosen = choose_rules(self.rules, self.scale, samples.views)
        for name, (rule, preparation) in chosen.items():
            view = samples.views[name]
            columns = samples.columns.get(name)
            warn_of_lost_digits(name, view, columns)
            digest = fingerprint(view)
            if digest is None:
                is_counts = isinstance(preparation, LogTfIdf | CountComponents)
                if is_counts and _is_wide(view):
                    view = as_csr(view)
                else:
                    view = copy_array(view)
            each = ViewKernels(
                name=name,
                view=view,
                columns=columns,
                fingerprint=digest,
                kind=rule.kind,
                preparation=preparation,
                formulas=(rule.formula,) if rule.formula else of_bank,
            )
            learned.append(self._with_neighborhoods(each.learn()))
            warn_of_kernels(learned[-1])
        self._encodings = samples.encodings
        self._set_views(tuple(learned))
        return self

    def _read_parameters(self) -> tuple[Formula, ...]:
        """Return the kernels of a view that the parameters ask for, or refuse them."""
        check_scale(self.scale)
        check_parameter("on_the_fly", self.on_the_fly, Flag())
        check_parameter("neighbors", self.neighbors, NEIGHBORS)
        return read_formulas(self.widths, self.polynomials, self.linear)

    def _set_views(self, views: tuple[ViewKernels, ...]) -> None:
        """Store what was learned of the views."""
        self.learned_views_ = views
        self.rules_ = {view.name: view.kind for view in views}
        self.scales_ = {view.name: view.scale for view in views}
        self.medians_ = {
            view.name: view.median for view in views if view.median is not None
        }
        self.columns_ = {
            view.name: view.columns for view in views if view.columns is not None
        }
        self.kernel_names_ = tuple(name for view in views for name in view.kernel_names)
        self.kernel_views_ = tuple(
            p for p, view in enumerate(views) for _ in view.formulas
        )
        found = [each for view in views for each in view.neighborhoods]
        self.neighborhoods_ = {p: N for p, N in enumerate(found) if N is not None}
        self.n_features_in_ = sum(view.view.shape[1] for view in views)

    def _with_neighborhoods(self, view: ViewKernels) -> ViewKernels:
        """Return a view with neighborhoods, if they are asked for or by its rule."""
        n = view.view.shape[0]
        if self.neighbors is not None:
            return view.with_neighborhoods(count_neighbors(self.neighbors, n), 1.0)
        share = view.rule.neighborhood_share
        # Several kernels of a view were asked for explicitly, and of fewer samples
        # neighborhoods would contain most.
        if not share or len(view.formulas) > 1 or n < 10:
            return view
        return view.with_neighborhoods(count_neighbors("auto", n), share)

    @property
    def views_(self) -> dict[str, Array]:
        """The training views."""
        return {view.name: view.view for view in self.learned_views_}

    def lone_neighborhoods(self) -> list[Neighborhoods | None]:
        """Return per kernel the neighborhoods that it consists of; None if of more."""
        return [
            each for view in self.learned_views_ for each in view.lone_neighborhoods()
        ]

    def of_view(self, name: str) -> "KernelBank":
        """Return a bank of one of the views, whose kernels keep their names."""
        check_is_fitted(self)
        other = copy(self)
        other._set_views(
            tuple(view for view in self.learned_views_ if view.name == name)
        )
        return other

    def empty_rows(self, views: Mapping[str, Array]) -> dict[str, np.ndarray]:
        """Return by view which rows are zero, if these carry no information."""
        return {
            view.name: view.preparation.zero_rows(views[view.name])
            for view in self.learned_views_
            if view.ignores_zeros
        }

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
    ) -> Array | ComputedKernels | list[Any]:
        """Fit to views, as :meth:`fit` takes them, and return their kernels.

        Returns
        -------
        array of shape (n_kernels, n_samples, n_samples)
            The kernels, exactly symmetric. On the fly, a source with ``rows(start,
            stop)`` and ``blocks()``. With `neighbors`, a sequence of factored matrices,
            whose ``toarray()`` writes one out.
        """
        samples = read_views(X)
        if samples.missing is not None:
            raise ValueError(
                f"{int(samples.missing.any(axis=1).sum())} of {samples.n_samples} "
                "samples are missing from views, and kernels of different samples do "
                "not form one array: pass the views to a method such as SimpleMKKM, or "
                "fit the bank and call of_view(name)"
            )
        return kernels_of(self.fit(samples).learned_views_, on_the_fly=self.on_the_fly)

    def transform(self, X: Any) -> Array | ComputedKernels | list[Any]:
        """Return the kernels of new rows against the training rows, where these live.

        Parameters
        ----------
        X : mapping, list, tuple, array or data frame
            New views, of shape (n_new, n_features), with the names and columns of the
            known ones.

        Returns
        -------
        array of shape (n_kernels, n_new, n_samples)
            Cross kernels, in the form of :meth:`fit_transform`; its very kernels if `X`
            holds the training views.
        """
        new: Any = self._read_new(X)
        known = self.learned_views_
        if all(view.is_training(new[view.name]) for view in known):
            new = None
        return kernels_of(known, new, on_the_fly=self.on_the_fly)

    def self_similarity(self, X: Any) -> Array:
        """Return k(x, x) of every new row and kernel, (n_kernels, n_new)."""
        new = self._read_new(X)
        return self_similarities_of(self.learned_views_, new)

    def _read_new(self, X: Any) -> dict[str, Array]:
        """Return new views in the order and form of the training views, or refuse."""
        check_is_fitted(self)
        training = self.views_
        samples = read_views(X, encodings=self._encodings)
        n_features = self.n_features_in_
        given = sum(view.shape[1] for view in samples.views.values())
        if list(samples.views) == list(training) == [TABLE] and given != n_features:
            # The wording that scikit-learn's checks of estimators require.
            raise ValueError(
                f"X has {given} features, but {type(self).__name__} is expecting "
                f"{n_features} features as input."
            )
        widths = {name: view.shape[1] for name, view in training.items()}
        views = match_views(samples, widths, self.columns_, "bank").views
        return {view.name: view.read(views[view.name]) for view in self.learned_views_}

    def planned_shape(self, X: Any) -> tuple[int, int, np.dtype]:
        """Return the most kernels of views, the samples, and their type, by shapes."""
        formulas = self._read_parameters()
        samples = read_views(X)
        types = [
            str(dtype).lower()
            for part in samples.parts
            for dtype in getattr(part, "dtypes", [getattr(part, "dtype", "")])
        ]
        is_single = all(name.endswith("float32") for name in types)
        is_single = is_single and self.neighbors is None
        dtype = np.dtype("float32" if is_single else "float64")
        return len(formulas) * len(samples.parts), samples.n_samples, dtype

    def explain(self) -> str:
        """Say in a line per view what was recognized, is prepared and computed."""
        check_is_fitted(self)
        requests = requests_of(self.rules, self.views_)
        lines = []
        for each in self.learned_views_:
            is_asked = requests[each.name].kernel != "auto"
            reason = "asked for" if is_asked else each.rule.why
            lines.append(
                printable(each.explain(None if self.rules is None else reason))
            )
        return "\n".join(lines)


def _is_wide(view: Array) -> bool:
    """Return whether an array has many columns with few entries that are not zero."""
    if not isinstance(view, np.ndarray) or view.shape[1] <= 1_000:
        return False
    return bool(np.count_nonzero(view) < 0.1 * view.size)


def match_views(
    samples: Samples,
    widths: Mapping[str, int],
    columns: Mapping[str, list[str]],
    who: str = "model",
) -> Samples:
    """Return views in the order of those of a fit, or say how they differ."""
    given = dict(zip(samples.names, samples.n_features, strict=True))
    if given != widths:
        raise ValueError(
            f"X has the views {given} (name: columns), the {who} was fitted on "
            f"{dict(widths)}: pass the same views, with the same columns"
        )
    for name, found in samples.columns.items():
        expected = columns.get(name, found)
        if found != expected and len(found) == len(expected):
            raise ValueError(
                f"View {name!r} has the columns {found[:5]}, but {expected[:5]} when "
                f"the {who} was fitted; pass the same columns in the same order."
            )
    return samples.only(list(widths))


def default_bank(
    several_views: bool,
    kernels: Any = "auto",
    scale: Any = "auto",
) -> KernelBank:
    """Return the bank of an estimator: one kernel per view, or all of a table."""
    rules = kernels
    if isinstance(kernels, str):
        by_kind = {"auto": "kind", "on-the-fly": "kind", "gaussian": None}
        rules = by_kind.get(kernels, kernels)
    on_the_fly = isinstance(kernels, str) and kernels == "on-the-fly"
    bank = KernelBank(rules=rules, scale=scale, on_the_fly=on_the_fly)
    if several_views:
        bank.set_params(widths=(1.0,), polynomials=(), linear=None)
    return bank


def with_rules_by_name(bank: KernelBank, X: Any) -> KernelBank:
    """Return the same bank with the kinds of views fixed, for parts of them."""
    views = read_views(X).views
    chosen = choose_rules(bank.rules, bank.scale, views)
    rules = {
        name: replace(request, kernel=chosen[name][0].kind)
        for name, request in requests_of(bank.rules, views).items()
    }
    return clone(bank).set_params(rules=rules)


def expected_input(kernels: Any) -> Expected:
    """Return what input the parameter ``kernels`` of an estimator asks for."""
    for expected in ("auto", "precomputed"):
        if isinstance(kernels, str) and kernels == expected:
            return expected
    is_name = isinstance(kernels, str) and kernels in ("on-the-fly", *RULES)
    if not is_name and not isinstance(kernels, KernelBank | Mapping | view):
        raise ValueError(
            f"kernels={kernels!r}: pass 'auto', 'gaussian', 'on-the-fly', "
            "'precomputed', the name of another kernel, such as 'cosine', a KernelBank "
            "instance, or a dict from names of views to kinds or kernels, such as "
            "{'text': 'sparse', 'K': 'precomputed'}"
        )
    return "views"
