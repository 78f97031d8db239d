"""Which features set the clusters of a fit apart, by effect size."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse

from mkclust.data import Samples
from mkclust.explain.aligned_tables import AlignedTable, read_tables
from mkclust.explain.description import Description, FeatureEffect
from mkclust.explain.fitted import check_fitted, fitted_index, is_approximated, observed_samples
from mkclust.kernels.kinds import RULES
from mkclust.linalg import ranges
from mkclust.text import join_words
from mkclust.types import Float

# Entries of a table whose sums are taken at a time.
BLOCK_ENTRIES = 1 << 22
# A spread within clusters below this share of that of all samples counts as this share: features
# that are constant in every cluster have a large effect, and not an infinite one.
LEAST_SPREAD = 0.01
# Relative to the mean square, less variance than this is rounding.
ROUNDING = 1e-12


def describe(model: Any, tables: Any, *, n_features: int = 10) -> Description:
    """Return the features that set the clusters of a fit apart, by effect size.

    Of numbers, the effect is the standardized mean difference between a cluster and the rest:
    Cohen's d with the pooled standard deviation. Of categories, truth values and columns of
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
    >>> description.names[0], description.table[0].feature
    ('not sex column 0, low size column 0', 'column 0')
    """
    check_fitted(model)
    labels = np.asarray(model.labels_)
    if not isinstance(n_features, int | np.integer) or n_features < 1:
        raise ValueError(f"n_features={n_features!r}: pass a whole number, at least 1")
    aligned = read_tables(tables, fitted_index(model), observed_samples(model))
    if len(known := np.flatnonzero(labels >= 0)) < len(labels):
        labels, aligned = labels[known], [each.take(known) for each in aligned]
    return describe_tables(labels, aligned, n_features, int(model.n_clusters))


def describe_tables(
    labels: np.ndarray, tables: Sequence[AlignedTable], n_features: int, n_clusters: int
) -> Description:
    """Return the features that set clusters apart, of tables that have been read.

    Parameters
    ----------
    labels : ndarray of int of shape (n_samples,)
        Clusters.
    tables : sequence of AlignedTable
        Tables of these samples.
    n_features : int
        How many features to list for each cluster and view.
    n_clusters : int
        Number of clusters, some of which may have no samples.

    Returns
    -------
    Description
    """
    rows: list[FeatureEffect] = []
    profiles: dict[tuple[str, str], Float] = {}
    for table in tables:
        marks = _marks(labels[table.samples], n_clusters)
        for group in (_group_of_numbers(table, marks), _group_of_categories(table, marks)):
            strongest = group.strongest(n_features, len(labels))
            rows += [row for _, row in strongest]
            for place, row in strongest:
                profiles[row.view, row.feature] = group.contrast.standardized[:, place]
    rows.sort(key=lambda row: row.cluster)  # stable: views and effects stay in their order
    notes = [_note(table) for table in tables if table.skipped]
    lacking = [table for table in tables if len(table.samples) < len(labels)]
    if lacking:
        counts = join_words(f"{table.name!r} {len(table.samples):,}" for table in lacking)
        notes.append(f"Of {len(labels):,} samples, those that a table has are compared: {counts}.")
    sizes = np.bincount(labels, minlength=n_clusters)
    return Description(tuple(rows), tuple(sizes.tolist()), tuple(notes), profiles)


def views_of_features(model: Any, samples: Samples) -> list[str]:
    """Return the views of a fit whose columns are features, by which clusters can be described.

    Parameters
    ----------
    model : MultipleKernelClusterer
        Fitted.
    samples : Samples
        What it was fitted on.

    Returns
    -------
    list of str
        Empty for kernels, for features that stand for kernels, and for a single cluster.
    """
    if samples.kind == "kernels" or is_approximated(model) or samples.is_lazy:
        return []
    # Columns of links and of distances are samples, not features.
    of_pairs = {name for name, rule in RULES.items() if rule.of_pairs}
    rules = model.bank_.rules_
    names = [name for name in samples.names if rules.get(name) not in of_pairs]
    return names if model.n_clusters > 1 else []


@dataclass(frozen=True, eq=False)
class _Contrast:
    """Clusters against the rest, feature by feature; every array is (n_clusters, n_columns)."""

    n_in: Float
    n_out: Float
    mean_in: Float
    mean_out: Float
    standardized: Float


@dataclass(frozen=True, eq=False)
class _Group:
    """Features of one view: their names, which of them are shares, and how they differ.

    One of two levels says what the other does: of such a pair only the more frequent is listed.
    """

    view: str
    features: Sequence[str]
    is_share: np.ndarray
    is_paired: np.ndarray
    contrast: _Contrast

    def strongest(self, n_features: int, n_samples: int) -> list[tuple[int, FeatureEffect]]:
        """Return the features of each cluster that differ most, with their places."""
        c, chosen = self.contrast, []
        n_known = c.n_in + c.n_out
        for cluster, values in enumerate(c.standardized):
            candidates = np.nan_to_num(values)
            candidates = np.where(self.is_paired & (candidates < 0), 0.0, candidates)
            places = np.argsort(-np.abs(candidates), kind="stable")[:n_features]
            for place in places[candidates[places] != 0].tolist():
                at = cluster, place
                share = bool(self.is_share[place])
                row = FeatureEffect(
                    cluster=cluster,
                    view=self.view,
                    feature=self.features[place],
                    kind="share" if share else "mean",
                    effect=float(c.mean_in[at] - c.mean_out[at] if share else values[place]),
                    standardized=float(values[place]),
                    mean_in=float(c.mean_in[at]),
                    mean_out=float(c.mean_out[at]),
                    n_in=int(c.n_in[at]),
                    n_out=int(c.n_out[at]),
                    n_missing=n_samples - int(n_known[at]),
                )
                chosen.append((place, row))
        return chosen


def _group_of_numbers(table: AlignedTable, marks: csr_array) -> _Group:
    """Return the columns of a table that hold numbers."""
    read = _sparse_block if issparse(table.numbers) else _dense_block
    numbers = csc_array(table.numbers) if issparse(table.numbers) else table.numbers
    blocks = ranges(len(table.columns), max(1, BLOCK_ENTRIES // max(len(table.samples), 1)))
    parts = [read(numbers[:, some], marks) for some in blocks]
    is_share = np.concatenate([np.empty(0, bool), *(binary for binary, _ in parts)])
    contrast = _joined([part for _, part in parts], marks.shape[0])
    is_paired = _encoded_pairs(table.columns, is_share, contrast)
    return _Group(table.name, table.columns, is_share, is_paired, contrast)


def _encoded_pairs(columns: Sequence[str], is_share: np.ndarray, contrast: _Contrast) -> np.ndarray:
    """Return which columns are the two levels of a category that a fit has made columns of."""
    levels: dict[str, list[int]] = {}
    for place in np.flatnonzero(is_share).tolist():
        category, equals, _ = columns[place].partition("=")
        if equals:
            levels.setdefault(category, []).append(place)
    is_paired = np.zeros(len(is_share), bool)
    for places in levels.values():
        sums = contrast.mean_in[:, places].sum(axis=1)
        is_paired[places] = len(places) == 2 and np.allclose(sums, 1)
    return is_paired


def _group_of_categories(table: AlignedTable, marks: csr_array) -> _Group:
    """Return the levels of the categories of a table, as shares of the samples."""
    features: list[str] = []
    is_paired: list[bool] = []
    columns: list[Float] = []
    for category in table.categories:
        present = [v for v in range(len(category.levels)) if (category.codes == v).any()]
        if category.is_truth:
            present = [category.levels.index("True")] if len(present) > 1 else []
        for level in present:
            share = (category.codes == level).astype(float)
            columns.append(np.where(category.codes < 0, np.nan, share))
            title = f"{category.name}={category.levels[level]}"
            features.append(category.name if category.is_truth else title)
            is_paired.append(len(present) == 2)
    rows = np.column_stack(columns) if columns else np.empty((len(table.samples), 0))
    contrast = _dense_block(rows, marks)[1]
    view = f"{table.name} (categories)" if table.columns else table.name
    return _Group(view, features, np.ones(len(features), bool), np.array(is_paired, bool), contrast)


def _dense_block(block: Any, marks: csr_array) -> tuple[np.ndarray, _Contrast]:
    """Return which columns hold zeros and ones only, and how all differ between clusters."""
    values = np.array(block, dtype=float)
    known = np.isfinite(values)
    is_binary = np.all((values == 0) | (values == 1) | ~known, axis=0)
    values[~known] = 0.0
    counts = marks @ known.astype(float)
    # Squares of centered and scaled numbers neither overflow nor cancel.
    n = np.maximum(counts.sum(axis=0), 1)
    scales = np.abs(values).max(axis=0, initial=0)
    scales = np.where(scales > 0, scales, 1.0)
    values /= scales
    means = np.where(is_binary, 0.0, values.sum(axis=0) / n)  # shares are exact as they are
    values = np.where(known, values - means, 0.0)
    return is_binary, _contrast(counts, marks @ values, marks @ values**2, means, scales)


def _sparse_block(block: Any, marks: csr_array) -> tuple[np.ndarray, _Contrast]:
    """Return the same of a sparse matrix, of which nothing but sums is made dense."""
    block = csr_array(block, dtype=float)
    block.sum_duplicates()
    known = np.isfinite(block.data)
    block.data[~known] = 0.0

    def marked(where: np.ndarray) -> csr_array:
        """Return a matrix of ones at some of the stored entries."""
        return csr_array((where.astype(float), block.indices, block.indptr), block.shape)

    missing = marked(~known)
    is_binary = marked((block.data != 0) & (block.data != 1)).sum(axis=0) == 0
    counts = marks.sum(axis=1)[:, None] - (marks @ missing).toarray()
    largest = np.zeros(block.shape[1])
    np.maximum.at(largest, block.indices, np.abs(block.data))
    scales = np.where(largest > 0, largest, 1.0)
    block.data /= scales[block.indices]
    sums, squares = (marks @ block).toarray(), (marks @ block.power(2)).toarray()
    return is_binary, _contrast(counts, sums, squares, np.zeros(len(scales)), scales)


def _contrast(counts: Float, sums: Float, squares: Float, means: Float, scales: Float) -> _Contrast:
    """Compare clusters with the rest, by sums of numbers that were centered and scaled."""
    n_in, n_out = counts, counts.sum(axis=0) - counts
    mean_in, mean_out = _means(sums, n_in), _means(sums.sum(axis=0) - sums, n_out)
    total, n = squares.sum(axis=0), counts.sum(axis=0)
    of_all = np.maximum(total - sums.sum(axis=0) ** 2 / np.maximum(n, 1), 0)
    # One number throughout, but for rounding; of centered numbers that was a part of the mean.
    is_constant = of_all <= ROUNDING * np.maximum(total, n * means**2)
    within = total - n_in * np.nan_to_num(mean_in) ** 2 - n_out * np.nan_to_num(mean_out) ** 2
    variance = np.maximum(within, 0) / np.maximum(n - 2, 1)
    least = LEAST_SPREAD**2 * of_all / np.maximum(n - 1, 1)
    spread = np.sqrt(np.maximum(variance, least))
    difference = np.where(is_constant, 0.0, mean_in - mean_out)
    standardized = difference / np.where(is_constant | (spread == 0), 1.0, spread)
    return _Contrast(
        n_in, n_out, (mean_in + means) * scales, (mean_out + means) * scales, standardized
    )


def _means(sums: Float, counts: Float) -> Float:
    """Return means, NaN of nothing."""
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _joined(parts: Sequence[_Contrast], n_clusters: int) -> _Contrast:
    """Return blocks of columns side by side."""
    names = [field.name for field in fields(_Contrast)]
    nothing = np.empty((n_clusters, 0))
    return _Contrast(
        **{name: np.hstack([nothing, *(getattr(part, name) for part in parts)]) for name in names}
    )


def _marks(labels: np.ndarray, n_clusters: int) -> csr_array:
    """Return which samples are in which cluster, (n_clusters, s), so that products are sums."""
    entries = np.ones(len(labels)), (labels, np.arange(len(labels)))
    return csr_array(entries, shape=(n_clusters, len(labels)))


def _note(table: AlignedTable) -> str:
    """Say which columns of a table are left out, and why."""
    reasons = [f"{column!r} {reason}" for column, reason in table.skipped.items()]
    return f"Left out of {table.name!r}: {join_words(reasons)}."
