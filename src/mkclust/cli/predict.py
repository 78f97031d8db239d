"""The command ``mkclust predict``: clusters of new samples by a saved model."""

from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from mkclust.cli.errors import CommandError
from mkclust.cli.inputs import kept_ids, list_views, read_covariates, read_files
from mkclust.cli.options import Request
from mkclust.cli.outputs import check_outputs, labels_csv, show
from mkclust.cli.printing import cluster_sizes
from mkclust.cli.progress import session
from mkclust.data.encode import table_of
from mkclust.explain.sample_scores import margins
from mkclust.files import write_atomically
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.coverage import DOUBTFUL
from mkclust.fit.inductive import InductiveClusterer
from mkclust.fit.persistence import load_model
from mkclust.plots.style import names_of
from mkclust.text import count, join_words


def run(
    request: Request, model_file: Path, *, labels: Path = Path("predicted.csv")
) -> None:
    """Find the clusters of new samples with a saved model.

    Files are read as in the fit. Tables that the model does not use may be left out.
    With --join outer, or a fit of samples that lack some tables, samples may be missing
    from some tables, or all from one. No code from the model file is run.
    """
    with session(quiet=request.quiet) as progress:
        check_outputs({"labels": labels}, [str(model_file), *request.inputs])
        progress.phase(f"loading {model_file}")
        model: Any = load_model(model_file)
        if not isinstance(model, InductiveClusterer):
            raise CommandError(
                f"{model_file}: {type(model).__name__} clusters only the samples of "
                "the fit; save a model of another method, such as --method "
                "agreement-kkm"
            )
        if request.join is not None:
            model.set_params(join=request.join).check_parameters()
        progress.phase("reading")
        inputs = read_files(request, getattr(model, "files_", ()))
        tables = list_views(inputs)
        views = {each.name: each.array for each in tables}
        X, note = _as_fitted(model, views, model_file)
        adjust = read_covariates(request, kept_ids(tables, request.join))
        progress.phase("predicting")
        with sklearn.config_context(transform_output="pandas"):
            rows: Any = model.transform(X, adjust=adjust)
        clusters = np.asarray(model.predict(X, adjust=adjust))
        margin = margins(
            model._rows_of(rows.to_numpy()), clusters, model._centers, model._root
        )
        margin[clusters < 0] = np.nan
        coverage, said = _coverage(model, X, len(clusters), adjust)
        scores = {"margin": margin, "coverage": coverage}
        table = labels_csv(rows.index, clusters, names_of(model), **scores)
        write_atomically({labels: table})
    known = clusters[clusters >= 0]
    record = {
        "n_samples": len(clusters),
        "cluster_sizes": np.bincount(known, minlength=model.n_clusters_),
        "labels": str(labels),
        "n_doubtful": int((coverage < DOUBTFUL).sum()),
    }
    size = count(len(clusters), "new sample")
    lines = [
        f"{size}, {count(model.n_clusters_, 'cluster')}",
        *note,
        cluster_sizes(clusters, model.n_clusters_, names_of(model)),
        *said,
        f"Wrote {labels}",
    ]
    show(record, lines, request)


def _coverage(
    model: MultipleKernelClusterer, X: Any, n: int, adjust: Any
) -> tuple[np.ndarray, list[str]]:
    """Return how well new samples are covered, NaN if unknown, and lines on it."""
    try:
        coverage = model.coverage(X, adjust=adjust)
    except ValueError as error:
        return np.full(n, np.nan), [
            f"Coverage by the samples of the fit is unknown: {error}."
        ]
    n_doubtful = int((coverage < DOUBTFUL).sum())
    if not n_doubtful:
        return coverage, []
    return coverage, [
        f"Doubtful: {n_doubtful:,} of {n:,}, which resemble the samples of the fit "
        f"less than nearly all of these each other (coverage below {DOUBTFUL:g})"
    ]


def _as_fitted(
    model: MultipleKernelClusterer, views: dict[str, Any], path: Path
) -> tuple[Any, list[str]]:
    """Return new views under the names of the fit, and what to say of other names."""
    fitted = getattr(model, "view_names_in_", model.kernel_names_)
    # A table of numbers and categories has become two views.
    names = list(dict.fromkeys(map(table_of, fitted)))
    unused = model._source.unused(model)
    used = {table_of(view) for view in fitted if view not in unused}
    needed = [name for name in names if name in used]
    if len(names) == 1 and len(views) == 1:
        return next(iter(views.values())), []
    may_lack = model._source.may_lack_views(model)
    if set(views) <= set(names) and (may_lack or set(needed) <= set(views)):
        return {name: views[name] for name in names if name in views}, []
    targets = names if len(views) == len(names) else needed
    if len(views) != len(targets):
        advice = "or --join outer if they lack some"
        if not set(views) <= set(names):
            advice = "or some of them, named as in the fit, with --join outer"
        raise CommandError(
            f"{path}: uses {join_words(needed)}, and the files hold "
            f"{join_words(views)}; give the same tables of the new samples, {advice}"
        )
    pairs = [
        f"{new} as {name}"
        for new, name in zip(views, targets, strict=True)
        if new != name
    ]
    note = f"Other names than in the fit, taken in order: {join_words(pairs)}."
    return dict(zip(targets, views.values(), strict=True)), [note]
