"""The commands: what they take and what they say of it, without what they run.

Each is declared by its own options and its help; what it runs is imported when it runs.
"""

from pathlib import Path

from mkclust.cli.options import FILES, FIT, PRINTING, takes


@takes(
    *FILES,
    "groups",
    "adjust_for",
    "annotate",
    "join",
    "impute",
    "kernels",
    "scale",
    "as_json",
    runs="inspect:run",
)
def inspect() -> None:
    """Show what the files contain, how they are joined, and which kernels are used."""


@takes(
    *FIT,
    "annotate",
    "align_with",
    "n_clusters",
    "method",
    "address",
    runs="cluster:run",
)
def cluster(
    *,
    labels: Path = Path("labels.csv"),
    record: Path | None = None,
    report: Path | None = None,
    plot: Path | None = None,
    save: Path | None = None,
    time: str | None = None,
    event: str | None = None,
    adjust: str | None = None,
    names: str | None = None,
) -> None:
    """Cluster samples that are described by several tables or kernels.

    Example: mkclust cluster blood.csv visit.csv -k 3 --report fit.html
    """


@takes(*FILES, "adjust_for", "join", "as_json", "quiet", runs="predict:run")
def predict(model_file: Path, *, labels: Path = Path("predicted.csv")) -> None:
    """Find the clusters of new samples with a saved model.

    Files are read as in the fit. Tables that the model does not use may be left out.
    With --join outer, or a fit of samples that lack some tables, samples may be missing
    from some tables, or all from one. No code from the model file is run.
    """


@takes(*FIT, runs="explore:suggest")
def suggest(
    *, first: int | None = None, last: int | None = None, picture: Path | None = None
) -> None:
    """Say which number of clusters fits best, and how strong the evidence is."""


@takes(*FIT, "n_clusters", "method", runs="explore:diagnose")
def diagnose(*, leave_one_out: bool = True) -> None:
    """Say what each view contributes: structure, agreement, a copy, or noise."""


@takes(*FIT, "n_clusters", runs="explore:compare")
def compare(*, methods: str | None = None, n_resamples: int = 5) -> None:
    """Cluster with several methods, and show how far they agree, and are stable."""


@takes(*PRINTING, runs="explore:rerun")
def rerun(record_file: Path, *, labels: Path | None = None) -> None:
    """Run a recorded command again, and say whether the labels are the same."""


@takes(runs="demo:run")
def demo(out: Path = Path("demo")) -> None:
    """Cluster handwritten digits from several files, and explain the result."""


@takes(runs="bench:run")
def bench(
    plan: Path, out: Path | None = None, jobs: int | None = None, retry: bool = False
) -> None:
    """Run a benchmark plan; a second run continues where the first one stopped."""


@takes(runs="bench:report")
def report(
    source: Path,
    out: Path | None = None,
    latex: bool = False,
    figures: bool = False,
    rows: str | None = None,
) -> None:
    """Write the tables of a benchmark: scores, ranks, times and weights."""
