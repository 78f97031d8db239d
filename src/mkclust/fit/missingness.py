"""Whether clusters follow the missingness of views, rather than what they hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import xlogy
from scipy.stats import false_discovery_control, random_table

from mkclust.text import join_words, p_of_draws, text_table
from mkclust.types import Float

# Clusters follow the missingness if the p-value, corrected for all tests, is at most
# this, ...
LEVEL = 0.01
# ... and if the adjusted mutual information is larger than this, about a Cramer's V of
# 0.1: among a million samples everything is beyond chance.
NOTEWORTHY = 0.01
# Patterns that are counted one by one, as many as five views can have.
MOST_PATTERNS = 31
# Statistics of permutations that differ by less, relatively, are equal up to rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Missingness:
    """How the clusters and the missing views of samples are related.

    The patterns of missing views, and each view alone, are compared with the clusters
    by adjusted mutual information: 0 is the value by chance, and 1 means that one
    determines the other.

    Attributes
    ----------
    view_names : tuple of str
        Names of the views, or of precomputed kernels.
    patterns : tuple of (tuple of str) or None
        The views that samples are missing from, the commonest pattern first; ``()`` are
        samples in all views, and None are all patterns after the first 31.
    counts : ndarray of int of shape (n_patterns, n_clusters)
        Samples of each pattern in each cluster.
    view_counts : ndarray of int of shape (n_views, n_clusters)
        Samples of each cluster that are missing from each view.
    agreement, p_value : float
        Adjusted mutual information of patterns and clusters, over the smaller entropy;
        its p-value.
    view_agreements, view_p_values : ndarray of shape (n_views,)
        The same for each view alone. All p-values are corrected together by Benjamini
        and Hochberg.
    n_permutations : int
        Number of permutations.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.fit.missingness import measure_missingness
    >>> labels = np.repeat([0, 1, 2], 40)
    >>> observed = np.ones((120, 2), dtype=bool)
    >>> observed[85:, 1] = False
    >>> missingness = measure_missingness(labels, observed, ["mrna", "mirna"])
    >>> missingness.patterns, missingness.counts.tolist()
    (((), ('mirna',)), [[40, 40, 5], [0, 0, 35]])
    >>> print(missingness.verdict())  # doctest: +ELLIPSIS
    The clusters follow the missingness: 'mirna' is missing from 29 % of the samples,
    but from 88 % of cluster 2, 0 % of cluster 0 and 0 % of cluster 1 (...).
    """

    view_names: tuple[str, ...]
    patterns: tuple[tuple[str, ...] | None, ...]
    counts: np.ndarray
    view_counts: np.ndarray
    agreement: float
    p_value: float
    view_agreements: Float
    view_p_values: Float
    n_permutations: int

    @property
    def sizes(self) -> np.ndarray:
        """Number of samples in each cluster, (n_clusters,)."""
        return np.asarray(self.counts.sum(axis=0))

    @property
    def least_p_value(self) -> float:
        """Corrected p-value of tests that no permutation reaches; 0 without any."""
        is_tested = (self.view_counts.sum(axis=1) % self.sizes.sum()) > 0
        found = np.append(self.p_value, self.view_p_values[is_tested])
        smallest = float(found.min())
        bound = len(found) / (1 + self.n_permutations) / np.sum(found == smallest)
        return smallest * bool(smallest <= bound * (1 + ROUNDING))

    def p_text(self, value: float) -> str:
        """Return a p-value, as a bound if no permutation says as much."""
        return p_of_draws(value, self.least_p_value)

    @property
    def followed_views(self) -> tuple[str, ...]:
        """Views whose missing samples the clusters follow, the most followed first."""
        follows = (self.view_p_values <= LEVEL) & (self.view_agreements > NOTEWORTHY)
        order = np.argsort(-self.view_agreements, kind="stable")
        return tuple(self.view_names[v] for v in order if follows[v])

    @property
    def follows(self) -> bool:
        """Whether the clusters follow the patterns of missing views, or any view.

        They do if a p-value is at most 0.01 and its agreement is larger than 0.01.
        """
        by_patterns = self.p_value <= LEVEL and self.agreement > NOTEWORTHY
        return bool(self.followed_views or by_patterns)

    def verdict(self) -> str:
        """Return in a sentence whether the clusters follow which views are missing."""
        if len(self.sizes) < 2:
            return "A single cluster cannot follow which views are missing."
        agreement = self.agreement
        p_value = self.p_value
        rest = ""
        names = self.followed_views
        if names:
            v = self.view_names.index(names[0])
            agreement = self.view_agreements[v]
            p_value = self.view_p_values[v]
            finding = (
                f"follow the missingness: {names[0]!r} is missing from "
                f"{self._say_shares(v)}"
            )
            if len(names) > 1:
                others = join_words(map(repr, names[1:]))
                rest = f" They also follow that of {others}."
        elif self.follows:
            finding = (
                "follow the patterns of missing views, but not those of any single view"
            )
        elif min(self.p_value, *self.view_p_values) <= LEVEL:
            finding = (
                "are related to the missing views beyond chance, but too little to "
                "matter"
            )
        else:
            finding = "do not follow which views are missing"
        numbers = (
            f"mutual information {round(agreement, 2) + 0:.2f}, "
            f"p-value {self.p_text(p_value)}"
        )
        return f"The clusters {finding} (adjusted {numbers}).{rest}"

    def warning(self) -> str:
        """Return the verdict with what to do about it, for a warning."""
        return (
            f"{self.verdict()} The clusters may be an effect of how missing samples "
            "are treated: compare them with those of the samples that all views have "
            "(join='inner'), or with another value of missing_views. If samples of "
            "different kinds were measured differently, the clusters may be right"
        )

    def summary(self) -> str:
        """Return the verdict, and the numbers of samples by pattern and cluster."""
        rows = [["missing from", *map(str, range(len(self.sizes))), "samples"]]
        rows += [[title, *map(str, [*n.tolist(), n.sum()])] for title, n in self.rows()]
        return f"{self.verdict()}\n{text_table(rows)}"

    __repr__ = summary

    def rows(self) -> list[tuple[str, np.ndarray]]:
        """Return every pattern in words with its samples in each cluster."""
        words: dict[Any, str] = {None: "rarer patterns", (): "no view"}
        titles = [words.get(each) or join_words(each or ()) for each in self.patterns]
        return list(zip(titles, self.counts, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it; rarer patterns are missing from None."""
        names = ("follows", "agreement", "p_value", "n_permutations")
        views = pd.DataFrame(
            {
                "view": self.view_names,
                "n_missing": self.view_counts.sum(axis=1),
                "agreement": self.view_agreements,
                "p_value": self.view_p_values,
            }
        )
        patterns = pd.DataFrame(
            {"missing_from": self.patterns, "clusters": self.counts.tolist()}
        )
        return {
            "verdict": self.verdict(),
            **{name: getattr(self, name) for name in names},
            "views": views.to_dict("records"),
            "patterns": patterns.to_dict("records"),
        }

    def _say_shares(self, view: int) -> str:
        """Say what share of samples a view lacks, and where clusters differ most."""
        missing = self.view_counts[view]
        sizes = np.maximum(self.sizes, 1)
        share = missing.sum() / self.sizes.sum()
        shares = missing / sizes
        deviations = np.abs(shares - share) * np.sqrt(sizes)
        named = np.argsort(-deviations, kind="stable")[:3].tolist()
        named.sort(key=lambda c: -shares[c])
        clusters = join_words(
            [f"{100 * shares[c]:.0f} % of cluster {c}" for c in named]
        )
        return f"{100 * share:.0f} % of the samples, but from {clusters}"


def measure_missingness(
    labels: Any, observed: np.ndarray, view_names: Sequence[str]
) -> Missingness:
    """Return how clusters and missing views are related.

    Labels count from zero; ``observed`` is (n_samples, n_views).
    """
    names = tuple(map(str, view_names))
    missing = ~np.asarray(observed, dtype=bool)
    labels = np.asarray(labels)
    found = (
        pd.DataFrame(missing)
        .assign(cluster=labels)
        .value_counts()
        .unstack(fill_value=0)
    )
    found = found.reindex(columns=range(int(labels.max()) + 1), fill_value=0)
    lacks = found.index.to_frame().to_numpy(dtype=bool)
    sums = found.to_numpy().sum(axis=1)
    order = np.lexsort([*lacks.T[::-1], lacks.sum(axis=1), -sums])
    lacks = lacks[order]
    counts = found.to_numpy()[order]
    view_counts = lacks.T.astype(int) @ counts
    sizes = counts.sum(axis=0)
    patterns: list[tuple[str, ...] | None] = [
        tuple(name for name, lacking in zip(names, row, strict=True) if lacking)
        for row in lacks
    ]
    if len(patterns) > MOST_PATTERNS:
        patterns[MOST_PATTERNS:] = [None]
        rare = counts[MOST_PATTERNS:].sum(axis=0)
        counts = np.vstack([counts[:MOST_PATTERNS], rare])
    tables = [counts, *np.stack([view_counts, sizes - view_counts], axis=1)]
    is_tested = np.append(True, lacks.any(axis=0) & ~lacks.all(axis=0))
    # Permutations are drawn as tables of counts, so that the number of samples costs
    # nothing.
    # 300 per test are enough for a corrected p-value of a third of the level.
    n_permutations = max(999, 300 * int(is_tested.sum()))
    agreements = np.zeros(len(tables))
    p_values = np.ones(len(tables))
    for number in np.flatnonzero(is_tested):
        agreements[number], p_values[number] = _test(tables[number], n_permutations)
    p_values[is_tested] = false_discovery_control(p_values[is_tested])
    return Missingness(
        view_names=names,
        patterns=tuple(patterns),
        counts=counts,
        view_counts=view_counts,
        agreement=float(agreements[0]),
        p_value=float(p_values[0]),
        view_agreements=agreements[1:],
        view_p_values=p_values[1:],
        n_permutations=n_permutations,
    )


def _test(table: np.ndarray, n_permutations: int) -> tuple[float, float]:
    """Return the adjusted mutual information of a table of counts, and its p-value."""
    # Sorted, so that the draws are the same whatever the order of clusters and of
    # views.
    sums_of_rows = np.sort(table.sum(axis=1))
    sums_of_columns = np.sort(table.sum(axis=0))
    rows = sums_of_rows[sums_of_rows > 0]
    columns = sums_of_columns[sums_of_columns > 0]
    if min(len(rows), len(columns)) < 2:
        return 0.0, 1.0
    n = int(rows.sum())
    # I = H(rows) + H(columns) - H(joint), and only the last of them varies.
    entropies = [np.log(n) - xlogy(sums, sums).sum() / n for sums in (rows, columns)]
    joint = xlogy(table, table).sum()
    # One seed for all tables would make the same error in all tests.
    rng = np.random.default_rng([*rows.tolist(), *columns.tolist()])
    drawn = random_table(rows, columns).rvs(size=n_permutations, random_state=rng)
    permuted = xlogy(drawn, drawn).sum(axis=(1, 2))
    constant = sum(entropies) - np.log(n)
    information = constant + joint / n
    expected = constant + permuted.mean() / n
    largest = min(entropies) - expected
    n_larger = int(np.sum(permuted >= joint - ROUNDING * abs(joint)))
    adjusted = 0.0
    if largest > ROUNDING:
        adjusted = float((information - expected) / largest)
    return adjusted, (1 + n_larger) / (1 + n_permutations)
