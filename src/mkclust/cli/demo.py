"""The command ``mkclust demo``: files of handwritten digits, joined, clustered and explained."""

import csv
import gzip
import io
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mkclust import metrics, plots
from mkclust.cli.failures import (
    expected_failures,
    recorded_warnings,
    say,
    say_last,
    show_warnings,
)
from mkclust.cli.inputs import Data, read_inputs
from mkclust.cli.options import Folder, Seed
from mkclust.cli.outputs import check_outputs, check_plot, labels_csv
from mkclust.cli.printing import Progress, fit_summary, score_table
from mkclust.datasets.digits import Table, digit_tables
from mkclust.explain.describe import describe
from mkclust.files import write_atomically
from mkclust.methods import METHODS, RECOMMENDED

# Of the files of the four tables, which need not be alike.
SUFFIXES = (".csv", ".tsv", ".csv.gz", ".csv")
N_CLUSTERS = 10


def run(out: Folder = Path("demo"), seed: Seed = 0) -> None:
    """Cluster handwritten digits from several files, and explain the result."""
    start = time.perf_counter()
    picture, labels = out / "digits.png", out / "labels.csv"
    tables, digits = digit_tables()
    inputs = {
        out / f"{name}{suffix}": table
        for (name, table), suffix in zip(tables.items(), SUFFIXES, strict=True)
    }
    check_plot(picture)
    check_outputs([*inputs, picture, labels], new_folder=True)
    with Progress() as progress, expected_failures():
        progress.phase("writing and reading files")
        write_atomically({path: _writer(path, table) for path, table in inputs.items()})
        data = read_inputs([str(path) for path in inputs], precomputed=False)
    say(_opening(inputs, data))
    with Progress() as progress, recorded_warnings() as log, expected_failures():
        progress.phase(f"clustering {data.samples.n_samples} samples, {data.describe()}")
        model = METHODS[RECOMMENDED](N_CLUSTERS, random_state=seed).fit(data.samples)
        y = np.array([digits[sample] for sample in model.sample_ids_])
        description = describe(model, data.samples, n_features=3)
        progress.phase("clustering each file alone, to compare")
        scores = _scores(model, data, y)
        progress.phase("drawing")
        write_atomically(
            {
                picture: lambda path: plots.plot_fit(model, y).savefig(path, dpi=150),
                labels: labels_csv(model),
            }
        )
    show_warnings(log)
    lines = ["", fit_summary(model), "", description.summary()]
    lines += ["", score_table(scores), _comparison(scores)]
    lines += ["", f"Picture: {picture}", f"Labels: {labels}"]
    lines += [f"Seconds: {time.perf_counter() - start:.1f}", "", *_next_commands(inputs, out)]
    say_last("\n".join(lines), files=(*inputs, picture, labels))


def _writer(path: Path, table: Table) -> Callable[[Path], Any]:
    """Return what writes a table to a draft of a file, in the format that the file's name says."""
    text = io.StringIO()
    separator = "\t" if ".tsv" in path.suffixes else ","
    rows = csv.writer(text, delimiter=separator, lineterminator="\n")
    rows.writerow(["id", *table.columns])
    for sample, values in zip(table.ids, table.values.tolist(), strict=True):
        rows.writerow([sample, *(f"{value:.6g}" for value in values)])
    content = text.getvalue().encode()
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    return lambda draft: draft.write_bytes(content)


def _opening(inputs: Mapping[Path, Table], data: Data) -> str:
    """Return which files there are, and what the join makes of them."""
    width = max(len(str(path)) for path in inputs)
    lines = [f"{data.samples.n_samples} handwritten digits, measured in four ways, in four files:"]
    for path, table in inputs.items():
        n, d = table.values.shape
        first = f"{table.columns[0]}, {table.columns[1]}, ..."
        lines.append(f"  {path!s:<{width}}  {n} samples x {d:2} features: {first}")
    return "\n".join([*lines, data.contributions[-1]])


def _scores(model: Any, data: Data, y: np.ndarray) -> dict[str, dict[str, float]]:
    """Return the scores of every view alone, clustered by the same method, and of all together."""
    scores = {}
    for name in data.names:
        alone = type(model)(N_CLUSTERS, random_state=model.random_state)
        scores[f"{name} alone"] = metrics.scores(y, alone.fit(data.samples.only([name])).labels_)
    return scores | {"all together": metrics.scores(y, model.labels_)}


def _comparison(scores: Mapping[str, Mapping[str, float]]) -> str:
    """Return in words whether mixing the views has paid."""
    *alone, together = (100 * score["acc"] for score in scores.values())
    return (
        f"Of every 100 digits, the best single file puts {max(alone):.0f} into the right "
        f"cluster, and all files together {together:.0f}. The true digits were not used in "
        "any fit."
    )


def _next_commands(inputs: Mapping[Path, Table], out: Path) -> list[str]:
    """Return what to type next: the same by hand, and the same with files of one's own."""
    names = " ".join(map(str, inputs))
    return [
        "The same by hand:",
        f"  mkclust cluster {names} -k {N_CLUSTERS} --labels {out / 'mine.csv'}",
        "With files of your own, each with a column of ids, for 4 clusters and a page to read:",
        "  mkclust cluster FIRST.csv SECOND.tsv -k 4 --report clusters.html",
    ]
