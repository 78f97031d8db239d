"""The page of a fit, put together and written."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mkclust.explain.annotation import Annotation
from mkclust.explain.choosing import NumberOfClusters
from mkclust.explain.page import agreement, clusters, features, missing, sections, summary
from mkclust.explain.page.budget import DEFAULT_BUDGET, Budget
from mkclust.explain.page.findings import Findings, find
from mkclust.explain.page.number import number_of_clusters
from mkclust.explain.steps import StepCallback
from mkclust.files import write_atomically
from mkclust.web import Section, cautions, document, paragraph, plotting_script


def fit_page(
    model: Any,
    X: Any,
    *,
    y: Any = None,
    ids: Any = None,
    title: str | None = None,
    warned: Sequence[str] | None = None,
    annotation: Annotation | None = None,
    n_resamples: int | None = None,
    leave_one_out: bool | None = None,
    alternatives: bool | NumberOfClusters = True,
    budget: Budget = DEFAULT_BUDGET,
    progress: StepCallback = None,
) -> str:
    """Return a page about a fitted model: one HTML file that needs nothing but a browser.

    It begins with a verdict: which views agree, which share nothing, how stable and how clear the
    clusters are, and whether anything warns. Then come the clusters, their sizes, what sets them
    apart, how clear and how stable they are, and a table of all labels to be saved; their number
    beside others; the samples on two maps; the weights with the alignments and the diagnosis of
    each kernel, what every two views share, and the mixed kernel; the convergence with its
    certificate; what was run, and a methods paragraph. Where samples are missing from views, it
    says whether the clusters follow that.
    What would take long or much room is done on some of the samples, and the page says so.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
        What it was fitted on.
    y : array-like of shape (n,), default=None
        Given classes; the page then compares the clusters with them.
    ids : sequence of length n, default=None
        Names of the samples; None takes the index of a data frame, or else their numbers.
    title : str, default=None
        Heading of the page; None says what was clustered.
    warned : sequence of str, default=None
        What the fit warned of, shown at the top; None tells it from the fitted model.
    annotation : Annotation, default=None
        Tests of other variables against the clusters, of `annotate`, to be shown.
    n_resamples : int, default=None
        Refits that tell the stability of clusters; None lets their number go by the size of the
        problem, 0 leaves them out.
    leave_one_out : bool, default=None
        Whether to refit without each kernel in turn; None does so where it is cheap.
    alternatives : bool or NumberOfClusters, default=True
        Whether to compare the number of clusters with others, on 500 samples at most; or what
        `suggest_n_clusters` has found already, which is then shown.
    budget : Budget
        How much is looked at, which goes by sizes: the page says what was left out.
    progress : callable, default=None
        Called as ``progress(done, total, text)`` while it works: steps done, their number, and
        what they are, counted over all of the page.

    Returns
    -------
    str
        The same for the same model and data, except for the time at which it was written.

    Examples
    --------
    >>> from mkclust import SimpleMKKM
    >>> from mkclust.datasets import load
    >>> from mkclust.explain.page import fit_page
    >>> digits = load("digits")
    >>> views = {name: view[:200] for name, view in digits.views.items()}
    >>> model = SimpleMKKM(n_clusters=10, random_state=0).fit(views)
    >>> page = fit_page(model, views, y=digits.y[:200], n_resamples=2, leave_one_out=False)
    >>> page[:15], "Views and weights: alignments, diagnosis" in page
    ('<!DOCTYPE html>', True)
    """
    plotting_script()  # where it is missing, that is better known now than after minutes
    options: dict[str, Any] = {"n_resamples": n_resamples, "leave_one_out": leave_one_out}
    options["alternatives"] = alternatives
    findings = find(model, X, y=y, ids=ids, budget=budget, progress=progress, **options)
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    seconds = {
        name: getattr(model, attribute, None)
        for name, attribute in (
            ("making the kernels", "kernel_seconds_"),
            ("checking them", "check_seconds_"),
            ("solving", "solve_seconds_"),
            ("what the views share", "agreement_seconds_"),
            ("labels", "label_seconds_"),
            ("alignments", "alignment_seconds_"),
        )
    }
    heading = summary.title_of(findings) if title is None else title
    warnings = summary.cautions_of(findings, warned)
    introduction = [
        paragraph(summary.title_of(findings)) if title is not None else "",
        paragraph(*summary.verdict_of(findings, len(warnings)), kind="verdict"),
        cautions(warnings),
        summary.glance(findings),
    ]
    parts = [*_sections(findings, annotation), sections.run(findings, when, seconds)]
    foot = (
        "Written by mkclust. The page is one file: it works offline and loads nothing "
        "from the network."
    )
    return document(heading, introduction, parts, [paragraph(foot)])


def _sections(findings: Findings, annotation: Annotation | None) -> list[Section]:
    """Return the sections in the order of what readers ask: clusters, samples, views, solver."""
    described, shared, missingness = (
        findings.description,
        findings.agreement,
        findings.missingness,
    )
    return [
        clusters.clusters(findings),
        *([] if described is None else [features.features(findings, described)]),
        clusters.stability(findings),
        *([] if findings.y is None else [clusters.classes(findings)]),
        *([] if annotation is None else [features.annotation(annotation)]),
        number_of_clusters(findings),
        sections.embedding(findings),
        *([] if missingness is None else [missing.missing(missingness)]),
        sections.kernels(findings),
        *([] if shared is None else [agreement.views(findings, shared)]),
        sections.similarities(findings),
        sections.convergence(findings),
    ]


def fit_report(
    model: Any, X: Any, path: str | os.PathLike[str], y: Any = None, **options: Any
) -> Path:
    """Write a page about a fitted model: one HTML file that needs nothing but a browser.

    It begins with a verdict and with the clusters; the rest explains them and what was run
    (`mkclust.explain.page.fit_page` has the whole order).
    The file is written completely or not at all.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator.
    X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
        What it was fitted on.
    path : path
        The file, such as ``"fit.html"``; replaced where it exists. Its folder is created.
    y : array-like of shape (n,), default=None
        Given classes; the page then compares the clusters with them.
    **options
        As `mkclust.explain.page.fit_page` takes them: ids, title, warned, annotation,
        n_resamples, leave_one_out, alternatives, budget, progress.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mkclust import AverageKKM, fit_report
    >>> from mkclust.datasets import load
    >>> views = {name: view[:100] for name, view in load("digits").views.items()}
    >>> model = AverageKKM(n_clusters=5, random_state=0).fit(views)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = fit_report(model, views, pathlib.Path(folder, "fit.html"), n_resamples=2)
    ...     page.name, page.stat().st_size > 1e6
    ('fit.html', True)
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; give the name of a file in it, such as fit.html")
    content = fit_page(model, X, y=y, **options).encode()
    return write_atomically({path: content})[0]
