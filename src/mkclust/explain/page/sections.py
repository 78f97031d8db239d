"""The sections of a fit's page, from the kernels to what was run."""

import platform
from typing import Any

import numpy as np
import scipy
import sklearn

from mkclust.explain.diagnosis import likelihood_text
from mkclust.explain.fitted import (
    certified_gap,
    format_gap,
    is_approximated,
    is_one_eigenproblem,
)
from mkclust.explain.page import charts, sample_charts
from mkclust.explain.page.findings import Findings
from mkclust.explain.page.methods_paragraph import methods_paragraph, parameter_text
from mkclust.methods import AgreementKKM
from mkclust.version import __version__
from mkclust.web import (
    Column,
    Section,
    beside,
    bullets,
    definitions,
    number,
    paragraph,
    quotation,
    subheading,
    table,
    text,
)
from mkclust.web.table import Cell
from mkclust.web.words import count_noun


def kernels(findings: Findings) -> Section:
    """Say what each kernel brings."""
    model, examination = findings.model, findings.kernels
    parts = [
        paragraph(
            model.WEIGHT_MEANING,
            "Alignment is the share of the kernel's own leading structure that the "
            "consensus captures. Read it together with the weight.",
        ),
        charts.weights(findings),
        _kernel_table(findings),
    ]
    if examination.diagnosis is not None:
        parts += [subheading("What stands out"), bullets(examination.diagnosis._sentences())]
    else:
        parts.append(paragraph("There is only one kernel, so there is no diagnosis."))
    parts.append(paragraph(*_what_was_examined(findings), kind="quiet"))
    return Section("kernels", "Views and weights: alignments, diagnosis", parts)


def _what_was_examined(findings: Findings) -> list[str]:
    """Say on how many samples the kernels were examined, and what was left out."""
    examination, sentences = findings.kernels, []
    if examination.refit_agreement is not None:
        sentences.append(
            "To save time, all columns except weight, alignment and chance come from a "
            f"fit of the same method on {examination.n_samples:,} of the "
            f"{findings.n_samples:,} samples. Its clusters agree with those of the whole "
            f"fit to {examination.refit_agreement:.2f} (adjusted Rand index)."
        )
    if examination.diagnosis is not None and not examination.left_out:
        sentences.append(
            "Not computed because it takes long: how the clusters change without each "
            "kernel. mkclust.diagnose(model, X) computes it."
        )
    return sentences


def _kernel_table(findings: Findings) -> str:
    """Return the table of the kernels."""
    model, examination = findings.model, findings.kernels
    diagnosis = examination.diagnosis
    columns = [Column("Kernel")] if diagnosis is None else [Column("Kernel"), Column("Reading")]
    columns += [
        Column("Weight", "how the kernels are mixed"),
        Column("Alignment", "share of the kernel's own leading structure in the consensus"),
    ]
    values: list[tuple[Any, str]] = [(model.weights_, ".3f"), (model.alignments_, ".2f")]
    if is_approximated(model):
        columns.append(Column("Missed", "share of the kernel that the features do not capture"))
        values.append((model.approximation_error_, ".3f"))
    columns.append(Column("Consensus", "agreement of the kernel's own clusters with the model's"))
    values.append((examination.with_consensus, ".2f"))
    if not isinstance(model, AgreementKKM):  # whose clusters are those of the compromise
        columns.append(Column("Compromise", f"their agreement with {findings.compromise_name}"))
        values.append((examination.with_compromise, ".2f"))
    if diagnosis is not None:
        if examination.left_out:
            columns.append(Column("Without it", "agreement of a fit without the kernel"))
            values.append((diagnosis.leave_one_out, ".2f"))
        columns += [
            Column("Cluster gap", "relative gap in its spectrum where the clusters would show"),
            Column("Top share", "share of its trace in its leading eigenvalues"),
            Column("Chance", "probability of sharing so much with another kernel by chance"),
        ]
        values += [(diagnosis.cluster_gap, ".2f"), (diagnosis.top_share, ".2f")]
    rows = []
    for p, name in enumerate(model.kernel_names_):
        row = [text(name)] if diagnosis is None else [text(name), text(_reading(diagnosis, name))]
        row += [number(float(column[p]), form) for column, form in values]
        if diagnosis is not None:
            chance = float(diagnosis.chance[p])
            row.append(Cell(likelihood_text(chance), chance))
        rows.append(row)
    note = paragraph(
        "Agreements are adjusted Rand indices: 1 means the same clusters, 0 means chance.",
        kind="legend",
    )
    return table(columns, rows, "The kernels") + note


def _reading(diagnosis: Any, name: str) -> str:
    """Return in a word or two what a kernel is."""
    remarks = []
    if name in diagnosis.noise:
        remarks.append("shares nothing")
    copies = [other for pair in diagnosis.duplicates if name in pair for other in pair]
    if others := sorted({copy for copy in copies if copy != name}):
        remarks.append(
            f"nearly the same as {others[0]}" + (" and others" if len(others) > 1 else "")
        )
    can_tell = diagnosis.view_agreement.is_testable
    return "; ".join(remarks) or ("shares structure" if can_tell else "cannot be told")


def convergence(findings: Findings) -> Section:
    """Say how far the solver got, and what that certifies."""
    model = findings.model
    parts = [paragraph(certificate(model))]
    if len(model.history_) > 1:
        parts.append(charts.convergence(findings))
    else:
        parts.append(
            paragraph("The solver took a single step, so there is no curve to draw.", kind="quiet")
        )
    return Section("convergence", "Convergence and certificate", parts)


def certificate(model: Any) -> str:
    """Return in a sentence what is certified, or that nothing is."""
    name, gap = type(model).__name__, certified_gap(model)
    if is_one_eigenproblem(model):
        return (
            f"{name} has no weights to search for: the leading eigenvectors of its mixed kernel "
            "are the global optimum of its relaxed problem, and there is nothing to certify."
        )
    if gap is None:
        end = "converged" if model.converged_ else "stopped before it converged,"
        return (
            f"{name} {end} after {count_noun(int(model.n_iter_), 'iteration')}. It has no "
            "certificate: the result is at best a stationary point, and other weights may "
            "have a better objective."
        )
    kind = " approximated" if is_approximated(model) else ""
    early = "" if model.converged_ else " The solver stopped before its tolerance was reached."
    return (
        f"Certified: the objective is within a relative {format_gap(gap)} of the global optimum of "
        f"the{kind} relaxed problem. {_missed(model.certificate_)}"
        f"{early} This does not say that clusters exist, that their number "
        "is right, that the kernels are good, or that the final k-means step is optimal."
    )


def _missed(how: str) -> str:
    """Say how it is known that the eigensolver missed nothing, by the word for it."""
    word, _, odds = how.partition(" ")
    if word == "searched":
        found = f" {odds}" if odds else ""
        return f"A search for eigenvectors that the solver might have missed found none{found}."
    return f"It is {how} that the eigensolver missed nothing."


def embedding(findings: Findings) -> Section:
    """Show the samples: on a map of neighbors, where there are enough for one, and in a plane."""
    how, plane = "on the two axes along which they vary most", findings.plane
    maps = [sample_charts.embedding(findings, plane)]
    if findings.placed.method == "neighbors":
        how = f"on a map (t-SNE) that keeps neighbors together, and beside it {how}"
        maps.insert(0, sample_charts.embedding(findings, findings.placed))
    introduction = paragraph(
        f"The rows of the relaxed partition, scaled to length one as k-means sees them, {how}."
    )
    drawn = beside(*maps) if len(maps) > 1 else maps[0]
    return Section("embedding", "The samples", [introduction, drawn])


def similarities(findings: Findings) -> Section:
    """Show the mixed kernel."""
    introduction = paragraph(
        "The similarities that the model clusters by: "
        f"{findings.model.describe_mixed_kernel()}. Samples are sorted by cluster; real "
        "clusters show as dark squares along the diagonal."
    )
    return Section(
        "similarities", "The mixed kernel", [introduction, sample_charts.similarities(findings)]
    )


def run(findings: Findings, when: str, seconds: dict[str, float | None]) -> Section:
    """Say what was run, to be run again and to be written about."""
    model = findings.model
    parameters = {
        name: parameter_text(value) for name, value in model.get_params(deep=False).items()
    }
    versions = software()
    stability, resamples = findings.resampling.stability, ""
    if stability is not None:
        resamples = (
            f"Stability was assessed by {count_noun(len(stability.agreements), 'refit')} on "
            f"{stability.size:,} samples drawn at random, compared with the whole fit by the "
            "adjusted Rand index."
        )
    times = {
        f"seconds, {name}": f"{time:.2f}" for name, time in seconds.items() if time is not None
    }
    parts = [
        subheading("Methods paragraph"),
        paragraph("You can copy this text; check that it describes what you did.", kind="quiet"),
        quotation(methods_paragraph(model, findings.n_samples, versions, resamples), "Methods"),
        subheading("Parameters"),
        definitions(parameters),
        subheading("Time and versions"),
        definitions(times | versions),
        f'<p class="quiet">This page was written at <time>{when}</time>.</p>',
    ]
    return Section("run", "What was run", parts)


def software() -> dict[str, str]:
    """Return the versions of what the numbers come from."""
    return {
        "mkclust": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
