"""All that is in the way of a fit of some files, and the command that cures it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mkclust.cli.errors import CommandError, one_line, typed
from mkclust.cli.groups import take_groups
from mkclust.cli.inputs import (
    Input,
    View,
    covariates_of,
    file_name,
    kept_ids,
    list_views,
    read_file,
    refuse_square,
    tables_of,
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
from mkclust.data.orientation import turned_tables
from mkclust.data.tables import as_table
from mkclust.datasets.dataset import DatasetError
from mkclust.exceptions import (
    InputError,
    OutcomeColumnsWarning,
    UnknownCellsWarning,
)
from mkclust.index import has_ids

# Warnings that are given with the names of files and options instead.
SAID_OF_FILES = (OutcomeColumnsWarning, UnknownCellsWarning)


class Obstacle(NamedTuple):
    """What is in the way, in words, and the options that cure it, if any do."""

    text: str
    cures: tuple[Cure, ...] = ()  # of files
    stops: bool = True  # whether a fit is refused

    @property
    def options(self) -> list[str]:
        """The options as they are typed."""
        return [word for cure in self.cures for word in _as_typed(cure)]

    def describe(self) -> str:
        """Return the obstacle with its cure on one line."""
        if not self.cures:
            return self.text
        advice = f"pass {shlex.join(self.options)}"
        parameters = {cure.parameter for cure in self.cures}
        if "join" in parameters:
            advice += ", or --join inner to keep those that all have"
        if "annotate" in parameters:
            advice += " to compare the clusters by them"
        return f"{self.text}: {advice}"


class ObstaclesError(CommandError):
    """All that is in the way of a fit, with the command that cures what it can."""

    def __init__(self, found: Sequence[Obstacle], command: str) -> None:
        items = [each.describe() for each in found if each.stops]
        if len(found) == 1:
            super().__init__(items[0])
            return
        if len(items) == 1:
            super().__init__(items[0])
            self.lines = []
        else:
            super().__init__(f"{len(items)} things are in the way of a fit:")
            self.lines = [f"  {k}. {line}" for k, line in enumerate(items, start=1)]
        self.lines += [f"  also: {each.describe()}" for each in found if not each.stops]
        if any(each.cures for each in found):
            self.lines += [self._last(found), command]

    @staticmethod
    def _last(found: Sequence[Obstacle]) -> str:
        """Return what the command does, in words."""
        if all(each.cures for each in found):
            return "All of it is done by:"
        return "What options can do is done by:"


def explain(request: Request, error: ValueError) -> Exception:
    """Return all that is in the way of a fit, if an error is of the input."""
    if not isinstance(error, InputError | DatasetError):
        return error
    found = find_all(request)
    if not any(each.stops for each in found):
        return error
    return ObstaclesError(
        found, command_with([c for each in found for c in each.cures])
    )


def find_all(request: Request) -> list[Obstacle]:
    """Return all that is in the way, and then what else should be looked at.

    What shows only after advice was taken is advice, too.
    """
    everything = _find_in_rounds(request)
    found = [each for each in everything if each.stops]
    advice = [each for each in everything if not each.stops]
    cures = [cure for each in everything for cure in each.cures]
    if advice:
        later = _find_in_rounds(with_cures(request, cures))
        advice += [each._replace(stops=False) for each in later if each.stops]
    return list(dict.fromkeys([*found, *advice]))


def _find_in_rounds(request: Request) -> list[Obstacle]:
    """Return what is in the way, after each cure what shows then."""
    found: list[Obstacle] = []
    # What is cured may let other things show, such as ids after a table is turned.
    most_rounds = 4
    for _ in range(most_rounds):
        known = {each.text for each in found}
        new = [each for each in _look(request) if each.text not in known]
        found += new
        cures = [cure for each in new if each.stops for cure in each.cures]
        if not cures:
            break
        request = with_cures(request, cures)
    return found + _look_beside(request)


def with_cures(request: Request, cures: Sequence[Cure]) -> Request:
    """Return a request with more options."""
    changes: dict[str, Any] = {}

    # Commands that fit take these options for all files alike.
    of_all = ("join", "impute", "annotate")
    for parameter, value, file in cures:
        if parameter in of_all:
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
    for cure in dict.fromkeys(cures):
        if cure.parameter == "annotate" and cure.table is not None:
            words.remove(cure.value)  # it is not clustered
        if cure.parameter in ("join", "impute"):
            words = _without(words, f"--{cure.parameter}")
        words += _as_typed(cure)
    return shlex.join(["mkclust", *words])


def _without(words: list[str], option: str) -> list[str]:
    """Return the words of a command without an option and its value."""
    if option not in words:
        return words
    place = words.index(option)
    return words[:place] + words[place + 2 :]


def _as_typed(cure: Cure) -> list[str]:
    """Return a cure as an option and its value."""
    value = cure.value
    if cure.table is not None and cure.parameter != "annotate":
        value = f"{cure.table}={value}"
    return [f"--{cure.parameter.replace('_', '-')}", value]


def _look(request: Request) -> list[Obstacle]:
    """Return what is in the way of files as they are read."""
    inputs: list[Input] = []
    found: list[Obstacle] = []
    unread: list[tuple[str, str]] = []
    for text in request.inputs:
        try:
            inputs.append(read_file(text, request))
        except (DatasetError, CommandError) as error:
            unread.append((text, one_line(error)))

    for text, reason in unread:
        turned = _read_turned(text, request, inputs)
        if turned is None:
            found.append(Obstacle(reason))
        else:
            inputs.append(turned)
            cure = Cure("samples_in", "columns", file_name(text))
            found.append(
                Obstacle(f"{file_name(text)}: has samples in columns", (cure,))
            )
    if not inputs or any(each.data.precomputed for each in inputs):
        return found
    return found + _look_at(request, _without_groups(request, inputs))


def _read_turned(text: str, request: Request, inputs: list[Input]) -> Input | None:
    """Return a file that cannot be read with its columns as samples, if they are."""
    try:
        turned = read_file(text, request, None, samples_in="columns")
    except (DatasetError, CommandError):
        return None
    views = list_views([turned])
    ids = {str(name) for view in views for name in view.ids}
    others = [view.ids for view in list_views(inputs) if view.ids is not None]
    if any(2 * sum(str(name) in ids for name in each) > len(each) for each in others):
        return turned
    return None


def _without_groups(request: Request, inputs: list[Input]) -> list[Input]:
    """Return inputs without the column of groups, if there is one."""
    if request.groups is None:
        return inputs
    try:
        parts, _ = take_groups(
            {each.text: each.data for each in inputs}, request.groups, {}
        )
    except CommandError:
        return inputs  # it may be among the variables of --annotate
    pairs = zip(inputs, parts, strict=True)
    return [each._replace(data=data) for each, data in pairs]


def _look_at(request: Request, inputs: list[Input]) -> list[Obstacle]:
    """Return what is in the way of tables that were read."""
    views = list_views(inputs)
    found = []
    if request.asked_kernels in (AUTO, "gaussian"):
        for view in views:
            try:
                refuse_square(view, is_alone=len(views) == 1)
            except InputError as error:
                found.append(Obstacle(one_line(error)))

    files = {view.name: file_name(view.file) for view in views}
    tables = tables_of(views)
    square = {name for name, table in tables.items() if columns_are_ids(table.values)}
    certain = {each.name for each in turned_tables(tables) if each.is_certain}
    options = TableOptions(join=request.join or "exact", impute=request.impute)
    for finding in find_obstacles(tables, options, square):
        turns = [cure for cure in finding.cures if cure.parameter == "samples_in"]
        if turns and finding.table in certain:
            continue  # the command does it by itself
        found.append(_of_files(finding, files, request))
    return found


def _is_of_survival_alone(finding: Finding) -> bool:
    """Return whether a table has nothing to cluster on, and belongs to --annotate."""
    return finding.stops and any(each.parameter == "annotate" for each in finding.cures)


def _look_beside(request: Request) -> list[Obstacle]:
    """Return what is in the way of tables of the same samples that are not clustered.

    What is in the way of the others has been cured.
    """
    try:
        views = list_views([read_file(text, request) for text in request.inputs])
    except (DatasetError, CommandError):
        return []
    readers = {
        request.annotate: read_variables,
        request.adjust_for: _read_covariates,
    }
    found = []
    for text, read in readers.items():
        if text is None:
            continue
        try:
            tables = read(request) or {}
        except (DatasetError, CommandError) as error:
            found.append(Obstacle(one_line(error)))
            continue
        for table in tables.values():
            found += _match(request, text, table, views)
            if text == request.annotate:
                found += _marks_of_variables(request, table)
    if request.adjust_for is not None:
        found += _look_at_covariates(request)
    return found


def _read_covariates(request: Request) -> dict[str, Any]:
    """Return the table that covariates are columns of, by its name."""
    text = request.adjust_for or ""
    return {"adjust": covariates_of(text.rpartition("::")[0] or text, request)}


def _match(
    request: Request, text: str, table: Any, views: Sequence[View]
) -> list[Obstacle]:
    """Return what keeps the rows of a table from being matched with samples."""
    index = kept_ids(views, request.join)
    if index is None:
        index = len(views[0].array)
    file = file_name(text)
    reason = why_unmatched(table, index)
    if not reason:
        return []
    files = {view.name: file_name(view.file) for view in views} | {file: file}
    others = {
        name: each for name, each in tables_of(views).items() if has_ids(each.index)
    }
    own = as_table(getattr(table, "obs", table), file)
    found = find_unmatched(file, own, others)
    if not found:
        return [Obstacle(f"{file}: {one_line(reason)}")]
    return [_of_files(each, files, request) for each in found]


def _look_at_covariates(request: Request) -> list[Obstacle]:
    """Return what is in the way of removing covariates from views."""
    file = file_name(request.adjust_for or "")
    try:
        covariates = covariates_of(request.adjust_for or "", request)
    except (DatasetError, CommandError):
        return []  # which is in the list already
    found = find_in_covariates(file, as_table(covariates, file), request.impute)
    return [_of_files(each, {file: file}, request) for each in found]


def advice_on(
    request: Request, inputs: Sequence[Input], variables: Mapping[str, Any] | None
) -> list[str]:
    """Return what stops no fit of inputs, and should be looked at, with options."""
    views = list_views(inputs)
    tables = tables_of(views)
    square = {name for name, table in tables.items() if columns_are_ids(table.values)}
    files = {view.name: file_name(view.file) for view in views}
    found = [_of_files(each, files, request) for each in find_advice(tables, square)]
    for table in (variables or {}).values():
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
        file = None
        if cure.table is not None:
            file = files[cure.table]
        if cure.parameter != "annotate":
            found.append(cure._replace(table=file))
        elif request.annotate is None:
            path = next(text for text in request.inputs if file_name(text) == file)
            is_moved = _is_of_survival_alone(finding)
            found.append(Cure("annotate", path, file if is_moved else None))
    if not found:
        advice = finding.remedy or finding.advice
        return Obstacle(f"{text}; {advice}", stops=finding.stops)
    return Obstacle(text, tuple(found), finding.stops)
