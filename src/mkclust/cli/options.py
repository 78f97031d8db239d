"""The arguments and options of the commands, named so that their signatures stay legible."""

import unicodedata
from pathlib import Path
from typing import Annotated, Any

import typer

from mkclust import datasets
from mkclust.cli.approximation import LANDMARKS, MOST_EXACT_SAMPLES
from mkclust.cli.method import parse_value
from mkclust.methods import METHODS


def output_path(text: Any) -> Path:
    """Return the path that a text names, refusing one that can only be a mistake."""
    if text == "":
        raise typer.BadParameter("the path is empty; give the name of a file")
    if any(unicodedata.category(character) == "Cc" for character in str(text)):
        raise typer.BadParameter(f"{str(text)!r} has a line break or the like in it; leave it out")
    return Path(text)


Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help="Files (.csv, .tsv, .txt, also .gz; .xlsx, .parquet, .feather, .npz, .npy, "
        ".mat, .h5, .h5ad, .h5mu; FILE::VARIABLE for a part of one) with views or "
        "kernels of the same samples. Tables are joined by the ids of their rows. Or "
        f"the name of a data set: {', '.join(datasets.CATALOG)}.",
    ),
]
AUTO = "auto"


def complete_method(incomplete: str) -> list[str]:
    """Return the methods whose names begin so, for a shell to complete."""
    return [name for name in METHODS if name.startswith(incomplete)]


def number_of_clusters(text: Any) -> int | str:
    """Return the number of clusters that a text spells, or ``"auto"``."""
    number = text if text == AUTO else parse_value(str(text))
    if number != AUTO and (not isinstance(number, int) or number < 1):
        raise typer.BadParameter(
            f"{text!r} is not a number of clusters: give a whole number, 1 or more, or auto"
        )
    return number


NClusters = Annotated[
    Any,
    typer.Option(
        "-k",
        "--clusters",
        parser=number_of_clusters,
        metavar="N|auto",
        help="Number of clusters; auto: the number that mkclust suggest finds evidence for.",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        autocompletion=complete_method,
        help=f"One of: {', '.join(METHODS)}; or package.module:Class, a method of your own "
        "(the module is imported, which runs its code).",
    ),
]
Kernels = Annotated[
    list[str] | None,
    typer.Option(
        metavar="auto|gaussian|on-the-fly|precomputed|KERNEL|VIEW=KERNEL",
        help="auto: a 3-D array holds kernels; a 2-D array is a view, and its kernel is "
        "chosen by the kind of the view. gaussian: all inputs are views, with "
        "Gaussian kernels of the rows as they are. on-the-fly: exact kernels of "
        "views, computed when needed and never stored. precomputed: square matrices "
        "are kernels. from_distances: square matrices are distances. Or the name of "
        "a kernel, such as cosine, for all views, or VIEW=KERNEL for one view; can "
        "be given several times.",
    ),
]
# The options of every command that reads tables.
Id = Annotated[
    list[str] | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Column of the tables that holds the ids of the samples; FILE=COLUMN for one "
        "file. By default, the first column holds the ids if it has no name, if it "
        "is called id, sample, patient or similar, or if its text differs in every "
        "row.",
    ),
]
SamplesIn = Annotated[
    list[str] | None,
    typer.Option(
        "--samples-in",
        metavar="rows|columns",
        help="Whether samples are in the rows or in the columns of tables; FILE=columns "
        "for one file.",
    ),
]
Join = Annotated[
    str,
    typer.Option(
        metavar="exact|inner|outer",
        help="exact: all tables must have the same samples; inner: keep the samples that "
        "are in all tables; outer: keep the samples that are in any table.",
    ),
]
Impute = Annotated[
    str | None,
    typer.Option(
        metavar="median",
        help="How to fill empty cells. median: the median of the column, or the most "
        "frequent category.",
    ),
]
MissingViews = Annotated[
    str | None,
    typer.Option(
        metavar="learn|zero|rescale",
        help="How to treat samples that are missing from a view. learn: the clusters "
        "predict their similarities; rescale: their other views count more; zero: they get "
        "similarity zero in that view. By default the best that the method has: learn, or "
        "rescale if it cannot learn.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="COLUMN",
        help="Column of the tables to ignore; FILE=COLUMN for one file.",
    ),
]
ApproximationChoice = Annotated[
    str,
    typer.Option(
        "--approximation",
        metavar="auto|nystroem|none",
        help="none: exact kernels of all pairs of samples. nystroem: approximate the "
        "kernels of views with landmarks; memory then grows with the number of "
        f"samples, not with its square. auto: exact up to {MOST_EXACT_SAMPLES:,} "
        "samples if the kernels fit into memory.",
    ),
]
Landmarks = Annotated[
    int | None,
    typer.Option(
        min=1,
        help=f"Number of landmarks for each view, if landmarks are used; {LANDMARKS} by default.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Run on the workers of a dask.distributed scheduler, such as "
        "tcp://host:8786. The workers read the inputs (.npy, .h5, .parquet) "
        "themselves, from the same paths as here. Implies an approximation.",
    ),
]
Solver = Annotated[str | None, typer.Option(help="Solver, if the method has several.")]
Anchor = Annotated[
    Any,
    typer.Option(
        parser=parse_value,
        metavar="auto|NUMBER",
        help="For anchored-mkkm only: how strongly the partition is pulled toward the one "
        "that the views agree on; 0 is SimpleMKKM on the views that agree.",
    ),
]
OUTPUT: dict[str, Any] = {"parser": output_path, "metavar": "PATH"}
LabelsFile = Annotated[Path, typer.Option(**OUTPUT, help="Where to write the labels.")]
RunFile = Annotated[
    Path | None,
    typer.Option(
        **OUTPUT,
        help="Where to write the record of the run; by default beside the labels: run.json for "
        "labels.csv, NAME.run.json for other names.",
    ),
]
AnnotationFile = Annotated[
    str | None,
    typer.Option(
        "--annotate",
        metavar="FILE",
        help="File with variables that were not used for clustering. Tests whether the "
        "clusters differ in each of them. Samples are matched by id if both have "
        "ids, otherwise by row.",
    ),
]
PlotFile = Annotated[
    Path | None,
    typer.Option(**OUTPUT, help="Where to write a picture of the fit (.png, .pdf, .svg)."),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        **OUTPUT, help="Where to write a page about the fit (.html), to open in a browser."
    ),
]
ModelFile = Annotated[
    Path | None,
    typer.Option(
        **OUTPUT, help="Where to save the fitted model (.skops), for mkclust predict to load."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON instead of tables.")]
Quiet = Annotated[
    bool,
    typer.Option(
        "-q",
        "--quiet",
        help="Show no progress and no warnings; commands that write files print nothing.",
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "-v",
        "--verbose",
        help="Also say how each view was understood, and how long each step took.",
    ),
]
Folder = Annotated[
    Path, typer.Option(parser=output_path, metavar="DIR", help="Folder for the results.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the k-means step.")]
NInit = Annotated[int | None, typer.Option(min=1, help="Number of starts of the k-means step.")]
Tol = Annotated[float | None, typer.Option(help="Tolerance of the solver.")]
MaxIter = Annotated[
    int | None, typer.Option(min=1, help="Largest number of iterations of the solver.")
]
Psd = Annotated[
    str | None,
    typer.Option(metavar="error|clip|shift", help="What to do with an indefinite kernel."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other parameter of the method, such as reg=0.5 or normalize=false; can be given "
        "several times.",
    ),
]
Center = Annotated[bool | None, typer.Option("--center/--no-center", help="Center the kernels.")]
Normalize = Annotated[
    bool | None,
    typer.Option("--normalize/--no-normalize", help="Scale the kernels to a unit diagonal."),
]
