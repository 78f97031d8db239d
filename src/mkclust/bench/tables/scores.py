"""Tables of scores: every method on every data set, with the settings that it was given."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from mkclust.bench.rows import SCORES
from mkclust.bench.tables.formats import Cell, Table
from mkclust.bench.tables.outcomes import NOT_RUN, Outcome, check
from mkclust.bench.tables.paper import paper_score
from mkclust.bench.tables.results import Results, Run
from mkclust.bench.tables.statistics import FEWEST_PAIRS, like_the_best

TITLES = {"acc": "ACC", "nmi": "NMI", "purity": "Purity"}
CHOSEN = {
    "oracle": "settings chosen by the true classes",
    "default": "default settings",
    "stable": "settings chosen by stability, without classes",
}
EXPLAINED = {
    "oracle": "The true classes chose the setting of every method, for each score apart, as in the "
    "paper (which does not give its grids): an oracle. No clustering without classes can count on "
    "these scores. Where there is a grid, a few repetitions of each point choose which ones are "
    "repeated in full; the best of these is shown.",
    "default": "Every method with its default setting, that of its authors' code where it has one; "
    "no classes were used here.",
    "stable": "The setting of every method whose clusters change least from one random part of the "
    "samples to another; no classes were used.",
}
ABLATION = ("kamm-r", "kamm-a", "simplemkkm")
ORACLE_MARK = "o"
OPEN_MARK = "n"
ORACLE_NOTE = "chosen by the true classes in itself, and not to be had without them"
PROTOCOL = (
    "k is the number of true classes, for every method. NMI is divided by the larger of the two "
    "entropies."
)
PARENTHESES = (
    "In parentheses: the paper's figure, and the difference of ours from it. In the paper the true "
    "classes chose all settings that a method has."
)


@dataclass(frozen=True)
class MethodScore:
    """What a method reached on a data set in one score, among other methods.

    Attributes
    ----------
    method : str
    outcome : Outcome
    like_best : bool
        Whether it does not differ significantly from the best of them.
    paper : float or None
        The paper's figure; it has none of refits on parts of the samples.
    """

    method: str
    outcome: Outcome
    like_best: bool
    paper: float | None

    @property
    def marks(self) -> list[str]:
        """The marks of what is special about the outcome."""
        unfinished = bool(self.outcome.values) and not self.outcome.converged
        return [ORACLE_MARK] * self.outcome.oracle + [OPEN_MARK] * unfinished


def method_scores(
    run: Run, dataset: str, score: str, selection: str, methods: Sequence[str]
) -> list[MethodScore]:
    """Return what some methods reached on a data set in one score, in their order."""
    outcomes = {
        method: run.entry(dataset, method).outcome(score, selection) or Outcome(problem=NOT_RUN)
        for method in methods
    }
    alike = like_the_best({method: outcome.values for method, outcome in outcomes.items()})
    scores = []
    for method, outcome in outcomes.items():
        paper = paper_score(run.names.papers[dataset], method, score) if run.resample == 1 else None
        scores.append(MethodScore(method, outcome, method in alike, paper[0] if paper else None))
    return scores


def scored_methods(run: Run, selection: str) -> list[str]:
    """Return the methods that have a place in a table of a selection."""
    check(SCORES[0], selection)
    scored = {
        method
        for (_, method), entry in run.entries.items()
        if entry.outcome(SCORES[0], selection) is not None
    }
    return [method for method in run.methods if method in scored]


def score_tables(results: Results, selection: str) -> list[Table]:
    """Return the tables of scores for one way of choosing settings.

    Parameters
    ----------
    results : Results
        Of a benchmark.
    selection : {"oracle", "default", "stable"}
        Who chooses a method's setting: the true classes for each score apart, nobody, or the
        stability of the clusters, which needs no classes.

    Returns
    -------
    list of Table
        One for each way of resampling, which are never mixed. Data sets by methods in percent,
        with a block for each score; methods of the paper first, with the paper's figures.
    """
    tables = [score_table(run, selection) for run in results.runs.values()]
    return [table for table in tables if len(table.columns) > 1]


def score_table(run: Run, selection: str) -> Table:
    """Return the table of scores on one share of the samples; see `score_tables`."""
    methods = scored_methods(run, selection)
    name = f"scores-{selection}{run.suffix}"
    title = f"Scores in percent, {CHOSEN[selection]}{run.ending}"
    settings = _settings_note(run, methods) if selection != "default" else []
    return _table(name, title, run, methods, selection, [EXPLAINED[selection], *settings])


def ablation_table(run: Run) -> Table:
    """Return the table of SimpleMKKM and the two methods that change one piece of it.

    Parameters
    ----------
    run : Run
        Of a benchmark.

    Returns
    -------
    Table
        None of the three has hyper-parameters, so that nothing was chosen.
    """
    run = run.only(lambda row: row["method"] in ABLATION)
    if not run.entries:
        raise ValueError(f"There are no rows of {', '.join(ABLATION)}: run at least one of them.")
    methods = [name for name in ABLATION if name in run.methods]
    title = f"Ablation of SimpleMKKM, scores in percent{run.ending}"
    return _table(f"ablation{run.suffix}", title, run, methods, "default", [])


def _table(
    name: str,
    title: str,
    run: Run,
    methods: Sequence[str],
    selection: str,
    explanations: Sequence[str],
) -> Table:
    """Return the table of some methods' scores, in blocks."""
    problems: dict[str, str] = {}  # sentence -> mark
    lines: list[tuple] = []
    all_scores: list[MethodScore] = []
    for score in SCORES:
        lines.append((TITLES[score],))
        for dataset in run.datasets:
            label, scores = (
                run.label(dataset),
                method_scores(run, dataset, score, selection, methods),
            )
            lines.append((label, *_cells(label, scores, problems)))
            all_scores += scores
    counts = {len(each.outcome.values) for each in all_scores} - {0}
    notes = [*explanations, PROTOCOL, _averaged(counts), *_bold_notes(run.resample, counts)]
    notes += run.caveat_notes()
    has_paper = any(each.paper is not None for each in all_scores)
    marked = _mark_notes(all_scores)
    # A picture has no parentheses to explain, and failures are written in its panels.
    failures = [f"[{mark}] {sentence}" for sentence, mark in problems.items()]
    return Table(
        name,
        title,
        ("data set", *methods),
        tuple(lines),
        (*notes, *[PARENTHESES] * has_paper, *marked, *failures),
        picture_notes=(*notes, *marked),
    )


def _cells(label: str, scores: Iterable[MethodScore], problems: dict[str, str]) -> Iterator[Cell]:
    """Yield the cells of a row; problems that are not in the notes yet are added with a mark."""
    for each in scores:
        marks, problem = each.marks, each.outcome.problem
        if problem:
            place = "" if problem == NOT_RUN else f"{label}, {each.method}: "
            marks.append(problems.setdefault(place + problem, str(len(problems) + 1)))
        yield Cell(
            each.outcome.mean,
            each.outcome.deviation,
            bold=each.like_best,
            paper=each.paper,
            mark=",".join(marks),
        )


def _mark_notes(scores: Iterable[MethodScore]) -> list[str]:
    """Return what the marks of the methods' outcomes mean."""
    marks = {(each.method, mark) for each in scores for mark in each.marks}
    oracles = sorted(method for method, mark in marks if mark == ORACLE_MARK)
    notes = [f"[{ORACLE_MARK}] {', '.join(oracles)}: {ORACLE_NOTE}."] if oracles else []
    if any(mark == OPEN_MARK for _, mark in marks):
        notes.append(f"[{OPEN_MARK}] The solve stopped before it converged, and was scored so.")
    return notes


def _settings_note(run: Run, methods: Sequence[str]) -> list[str]:
    """Say of how many settings each method's were chosen: the more, the better the best looks."""
    numbers = []
    for method in methods:
        entries = [entry for (_, name), entry in run.entries.items() if name == method]
        counts = [len(entry.settings) for entry in entries]
        if max(counts) > 1:
            numbers.append(f"{method} {_range(counts)}")
    return [f"Settings tried on a data set: {', '.join(numbers)}; others one."] if numbers else []


def _range(counts: Collection[int]) -> str:
    """Return the range of numbers in words."""
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def _averaged(counts: set[int]) -> str:
    """Say over how many repetitions scores are averaged."""
    if not counts:
        return "No scores."
    return f"Mean±deviation over {_range(counts)} repetition{'s' * (max(counts) > 1)}."


def _bold_notes(resample: float, counts: set[int]) -> list[str]:
    """Say what bold face means."""
    if max(counts, default=0) < FEWEST_PAIRS:
        return [f"Nothing is bold: a test takes {FEWEST_PAIRS} repetitions."]
    few = []
    if len(counts) > 1:
        few = ["Where a method has fewer repetitions than others, bold may only mean that."]
    bold = (
        "Bold: not significantly different from the best of the row (paired t test over the "
        "repetitions, at 5 % after Holm's correction for all pairs)"
    )
    if resample == 1:
        return [
            f"{bold}: every method is solved once and only k-means is repeated, so that this is "
            "restart noise only, the paper's convention.",
            *few,
        ]
    return [
        *few,
        f"{bold}: every repetition is a refit on a random part of the samples "
        f"({100 * resample:.0f} %), the same for all methods, so that differences are truly "
        "paired. The parts overlap: this is about these samples, not about new ones.",
    ]
