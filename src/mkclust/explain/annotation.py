"""What tests of variables against the clusters have found: a table, and sentences."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from mkclust.agreements import p_text
from mkclust.explain.permuted_clusters import ROUNDING
from mkclust.explain.survival import SurvivalComparison
from mkclust.plots import SurvivalDisplay, VariableDisplay
from mkclust.text import (
    did_you_mean,
    join_words,
    p_of_draws,
    printable,
    text_table,
)

# Adjusted p-values below this are shown with values by cluster, unless there are more
# clusters.
SMALL_P, MAX_CLUSTERS = 0.05, 12


@dataclass(frozen=True, eq=False)
class Annotation:
    """Variables tested against the clusters, as `mkclust.annotate` does; ``print`` it.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per variable: survival, then numbers and categories in the order of the
        table. The columns are ``variable`` (its name; for survival, those of times and
        events), ``test`` ("chi-square" for categories, "Kruskal-Wallis" for numbers,
        "log-rank" for survival), ``statistic``, ``p_value`` (by permutations of the
        clusters), ``p_adjusted`` (for the number of variables, by Benjamini and
        Hochberg), ``n_samples`` and ``n_missing`` (samples whose values are known, and
        are not), and ``reason``: why it was not tested, or empty.
    by_cluster : pandas.DataFrame
        The direction of the differences. The columns are ``variable``, ``value``
        ("median" for numbers, "median time" for survival, "share of ..." for the levels
        of categories; of two levels only the second), and one for each cluster.
    n_permutations : int
        Permutations of the clusters; no p-value is smaller than one over one more than
        these.
    survival : dict of str to SurvivalDisplay
        Kaplan-Meier curves by the names of the survival variables; ``plot()`` draws
        them.
    notes : tuple of str
        Omissions with their reasons, and doubts about which variables were clustered
        on.
    comparisons : dict of str to SurvivalComparison
        By the names of the survival variables: log-rank tests of every two clusters
        (``pairs``), and hazard ratios, adjusted for variables if asked for
        (``hazards``).
    values : pandas.DataFrame
        The variables in the order of the samples, categories as such; without the times
        and events of survival.
    clusters : ndarray of shape (n_samples,)
        The cluster of each sample as a number from 0, in the order of the names; -1 for
        samples without a cluster.
    names : tuple of str
        The names of the clusters.
    """

    table: pd.DataFrame
    by_cluster: pd.DataFrame
    n_permutations: int
    survival: dict[str, SurvivalDisplay] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()
    comparisons: dict[str, SurvivalComparison] = field(default_factory=dict, repr=False)
    values: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    clusters: np.ndarray = field(default_factory=lambda: np.empty(0, int), repr=False)
    names: tuple[str, ...] = ()

    @property
    def tests(self) -> list[Any]:
        """The rows of the table as named tuples."""
        return list(self.table.itertuples(index=False, name="VariableTest"))

    @property
    def untested(self) -> list[str]:
        """Untested variables, in a sentence per reason, and the notes."""
        left_out = self.table[self.table["reason"] != ""]
        by_reason = left_out.groupby("reason", sort=False)["variable"]
        sentences = [
            f"Not tested, {reason}: {join_words(names)}." for reason, names in by_reason
        ]
        return [*sentences, *self.notes]

    @property
    def differences(self) -> pd.DataFrame:
        """The rows of ``by_cluster`` of variables that differ significantly."""
        is_small = self.table["p_adjusted"] < SMALL_P
        small = self.table.loc[is_small, "variable"]
        return self.by_cluster[self.by_cluster["variable"].isin(small)]

    def p_text(self, value: float, sign: str = "") -> str:
        """Return a p-value after a sign, as a bound if no permutation differs as much.

        One smaller than permutations can give is from a distribution.
        """
        return p_of_permutations(value, self.n_permutations, sign)

    def adjusted_text(self, value: float, sign: str = "") -> str:
        """Return an adjusted p-value after a sign, as a bound if it is one."""
        floor = 1 / (1 + self.n_permutations)
        if value < (1 - ROUNDING) * floor:
            return p_text(value, sign)
        is_least = np.isclose(self.table["p_value"], floor)
        least = self.table.loc[is_least, "p_adjusted"].max()
        return p_of_draws(value, np.nan_to_num(least), sign)

    def to_dict(self) -> dict[str, Any]:
        """Return the tests as JSON takes them, unknown values as None."""
        found: dict[str, Any] = {
            "tests": _records(self.table),
            "by_cluster": _records(self.by_cluster),
            "n_permutations": self.n_permutations,
            "notes": list(self.notes),
        }
        if self.comparisons:
            found["survival"] = {
                name: {
                    "pairs": _records(each.pairs),
                    "hazards": _records(each.hazards),
                    "adjusted_for": list(each.adjusted_for),
                }
                for name, each in self.comparisons.items()
            }
        return found

    def summary(self) -> str:
        """Return the tests as a text table, with values per cluster if they differ."""
        lines = []
        if (self.table["reason"] == "").any():
            lines = [self._table_of_tests(), self.about_p_values()]
        differences = self.differences
        if len(differences) and differences.shape[1] - 2 <= MAX_CLUSTERS:
            rows = [["by cluster", "", *differences.columns[2:]]]
            for name, value, *numbers in differences.itertuples(index=False):
                unknown = "not reached" if name in self.survival else "-"
                shown = [f"{x:.3g}".replace("nan", unknown) for x in numbers]
                rows.append([name, value, *shown])
            lines.append(text_table(rows))
        for name, found in self.comparisons.items():
            lines += map(printable, self.about_survival(name))
            if 0 < len(found.hazards) <= 20:
                lines.append(_table_of_hazards(found.hazards))
        return "\n".join([*lines, *map(printable, self.untested)])

    def about_p_values(self) -> str:
        """Return in a sentence where the p-values are from."""
        survival = ""
        if self.survival:
            survival = (
                " (of survival, from the chi-square distribution if five events are "
                "expected in every cluster)"
            )
        return (
            f"p-values are from {self.n_permutations:,} permutations of the clusters"
            f"{survival}; adjusted for the number of variables by Benjamini and "
            "Hochberg."
        )

    def plot(self, variable: str, ax: Any = None) -> SurvivalDisplay | VariableDisplay:
        """Draw a variable by cluster, in new axes or given ones."""
        if variable in self.survival:
            return self.survival[variable].plot(ax)
        if variable not in self.values:
            near = did_you_mean(variable, [*self.survival, *self.values])
            raise ValueError(f"there is no variable {variable!r}{near}")
        p_adjusted = self.table.set_index("variable")["p_adjusted"]
        note = ""
        if p_adjusted.get(variable, np.nan) >= 0:
            note = f"adjusted p {self.adjusted_text(p_adjusted[variable], '= ')}"
        display = VariableDisplay(
            values=self.values[variable],
            labels=self.clusters,
            name=variable,
            names=self.names,
            note=note,
        )
        return display.plot(ax)

    def about_survival(self, name: str) -> list[str]:
        """Return in sentences how clusters differ in survival."""
        found = self.comparisons[name]
        medians = [
            f"{time:.3g} in {self.names[each]}".replace("nan", "not reached", 1)
            for each, time in self.survival[name].medians.items()
        ]
        title = name.partition(",")[0]
        sentences = [f"Median {title}: {join_words(medians, most=12)}."]
        if len(self.names) > 2 and len(found.pairs):
            differ = found.pairs[found.pairs["p_adjusted"] < SMALL_P]
            pairs = [f"{each.one} and {each.other}" for each in differ.itertuples()]
            which = "; ".join(pairs) or "no two clusters"
            sentences.append(f"Different in pairs (corrected by Holm): {which}.")
        if found.reason:
            sentences.append(f"No hazard ratios: {found.reason}.")
        elif found.adjusted_for:
            sentences.append(
                f"Adjusted for {join_words(found.adjusted_for)} "
                f"({found.n_samples:,} samples), the clusters differ in survival with "
                f"p {p_text(found.p_value, '= ')}."
            )
        return sentences

    __repr__ = summary

    def _table_of_tests(self) -> str:
        """Return tests as a text table, with a line for each."""
        rows = [
            ["variable", "test", "samples", "missing", "statistic", "p", "adjusted"]
        ]
        for each in self.tests:
            if not each.reason:
                rows.append(
                    [
                        each.variable,
                        each.test,
                        f"{each.n_samples:,}",
                        f"{each.n_missing:,}",
                        f"{each.statistic:.4g}",
                        self.p_text(each.p_value),
                        self.adjusted_text(each.p_adjusted),
                    ]
                )
        return text_table(rows)


def _table_of_hazards(hazards: pd.DataFrame) -> str:
    """Return hazard ratios as a text table."""
    rows = [["hazard ratios", "ratio", "95% interval", "p"]]
    for each in hazards.itertuples():
        interval = f"{each.low:.2f} to {each.high:.2f}"
        ratio = f"{each.hazard_ratio:.2f}"
        rows.append([each.term, ratio, interval, p_text(each.p_value)])
    return text_table(rows)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON takes them, unknown values as None."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def p_of_permutations(value: float, n_permutations: int, sign: str = "") -> str:
    """Return a p-value after a sign, as a bound if it is the least of permutations."""
    least = 1 / (1 + n_permutations)
    if value < (1 - ROUNDING) * least:
        return p_text(value, sign)
    return p_of_draws(value, least, sign)
