"""Tables of scores: every method on every data set, with the settings that it was given."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from mkclust.bench.rows import SCORES
from mkclust.bench.tables.formats import Cell, Table
from mkclust.bench.tables.paper import paper_score
from mkclust.bench.tables.results import NOT_RUN, Outcome, Results, Run, check
from mkclust.bench.tables.statistics import FEWEST_PAIRS, like_the_best, mean_and_deviation

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
    check(SCORES[0], selection)
    scored = {
        method
        for (_, method), entry in run.entries.items()
        if entry.outcome(SCORES[0], selection) is not None
    }
    methods = [method for method in run.methods if method in scored]
    name = f"scores-{selection}{run.suffix}"
    title = f"Scores in percent, {CHOSEN[selection]}{run.ending}"
    tried = _tried(run, methods) if selection != "default" else []
    return _table(name, title, run, methods, selection, [EXPLAINED[selection], *tried])


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
    reached = {
        (score, dataset): {
            method: run.entry(dataset, method).outcome(score, selection) or Outcome(problem=NOT_RUN)
            for method in methods
        }
        for score in SCORES
        for dataset in run.datasets
    }
    problems: dict[str, str] = {}  # sentence -> mark
    lines: list[tuple] = []
    for score in SCORES:
        lines.append((TITLES[score],))
        for dataset in run.datasets:
            cells = _cells(run, dataset, score, reached[score, dataset], problems)
            lines.append((run.label(dataset), *cells))
    outcomes = [pair for row in reached.values() for pair in row.items()]
    counts = {len(outcome.values) for _, outcome in outcomes} - {0}
    notes = [*explanations, PROTOCOL, _averaged(counts), *_bold_notes(run.resample, counts)]
    notes += run.caveat_notes()
    has_paper = any(cell.paper is not None for _, *cells in lines for cell in cells)
    marked = _mark_notes(outcomes)
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


def _cells(
    run: Run, dataset: str, score: str, outcomes: Mapping[str, Outcome], problems: dict[str, str]
) -> Iterator[Cell]:
    """Yield the cells of a row; problems that are not in the notes yet are added with a mark."""
    bold = like_the_best({method: outcome.values for method, outcome in outcomes.items()})
    for method, outcome in outcomes.items():
        marks = _marks(outcome)
        if outcome.problem:
            place = "" if outcome.problem == NOT_RUN else f"{run.label(dataset)}, {method}: "
            marks.append(problems.setdefault(place + outcome.problem, str(len(problems) + 1)))
        yield Cell(
            *_mean_and_deviation(outcome),
            bold=method in bold,
            paper=_paper_mean(run, dataset, method, score),
            mark=",".join(marks),
            problem=outcome.problem,
        )


def _mean_and_deviation(outcome: Outcome) -> tuple[float | None, float | None]:
    """Return the mean and the deviation of what was reached, None where there is nothing."""
    return mean_and_deviation([*outcome.values.values()]) if outcome.values else (None, None)


def _paper_mean(run: Run, dataset: str, method: str, score: str) -> float | None:
    """Return the paper's figure; it has no refits on parts of the samples."""
    figure = paper_score(run.names.papers[dataset], method, score) if run.resample == 1 else None
    return figure[0] if figure else None


def _marks(outcome: Outcome) -> list[str]:
    """Return the marks of what is special about an outcome."""
    unfinished = bool(outcome.values) and not outcome.converged
    return [ORACLE_MARK] * outcome.oracle + [OPEN_MARK] * unfinished


def _mark_notes(outcomes: Iterable[tuple[str, Outcome]]) -> list[str]:
    """Return what the marks of the methods' outcomes mean."""
    marks = {(method, mark) for method, outcome in outcomes for mark in _marks(outcome)}
    oracles = sorted(method for method, mark in marks if mark == ORACLE_MARK)
    notes = [f"[{ORACLE_MARK}] {', '.join(oracles)}: {ORACLE_NOTE}."] if oracles else []
    if any(mark == OPEN_MARK for _, mark in marks):
        notes.append(f"[{OPEN_MARK}] The solve stopped before it converged, and was scored so.")
    return notes


def _tried(run: Run, methods: Sequence[str]) -> list[str]:
    """Say of how many settings each method's were chosen: the more, the better the best looks."""
    tried = []
    for method in methods:
        entries = [entry for (_, name), entry in run.entries.items() if name == method]
        counts = [len(entry.settings) for entry in entries]
        if max(counts) > 1:
            tried.append(f"{method} {_span(counts)}")
    return [f"Settings tried on a data set: {', '.join(tried)}; others one."] if tried else []


def _span(counts: Collection[int]) -> str:
    """Return the range of numbers in words."""
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def _averaged(counts: set[int]) -> str:
    """Say over how many repetitions scores are averaged."""
    if not counts:
        return "No scores."
    return f"Mean±deviation over {_span(counts)} repetition{'s' * (max(counts) > 1)}."


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
