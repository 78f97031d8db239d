"""All that is in the way of a fit of some files, and the command that cures it."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from mkclust.cli.errors import CommandError, one_line, typed
from mkclust.cli.inputs import (
    Input,
    View,
    certain_turns,
    covariates_of,
    file_name,
    kept_ids,
    list_views,
    read_file,
    tables_of,
    undeclared_kernels,
    without_column,
)
from mkclust.cli.options import AUTO, Request
from mkclust.cli.variables import read_variables, why_unmatched
from mkclust.data.findings import (
    Cure,
    Finding,
    find_advice,
    find_in_covariates,
    find_marks,
    find_obstacles,
    find_unmatched,
)
from mkclust.data.join import columns_are_ids
from mkclust.data.options import TableOptions
from mkclust.data.tables import Table, as_table
from mkclust.datasets.dataset import DatasetError
from mkclust.exceptions import (
    InputError,
    OutcomeColumnsWarning,
    UnknownCellsWarning,
)
from mkclust.index import has_ids

# Warnings that are given with the names of files and options instead.
SAID_OF_FILES = (OutcomeColumnsWarning, UnknownCellsWarning)
# Options that are for all files alike, or are given the whole path of one.
OF_ALL = ("join", "impute", "annotate")


class Obstacle(NamedTuple):
    """What is in the way, in words, and the options that cure it, if any do."""

    text: str
    cures: tuple[Cure, ...] = ()  # of files
    stops: bool = True  # whether a fit is refused

    def describe(self) -> str:
        """Return the obstacle with its cure on one line."""
        if not self.cures:
            return self.text
        options = [word for cure in self.cures for word in _as_typed(cure)]
        advice = f"{self.text}: pass {shlex.join(options)}"
        if "--join" in options:
            advice += ", or --join inner to keep those that all have"
        if "--annotate" in options:
            advice += " to compare the clusters by them"
        return advice


class ObstaclesError(CommandError):
    """All that is in the way of a fit, with the command that cures what it can."""

    def __init__(self, found: Sequence[Obstacle]) -> None:
        items = [each.describe() for each in found if each.stops]
        lines = []
        if len(items) > 1:
            lines = [f"  {k}. {line}" for k, line in enumerate(items, start=1)]
            items = [f"{len(items)} things are in the way of a fit:"]
        super().__init__(items[0])
        lines += [f"  also: {each.describe()}" for each in found if not each.stops]
        cures = cures_of(found)
        if cures and len(found) > 1:
            is_all = all(each.cures for each in found)
            what = "All of it" if is_all else "What options can do"
            lines += [f"{what} is done by:", command_with(cures)]
        self.lines = lines


def cures_of(found: Iterable[Obstacle]) -> list[Cure]:
    """Return the cures of several obstacles, each once."""
    return list(dict.fromkeys(cure for each in found for cure in each.cures))


def explain(request: Request, error: ValueError) -> Exception:
    """Return all that is in the way of a fit, if an error is of the input."""
    if not isinstance(error, InputError | DatasetError):
        return error
    found = find_all(request)
    if not any(each.stops for each in found):
        return error
    return ObstaclesError(found)


def find_all(request: Request) -> list[Obstacle]:
    """Return all that is in the way, and then what else should be looked at.

    What shows only after advice was taken is advice, too.
    """
    everything = _find(request)
    found = [each for each in everything if each.stops]
    advice = [each for each in everything if not each.stops]
    if advice:
        later = _find(with_cures(request, cures_of(everything)))
        advice += [each._replace(stops=False) for each in later if each.stops]
    return list(dict.fromkeys([*found, *advice]))


def _find(request: Request) -> list[Obstacle]:
    """Return what is in the way of tables, and of those beside them, once cured."""
    found = _look(request)
    cured = with_cures(request, cures_of(each for each in found if each.stops))
    return found + _look_beside(cured)


def with_cures(request: Request, cures: Sequence[Cure]) -> Request:
    """Return a request with more options."""
    changes: dict[str, Any] = {}
    for parameter, value, file in cures:
        if parameter in OF_ALL:
            changes[parameter] = value
            if file is not None:
                changes["inputs"] = [text for text in request.inputs if text != value]
        else:
            before = changes.get(parameter, getattr(request, parameter))
            changes[parameter] = (*before, f"{file}={value}")
    return replace(request, **changes)


def command_with(cures: Sequence[Cure]) -> str:
    """Return the command as it was typed, with more options; one that clusters."""
    words = list(typed.get())
    if words[:1] == ["inspect"]:
        words = ["cluster", *(word for word in words[1:] if word != "--json")]
        words += ["-k", AUTO]
    for cure in cures:
        if cure.parameter == "annotate" and cure.table is not None:
            words.remove(cure.value)  # it is not clustered
        option, value = _as_typed(cure)
        if cure.parameter in OF_ALL and option in words:  # typed with another value
            words[words.index(option) + 1] = value
        else:
            words += [option, value]
    return shlex.join(["mkclust", *words])


def _as_typed(cure: Cure) -> list[str]:
    """Return a cure as an option and its value."""
    value = cure.value
    if cure.parameter not in OF_ALL:
        value = f"{cure.table}={value}"
    return [f"--{cure.parameter.replace('_', '-')}", value]


def _look(request: Request) -> list[Obstacle]:
    """Return what is in the way of files as they are read."""
    inputs: list[Input] = []
    unread: dict[str, str] = {}
    for text in request.inputs:
        try:
            inputs.append(read_file(text, request))
        except (DatasetError, CommandError) as error:
            unread[text] = one_line(error)

    found: list[Obstacle] = []
    ids = {str(name) for view in list_views(inputs) for name in _ids_of(view)}
    for text, reason in unread.items():
        obstacle = Obstacle(reason)
        with suppress(DatasetError, CommandError):
            turned = read_file(text, request, None, samples_in="columns")
            if ids.intersection(map(str, _ids_of(list_views([turned])[0]))):
                inputs.append(turned)
                file = file_name(text)
                cure = Cure("samples_in", "columns", file)
                obstacle = Obstacle(f"{file}: has samples in columns", (cure,))
        found.append(obstacle)
    if not inputs or any(each.data.precomputed for each in inputs):
        return found
    if request.groups is not None:
        inputs = [without_column(each, request.groups) for each in inputs]
    return found + _look_at(request, list_views(inputs))


def _ids_of(view: View) -> Any:
    """Return the ids of a view, nothing if it has none."""
    return () if view.ids is None else view.ids


def _look_at(request: Request, views: list[View]) -> list[Obstacle]:
    """Return what is in the way of tables that were read."""
    found = [Obstacle(each) for each in undeclared_kernels(request, views)]
    tables, square, files = _tables_of(views)
    turned = certain_turns(views)
    options = TableOptions(join=request.join or "exact", impute=request.impute)
    for finding in find_obstacles(tables, options, square):
        is_turned = any(cure.parameter == "samples_in" for cure in finding.cures)
        # The command turns some tables by itself.
        if not (is_turned and finding.table in turned):
            found.append(_of_files(finding, files, request))
    return found


def _tables_of(
    views: Sequence[View],
) -> tuple[dict[str, Table], set[str], dict[str, str]]:
    """Return views as tables, which of them are of pairs, and their files."""
    tables = tables_of(views)
    square = {name for name, table in tables.items() if columns_are_ids(table.values)}
    return tables, square, {view.name: file_name(view.file) for view in views}


def _look_beside(request: Request) -> list[Obstacle]:
    """Return what is in the way of tables of the same samples that are not clustered.

    What is in the way of the others has been cured.
    """
    try:
        views = list_views([read_file(text, request) for text in request.inputs])
    except (DatasetError, CommandError):
        return []
    found = []
    try:
        for table in read_variables(request).values():
            found += _match(request, request.annotate or "", table, views)
            found += _marks_of_variables(request, table)
        text = request.adjust_for
        if text is not None:
            whole = covariates_of(text.rpartition("::")[0] or text, request)
            found += _match(request, text, whole, views)
            file = file_name(text)
            table = as_table(covariates_of(text, request), file)
            findings = find_in_covariates(file, table, request.impute)
            found += [_of_files(each, {file: file}, request) for each in findings]
    except (DatasetError, CommandError) as error:
        found.append(Obstacle(one_line(error)))
    return found


def _match(
    request: Request, text: str, table: Any, views: Sequence[View]
) -> list[Obstacle]:
    """Return what keeps the rows of a table from being matched with samples."""
    index = kept_ids(views, request.join)
    if index is None:
        index = len(views[0].array)
    reason = why_unmatched(table, index)
    if not reason:
        return []
    file = file_name(text)
    files = {view.name: file_name(view.file) for view in views} | {file: file}
    others = {
        name: each for name, each in tables_of(views).items() if has_ids(each.index)
    }
    own = as_table(getattr(table, "obs", table), file)
    found = find_unmatched(file, own, others)
    if not found:
        return [Obstacle(f"{file}: {one_line(reason)}")]
    return [_of_files(each, files, request) for each in found]


def advice_on(
    request: Request, inputs: Sequence[Input], variables: Mapping[str, Any]
) -> list[str]:
    """Return what stops no fit of inputs, and should be looked at, with options."""
    tables, square, files = _tables_of(list_views(inputs))
    found = [_of_files(each, files, request) for each in find_advice(tables, square)]
    for table in variables.values():
        found += _marks_of_variables(request, table)
    return [each.describe() for each in dict.fromkeys(found)]


def _marks_of_variables(request: Request, table: Any) -> list[Obstacle]:
    """Return which cells of variables seem to mean that a value is not known."""
    file = file_name(request.annotate or "")
    own = as_table(getattr(table, "obs", table), file)
    if not own.is_frame:
        return []
    found = find_marks(file, own)
    return [_of_files(each, {file: file}, request) for each in found]


def _of_files(finding: Finding, files: Mapping[str, str], request: Request) -> Obstacle:
    """Return a finding about tables as one about their files."""
    text = f"{files[finding.table]}: {finding.found}"
    found = []
    for cure in finding.cures:
        file = None if cure.table is None else files[cure.table]
        if cure.parameter != "annotate":
            found.append(cure._replace(table=file))
        elif request.annotate is None:
            path = next(text for text in request.inputs if file_name(text) == file)
            # A file of survival alone has nothing to cluster on, and moves there.
            found.append(Cure("annotate", path, file if finding.stops else None))
    if not found:
        advice = finding.remedy or finding.advice
        return Obstacle(f"{text}; {advice}", stops=finding.stops)
    return Obstacle(text, tuple(found), finding.stops)
