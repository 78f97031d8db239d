"""Which features set the clusters of a fit apart, by effect size."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse

from mkclust.data.encode import of_categories
from mkclust.explain.fitted import check_fitted, fitted_index, samples_of_views
from mkclust.explain.tables import AlignedTable, read_tables
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.same_input import is_approximated
from mkclust.kernels.kinds import RULES
from mkclust.linalg.sparse_rows import dense_rows
from mkclust.parameters import Count, check_parameter
from mkclust.plots import DescriptionDisplay
from mkclust.plots.style import names_of
from mkclust.text import join_words, printable
from mkclust.types import Float

COLUMNS = [
    "cluster",
    "view",
    "feature",
    "kind",
    "effect",
    "standardized",
    "mean_in",
    "mean_out",
]
COLUMNS += ["n_in", "n_out", "n_missing"]
# Relative to the mean square, less variance than this is rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Description:
    """The features that set each cluster apart from the rest.

    Attributes
    ----------
    table : pandas.DataFrame
        Cluster by cluster and view by view, the strongest features first. The columns
        are ``cluster``, ``view``, ``feature`` (a level of a category is
        ``"column=level"``), ``kind`` ("mean" or "share": what is compared), ``effect``
        (for means, their difference over the pooled standard deviation, Cohen's d; for
        shares, their difference), ``standardized`` (the difference over the pooled
        standard deviation, of shares as well: features of both kinds are ordered by
        it), ``mean_in`` and ``mean_out`` (mean or share in the cluster, and in the
        rest), ``n_in``, ``n_out`` and ``n_missing`` (samples of the cluster and of the
        rest whose cells are not missing, and those that are).
    sizes : tuple of int
        Number of samples in each cluster.
    notes : tuple of str
        What was left out, and why.
    profiles : mapping of (str, str) to ndarray of shape (k,)
        The standardized differences of every feature in the table, by view and name.
    cluster_names : tuple of str or None
        The names that `name_clusters` has given, None without.
    """

    table: pd.DataFrame
    sizes: tuple[int, ...]
    notes: tuple[str, ...] = ()
    profiles: Mapping[tuple[str, str], Float] = field(default_factory=dict, repr=False)
    cluster_names: tuple[str, ...] | None = None

    @property
    def effects(self) -> list[Any]:
        """The rows of the table as named tuples."""
        return list(self.table.itertuples(index=False, name="FeatureEffect"))

    @property
    def names(self) -> tuple[str, ...]:
        """A short name of each cluster, from the features that set it apart most."""
        names = [""] * len(self.sizes)
        ambiguous = list(range(len(names)))
        # Features in the name of a cluster, and at most, if others have the same name.
        for n_features in (2, 3, 4):
            for cluster in ambiguous:
                words = map(_phrase, self.strongest(cluster, n_features))
                names[cluster] = ", ".join(words) or "nothing stands out"
            ambiguous = [c for c, name in enumerate(names) if names.count(name) > 1]
        for cluster in ambiguous:
            names[cluster] += f" ({cluster})"
        return tuple(names)

    def strongest(self, cluster: int, most: int, view: str | None = None) -> list[Any]:
        """Return the rows of a cluster, or of a view of it, with large differences."""
        strength = self.table["standardized"].abs()
        # Less than this is a small effect by Cohen's reading, too small for the name of
        # a cluster.
        rows = self.table[(self.table["cluster"] == cluster) & (strength >= 0.2)]
        if view is not None:
            rows = rows[rows["view"] == view]
        order = strength[rows.index].sort_values(ascending=False, kind="stable").index
        rows = rows.loc[order[:most]]
        return list(rows.itertuples(index=False, name="FeatureEffect"))

    def by_view(self, cluster: int, most: int) -> str:
        """Return what sets a cluster apart in each view, with up to so many features.

        Such as "rna: high ENSG33, low ENSG7; proteins: high P8".
        """
        phrases = []
        views = self.table["view"].unique().tolist()
        for view in views:
            words = ", ".join(map(_phrase, self.strongest(cluster, most, view)))
            if words:
                phrases.append(f"{view}: {words}" if len(views) > 1 else words)
        return "; ".join(phrases) or "nothing stands out"

    def to_dict(self) -> dict[str, Any]:
        """Return the description in types of JSON: ``clusters``, and ``notes``."""
        clusters = []
        names = self.names
        for c, size in enumerate(self.sizes):
            rows = self.table[self.table["cluster"] == c].drop(columns="cluster")
            found = {"cluster": c, "name": names[c], "n_samples": size}
            if self.cluster_names is not None:
                found["cluster_name"] = self.cluster_names[c]
            clusters.append(found | {"features": rows.to_dict("records")})
        return {"clusters": clusters, "notes": list(self.notes)}

    def plot(self, ax: Any = None, *, n_features: int = 3) -> DescriptionDisplay:
        """Draw the strongest features of every cluster, in new axes or given ones."""
        titles = {}
        for cluster in range(len(self.sizes)):
            for row in self.strongest(cluster, n_features):
                titles[row.view, row.feature] = _title(row)
        display = DescriptionDisplay(
            features=list(titles.values()),
            differences=[self.profiles[key] for key in titles],
            sizes=self.sizes,
            names=self.cluster_names,
        )
        return display.plot(ax)

    def summary(self, n_features: int = 3) -> str:
        """Return a line per cluster: its size and its most distinctive features."""
        titles = self.cluster_names or tuple(map(str, range(len(self.sizes))))
        sizes = [f"{size:,}" for size in self.sizes]
        digits, width = (max(map(len, each), default=0) for each in (titles, sizes))
        lines = [
            "Clusters by what sets them apart (in standard deviations from the rest):"
        ]
        features = self.table[["view", "feature"]].drop_duplicates()["feature"]
        in_several = set(features[features.duplicated()])
        for cluster, title in enumerate(titles):
            words = []
            for row in self.strongest(cluster, n_features):
                phrase = _phrase(row)
                if row.feature in in_several:
                    phrase += f" in {row.view}"
                words.append(f"{printable(phrase)} ({row.standardized:+.1f})")
            what = ", ".join(words) or "nothing stands out"
            lines.append(f"{title:>{digits}}  {sizes[cluster]:>{width}}  {what}")
        return "\n".join([*lines, *map(printable, self.notes)])

    __repr__ = summary


def describe(
    model: MultipleKernelClusterer, tables: Any, *, n_features: int = 10
) -> Description:
    """Return the features that set the clusters of a fit apart, by effect size.

    For numbers, the effect is the standardized mean difference between a cluster and
    the rest: Cohen's d with the pooled standard deviation. For categories, truth values
    and columns of zeros and ones it is the difference between the shares of samples.
    There are no p-values, because clusters were made to differ in these features;
    `annotate` tests other variables.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    tables : mapping, list, data frame, array, sparse matrix, AnnData or MuData
        What the model was fitted on, or other tables of the same samples. Data frames,
        Series and AnnData are matched by their index, all else by position. Sparse
        matrices stay sparse.
    n_features : int, default=10
        How many features to list for each cluster and view.

    Returns
    -------
    Description
        Print it, plot it, or take its ``table``. Missing cells are left out feature by
        feature.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import AverageKKM, describe
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat([0, 1], [25, 15])
    >>> size = rng.normal(size=(40, 1)) + 9 * group[:, None]
    >>> tables = {"size": size, "sex": group[:, None] % 2}
    >>> model = AverageKKM(n_clusters=2, random_state=0).fit(tables)
    >>> description = describe(model, tables)
    >>> description.names[0], description.effects[0].feature
    ('not sex column 0, low size column 0', 'column 0')
    """
    check_fitted(model)
    check_parameter("n_features", n_features, Count())
    labels = np.asarray(model.labels_)
    k = int(model.n_clusters_)
    aligned = read_tables(tables, fitted_index(model), samples_of_views(model))
    n = int((labels >= 0).sum())
    frames = []
    lacking = []
    profiles: dict[tuple[str, str], Float] = {}
    for table in aligned:
        known = np.flatnonzero(labels[table.samples] >= 0)
        cells = (labels[table.samples[known]], np.arange(len(known)))
        members = csr_array((np.ones(len(known)), cells), (k, len(known)))
        for view, features, values in _features(table):
            frame, standardized = _strongest(
                features, values[known], members, n_features
            )
            n_missing = n - frame["n_in"] - frame["n_out"]
            frames.append(frame.assign(view=view, n_missing=n_missing))
            for place in frame["place"].unique():
                profiles[view, features[place]] = standardized[:, place]
        if len(known) < n:
            lacking.append(f"{table.name!r} {len(known):,}")

    notes = [
        f"Left out of {each.name!r}: {each.reasons}."
        for each in aligned
        if each.skipped
    ]
    if lacking:
        words = join_words(lacking)
        notes.append(f"Compared on the samples that have values, of {n:,}: {words}.")

    # Stable: views and effects stay in their order.
    frame = pd.concat(frames)[COLUMNS]
    frame = frame.sort_values("cluster", kind="stable", ignore_index=True)
    # What centering has left of a mean of zero is rounding.
    means = frame[["mean_in", "mean_out"]]
    rounding = ROUNDING * means.abs().max(axis=1)
    frame[means.columns] = means.mask(means.abs().lt(rounding, axis=0), 0.0)
    sizes = np.bincount(labels[labels >= 0], minlength=k)
    return Description(
        frame, tuple(sizes.tolist()), tuple(notes), profiles, names_of(model)
    )


def _title(row: Any) -> str:
    """Return a feature, with its view if its name is a number."""
    is_number = re.fullmatch(r"(?:column )?(\d+)", row.feature)
    if is_number:
        return f"{row.view} column {is_number[1]}"
    return row.feature


def _phrase(row: Any) -> str:
    """Return a feature and its direction: "high age" or "not smoker"."""
    low, high = {"mean": ("low ", "high "), "share": ("not ", "")}[row.kind]
    return (high if row.effect > 0 else low) + _title(row)


def views_of_features(model: MultipleKernelClusterer, samples: Any) -> list[str]:
    """Return the views whose columns are features that can describe clusters."""
    is_without = samples.kind == "kernels" or is_approximated(model) or samples.is_lazy
    if is_without or model.n_clusters_ == 1:
        return []
    # Columns of links and of distances are samples, not features.
    of_pairs = {name for name, rule in RULES.items() if rule.of_pairs}
    rules = model.bank_.rules_
    return [name for name in samples.names if rules.get(name) not in of_pairs]


def _features(table: AlignedTable) -> list[tuple[str, Sequence[str], Any]]:
    """Return the numbers of a table, and its levels, as views with their features.

    Levels are columns of zeros and ones, NaN for missing cells.
    """
    levels = list[str]()
    marks = [np.empty((len(table.samples), 0))]
    for name, category in table.categories:
        titles = {level: f"{name}={level}" for level in category.categories}
        if titles.keys() <= {"False", "True"}:
            titles = {"True": name}
        levels += titles.values()
        marks += [
            np.where(category.isna(), np.nan, category == level)[:, None]
            for level in titles
        ]
    of_levels = of_categories(table.name) if table.columns else table.name
    return [
        (table.name, table.columns, table.numbers),
        (of_levels, levels, np.hstack(marks)),
    ]


def _strongest(
    features: Sequence[str], values: Any, members: csr_array, n_features: int
) -> tuple[pd.DataFrame, Float]:
    """Return the most different features of each cluster, and all differences."""
    is_binary, contrast = _contrast(values, members)
    # Two levels of a category say the same: only the more frequent one counts.
    named = pd.Series(features, dtype=object).where(is_binary)
    categories = named.str.extract("(.*?)=")[0]
    is_paired = np.zeros(len(is_binary), bool)
    for pair in categories.groupby(categories).groups.values():
        shares = contrast["mean_in"][:, pair].sum(axis=1)
        is_paired[pair] = len(pair) == 2 and np.allclose(shares[~np.isnan(shares)], 1)
    k, d = contrast["n_in"].shape
    columns = {name: each.ravel() for name, each in contrast.items()}
    frame = pd.DataFrame(columns)
    places = np.tile(np.arange(d), k)
    differences = frame["mean_in"] - frame["mean_out"]
    frame = frame.assign(
        cluster=np.repeat(np.arange(k), d),
        place=places,
        feature=np.array(features, dtype=object)[places],
        kind=np.where(is_binary, "share", "mean")[places],
        effect=frame["standardized"].where(~is_binary[places], differences),
    )
    strength = frame["standardized"].abs()
    is_negative = frame["standardized"] < 0
    counts = (strength > 0) & ~(is_paired[places] & is_negative)
    order = strength[counts].sort_values(ascending=False, kind="stable").index
    strongest = frame.loc[order].groupby("cluster").head(n_features)
    return strongest.astype({"n_in": int, "n_out": int}), contrast["standardized"]


def _contrast(table: Any, members: csr_array) -> tuple[np.ndarray, dict[str, Float]]:
    """Return which columns are binary, and compare each cluster with the rest.

    Squares of numbers that are scaled and, if dense, centered neither overflow nor
    cancel; shares are exact as they are.
    """
    means = np.zeros(table.shape[1])
    largest = means.copy()
    missing: Any
    if issparse(table):
        # Its zeros count, and are not stored.
        table = csr_array(table, dtype=float, copy=True)
        table.sum_duplicates()
        is_missing = ~np.isfinite(table.data)
        table.data[is_missing] = 0.0
        cells = (is_missing * 1.0, table.indices, table.indptr)
        missing = csr_array(cells, table.shape)
        np.maximum.at(largest, table.indices, np.abs(table.data))
        scales = np.where(largest > 0, largest, 1.0)
        table.data /= scales[table.indices]
        is_binary = (scales == 1) & (abs(table * table - table).sum(axis=0) == 0)
    else:
        missing = ~np.isfinite(table) * 1.0
        table = np.where(missing, 0.0, table).astype(float)
        largest = np.abs(table).max(axis=0, initial=0.0)
        scales = np.where(largest > 0, largest, 1.0)
        table = table / scales
        is_binary = (scales == 1) & (table * table == table).all(axis=0)
        n_known = np.maximum((1 - missing).sum(axis=0), 1)
        means = np.where(
            is_binary,
            0.0,
            table.sum(axis=0) / n_known,
        )
        table = np.where(missing, 0.0, table - means)

    of_cluster = [
        dense_rows(members @ each) for each in (missing, table, table * table)
    ]
    n_in = members.sum(axis=1)[:, None] - of_cluster[0]
    n = n_in.sum(axis=0)
    n_out = n - n_in
    sums = of_cluster[1].sum(axis=0)
    squares = of_cluster[2].sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_in = of_cluster[1] / n_in
        mean_out = (sums - of_cluster[1]) / n_out

    of_all = np.maximum(squares - sums**2 / np.maximum(n, 1), 0)
    # One number throughout, but for rounding; centering has removed a part of the mean.
    is_constant = of_all <= ROUNDING * np.maximum(squares, n * means**2)
    of_inside = n_in * np.nan_to_num(mean_in) ** 2
    within = squares - (of_inside + n_out * np.nan_to_num(mean_out) ** 2)
    # The least spread within clusters, as a share of that of all samples, so that
    # effects are finite.
    least = 0.01**2 * of_all / np.maximum(n - 1, 1)
    spread = np.sqrt(np.maximum(within / np.maximum(n - 2, 1), least))
    difference = np.where(is_constant, 0.0, mean_in - mean_out)
    return is_binary, {
        "n_in": n_in,
        "n_out": n_out,
        "mean_in": (mean_in + means) * scales,
        "mean_out": (mean_out + means) * scales,
        "standardized": difference / np.where(is_constant | (spread == 0), 1.0, spread),
    }
