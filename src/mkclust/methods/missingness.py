"""Whether clusters follow which views samples are missing from, rather than what views hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy
from scipy.stats import random_table

from mkclust.text import join_words, text_table
from mkclust.types import Float

# Clusters follow the missingness where chance makes them go together as much this seldom, over all
# that is tested, ...
LEVEL = 0.01
# ... and by as much as is worth a warning, for of a million samples everything is beyond chance:
# an adjusted mutual information of 0.01 is about a Cramer's V of 0.1.
NOTEWORTHY = 0.01
# Patterns that are counted one by one, as many as five views can have; the rarest of more together.
MOST_PATTERNS = 31
# Permutations at least, and for each test: enough for a corrected chance of a third of the level.
FEWEST_PERMUTATIONS, PERMUTATIONS_A_TEST = 999, 300
# Entries of permuted tables that are held at a time.
BLOCK_ENTRIES = 1 << 22
# The key of the test of all patterns.
PATTERNS = b"patterns"
# Statistics of permutations that differ by less, relatively, are the same but for rounding.
ROUNDING = 1e-12
# A cluster is named where its share of missing samples is this far from that of all, and so many
# standard deviations; of more than so many, those that differ most.
NAMED_DIFFERENCE, NAMED_DEVIATIONS, MOST_NAMED = 0.1, 3.0, 3


# From this share of missing samples on, what is learned of them is worth its time: chosen by
# benchmarks/missing_views.py.
MUCH_MISSING = 0.1


def advise_on_missing(observed: np.ndarray) -> str | None:
    """Say what a method that cannot learn does to samples that views lack; None if few are.

    Parameters
    ----------
    observed : ndarray of bool of shape (n_samples, n_views)
        Which views have which samples.
    """
    share = 1 - float(observed.mean())
    if share < MUCH_MISSING:
        return None
    return (
        f"on average samples lack {share:.0%} of the views, and are scaled up to make up for it; "
        "in our measurements this gave worse clusters the more was missing, and learning the "
        "missing similarities gave better ones: use AgreementKKM or SimpleMKKM with exact kernels, "
        "which learn them, or pass missing_views='rescale' to keep scaling without this warning"
    )


@dataclass(frozen=True, eq=False)
class Missingness:
    """How the clusters and the missing views of samples go together.

    The patterns, and each view alone, are compared with the clusters by their mutual information,
    and that with what it is when the patterns are permuted. It is adjusted for chance: 0 is what
    chance gives, and 1 where the clusters tell what is missing, or what is missing the clusters.

    Attributes
    ----------
    view_names : tuple of str
        Names of the views, or of precomputed kernels.
    patterns : tuple of tuple of str
        The views that samples are missing from, one pattern each, the commonest first; ``()`` are
        the samples that all views have. No more than 31.
    counts : ndarray of int of shape (n_patterns, n_clusters)
        Samples of each pattern in each cluster.
    other_counts : ndarray of int of shape (n_clusters,)
        Samples of all rarer patterns together.
    view_counts : ndarray of int of shape (n_views, n_clusters)
        Samples of each cluster that are missing from each view.
    agreement : float
        Adjusted mutual information of patterns and clusters, in units of the smaller entropy.
    p_value : float
        How likely chance makes patterns and clusters go together as much.
    view_agreements, view_p_values : ndarray of shape (n_views,)
        The same of each view alone: samples that it lacks against those that it has. All chances
        are those of permutations, and corrected together by Holm.
    n_permutations : int
        Number of permutations.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust.methods.missingness import measure_missingness
    >>> labels = np.repeat([0, 1, 2], 40)
    >>> observed = np.ones((120, 2), dtype=bool)
    >>> observed[85:, 1] = False
    >>> missingness = measure_missingness(labels, observed, ["mrna", "mirna"])
    >>> missingness.patterns, missingness.counts.tolist()
    (((), ('mirna',)), [[40, 40, 5], [0, 0, 35]])
    >>> print(missingness.verdict())  # doctest: +ELLIPSIS
    The clusters follow the missingness: 'mirna' is missing from 29 % of the samples, but from 88 %
    of cluster 2, 0 % of cluster 0 and 0 % of cluster 1 (...).
    """

    view_names: tuple[str, ...]
    patterns: tuple[tuple[str, ...], ...]
    counts: np.ndarray
    other_counts: np.ndarray
    view_counts: np.ndarray
    agreement: float
    p_value: float
    view_agreements: Float
    view_p_values: Float
    n_permutations: int

    @property
    def sizes(self) -> np.ndarray:
        """Number of samples in each cluster, (n_clusters,)."""
        return np.asarray(self.counts.sum(axis=0) + self.other_counts)

    @property
    def followed_views(self) -> tuple[str, ...]:
        """Views whose missing samples the clusters follow, those that they follow most first."""
        order = np.argsort(-self.view_agreements, kind="stable")
        return tuple(
            self.view_names[v]
            for v in order
            if _is_noteworthy(self.view_agreements[v], self.view_p_values[v])
        )

    @property
    def follows(self) -> bool:
        """Whether clusters follow the patterns, or a view: beyond chance, and not just a little.

        Chance has to be below 0.01, and the adjusted mutual information above 0.01.
        """
        return bool(self.followed_views) or _is_noteworthy(self.agreement, self.p_value)

    def verdict(self) -> str:
        """Return in a sentence whether the clusters follow which views are missing.

        Returns
        -------
        str
        """
        if len(self.sizes) < 2:
            return "A single cluster cannot follow which views are missing."
        if names := self.followed_views:
            # Views with the same missing samples, such as the parts of one table, are one.
            v = self.view_names.index(names[0])
            same = [name for name in names if self._missing(name) == self._missing(names[0])]
            sentence = f"The clusters follow the missingness: {self._say_shares(v, same)}"
            numbers = self._numbers(self.view_agreements[v], self.view_p_values[v])
            others = [repr(name) for name in names if name not in same]
            rest = f" They follow that of {join_words(others)}, too." if others else ""
            return f"{sentence} ({numbers}).{rest}"
        numbers = self._numbers(self.agreement, self.p_value)
        if self.follows:
            return (
                "The clusters follow the patterns of missing views, but not the missing "
                f"samples of any single view ({numbers})."
            )
        if min(self.p_value, *self.view_p_values) <= LEVEL:
            return (
                "The clusters are related to the missing views beyond chance, but too "
                f"little to matter ({numbers})."
            )
        return f"The clusters do not follow which views are missing ({numbers})."

    def warning(self) -> str:
        """Return the verdict with what to do about it, for a warning.

        Returns
        -------
        str
        """
        return (
            f"{self.verdict()} The clusters may be an effect of how missing samples are "
            "treated: compare them with the clusters of the samples that all views have "
            "(join='inner'), or with another value of missing_views. If samples of different "
            "kinds were measured differently, the clusters may be right"
        )

    def summary(self) -> str:
        """Return the verdict, and how many samples of each pattern are in each cluster.

        Returns
        -------
        str
        """
        rows = [["missing from", *map(str, range(len(self.sizes))), "samples"]]
        for pattern, counts in self.rows():
            rows.append([pattern, *map(str, counts.tolist()), str(int(counts.sum()))])
        return f"{self.verdict()}\n{text_table(rows)}"

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def rows(self) -> list[tuple[str, np.ndarray]]:
        """Return every pattern in words with its samples in each cluster, the rarer ones last.

        Returns
        -------
        list of (str, ndarray of int of shape (n_clusters,))
        """
        titles = [join_words(pattern) if pattern else "no view" for pattern in self.patterns]
        rows = list(zip(titles, self.counts, strict=True))
        return rows + ([("rarer patterns", self.other_counts)] if self.other_counts.any() else [])

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it.

        Returns
        -------
        dict
            ``verdict``, ``follows``, ``agreement``, ``p_value``, ``n_permutations``; ``views``,
            each with its ``view``, ``n_missing``, ``agreement`` and ``p_value``; and ``patterns``,
            each with the views that it is ``missing_from``, None for all rarer ones, and the number
            of its samples in each cluster (``clusters``).
        """
        views = zip(
            self.view_names, self.view_counts, self.view_agreements, self.view_p_values, strict=True
        )
        patterns: list[dict[str, Any]] = [
            {"missing_from": list(pattern), "clusters": counts.tolist()}
            for pattern, counts in zip(self.patterns, self.counts, strict=True)
        ]
        if self.other_counts.any():
            patterns.append({"missing_from": None, "clusters": self.other_counts.tolist()})
        return {
            "verdict": self.verdict(),
            "follows": self.follows,
            "agreement": self.agreement,
            "p_value": self.p_value,
            "n_permutations": self.n_permutations,
            "views": [
                {"view": name, "n_missing": int(counts.sum()), "agreement": float(one),
                 "p_value": float(p)}
                for name, counts, one, p in views
            ],
            "patterns": patterns,
        }  # fmt: skip

    def _missing(self, name: str) -> tuple[int, ...]:
        """Return by what views with the same missing samples are known: their counts."""
        v = self.view_names.index(name)
        in_pattern = [name in pattern for pattern in self.patterns]
        return (*self.view_counts[v].tolist(), *in_pattern)

    def _say_shares(self, v: int, names: Sequence[str]) -> str:
        """Say from how many samples views are missing, and from which clusters more or less."""
        sizes, missing = self.sizes, self.view_counts[v]
        share = missing.sum() / sizes.sum()
        shares = missing / np.maximum(sizes, 1)
        deviations = (shares - share) / np.sqrt(share * (1 - share) / np.maximum(sizes, 1))
        far = (np.abs(shares - share) >= NAMED_DIFFERENCE) & (abs(deviations) > NAMED_DEVIATIONS)
        # Clusters that mostly lack a view before those that mostly have it.
        order = sorted(np.flatnonzero(far & (sizes > 0)).tolist(), key=lambda c: -deviations[c])
        if not order:
            order = [int(np.argmax(np.abs(deviations)))]
        if len(order) > MOST_NAMED:
            order = sorted(order, key=lambda c: -abs(deviations[c]))[:MOST_NAMED]
        clusters = [f"{100 * shares[c]:.0f} % of cluster {c}" for c in order]
        verb = "is" if len(names) == 1 else "are"
        return (
            f"{join_words(map(repr, names))} {verb} missing from {100 * share:.0f} % of the "
            f"samples, but from {join_words(clusters)}"
        )

    def _numbers(self, agreement: float, p_value: float) -> str:
        """Return what a verdict rests on."""
        return f"adjusted mutual information {round(agreement, 2) + 0:.2f}, chance {p_value:.2g}"


def _is_noteworthy(agreement: float, p_value: float) -> bool:
    """Return whether something goes with the clusters beyond chance, and not just a little."""
    return bool(p_value <= LEVEL and agreement > NOTEWORTHY)


def measure_missingness(
    labels: Any, observed: np.ndarray, view_names: Sequence[str]
) -> Missingness:
    """Return how clusters and the missing views of samples go together.

    The cost is one pass over the samples: permutations are drawn as tables of counts.

    Parameters
    ----------
    labels : ndarray of int of shape (n_samples,)
        Clusters, from zero.
    observed : ndarray of bool of shape (n_samples, n_views)
        Which views have which samples.
    view_names : sequence of str
        Names of the views.

    Returns
    -------
    Missingness
    """
    labels, missing = np.asarray(labels), ~np.asarray(observed, dtype=bool)
    names = tuple(map(str, view_names))
    lacks, table = _count_patterns(labels, missing)
    frequent, rare = table[:MOST_PATTERNS], table[MOST_PATTERNS:].sum(axis=0)
    view_counts = lacks.T.astype(int) @ table
    tables = {PATTERNS: np.vstack([frequent, rare])}
    keys = [_key(lacks, v) for v in range(len(names))]
    for key, counts in zip(keys, view_counts, strict=True):
        if key is not None:  # of views with the same missing samples there is one test
            tables.setdefault(key, np.vstack([counts, table.sum(axis=0) - counts]))
    n_permutations = max(FEWEST_PERMUTATIONS, PERMUTATIONS_A_TEST * len(tables))
    tests = {key: _test(each, n_permutations) for key, each in tables.items()}
    p_values = dict(zip(tests, _holm([test.p_value for test in tests.values()]), strict=True))
    return Missingness(
        view_names=names,
        patterns=tuple(
            tuple(name for name, lacking in zip(names, row, strict=True) if lacking)
            for row in lacks[:MOST_PATTERNS]
        ),
        counts=frequent,
        other_counts=rare,
        view_counts=view_counts,
        agreement=tests[PATTERNS].agreement,
        p_value=p_values[PATTERNS],
        view_agreements=np.array([0.0 if key is None else tests[key].agreement for key in keys]),
        view_p_values=np.array([1.0 if key is None else p_values[key] for key in keys]),
        n_permutations=n_permutations,
    )


def _count_patterns(labels: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the patterns, the commonest first, and their samples in each cluster.

    They are (n_patterns, n_views) of bool, True where a view lacks the samples, and (n_patterns,
    n_clusters).
    """
    numbers = np.zeros(len(missing), dtype=np.int64)
    for byte in np.packbits(missing, axis=1).T:  # eight views at a time
        numbers = np.unique(numbers * 256 + byte, return_inverse=True)[1]
    first = np.unique(numbers, return_index=True)[1]
    n_clusters = int(labels.max()) + 1
    places = numbers * n_clusters + labels
    table = np.bincount(places, minlength=len(first) * n_clusters).reshape(-1, n_clusters)
    lacks = missing[first]
    order = np.lexsort([*lacks.T[::-1], lacks.sum(axis=1), -table.sum(axis=1)])
    return lacks[order], table[order]


def _key(lacks: np.ndarray, v: int) -> bytes | None:
    """Return by what the test of a view is known: None where there is nothing to test."""
    column = lacks[:, v]
    if column.all() or not column.any():
        return None
    # With two patterns, to lack a view is to have one of them.
    return PATTERNS if len(column) == 2 else column.tobytes()


class _Test(NamedTuple):
    """How much the rows and columns of a table of counts go together, and how likely by chance."""

    agreement: float
    p_value: float


def _test(table: np.ndarray, n_permutations: int) -> _Test:
    """Compare the mutual information of rows and columns with that of permutations."""
    # Sorted, so that the draws are the same whatever the order of clusters and of views.
    rows, columns = (np.sort(table.sum(axis=axis)) for axis in (1, 0))
    rows, columns = rows[rows > 0], columns[columns > 0]
    if min(len(rows), len(columns)) < 2:
        return _Test(0.0, 1.0)
    n = int(rows.sum())
    entropies = [np.log(n) - xlogy(sums, sums).sum() / n for sums in (rows, columns)]
    joint = _sums_of_logarithms(table[None])[0]
    # One seed for all tables would make the same error in all tests.
    rng = np.random.default_rng([*rows.tolist(), *columns.tolist()])
    drawn = random_table(rows, columns)
    size = max(1, BLOCK_ENTRIES // (len(rows) * len(columns)))
    sizes = [min(size, n_permutations - start) for start in range(0, n_permutations, size)]
    draws = [_sums_of_logarithms(drawn.rvs(size=each, random_state=rng)) for each in sizes]
    permuted = np.concatenate(draws)
    # I = H(rows) + H(columns) - H(joint), and only the last of them varies.
    constant = sum(entropies) - np.log(n)
    information, expected = constant + joint / n, constant + permuted.mean() / n
    room = min(entropies) - expected
    n_larger = int(np.sum(permuted >= joint - ROUNDING * abs(joint)))
    return _Test(
        float((information - expected) / room) if room > ROUNDING else 0.0,
        (1 + n_larger) / (1 + n_permutations),
    )


def _sums_of_logarithms(tables: np.ndarray) -> Float:
    """Return the sum of x log x over the entries of every table."""
    return xlogy(tables, tables).sum(axis=(1, 2))


def _holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number, by Holm."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.maximum.accumulate(np.asarray(p_values)[order] * factors)
    return np.minimum(corrected, 1).tolist()
