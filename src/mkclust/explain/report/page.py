"""The report of a fit, as a page and as a file."""

import base64
import csv
import hashlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mkclust.agreements import p_text
from mkclust.explain.number_of_clusters import NumberOfClusters
from mkclust.explain.report.cautions import cautions
from mkclust.explain.report.collect import ReportData, collect
from mkclust.explain.report.methods_text import methods_paragraph
from mkclust.explain.stability import Stability
from mkclust.files import write_atomically
from mkclust.fit import InductiveClusterer, MultipleKernelClusterer
from mkclust.fit.base import COMMON
from mkclust.fit.same_input import is_approximated
from mkclust.methods import AgreementKKM, AverageKKM
from mkclust.text import count, join_words, printable, spreadsheet_text
from mkclust.version import versions


class Column(NamedTuple):
    """A column of a table: title, values, format, meaning, and bars from 0 to 1."""

    title: str
    values: Any
    form: Any = ""  # or a function; empty for text
    meaning: str = ""
    bars: Any = None


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

    It holds a verdict, cautions, the clusters, a map of the samples, weights and
    alignments with the diagnosis of each kernel, what every two views share, the mixed
    kernel, convergence and certificate, and a methods paragraph. If computations use
    some of the samples, it says so.

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
    options = {
        "annotation": annotation,
        "n_resamples": n_resamples,
        "alternatives": alternatives,
    }
    page = report_html(model, X, y, warned=warned, **options)
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
    verdict = "One kernel alone: there is nothing to compare it with."
    if data.agreement is not None:
        verdict = data.agreement.verdict(sets_aside=hasattr(model, "set_aside_"))
    parameters = {
        name: _parameter_text(value)
        for name, value in model.get_params(deep=False).items()
    }
    given = model._source.given
    about_views = (*(f"{printable(name)}:" for name in given.names), "precomputed")
    is_one_eigenproblem = isinstance(model, AverageKKM | AgreementKKM)
    methods = methods_paragraph(
        data,
        notes=[note for note in given.table_notes if not note.startswith(about_views)],
        settings=_own_settings(model),
        seed=parameters["random_state"],
        versions=versions(),
        solves_one_problem=is_one_eigenproblem,
    )
    folder = files(__package__)
    css = folder.joinpath("page.css").read_text()
    js = folder.joinpath("page.js").read_text()
    # The content security policy allows the style and the script by their hashes.
    digests = [hashlib.sha256(each.encode()).digest() for each in (css, js)]
    return environment.get_template("page.html.j2").render(
        data=data,
        model=model,
        verdict=verdict,
        cautions=cautions(data, verdict, warned),
        methods=methods,
        is_approximated=is_approximated(model),
        is_one_eigenproblem=is_one_eigenproblem,
        Column=Column,
        p_text=p_text,
        pictures=draw_all(data),
        labels_csv=_as_base64(_labels_csv(data)),
        parameters=parameters,
        versions=versions(),
        seconds=getattr(model, "fit_seconds_", None),
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        css=css,
        js=js,
        hashes=[f"sha256-{_as_base64(digest)}" for digest in digests],
    )


def _labels_csv(data: ReportData) -> bytes:
    """Return ids and clusters as the bytes of a table."""
    ids = [spreadsheet_text(name) for name in data.ids]
    table = pd.DataFrame({"id": ids, "cluster": data.labels})
    # Quotes around all ids: some versions of Python leave a carriage return without
    # them.
    text = table.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    return text.encode("utf-8", "backslashreplace")


def _as_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


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
    environment = Environment(
        loader=PackageLoader("mkclust.explain", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Control characters, such as the null of a damaged file, would spoil the page.
        finalize=_shown,
    )
    environment.globals |= {"count": count, "join_words": join_words, "zip": zip}
    environment.filters["take"] = lambda index, values: values[index]
    environment.filters["lower_first"] = lambda text: text[:1].lower() + text[1:]
    return environment


def _shown(value: Any) -> Any:
    """Return a value of the template, text without control characters."""
    if type(value) is str:
        return printable(value)
    return value


def _own_settings(model: MultipleKernelClusterer) -> list[str]:
    """Return the parameters that only this method has, as text."""
    shared = {*InductiveClusterer().get_params(deep=False), *COMMON}
    own = {k: v for k, v in model.get_params(deep=False).items() if k not in shared}
    if getattr(model, "anchor_", None) is not None:
        own["anchor"] = model.anchor_  # the value that was used, rather than "auto"
    quotes = "'\""
    return [
        f"{name} = {_parameter_text(value).strip(quotes)}"
        for name, value in own.items()
    ]


def _parameter_text(value: Any) -> str:
    """Return a parameter in a readable form, else its type or name."""
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return f"a {type(value).__name__}"
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    return getattr(value, "__qualname__", None) or repr(value)
