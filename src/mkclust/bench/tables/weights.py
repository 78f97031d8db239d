"""A table of kernel weights, with the alignments beside them."""

from collections.abc import Iterable

from mkclust.bench.rows import Row, is_default
from mkclust.bench.tables.formats import Cell, Table
from mkclust.bench.tables.outcomes import dataset_labels, group, methods_of
from mkclust.bench.tables.scores import caveat_notes, repeated, suffix
from mkclust.bench.tables.statistics import mean_and_deviation

NOTES = (
    "A weight says how a method mixes the kernels, not how important they are: read it beside the "
    "alignment, the share of the kernel's own leading structure that the consensus captures. For "
    "SimpleMKKM a large weight means little agreement with the consensus, in that Tr(K_p H H^T) is "
    "small; the alignment is relative to what the kernel has to give, and need not order alike.",
    "Weights of different methods are not on one scale: some enter squared, some sum to one, some "
    "have squares that sum to one.",
)


def weight_table(solves: Iterable[Row], resample: float | None = None) -> Table:
    """Return the kernel weights of each method with its default setting, beside the alignments.

    Parameters
    ----------
    solves : iterable of dict
        What was recorded of each solve; see `read_solves`.
    resample : float or None
        The way of resampling; None stands for the largest share that there is. Of refits on parts
        of the samples the first stands for all; where several were recorded, weights are means
        with deviations.

    Returns
    -------
    Table
        A block for each data set, a row for each kernel, and for each method a column of weights
        and one of alignments.
    """
    grouped, resample = group([s for s in solves if is_default(s)], resample)
    kept = [row for own in grouped.values() for its in own.values() for row in its]
    labels, methods = dataset_labels(kept), methods_of(grouped)
    lines: list[tuple] = []
    for dataset, own in grouped.items():
        lines.append((labels[dataset],))
        names = next(iter(own.values()))[0]["kernel_names"]
        cells = [
            _column(own.get(method, []), what, len(names))
            for method in methods
            for what in ("weights", "alignments")
        ]
        lines += [(name, *row) for name, *row in zip(names, *cells, strict=True)]
    columns = [f"{method}{what}" for method in methods for what in ("", ": alignment")]
    return Table(
        "weights" + suffix(resample),
        "Kernel weights and alignments, default settings" + repeated(resample),
        ("kernel", *columns),
        tuple(lines),
        (*NOTES, *caveat_notes(kept)),
        digits=3,
    )


def _column(solves: list[Row], what: str, n_kernels: int) -> list[Cell]:
    """Return the cells of one method on one data set, one for each kernel."""
    both = ("weights", "alignments")  # neither is shown without the other
    whole = [s for s in solves if all(len(s.get(each) or ()) == n_kernels for each in both)]
    known = [solve[what] for solve in whole]
    if not known:
        return [Cell(None)] * n_kernels
    return [Cell(*mean_and_deviation(own)) for own in zip(*known, strict=True)]
