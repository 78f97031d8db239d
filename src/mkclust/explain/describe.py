"""Which features set the clusters of a fit apart, by effect size."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse

from mkclust.explain.fitted import check_fitted, fitted_index, is_approximated, observed_samples
from mkclust.explain.tables import read_tables
from mkclust.kernels.kinds import RULES
from mkclust.parameters import Count, check_parameter
from mkclust.plots import DescriptionDisplay
from mkclust.text import join_words, printable, text_table
from mkclust.types import Float

# Less than this is a small effect by Cohen's reading, too small for the name of a cluster.
NOTEWORTHY = 0.2
# Features in the name of a cluster, and at most, if others have the same name.
IN_NAME, MOST_IN_NAME = 2, 4
# What a feature without a name of its own is called.
NUMBERED = re.compile(r"column \d+")
# A spread within clusters below this share of that of all samples counts as this share: features
# that are constant in every cluster have a large effect, and not an infinite one.
LEAST_SPREAD = 0.01
COLUMNS = ["cluster", "view", "feature", "kind", "effect", "standardized", "mean_in", "mean_out"]
COLUMNS += ["n_in", "n_out", "n_missing"]
# Relative to the mean square, less variance than this is rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Description:
    """The features that set each cluster apart from the rest, as `mkclust.describe` finds them.

    Attributes
    ----------
    table : pandas.DataFrame
        Cluster by cluster and view by view, the strongest features first. The columns are
        ``cluster``, ``view``, ``feature`` (a level of a category is ``"column=level"``), ``kind``
        ("mean" or "share": what is compared), ``effect`` (for means, their difference over the
        pooled standard deviation, Cohen's d; for shares, their difference), ``standardized`` (the
        difference over the pooled standard deviation, of shares as well: features of both kinds
        are ordered by it), ``mean_in`` and ``mean_out`` (mean or share in the cluster, and in the
        rest), ``n_in``, ``n_out`` and ``n_missing`` (samples of the cluster and of the rest whose
        cells are not missing, and those that are).
    sizes : tuple of int
        Number of samples in each cluster.
    notes : tuple of str
        What was left out, and why.
    profiles : mapping of (str, str) to ndarray of shape (k,)
        For every feature in the table, by view and name, the standardized difference in each
        cluster.
    """

    table: pd.DataFrame
    sizes: tuple[int, ...]
    notes: tuple[str, ...] = ()
    profiles: Mapping[tuple[str, str], Float] = field(default_factory=dict, repr=False)

    @property
    def effects(self) -> list[Any]:
        """The rows of the table as named tuples."""
        return list(self.table.itertuples(index=False, name="FeatureEffect"))

    @property
    def names(self) -> tuple[str, ...]:
        """A short name of each cluster, from the features that set it apart most."""
        phrases = [
            [_phrase(row) for row in self.strongest(c, MOST_IN_NAME)]
            for c in range(len(self.sizes))
        ]
        names = [", ".join(each[:IN_NAME]) for each in phrases]
        for count in range(IN_NAME + 1, MOST_IN_NAME + 1):
            names = [
                ", ".join(each[:count]) if names.count(name) > 1 else name
                for name, each in zip(names, phrases, strict=True)
            ]
        names = [
            name or ("nothing stands out" if size else "no samples")
            for name, size in zip(names, self.sizes, strict=True)
        ]
        numbered = enumerate(names)
        return tuple(f"{name} ({c})" if names.count(name) > 1 else name for c, name in numbered)

    def strongest(self, cluster: int, most: int) -> list[Any]:
        """Return the noteworthy features of a cluster over all views, the strongest first.

        Parameters
        ----------
        cluster : int
            The cluster.
        most : int
            How many at most.

        Returns
        -------
        list of named tuple
            Rows of the table with a standardized difference of at least 0.2.
        """
        rows = [row for row in self.effects if row.cluster == cluster]
        rows = [row for row in rows if abs(row.standardized) >= NOTEWORTHY]
        return sorted(rows, key=lambda row: -abs(row.standardized))[:most]

    def to_dict(self) -> dict[str, Any]:
        """Return the description as JSON takes it.

        Returns
        -------
        dict
            ``clusters``, each with its ``cluster``, ``name``, ``n_samples`` and ``features``; and
            ``notes``.
        """
        clusters = []
        for c, (name, size) in enumerate(zip(self.names, self.sizes, strict=True)):
            rows = self.table[self.table["cluster"] == c].drop(columns="cluster")
            head = {"cluster": c, "name": name, "n_samples": size}
            clusters.append(head | {"features": rows.to_dict("records")})
        return {"clusters": clusters, "notes": list(self.notes)}

    def plot(self, ax: Any = None, *, n_features: int = 3) -> DescriptionDisplay:
        """Draw the strongest features of every cluster, and how all clusters differ in them.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        n_features : int, default=3
            Features of each cluster that are drawn.

        Returns
        -------
        DescriptionDisplay
        """
        k = len(self.sizes)
        rows = [row for c in range(k) for row in self.strongest(c, n_features)]
        titles = {(row.view, row.feature): _title(row) for row in rows}
        values = np.array([self.profiles[key] for key in titles]).reshape(len(titles), k)
        names = list(titles.values())
        return DescriptionDisplay(features=names, differences=values, sizes=self.sizes).plot(ax)

    def summary(self, n_features: int = 3) -> str:
        """Return a line per cluster: its size, and the features that set it apart most.

        Parameters
        ----------
        n_features : int, default=3
            Features of each cluster.

        Returns
        -------
        str
        """
        width = len(f"{max(self.sizes, default=0):,}")
        lines = ["Clusters by what sets them apart (in standard deviations from the rest):"]
        for cluster, size in enumerate(self.sizes):
            rows = self.strongest(cluster, n_features)
            words = [f"{printable(_phrase(row))} ({row.standardized:+.1f})" for row in rows]
            what = ", ".join(words) or "nothing stands out"
            lines.append(f"{cluster:>{len(str(len(self.sizes) - 1))}}  {size:>{width},}  {what}")
        return "\n".join([*lines, *map(printable, self.notes)])

    def __str__(self) -> str:
        """Return the features of each cluster as a text table."""
        lines: list[str] = []
        for cluster, (name, size) in enumerate(zip(self.names, self.sizes, strict=True)):
            cells = [["feature", "view", "effect", "inside", "outside"]]
            for row in self.effects:
                if row.cluster == cluster:
                    form = ".0%" if row.kind == "share" else ".4g"
                    means = format(row.mean_in, form), format(row.mean_out, form)
                    names = printable(row.feature), printable(row.view)
                    cells.append([*names, f"{row.effect:+.2f}", *means])
            lines.append(f"cluster {cluster}, {size:,} samples: {printable(name)}")
            lines += [text_table(cells), ""] if len(cells) > 1 else [""]
        return "\n".join([*lines, *map(printable, self.notes)]).rstrip()


def describe(model: Any, tables: Any, *, n_features: int = 10) -> Description:
    """Return the features that set the clusters of a fit apart, by effect size.

    For numbers, the effect is the standardized mean difference between a cluster and the rest:
    Cohen's d with the pooled standard deviation. For categories, truth values and columns of
    zeros and ones it is the difference between the shares of samples, in the cluster and in the
    rest. There are no p-values: the clusters were made to differ in what they were clustered on, so
    that any test would find that they do. `annotate` tests variables that were not clustered on.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    tables : mapping, list, data frame, array, sparse matrix, AnnData or MuData
        What the model was fitted on, or other tables of the same samples. Data frames, Series and
        AnnData are matched by their index, in any order of rows, all else by position. Sparse
        matrices are not made dense.
    n_features : int, default=10
        How many features to list for each cluster and view.

    Returns
    -------
    Description
        Print it, plot it, or take its ``table``. Missing cells are left out feature by feature.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import AverageKKM, describe
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat([0, 1], [25, 15])
    >>> tables = {"size": rng.normal(size=(40, 1)) + 9 * group[:, None], "sex": group[:, None] % 2}
    >>> model = AverageKKM(n_clusters=2, random_state=0).fit(tables)
    >>> description = describe(model, tables)
    >>> description.names[0], description.effects[0].feature
    ('not sex column 0, low size column 0', 'column 0')
    """
    check_fitted(model)
    check_parameter("n_features", n_features, Count())
    labels, k = np.asarray(model.labels_), int(model.n_clusters)
    aligned = read_tables(tables, fitted_index(model), observed_samples(model))
    if len(known := np.flatnonzero(labels >= 0)) < len(labels):
        labels, aligned = labels[known], [each.take(known) for each in aligned]
    frames = []
    profiles: dict[tuple[str, str], Float] = {}
    for table in aligned:
        clusters, samples = labels[table.samples], np.arange(len(table.samples))
        members = csr_array((np.ones(len(samples)), (clusters, samples)), (k, len(samples)))
        levels, marks = _level_marks(table.categories, len(samples))
        of_levels = f"{table.name} (categories)" if table.columns else table.name
        for view, features, values in (
            (table.name, table.columns, table.numbers),
            (of_levels, levels, marks),
        ):
            frame, standardized = _strongest(features, values, members, n_features)
            n_missing = len(labels) - frame["n_in"] - frame["n_out"]
            frames.append(frame.assign(view=view, n_missing=n_missing))
            for place in frame["place"].unique():
                profiles[view, features[place]] = standardized[:, place]
    notes = []
    for table in aligned:
        if table.skipped:
            reasons = [f"{column!r} {reason}" for column, reason in table.skipped.items()]
            notes.append(f"Left out of {table.name!r}: {join_words(reasons)}.")
    if lacking := [table for table in aligned if len(table.samples) < len(labels)]:
        counts = join_words(f"{table.name!r} {len(table.samples):,}" for table in lacking)
        notes.append(f"Of {len(labels):,} samples, those that a table has are compared: {counts}.")
    sizes = np.bincount(labels, minlength=k).tolist()
    # Stable: views and effects stay in their order.
    frame = pd.concat(frames)[COLUMNS].sort_values("cluster", kind="stable", ignore_index=True)
    means = frame[["mean_in", "mean_out"]]
    # What centering has left of a mean of zero is rounding.
    frame[means.columns] = means.mask(means.abs().lt(1e-12 * means.abs().max(axis=1), axis=0), 0.0)
    return Description(frame, tuple(sizes), tuple(notes), profiles)


def _title(row: Any) -> str:
    """Return a feature, with its view if it has no name of its own."""
    return f"{row.view} {row.feature}" if NUMBERED.fullmatch(row.feature) else row.feature


def _phrase(row: Any) -> str:
    """Return a feature and its direction, in words such as "high age" or "not smoker"."""
    high, low = ("high ", "low ") if row.kind == "mean" else ("", "not ")
    return (high if row.effect > 0 else low) + _title(row)


def views_of_features(model: Any, samples: Any) -> list[str]:
    """Return the views whose columns are features, by which clusters can be described."""
    if samples.kind == "kernels" or is_approximated(model) or samples.is_lazy:
        return []
    # Columns of links and of distances are samples, not features.
    of_pairs = {name for name, rule in RULES.items() if rule.of_pairs}
    names = [name for name in samples.names if model.bank_.rules_.get(name) not in of_pairs]
    return names if model.n_clusters > 1 else []


def _level_marks(
    categories: Sequence[tuple[str, pd.Categorical]], n_samples: int
) -> tuple[list[str], Float]:
    """Return the levels of categories as columns of zeros and ones, NaN for missing cells."""
    names, columns = list[str](), [np.empty((n_samples, 0))]
    for name, category in categories:
        is_truth = set(category.categories) <= {"False", "True"}
        for level in ["True"] if is_truth else category.categories:
            columns.append(np.where(category.isna(), np.nan, category == level)[:, None])
            names.append(name if is_truth else f"{name}={level}")
    return names, np.hstack(columns)


def _strongest(
    features: Sequence[str], values: Any, members: csr_array, n_features: int
) -> tuple[pd.DataFrame, Float]:
    """Return the features that differ most in each cluster, and all standardized differences."""
    is_binary, *summed = _sums(values, members)
    contrast = _contrast(*summed)
    # Two levels of a category say the same: only the more frequent one counts.
    levels: dict[str, list[int]] = {}
    for place in np.flatnonzero(is_binary).tolist():
        category, equals, _ = features[place].partition("=")
        if equals:
            levels.setdefault(category, []).append(place)
    is_paired = np.zeros(len(is_binary), bool)
    for pair in levels.values():
        shares = contrast["mean_in"][:, pair].sum(axis=1)
        is_paired[pair] = len(pair) == 2 and np.allclose(shares[~np.isnan(shares)], 1)
    k, d = contrast["n_in"].shape
    frame = pd.DataFrame({name: each.ravel() for name, each in contrast.items()})
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
    counts = (strength > 0) & ~(is_paired[places] & (frame["standardized"] < 0))
    order = strength[counts].sort_values(ascending=False, kind="stable").index
    strongest = frame.loc[order].groupby("cluster").head(n_features)
    return strongest.astype({"n_in": int, "n_out": int}), contrast["standardized"]


def _sums(table: Any, members: csr_array) -> tuple[np.ndarray, ...]:
    """Return which columns are binary, counts, sums and squares by cluster, means and scales.

    Squares of numbers that are scaled and, if they are dense, centered neither overflow nor cancel.
    """
    sparse = issparse(table)
    block: Any = csr_array(table, dtype=float, copy=True) if sparse else np.array(table, float)
    entries = block.data if sparse else block
    unknown = ~np.isfinite(entries)
    entries[unknown] = 0.0
    missing: Any = unknown.astype(float)
    if sparse:
        missing = csr_array((missing, block.indices, block.indptr), block.shape)
    n_known = members.sum(axis=1)[:, None] - _dense(members @ missing)
    sizes = _dense(abs(block).max(axis=0)) if len(members.indices) else np.zeros(block.shape[1])
    scales = np.where(sizes > 0, sizes, 1.0)
    block = block * (1 / scales)
    is_binary = (scales == 1) & (_dense(abs(block * block - block).sum(axis=0)) == 0)
    means = np.zeros(len(scales))
    if not sparse:
        means = block.sum(axis=0) / np.maximum(n_known.sum(axis=0), 1)
        means[is_binary] = 0.0  # shares are exact as they are
        block = np.where(unknown, 0.0, block - means)
    return (
        is_binary,
        n_known,
        _dense(members @ block),
        _dense(members @ (block * block)),
        means,
        scales,
    )


def _dense(matrix: Any) -> Float:
    return matrix.toarray() if issparse(matrix) else np.asarray(matrix)


def _contrast(
    counts: Float, sums: Float, squares: Float, means: Float, scales: Float
) -> dict[str, Float]:
    """Compare clusters with the rest, by sums of numbers that were centered and scaled."""
    n_in, n_out = counts, counts.sum(axis=0) - counts
    total_sum, total, n = sums.sum(axis=0), squares.sum(axis=0), counts.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_in, mean_out = sums / n_in, (total_sum - sums) / n_out
    of_all = np.maximum(total - total_sum**2 / np.maximum(n, 1), 0)
    # One number throughout, but for rounding; centering has removed a part of the mean.
    is_constant = of_all <= ROUNDING * np.maximum(total, n * means**2)
    within = total - n_in * np.nan_to_num(mean_in) ** 2 - n_out * np.nan_to_num(mean_out) ** 2
    variance = np.maximum(within, 0) / np.maximum(n - 2, 1)
    least = LEAST_SPREAD**2 * of_all / np.maximum(n - 1, 1)
    spread = np.sqrt(np.maximum(variance, least))
    difference = np.where(is_constant, 0.0, mean_in - mean_out)
    return {
        "n_in": n_in,
        "n_out": n_out,
        "mean_in": (mean_in + means) * scales,
        "mean_out": (mean_out + means) * scales,
        "standardized": difference / np.where(is_constant | (spread == 0), 1.0, spread),
    }
