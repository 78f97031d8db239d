"""Whether clusters differ in variables that were not clustered on, to be read or handed on."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from mkclust.text import printable


@dataclass(frozen=True)
class VariableTest:
    """One variable, tested against the clusters.

    Attributes
    ----------
    variable : str
        Its name; of survival, the columns of times and of events.
    test : {"chi-square", "Kruskal-Wallis", "log-rank"}
        Of categories, numbers and survival.
    statistic : float
        That of the test; NaN where it was not made.
    p_value : float
        By permutations of the clusters; NaN where it was not tested.
    p_adjusted : float
        Corrected for the number of variables, by Benjamini and Hochberg.
    n_samples, n_missing : int
        Samples whose values are known, and those whose are not.
    reason : str
        Why it was not tested; empty where it was.
    """

    variable: str
    test: str
    statistic: float
    p_value: float
    p_adjusted: float
    n_samples: int
    n_missing: int
    reason: str = ""


@dataclass(frozen=True)
class Annotation:
    """Variables tested against the clusters, as `mkclust.annotate` does.

    Attributes
    ----------
    tests : tuple of VariableTest
        A variable each: survival, then numbers and categories, as they stand in the table.
    n_permutations : int
        Permutations of the clusters; no p-value is smaller than one over one more than these.
    notes : tuple of str
        What was left out, and why; and what cannot be known of what was clustered on.
    """

    tests: tuple[VariableTest, ...]
    n_permutations: int
    notes: tuple[str, ...] = ()

    def to_frame(self) -> Any:
        """Return the tests as a pandas data frame, one row a variable.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        names = list(VariableTest.__dataclass_fields__)
        return pd.DataFrame([asdict(test) for test in self.tests], columns=names)

    def to_dict(self) -> dict[str, Any]:
        """Return the tests as JSON takes them, what is not known as None.

        Returns
        -------
        dict
        """
        tests = [
            {key: None if value != value else value for key, value in asdict(test).items()}
            for test in self.tests
        ]
        return {"tests": tests, "n_permutations": self.n_permutations, "notes": list(self.notes)}

    def __str__(self) -> str:
        """Return the tests as a text table."""
        cells = [["variable", "test", "samples", "missing", "statistic", "p", "adjusted"]]
        for test in self.tests:
            numbers = [f"{test.n_samples:,}", f"{test.n_missing:,}"]
            if test.reason:
                numbers += ["not tested: " + printable(test.reason), "", ""]
            else:
                numbers += [f"{test.statistic:.4g}", _short(test.p_value), _short(test.p_adjusted)]
            cells.append([printable(test.variable), test.test, *numbers])
        tested = [row for row in cells if not row[4].startswith("not")]
        widths = [max(len(row[at]) for row in cells) for at in range(4)]
        widths += [max(len(row[at]) for row in tested) for at in range(4, 7)]
        lines = ["  ".join(_pad(row[at], widths[at], at) for at in range(7)) for row in cells]
        end = (
            f"p-values are of {self.n_permutations:,} permutations of the clusters; adjusted for "
            "the number of variables by Benjamini and Hochberg."
        )
        return "\n".join([*(line.rstrip() for line in lines), end, *map(printable, self.notes)])


def _pad(cell: str, width: int, place: int) -> str:
    """Return a cell as wide as its column: words to the left, numbers to the right."""
    return cell.ljust(width) if place < 2 or cell.startswith("not") else cell.rjust(width)


def _short(value: float) -> str:
    """Return a p-value in two digits."""
    return f"{value:.2g}" if math.isfinite(value) else "-"
