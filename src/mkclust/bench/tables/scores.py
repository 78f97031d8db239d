"""Tables of scores: every method on every data set, with the settings that it was given."""

from collections.abc import Collection, Iterable, Sequence

from mkclust.bench.rows import SCORES, Row
from mkclust.bench.tables.formats import Cell, Table
from mkclust.bench.tables.outcomes import (
    Grouped,
    Outcome,
    dataset_labels,
    group,
    methods_of,
    outcome,
    resamples,
)
from mkclust.bench.tables.paper import paper_score
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
CAVEATS = {
    "substitute": "a substitute: other samples or kernels than the paper's, so that a difference "
    "from the paper's figure says nothing about the method",
    "truncated": "truncated: kernels of reduced rank, made of their leading factors, of all "
    "samples, so that methods that use the tail of a spectrum may differ from the paper's figure "
    "for that reason alone",
}
ABLATION = ("kamm-r", "kamm-a", "simplemkkm")
ORACLE_MARK = "o"
OPEN_MARK = "n"
ORACLE_NOTE = "chosen by the true classes in itself, and not to be had without them"
PROTOCOL = (
    "k is the number of true classes, for every method. NMI is divided by the larger of the two "
    "entropies."
)


def score_tables(rows: Iterable[Row], selection: str) -> list[Table]:
    """Return the tables of scores for one way of choosing settings.

    Parameters
    ----------
    rows : iterable of dict
        Rows of a benchmark; see `read_rows`.
    selection : {"oracle", "default", "stable"}
        Who chooses a method's setting: the true classes for each score apart, nobody, or the
        stability of the clusters, which needs no classes.

    Returns
    -------
    list of Table
        One for each way of resampling, which are never mixed. Data sets by methods in percent,
        with a block for each score; methods of the paper first, with the paper's figures.
    """
    rows = list(rows)
    tables = []
    for resample in resamples(rows):
        grouped, _ = group(rows, resample)
        methods = [
            method
            for method in methods_of(grouped)
            if any(method in own and _has_place(own[method], selection) for own in grouped.values())
        ]
        name = f"scores-{selection}" + suffix(resample)
        title = f"Scores in percent, {CHOSEN[selection]}" + repeated(resample)
        if methods:
            tables.append(_table(name, title, grouped, methods, selection, resample))
    return tables


def ablation_table(rows: Iterable[Row], resample: float | None = None) -> Table:
    """Return the table of SimpleMKKM and the two methods that change one piece of it.

    Parameters
    ----------
    rows : iterable of dict
        Rows of a benchmark.
    resample : float or None
        The way of resampling; None stands for the largest share that there is.

    Returns
    -------
    Table
        None of the three has hyper-parameters, so that nothing was chosen.
    """
    grouped, resample = group(rows, resample)
    methods = [name for name in ABLATION if any(name in own for own in grouped.values())]
    grouped = {
        name: kept
        for name, own in grouped.items()
        if (kept := {method: own[method] for method in methods if method in own})
    }
    if not grouped:
        raise ValueError(f"There are no rows of {', '.join(ABLATION)}: run at least one of them.")
    title = "Ablation of SimpleMKKM, scores in percent" + repeated(resample)
    return _table(
        "ablation" + suffix(resample), title, grouped, methods, "default", resample, tuned=False
    )


def caveat_notes(rows: Iterable[Row]) -> list[str]:
    """Return a note on each data set that is not what the paper used.

    Parameters
    ----------
    rows : iterable of dict

    Returns
    -------
    list of str
    """
    rows = list(rows)
    labels = dataset_labels(rows)
    found = sorted({(labels[row["dataset"]], row["caveat"]) for row in rows if row.get("caveat")})
    return [f"{label} is {CAVEATS.get(caveat, caveat)}." for label, caveat in found]


def _table(
    name: str,
    title: str,
    grouped: Grouped,
    methods: Sequence[str],
    selection: str,
    resample: float,
    *,
    tuned: bool = True,
) -> Table:
    """Return the table of some methods' scores, in blocks."""
    rows = [row for own in grouped.values() for its in own.values() for row in its]
    labels = dataset_labels(rows)
    problems: dict[str, str] = {}  # sentence -> mark
    lines: list[tuple] = []
    counts, oracles, unfinished = set(), set(), False
    for score in SCORES:
        lines.append((TITLES[score],))
        for dataset, own in grouped.items():
            outcomes = {m: outcome(own[m], score, selection) for m in methods if m in own}
            reached = {m: found for m, found in outcomes.items() if found is not None}
            bold = like_the_best({m: found.values for m, found in reached.items()})
            paper = next(iter(own.values()))[0].get("paper") or ""
            cells = []
            for method in methods:
                found = reached.get(method, Outcome(problem="not run"))
                marks = [ORACLE_MARK] * found.oracle
                marks += [OPEN_MARK] * (bool(found.values) and not found.converged)
                unfinished |= OPEN_MARK in marks
                if found.problem:
                    where = "" if found.problem == "not run" else f"{labels[dataset]}, {method}: "
                    marks.append(problems.setdefault(where + found.problem, str(len(problems) + 1)))
                # The paper has no refits on parts of the samples.
                theirs = paper_score(paper, method, score) if resample == 1 else None
                mean, std = (
                    mean_and_deviation([*found.values.values()]) if found.values else (None,) * 2
                )
                counts |= {len(found.values)} - {0}
                oracles |= {method} if found.oracle else set()
                cells.append(Cell(mean, std, method in bold, theirs and theirs[0], ",".join(marks)))
            lines.append((labels[dataset], *cells))
    notes = [EXPLAINED[selection]] if tuned else []
    notes += _tried(grouped, methods) if selection != "default" else []
    notes += [PROTOCOL, _averaged(counts), *_bold_notes(resample, counts), *caveat_notes(rows)]
    if any(cell.paper is not None for _, *cells in lines for cell in cells):
        notes.append(
            "In parentheses: the paper's figure, and the difference of ours from it. In the paper "
            "the true classes chose all settings that a method has."
        )
    if oracles:
        notes.append(f"[{ORACLE_MARK}] {', '.join(sorted(oracles))}: {ORACLE_NOTE}.")
    if unfinished:
        notes.append(f"[{OPEN_MARK}] The solve stopped before it converged, and was scored so.")
    notes += [f"[{mark}] {sentence}" for sentence, mark in problems.items()]
    return Table(name, title, ("data set", *methods), tuple(lines), tuple(notes))


def _has_place(rows: list[Row], selection: str) -> bool:
    """Return whether a method belongs in a table of that selection."""
    return outcome(rows, "acc", selection) is not None


def _tried(grouped: Grouped, methods: Sequence[str]) -> list[str]:
    """Say of how many settings each method's were chosen: the more, the better the best looks."""
    said = []
    for method in methods:
        its = [own[method] for own in grouped.values() if method in own]
        counts = [len({row["parameters"] for row in rows}) for rows in its]
        if max(counts) > 1:
            said.append(f"{method} {_span(counts)}")
    return [f"Settings tried on a data set: {', '.join(said)}; others one."] if said else []


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


def repeated(resample: float) -> str:
    """Return the end of a title: what was repeated."""
    return "" if resample == 1 else f"; refits on {100 * resample:.0f} % of the samples"


def suffix(resample: float) -> str:
    """Return the end of a table's name: what was repeated."""
    return "" if resample == 1 else f"-resample-{100 * resample:.0f}"
