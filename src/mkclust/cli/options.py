"""The arguments and options of the commands, named so that their signatures stay legible."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from mkclust import datasets
from mkclust.methods import METHODS, RECOMMENDED

# The panels of the help.
INPUT, METHOD, OUTPUT, ADVANCED = "Input", "Method", "Output", "Advanced"
AUTO = "auto"


def number_or(*words: str) -> Callable[[Any], int | str]:
    """Return a parser of numbers of at least 1, or of some words."""

    def parse(text: Any) -> int | str:
        if str(text) in words:
            return str(text)
        if not str(text).isdigit() or int(text) < 1:
            expected = " or ".join(["a number of at least 1", *words])
            raise typer.BadParameter(f"{text!r}: give {expected}")
        return int(text)

    return parse


def output_path(text: Any) -> Path:
    """Return the path that a text names, refusing one that can only be a mistake."""
    if not str(text).isprintable() or not str(text):
        raise typer.BadParameter(f"{str(text)!r} is not the name of a file")
    return Path(text)


def complete_method(incomplete: str) -> list[str]:
    """Return the methods whose names begin so, for a shell to complete."""
    return [name for name in METHODS if name.startswith(incomplete)]


def _option(panel: str, metavar: str, help: str, *names: str, **more: Any) -> Any:
    """Return an option in a panel of the help."""
    more |= {"rich_help_panel": panel, "show_default": False, "metavar": metavar or None}
    return typer.Option(*names, help=help, **more)


def _path(help: str, *names: str) -> Any:
    """Return an option that names a file to write."""
    return _option(OUTPUT, "PATH", help, *names, parser=output_path)


Texts: TypeAlias = list[str] | None
Text: TypeAlias = str | None
Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help="Tables or kernels of the same samples: .csv .tsv .txt (.gz) .xlsx .parquet .feather "
        ".npz .npy .mat .h5 .h5ad .h5mu; FILE::NAME,NAME selects from a file. Tables are joined "
        f"by the ids of their rows. Or a data set: {', '.join(datasets.CATALOG)}.",
    ),
]
_ID = "Column of ids; by default the first one if it is called like ids or holds such."
Id = Annotated[Texts, _option(INPUT, "[FILE=]COLUMN", _ID)]
_SIDE = "Where the samples are; rows by default."
SamplesIn = Annotated[Texts, _option(INPUT, "[FILE=]rows|columns", _SIDE)]
Drop = Annotated[Texts, _option(INPUT, "[FILE=]COLUMN", "Column to ignore.")]
_EMPTY = "Value that stands for an empty cell, such as -9999."
Missing = Annotated[Texts, _option(INPUT, "[FILE=]VALUE", _EMPTY)]
_TRIM = "Keep the first N characters of ids."
TrimIds = Annotated[Texts, _option(INPUT, "[FILE=]N", _TRIM)]
_JOIN = (
    "Require the same samples in all tables (exact, the default), keep those in all of them "
    "(inner), or those in any (outer)."
)
Join = Annotated[Text, _option(INPUT, "exact|inner|outer", _JOIN)]
_IMPUTE = "Fill empty cells with the median, or the most frequent category."
Impute = Annotated[Text, _option(INPUT, "median", _IMPUTE)]
_MISSING = (
    "How to treat samples that a table lacks: predict their similarities, count their other "
    "tables more, or take their similarities as zero."
)
MissingViews = Annotated[Text, _option(INPUT, "learn|rescale|zero", _MISSING)]
_CLUSTERS = "Number of clusters; auto: as many as there is evidence for."
NClusters = Annotated[
    Any, _option(METHOD, "N|auto", _CLUSTERS, "-k", "--clusters", parser=number_or(AUTO))
]
_METHOD = f"One of {', '.join(METHODS)}; or package.module:Class, which imports that module."
Method = Annotated[str, _option(METHOD, "NAME", _METHOD, autocompletion=complete_method)]
_KERNELS = (
    "precomputed: matrices are kernels; from_distances: they are distances; on-the-fly: exact "
    "kernels that are never stored; or a kernel such as gaussian or cosine. By default the kernel "
    "that suits the numbers of each view."
)
Kernels = Annotated[Texts, _option(METHOD, "[VIEW=]KERNEL", _KERNELS)]
_SCALE = "Scale columns: standard, robust or none."
Scale = Annotated[Texts, _option(METHOD, "[VIEW=]HOW", _SCALE)]
_SET = "Any other parameter of the method, as in Python: tol=1e-4, psd=clip, center=false."
Settings = Annotated[Texts, _option(METHOD, "NAME=VALUE", _SET, "--set")]
Seed = Annotated[int, _option(METHOD, "INT", "Seed of k-means; 0 by default.", min=0)]
_LANDMARKS = (
    "Approximate the kernels of views by N landmarks each; none: exact kernels. By default exact "
    "up to 10,000 samples if they fit into memory, then 200 landmarks."
)
Landmarks = Annotated[
    Any, _option(ADVANCED, "auto|none|N", _LANDMARKS, parser=number_or(AUTO, "none"))
]
_CLUSTER = (
    "Compute on the dask.distributed scheduler at tcp://host:8786, whose workers read .npy and "
    ".parquet files under the same paths; implies landmarks."
)
Address = Annotated[Text, _option(ADVANCED, "ADDRESS", _CLUSTER, "--cluster")]
LabelsFile = Annotated[Path, _path("Table of ids and clusters; labels.csv by default.")]
PredictedFile = Annotated[
    Path, _path("Table of ids and clusters; predicted.csv by default.", "--labels")
]
RunFile = Annotated[Path | None, _path("Record of the run; run.json beside the labels.", "--run")]
PlotFile = Annotated[Path | None, _path("Picture of the fit (.png, .pdf, .svg).")]
ReportFile = Annotated[Path | None, _path("Page about the fit (.html), for a browser.")]
ModelFile = Annotated[Path | None, _path("Fitted model (.skops), for mkclust predict.")]
_ANNOTATE = "Test whether the clusters differ in variables of this file."
AnnotationFile = Annotated[Text, _option(OUTPUT, "FILE", _ANNOTATE)]
Time = Annotated[Text, _option(OUTPUT, "COLUMN", "Of --annotate: survival times.")]
Event = Annotated[Text, _option(OUTPUT, "COLUMN", "Of --annotate: 1 for an event, else 0.")]
Json = Annotated[bool, _option(OUTPUT, "", "Print JSON instead of tables.", "--json")]
Quiet = Annotated[bool, _option(OUTPUT, "", "No progress and no warnings.", "-q", "--quiet")]
_VERBOSE = "Explain the kernels, and time each step."
Verbose = Annotated[bool, _option(OUTPUT, "", _VERBOSE, "-v", "--verbose")]
Folder = Annotated[
    Path, typer.Option(parser=output_path, metavar="DIR", help="Folder for the results.")
]


@dataclass(frozen=True)
class Request:
    """What is to be fitted: the options of a command, by their names."""

    inputs: Sequence[str]
    n_clusters: int | str = AUTO
    method: str = RECOMMENDED
    kernels: Sequence[str] = ()
    scale: Sequence[str] = ()
    id: Sequence[str] = ()
    samples_in: Sequence[str] = ()
    drop: Sequence[str] = ()
    missing: Sequence[str] = ()
    trim_ids: Sequence[str] = ()
    join: str | None = None
    impute: str | None = None
    missing_views: str | None = None
    landmarks: int | str = AUTO
    address: str | None = None
    settings: Sequence[str] = ()
    seed: int = 0

    @classmethod
    def of(cls, context: typer.Context) -> "Request":
        """Return the options of a command that say what to fit; others keep their defaults."""
        names = {field.name for field in fields(cls)}
        given = {n: v for n, v in context.params.items() if n in names and v not in (None, ())}
        return cls(**given)

    @property
    def asked_kernels(self) -> str | dict[str, str]:
        """The kernel for all views, or kernels by the names of views."""
        return _by_view("--kernels", self.kernels)

    @property
    def asked_scale(self) -> str | dict[str, str]:
        """How columns are scaled in all views, or by the names of views."""
        return _by_view("--scale", self.scale)


def _by_view(option: str, values: Sequence[str]) -> str | dict[str, str]:
    """Return one value for all views, or values by the names of views."""
    pairs = [(name, value) for name, _, value in (each.rpartition("=") for each in values)]
    if len(pairs) == 1 and not pairs[0][0]:
        return pairs[0][1]
    if any(not name or not value for name, value in pairs):
        given = f" {option} ".join(values)
        raise typer.BadParameter(f"{option} {given}: give one for all views, or VIEW= each time")
    return dict(pairs) or AUTO
