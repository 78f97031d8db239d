"""The report of a fit, as a page and as a file."""

import base64
import hashlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from mkclust.explain.number_of_clusters import NumberOfClusters
from mkclust.explain.report.blocks import Block
from mkclust.explain.report.collect import collect
from mkclust.explain.report.lead import cautions, headline, lead
from mkclust.explain.report.methods_text import methods_paragraph
from mkclust.explain.report.sections import sections
from mkclust.explain.stability import Stability
from mkclust.files import write_atomically
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.base import COMMON
from mkclust.fit.inductive import InductiveClusterer
from mkclust.text import printable
from mkclust.version import versions


def write_report(
    model: MultipleKernelClusterer,
    X: Any,
    path: str | os.PathLike[str],
    y: Any = None,
    *,
    warned: Sequence[str] | None = None,
    annotation: Any = None,
    n_resamples: int | Stability | None = None,
    alternatives: bool | NumberOfClusters = False,
) -> Path:
    """Write the report of a model: one HTML file that needs nothing but a browser.

    It begins with the number of groups and whether they differ in survival, in words,
    and with how clear and stable they are. A heat map of the samples, which view
    separates which clusters, survival and other variables, the tree of the clusters and
    the views follow, and a methods paragraph with its references. Details, such as the
    certificate, are folded. If computations use some of the samples, it says so.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    X : array of shape (m, n, n) or (n, d), or list or dict of kernels or views
        What it was fitted on.
    path : path
        The file, such as ``"fit.html"``, written completely or not at all; replaced if
        it exists. Its folder is created.
    y : array-like of shape (n,), default=None
        Given classes; the report then compares the clusters with them.
    warned : sequence of str, default=None
        Warnings of the fit, shown at the top; None derives them from the fitted model.
    annotation : Annotation or what `annotate` takes as table, default=None
        Tests of other variables against the clusters, made by `annotate`, or these
        variables.
    n_resamples : int or Stability, default=None
        Number of refits that measure the stability of clusters, 10 by default; 0 leaves
        them out.
    alternatives : bool or NumberOfClusters, default=False
        Whether to compare the number of clusters with others, which takes most of the
        time; or what `suggest_n_clusters` has found already.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mkclust import AverageKKM, write_report
    >>> from mkclust.datasets import load
    >>> views = {name: view[:100] for name, view in load("digits").views.items()}
    >>> model = AverageKKM(n_clusters=5, random_state=0).fit(views)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "fit.html")
    ...     path = write_report(model, views, path, n_resamples=2)
    ...     path.name, path.stat().st_size > 1e5
    ('fit.html', True)
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(
            f"{path}: is a folder; give the name of a file in it, such as fit.html"
        )
    page = report_html(
        model,
        X,
        y,
        warned=warned,
        annotation=annotation,
        n_resamples=n_resamples,
        alternatives=alternatives,
    )
    return write_atomically({path: page.encode()})[0]


def report_html(
    model: MultipleKernelClusterer,
    X: Any,
    y: Any = None,
    *,
    warned: Sequence[str] | None = None,
    **options: Any,
) -> str:
    """Return the report of a model as text, by options of `mkclust.write_report`."""
    environment = load_environment()  # if something is not installed, better say so now
    from mkclust.explain.report.figures import draw_all

    data = collect(model, X, y, **options)
    parameters = {
        name: _parameter_text(value)
        for name, value in model.get_params(deep=False).items()
    }
    given = model._source.given
    about_views = (*(f"{printable(name)}:" for name in given.names), "precomputed")
    used = versions()
    methods = methods_paragraph(
        data,
        notes=[note for note in given.table_notes if not note.startswith(about_views)],
        settings=_own_settings(model),
        seed=parameters["random_state"],
        versions=used,
    )
    own = f"The mkclust developers. mkclust, version {used['mkclust']}. Software."
    papers = enumerate([*model.REFERENCES, own], start=1)
    run = [
        Block("fold", [Block("definitions", parameters)], "Parameters"),
        Block("fold", [Block("definitions", used)], "Versions"),
    ]
    quoted = [methods, *(f"[{number}] {paper}" for number, paper in papers)]
    css, js = (
        files(__package__).joinpath(name).read_text()
        for name in ("page.css", "page.js")
    )
    # The content security policy allows the style and the script by their hashes.
    digests = [hashlib.sha256(each.encode()).digest() for each in (css, js)]
    return environment.get_template("page.html.j2").render(
        headline=headline(data),
        lead=lead(data),
        cautions=cautions(data, data.verdict, warned),
        sections=sections(data, draw_all(data), quoted, run),
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        zip=zip,
        css=css,
        js=js,
        hashes=[f"sha256-{base64.b64encode(each).decode()}" for each in digests],
    )


def load_environment() -> Any:
    """Return the environment of the template, or say what is not installed."""
    try:
        import matplotlib  # noqa: F401
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError(
            f"a report needs {error.name}; install it with: "
            'pip install "mkclust[report]"'
        ) from error
    return Environment(
        loader=PackageLoader("mkclust.explain", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Control characters, such as the null of a damaged file, would spoil the page.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )


def _own_settings(model: MultipleKernelClusterer) -> list[str]:
    """Return what only this method has: its hyperparameters, and what is not usual."""
    shared = {*InductiveClusterer().get_params(deep=False), *COMMON}
    usual = type(model)().get_params(deep=False)
    own = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name not in shared
        and (name in model.GRID or repr(value) != repr(usual[name]))
    }
    if getattr(model, "anchor_", None) is not None:
        own["anchor"] = model.anchor_  # the value that was used, rather than "auto"
    texts = {name: _parameter_text(value).strip("'") for name, value in own.items()}
    return [f"{name} = {text}" for name, text in texts.items()]


def _parameter_text(value: Any) -> str:
    """Return a parameter in a readable form, else its type or name."""
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return f"a {type(value).__name__}"
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    return getattr(value, "__qualname__", None) or repr(value)
