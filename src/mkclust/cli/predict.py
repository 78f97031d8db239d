"""The command ``mkclust predict``: clusters of new samples, by a model that was saved."""

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mkclust.cli.failures import (
    CommandError,
    expected_failures,
    recorded_warnings,
    say_last,
    show_warnings,
)
from mkclust.cli.inputs import read_all, unique_names
from mkclust.cli.options import Drop, Id, Inputs, Json, LabelsFile, Quiet, SamplesIn
from mkclust.cli.outputs import check_outputs, strict_json
from mkclust.cli.printing import Progress, cluster_sizes
from mkclust.cli.table_request import TableRequest
from mkclust.data.tables import CATEGORIES, TABLE
from mkclust.explain.sample_scores import margins
from mkclust.files import write_atomically
from mkclust.linalg import to_host
from mkclust.methods.inductive import InductiveClusterer
from mkclust.methods.persistence import load_model
from mkclust.methods.uncovered import UNCOVERED
from mkclust.stack.discretize import assign, normalize_rows
from mkclust.text import join_words
from mkclust.types import Float

# Beside the labels of the fit, which stay as they are.
PREDICTED = "predicted.csv"

Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model that mkclust cluster --save has written (.skops). A file that holds "
        "anything else is refused, and no code from it is run.",
    ),
]


def run(
    model_file: Model,
    inputs: Inputs,
    labels: LabelsFile = Path(PREDICTED),
    id: Id = None,
    samples_in: SamplesIn = None,
    drop: Drop = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the clusters of new samples with a saved model."""
    check_outputs([labels], [str(model_file), *inputs])
    with Progress(quiet=quiet) as progress, recorded_warnings() as log, expected_failures():
        progress.phase(f"loading {model_file}")
        model = load_model(model_file)
        _check_inductive(model, model_file)
        progress.phase("reading")
        options = model.table_options  # how tables are joined and filled
        tables = TableRequest.of(id, samples_in, drop, options.join, options.impute)
        parts = _read(inputs, tables)
        progress.phase("predicting")
        with _sound(model_file):
            X, notes = _pair(model, parts, model_file)
            samples = model._source.read(model, X, is_new=True)
            rows, uncovered = model._embed(samples, None)
            clusters = assign(rows, model._centers)
            margin = margins(normalize_rows(to_host(rows)), clusters, model._centers)
            clusters[uncovered], margin[uncovered] = UNCOVERED, np.nan
        ids = range(len(clusters)) if samples.ids is None else samples.ids
        content = _table([str(name) for name in ids], clusters, margin)
        write_atomically({labels: content})
    if not quiet:
        show_warnings(log)
    sizes = np.bincount(clusters[clusters >= 0], minlength=model.n_clusters)
    if as_json:
        record = {"n_samples": len(clusters), "cluster_sizes": sizes, "labels": str(labels)}
        say_last(strict_json(record).rstrip("\n"), files=[labels])
    elif not quiet:
        title = f"{type(model).__name__}: {len(clusters)} new samples, {model.n_clusters} clusters"
        say_last("\n".join([title, *notes, cluster_sizes(clusters), f"Wrote {labels}"]), [labels])


def _check_inductive(model: Any, path: Path) -> None:
    """Refuse a model that says nothing on new samples."""
    if not isinstance(model, InductiveClusterer):
        raise CommandError(
            f"{path}: {type(model).__name__} clusters only the samples of the fit and "
            "cannot predict new ones; save a model of another method, such as --method "
            "agreement-kkm"
        )


@contextmanager
def _sound(path: Path) -> Iterator[None]:
    """Have a model that lacks a part of itself, as no fit leaves it, be named on one line."""
    try:
        yield
    except (AttributeError, KeyError, IndexError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise CommandError(f"{path}: is no whole model ({reason}); save it once more") from error


def _read(inputs: list[str], tables: TableRequest) -> dict[str, Any]:
    """Return the views or kernels of all inputs by name."""
    _, data_sets = read_all(inputs, tables=tables)
    arrays = [
        array for data in data_sets for array in (data.X if data.precomputed else data.X.values())
    ]
    return dict(zip(unique_names(data_sets), arrays, strict=True))


def _pair(model: Any, parts: dict[str, Any], path: Path) -> tuple[Any, list[str]]:
    """Return what a model predicts from: the parts under its own names, and what to say of it."""
    names, given = _view_names(model), list(parts)
    if names == (TABLE,) and len(given) == 1:
        return parts[given[0]], []
    what = "kernel" if _takes_kernels(model) else "view"
    if set(names) == set(given):
        return {name: parts[name] for name in names}, []
    if len(names) != len(given):
        raise CommandError(
            f"{path}: was fitted on the {what}s {join_words(names)}, and the inputs hold "
            f"{join_words(given)}; give the same {what}s of the new samples (FILE::NAME,NAME "
            "chooses from a file)"
        )
    pairs = [f"{new} as {name}" for new, name in zip(given, names, strict=True) if new != name]
    note = f"The {what}s have other names than in the fit and are taken in order: "
    return dict(zip(names, parts.values(), strict=True)), [note + f"{join_words(pairs)}."]


def _view_names(model: Any) -> tuple[str, ...]:
    """Return the names of what a fitted model takes: kernels, or tables in their order."""
    source = model._source
    views = source.bank.views_ if hasattr(source, "bank") else getattr(source, "widths", None)
    if views is None:
        return tuple(model.kernel_names_)
    # Tables of numbers and categories have become two views.
    of_categories = {
        CATEGORIES.format(name) for name, each in source.encodings.items() if each.numbers
    }
    return tuple(name for name in views if name not in of_categories)


def _takes_kernels(model: Any) -> bool:
    """Return whether a fitted model takes similarities to its training samples."""
    return not hasattr(model._source, "bank") and not hasattr(model._source, "widths")


def _table(ids: list[str], clusters: np.ndarray, margins: Float) -> bytes:
    """Return ids, clusters and margins as a table."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["id", "cluster", "margin"])
    cells = ["" if np.isnan(margin) else f"{margin:.4f}" for margin in margins]
    writer.writerows(zip(ids, clusters.tolist(), cells, strict=True))
    return file.getvalue().encode("utf-8", "backslashreplace")
