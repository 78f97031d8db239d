"""All that is in the way of a fit of tables, found at once, with a cure for each."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from mkclust.data.check import in_memory
from mkclust.data.encode import learn_columns
from mkclust.data.no_features import (
    about_ids,
    has_only_survival,
    id_columns,
    is_own_column,
    leave_out_outcomes,
    outcome_columns,
)
from mkclust.data.options import TableOptions
from mkclust.data.orientation import turn, turned_tables
from mkclust.data.tables import Column, Table, Tables, Titles, are_numbers, read_column
from mkclust.exceptions import silence
from mkclust.index import has_ids, shared_length, spelled_otherwise, written_like
from mkclust.text import count, join_words


class Cure(NamedTuple):
    """A parameter that removes what is in the way, of one table or of all."""

    parameter: str  # of `load`, or of an estimator
    value: str
    table: str | None = None


@dataclass(frozen=True)
class Finding:
    """One thing in the way of a fit: the table, what was found, and what to do."""

    table: str
    found: str  # what follows the name of the table
    advice: str  # what to do in Python, after "pass" or the like
    cures: tuple[Cure, ...] = ()
    # What to do in a file, if no parameter helps.
    remedy: str = ""
    # Whether a fit is refused; if not, it may be of something else than was meant.
    stops: bool = True


def list_findings(findings: Collection[Finding], titles: Titles) -> str:
    """Return findings as the message of an error: one on one line, or a list."""
    lines = [
        f"{titles[finding.table]} {finding.found}: {finding.advice}"
        for finding in findings
    ]
    if len(lines) == 1:
        return lines[0]
    return "\n- ".join([f"{len(lines)} things are in the way of a fit:", *lines])


def find_obstacles(
    tables: Tables, options: TableOptions, of_pairs: Collection[str] = ()
) -> list[Finding]:
    """Return all that is in the way of a fit, as if each were cured before the next.

    Columns of some tables are samples, as those of distances.
    """
    search = _Search(dict(tables), options, of_pairs)
    with silence():
        search.survival()
        search.orientation()
        search.ids()
        search.columns()
        search.join()
        search.cells()
    return search.findings


def find_advice(tables: Tables, of_pairs: Collection[str] = ()) -> list[Finding]:
    """Return what stops no fit, and may make it one of something else than meant."""
    search = _Search(dict(tables), TableOptions(), of_pairs)
    for name in search.frames:
        search.unmark(name)
        search.outcomes(name)
    return [each for each in search.findings if not each.stops]


def find_marks(name: str, table: Table) -> list[Finding]:
    """Return cells of a table that is not clustered that seem to mean: not known."""
    search = _Search({name: table}, TableOptions(), ())
    search.unmark(name)
    return [replace(each, stops=False) for each in search.findings]


def find_unmatched(name: str, table: Table, others: Tables) -> list[Finding]:
    """Return why no row of a table is a sample of others that are clustered."""
    tables = {**others, name: table}
    for reference in (None, *others):
        search = _Search(tables, TableOptions(join="outer"), ())
        with silence():
            search.ids(reference)
        # Without a cure, it is the table that has other ids, not those with which it is
        # compared.
        if reference or any(each.cures for each in search.findings):
            break
    return [
        finding for finding in search.findings if finding.cures or finding.table == name
    ]


def find_in_covariates(name: str, table: Table, impute: str | None) -> list[Finding]:
    """Return what is in the way of removing covariates from views."""
    search = _Search({name: table}, TableOptions(impute=impute), ())
    with silence():
        search.columns()
        search.cells()
    return search.findings


class _Search:
    """Tables that are cured one by one, and what was found on the way."""

    def __init__(
        self, tables: dict[str, Table], options: TableOptions, of_pairs: Collection[str]
    ) -> None:
        self.tables = tables
        self.options = options
        self.of_pairs = of_pairs
        self.findings: list[Finding] = []
        # Tables whose ids are not those of the others.
        self.unmatched: set[str] = set()

    @property
    def frames(self) -> dict[str, Table]:
        """The tables whose columns have names and are features."""
        return {
            name: table
            for name, table in self.tables.items()
            if table.is_frame and name not in self.of_pairs
        }

    @property
    def indexes(self) -> dict[str, pd.Index]:
        """The ids of the tables that have some, on one level."""
        return {
            name: table.index
            for name, table in self.tables.items()
            if has_ids(table.index) and table.index.nlevels == 1
        }

    def add(
        self,
        table: str,
        found: str,
        advice: str,
        *cures: Cure,
        remedy: str = "",
        stops: bool = True,
    ) -> None:
        """Note what was found."""
        self.findings.append(Finding(table, found, advice, cures, remedy, stops))

    def orientation(self) -> None:
        """Turn the tables whose columns are samples."""
        for name, other, _ in turned_tables(self.tables):
            cure = Cure("samples_in", "columns", name)
            found = f"has samples in its columns, those of {other!r}"
            self.add(name, found, "pass its transpose, frame.T", cure)
            self.tables[name] = turn(self.tables[name])

    def ids(self, reference: str | None = None) -> None:
        """Find the column of ids, cut ids to their common beginning, name others.

        Ids are compared with those of one table, by default the shortest.
        """
        self._find_columns_of_ids()
        indexes = self.indexes
        if len(indexes) < 2:
            return

        for name, index in indexes.items():
            twice = index[index.duplicated()]
            if len(twice):
                self.add(
                    name,
                    f"has {count(len(twice), 'id')} more than once, such as "
                    f"{twice[0]!r}",
                    "keep one row per id, as frame[~frame.index.duplicated()] does",
                    remedy="keep one row per id",
                )

        if reference is None:
            sizes = {
                name: np.mean([len(str(each)) for each in ids])
                for name, ids in indexes.items()
            }
            reference = min(sizes, key=lambda name: sizes[name])
        for name, index in indexes.items():
            if name != reference:
                self._compare(name, index, reference, indexes[reference])

    def _find_columns_of_ids(self) -> None:
        """Make an index of the columns that hold the ids of other tables."""
        indexes = self.indexes
        if not indexes:
            return
        other, ids = next(iter(indexes.items()))
        for name, table in self.frames.items():
            if name in indexes or not len(table.values):
                continue

            column = _column_of_ids(table.values, list(indexes.values()))
            if column is not None:
                found = f"has no ids, and its column {column!r} has those of {other!r}"
                cure = Cure("id", str(column), name)
                self.add(name, found, f"pass frame.set_index({column!r})", cure)
                self._keep(name, table.values.set_index(column))
            elif ids.inferred_type != "integer":
                self.add(
                    name,
                    f"has no ids, and {other!r} has some, such as {ids[0]!r}",
                    "pass frame.set_index(column) if a column holds its ids, or "
                    f"frame.set_axis(other.index) if its rows are those of {other!r}",
                    remedy=f"add a column with the ids of {other!r}, or name it if "
                    "there is one",
                )

    def _compare(
        self, name: str, index: pd.Index, reference: str, ids: pd.Index
    ) -> None:
        """Compare the ids of a table with those of another."""
        names = written_like(index, ids).unique().tolist()
        others = ids.unique().tolist()
        share_some = not set(names).isdisjoint(others)
        length = shared_length(names, others)
        if not share_some and length is None:
            self.unmatched.add(name)
        alike = spelled_otherwise(names, others)
        if alike and (self.options.join == "exact" or not share_some):
            self.add(
                name,
                f"has other ids than {reference!r}: {alike}",
                "write them alike",
                remedy="write them alike in both files",
            )
            return

        if length is not None:
            self._cut(name, length, f"longer than those of {reference!r}")
            self._cut(reference, length, f"longer than what {name!r} shares with them")
        elif not share_some:
            self.add(
                name,
                f"has ids such as {names[0]!r}, none of which is in common with "
                f"{reference!r} ({others[0]!r}, ...)",
                "give the same samples the same ids",
                remedy="give the same samples the same ids in both files",
            )

    def _cut(self, name: str, length: int, why: str) -> None:
        """Cut the ids of a table, if they are longer."""
        table = self.tables[name]
        if table.index.str.len().max() <= length:
            return
        self.add(
            name,
            f"has ids such as {table.index[0]!r}, {why}",
            f"keep {length} characters by frame.index = frame.index.str[:{length}]",
            Cure("trim_ids", str(length), name),
        )
        index = table.index.str[:length]
        self.tables[name] = replace(table, index=index)
        if table.is_frame:
            self._keep(name, table.values.set_axis(index))

    def columns(self) -> None:
        """Drop columns that are no features, and make numbers of what is mostly so."""
        are_bare = not self.indexes
        for name, table in self.frames.items():
            own = [c for c in table.values.columns if is_own_column(c)]
            self._drop(name, own, "of an earlier clustering")

            self.unmark(name)
            self.outcomes(name)
            for column in id_columns(self.tables[name].values):
                frame = self.tables[name].values
                if are_bare and not has_ids(frame.index):
                    cure = Cure("id", str(column), name)
                    self._keep(name, frame.set_index(column))
                else:
                    cure = Cure("drop", str(column), name)
                    self._keep(name, frame.drop(columns=[column]))
                self.add(name, *about_ids(column), cure)

            try:
                kept = leave_out_outcomes({name: self.tables[name]}, {name: name})
                _, unusable = learn_columns(kept[name], name)
            except ValueError:
                continue  # said by the reader
            self._mend(name, unusable)

    def survival(self) -> None:
        """Note tables of survival alone, and look at the others only."""
        frames = self.frames.items()
        alone = [name for name, table in frames if has_only_survival(table.values)]
        if len(alone) == len(self.tables):
            return
        for name in alone:
            self.outcomes(name)
            del self.tables[name]

    def outcomes(self, name: str) -> None:
        """Note columns of survival, which are not clustered on."""
        columns = outcome_columns(self.tables[name].values)
        if not columns:
            return
        listed = join_words(map(repr, columns))
        if has_only_survival(self.tables[name].values):
            self.add(
                name,
                f"has only columns of survival, {listed}, which are not clustered on",
                "leave it out, and pass it to annotate",
                Cure("annotate", name, name),
                remedy="give it by --annotate instead",
            )
            return
        self.add(
            name,
            f"has the columns {listed} of survival, which are not clustered on",
            "pass them to annotate to compare the clusters by them",
            Cure("annotate", name, name),
            remedy="rename them to cluster on them",
            stops=False,
        )

    def unmark(self, name: str) -> None:
        """Note cells that seem to mean that nothing is known, and empty them.

        Categories keep them as a level of their own, unless the user says otherwise.
        """
        values = self.tables[name].values.copy(deep=False)
        marked = {}
        for place, is_number in enumerate(are_numbers(values)):
            if is_number or isinstance(values.dtypes.iloc[place], pd.CategoricalDtype):
                continue
            column = read_column(values, place)
            if column.unknown:
                marked[place] = column
        if not marked:
            return

        marks = sorted({mark for each in marked.values() for mark in each.unknown})
        refused = [place for place, column in marked.items() if column.content]
        self.add(
            name,
            f"has the cells {join_words(map(repr, marks))} in "
            f"{count(len(marked), 'column')} "
            f"({join_words(repr(each.name) for each in marked.values())}), which seem "
            "to mean that a value is not known",
            f"pass missing={marks!r} to load, or replace them by NaN",
            *(Cure("missing", mark, name) for mark in marks),
            stops=bool(refused),
        )
        for place in refused:
            cells = values.iloc[:, place]
            known = cells.mask(cells.isin(marks), None)
            numbers = pd.to_numeric(known, errors="coerce")
            if numbers.notna().equals(known.notna()):
                known = numbers
            values.isetitem(place, known)
        self._keep(name, values)

    def _keep(self, name: str, frame: pd.DataFrame) -> None:
        """Go on with a table in which something was cured."""
        self.tables[name] = Table(frame, frame.index)

    def _drop(self, name: str, columns: list[Any], what: str) -> None:
        """Drop columns of one kind."""
        if not columns:
            return
        self.add(
            name,
            f"has the column{'s' * (len(columns) > 1)} "
            f"{join_words(map(repr, columns))} {what}",
            f"drop by frame.drop(columns={columns!r})",
            *(Cure("drop", str(column), name) for column in columns),
        )
        self._keep(name, self.tables[name].values.drop(columns=columns))

    def _mend(self, name: str, columns: list[Column]) -> None:
        """Drop dates and text, and take words among numbers for empty cells."""
        dates = [column.name for column in columns if column.kind == "date"]
        self._drop(name, dates, "of dates")

        # Words among numbers are taken for marks of empty cells if there are at most so
        # many.
        most_marks = 3
        others = {}
        for column in columns:
            marks = sorted(set(column.words))
            if column.kind == "date":
                continue
            if not 0 < len(marks) <= most_marks:
                others[column.name] = column.content
                continue

            self.add(
                name,
                f"has the column {column.name!r} of {column.content}",
                "make numbers of it by pd.to_numeric(column, errors='coerce'), or pass "
                f"missing={marks!r} to load",
                *(Cure("missing", mark, name) for mark in marks),
            )
            frame = self.tables[name].values.copy(deep=False)
            frame[column.name] = pd.to_numeric(frame[column.name], errors="coerce")
            self._keep(name, frame)

        contents = join_words(dict.fromkeys(others.values()))
        self._drop(name, [*others], f"of {contents}, neither numbers nor categories")

    def join(self) -> None:
        """Note that tables have other samples."""
        indexes = self.indexes
        for name in self.unmatched & indexes.keys():
            del indexes[name]
        if self.options.join != "exact" or len(indexes) < 2:
            return
        if any(not index.is_unique for index in indexes.values()):
            return

        first = next(iter(indexes.values()))
        ids = [
            sample
            for index in indexes.values()
            for sample in written_like(index, first)
        ]
        counts = Counter(ids)
        n_common = list(counts.values()).count(len(indexes))
        if n_common == len(counts):
            return

        name = min(indexes, key=lambda each: len(indexes[each]))
        self.add(
            name,
            f"lacks {len(counts) - len(indexes[name]):,} of {len(counts):,} samples, "
            f"and {n_common:,} are in all tables",
            "pass join='outer' to keep all samples, or join='inner' to keep those "
            "that all have",
            Cure("join", "outer"),
        )
        self.options = replace(self.options, join="outer")

    def cells(self) -> None:
        """Note empty and infinite cells of tables in memory."""
        for name, table in self.tables.items():
            values = table.values
            is_dense = in_memory(values) and not issparse(values)
            is_table = is_dense and values.ndim == 2
            if name in self.of_pairs or not is_table:
                continue

            frame = values
            if not table.is_frame:
                frame = pd.DataFrame(values, columns=table.names)
            numbers = frame.loc[:, are_numbers(frame)]
            infinite = _named_counts(numbers.isin([np.inf, -np.inf]))
            if infinite:
                self.add(
                    name,
                    f"has infinite entries in {infinite}",
                    "replace infinity yourself",
                    remedy="replace infinity in the file",
                )
            if len(self.tables) > 1:
                # Samples without any entry lack the table.
                frame = frame.dropna(how="all")
            empty = _named_counts(frame.isna())
            if empty and self.options.impute is None:
                self.add(
                    name,
                    f"has empty cells in {empty}",
                    "pass impute='median' to fill them, or drop these columns or rows",
                    Cure("impute", "median"),
                )


def _column_of_ids(frame: pd.DataFrame, indexes: list[pd.Index]) -> Any:
    """Return the first column of unique values that are ids of other tables."""
    for place, column in enumerate(frame.columns):
        values = frame.iloc[:, place]
        if any(_holds_ids(values, ids) for ids in indexes):
            return column

        texts = values.tolist()
        is_text = values.is_unique and all(isinstance(each, str) for each in texts)
        if is_text and any(shared_length(texts, ids.tolist()) for ids in indexes):
            return column
    return None


def _holds_ids(column: pd.Series, ids: Any) -> bool:
    """Return whether a column is unique, and mostly ids of another table."""
    if column.isna().any() or not column.is_unique:
        return False
    # A column holds the ids of another table if more than this share of its values are
    # among them.
    most = 0.5
    values = written_like(pd.Index(column), ids)
    return bool(values.isin(ids).mean() > most)


def _named_counts(marks: pd.DataFrame) -> str:
    """Return how many cells of which columns are marked, nothing if none is."""
    found = [
        f"{name!r}: {n_marked}"
        for name, n_marked in marks.sum().items()
        if n_marked > 0
    ]
    if not found:
        return ""
    return f"{count(len(found), 'column')} ({join_words(found)})"
