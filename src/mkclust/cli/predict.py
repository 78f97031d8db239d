"""The command ``mkclust predict``: clusters of new samples, by a model that was saved."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import sklearn
import typer

from mkclust.cli import options as opt
from mkclust.cli.errors import CommandError
from mkclust.cli.inputs import list_views, read_files
from mkclust.cli.outputs import check_outputs, labels_csv, show
from mkclust.cli.printing import cluster_sizes
from mkclust.cli.progress import session
from mkclust.explain.sample_scores import margins
from mkclust.files import write_atomically
from mkclust.methods.inductive import InductiveClusterer
from mkclust.methods.persistence import load_model
from mkclust.stack.discretize import normalize_rows
from mkclust.text import count, join_words

Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model that mkclust cluster --save has written (.skops). A file that holds "
        "anything else is refused, and no code from it is run.",
    ),
]


def run(
    context: typer.Context,
    model_file: Model,
    inputs: opt.Inputs,
    labels: opt.PredictedFile = Path("predicted.csv"),
    id: opt.Id = None,
    samples_in: opt.SamplesIn = None,
    drop: opt.Drop = None,
    missing: opt.Missing = None,
    trim_ids: opt.TrimIds = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Find the clusters of new samples with a saved model."""
    with session(quiet=quiet) as progress:
        check_outputs([labels], [str(model_file), *inputs])
        progress.phase(f"loading {model_file}")
        model = load_model(model_file)
        if not isinstance(model, InductiveClusterer):
            raise CommandError(
                f"{model_file}: {type(model).__name__} clusters only the samples of the fit; save "
                "a model of another method, such as --method agreement-kkm"
            )
        progress.phase("reading")
        views = list_views(inputs, read_files(opt.Request.of(context))[1])
        X, note = _as_fitted(model, {each.name: each.array for each in views}, model_file)
        progress.phase("predicting")
        with sklearn.config_context(transform_output="pandas"):
            rows: Any = model.transform(X)
        clusters = np.asarray(model.predict(X))
        margin = margins(normalize_rows(rows.to_numpy()), clusters, model._centers)
        margin[clusters < 0] = np.nan
        write_atomically({labels: labels_csv(rows.index, clusters, margin=margin)})
    sizes = np.bincount(clusters[clusters >= 0], minlength=model.n_clusters)
    record = {"n_samples": len(clusters), "cluster_sizes": sizes, "labels": str(labels)}
    size, k = count(len(clusters), "new sample"), count(model.n_clusters, "cluster")
    lines = [f"{type(model).__name__}: {size}, {k}", *note, cluster_sizes(clusters)]
    show(record, [*lines, f"Wrote {labels}"], as_json, quiet)


def _as_fitted(model: Any, views: dict[str, Any], path: Path) -> tuple[Any, list[str]]:
    """Return new views under the names of the fit, and what to say of other names."""
    fitted = getattr(model, "view_names_in_", model.kernel_names_)
    # A table of numbers and categories has become two views.
    names = list(dict.fromkeys(name.removesuffix(" (categories)") for name in fitted))
    if len(names) == 1 and len(views) == 1:
        return next(iter(views.values())), []
    if set(names) == set(views):
        return {name: views[name] for name in names}, []
    if len(names) != len(views):
        raise CommandError(
            f"{path}: was fitted on {join_words(names)}, and the inputs hold "
            f"{join_words(views)}; give the same views of the new samples"
        )
    pairs = [f"{new} as {name}" for new, name in zip(views, names, strict=True) if new != name]
    note = f"Other names than in the fit, taken in order: {join_words(pairs)}."
    return dict(zip(names, views.values(), strict=True)), [note]
