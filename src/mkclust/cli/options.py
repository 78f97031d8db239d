"""The arguments and options of all commands, with their help texts."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from mkclust.recommended import RECOMMENDED

# The panels of the help.
INPUT, METHOD, OUTPUT, ADVANCED = "Input", "Method", "Output", "Advanced"
AUTO = "auto"


def number_or(*words: str) -> Callable[[Any], int | str]:
    """Return a parser of numbers of at least 1, or of some words."""

    def parse(text: Any) -> int | str:
        """Return the value of a text, or refuse it."""
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


def _option(panel: str, metavar: str, help: str, *names: str, **more: Any) -> Any:
    more |= {"rich_help_panel": panel, "show_default": False, "metavar": metavar or " "}
    return typer.Option(*names, help=help, **more)


def _output(metavar: str, help: str, *names: str) -> Any:
    return _option(OUTPUT, metavar, help, *names, parser=output_path)


_OWN_CODE = (
    "If it names package.module:Class, that module is imported, which runs its code."
)
OPTIONS: dict[str, Any] = {
    "model_file": typer.Argument(
        metavar="MODEL", help="Model saved by mkclust cluster --save."
    ),
    "inputs": typer.Argument(
        metavar="FILE",
        help="Tables, or kernels, of the same samples. Tables are joined by the ids of "
        "their rows. FILE::NAME,NAME selects sheets, columns or arrays.",
    ),
    "id": _option(INPUT, "[FILE=]COLUMN", "Column of ids; found if not given."),
    "samples_in": _option(INPUT, "[FILE=]rows|columns", "Where samples are; rows."),
    "drop": _option(INPUT, "[FILE=]COLUMN", "Column to ignore."),
    "missing": _option(INPUT, "[FILE=]VALUE", "Value of empty cells, such as -9999."),
    "trim_ids": _option(INPUT, "[FILE=]N", "Keep the first N characters of ids."),
    "groups": _option(
        INPUT,
        "COLUMN",
        "Column of families, patients, batches or plates, whose samples are similar.",
    ),
    "adjust_for": _option(
        INPUT,
        "FILE[::COLUMN,COLUMN]",
        "Covariates, such as age or batch: what is linear in them is removed from the "
        "tables before the fit. For hazard ratios: --adjust.",
    ),
    "join": _option(
        INPUT,
        "exact|inner|outer",
        "Keep samples if all files have the same (exact), those in all (inner), or in "
        "any (outer).",
    ),
    "impute": _option(
        INPUT, "median", "Fill empty cells: median, or most frequent category."
    ),
    "n_clusters": _option(
        METHOD,
        "N|auto",
        "Number of clusters; auto: the one that fits best.",
        "-k",
        "--clusters",
        parser=number_or(AUTO),
    ),
    "first": _option(METHOD, "N", "Smallest number of clusters.", "--from", min=2),
    "last": _option(
        METHOD, "N", "Largest number; 25 by default, or fewer.", "--to", min=2
    ),
    "method": _option(
        METHOD,
        "NAME",
        f"{RECOMMENDED} by default; anchored-mkkm, simplemkkm, avg-kkm, ... or "
        "module:Class.",
        autocompletion=lambda: list(import_module("mkclust.methods").METHODS),
    ),
    "methods": _option(METHOD, "NAME,NAME", "By default all that are fast enough."),
    "n_resamples": _option(
        METHOD, "N", "Refits that measure stability; 5.", "--resamples", min=0
    ),
    "leave_one_out": _option(
        METHOD,
        "",
        "Cluster again without each kernel in turn, which takes most of the time.",
    ),
    "kernels": _option(
        METHOD,
        "[VIEW=]KERNEL",
        "How samples are compared: gaussian, cosine, ...; precomputed if files hold "
        "kernels, from_distances if they hold distances. Chosen by default.",
    ),
    "scale": _option(
        METHOD,
        "[VIEW=]HOW",
        "Scale columns: standard, robust, log (log2(x + 1)), none.",
    ),
    "seed": _option(METHOD, "INT", "Seed of k-means; 0.", min=0),
    "missing_views": _option(
        ADVANCED, "learn|rescale|zero", "Samples that a table lacks."
    ),
    "settings": _option(
        ADVANCED, "NAME=VALUE", "Any other parameter: tol=1e-4.", "--set"
    ),
    "landmarks": _option(
        ADVANCED,
        "N|auto|none",
        "Approximate kernels; none: never. By default above 10,000 samples, but never "
        "with agreement-kkm, which needs none.",
        parser=number_or(AUTO, "none"),
    ),
    "address": _option(
        ADVANCED,
        "ADDRESS",
        "Scheduler of dask.distributed, such as tcp://host:8786, for .npy and .parquet "
        "files.",
        "--cluster",
    ),
    "labels": _output("PATH", "Table of ids and clusters (.csv)."),
    "record": _output(
        "PATH", "Record of the run; run.json next to the labels.", "--run"
    ),
    "report": _output("PATH", "Page about the fit (.html)."),
    "plot": _output("PATH", "Picture of the fit (.png, .pdf, .svg)."),
    "picture": _output("PATH", "Tree of the clusters (.png, .pdf, .svg)."),
    "save": _output("PATH", "Fitted model (.skops), for mkclust predict."),
    "annotate": _option(
        OUTPUT, "FILE", "Test whether clusters differ in variables of this file."
    ),
    "time": _option(OUTPUT, "COLUMN", "Survival times, for --annotate."),
    "event": _option(OUTPUT, "COLUMN", "1 for an event, else 0, for --annotate."),
    "adjust": _option(
        OUTPUT,
        "COLUMN,COLUMN",
        "Columns of --annotate that hazard ratios of survival are adjusted for, after "
        "the fit. To cluster without them: --adjust-for.",
    ),
    "align_with": _option(
        OUTPUT,
        "FILE",
        "Number clusters as in earlier labels (.csv) or an earlier model (.skops).",
    ),
    "names": _option(OUTPUT, "N=NAME,N=NAME", "Names of clusters: 0=basal,1=luminal."),
    "as_json": _option(OUTPUT, "", "Print JSON instead of text.", "--json"),
    "quiet": _option(OUTPUT, "", "No progress, no warnings.", "-q", "--quiet"),
    "verbose": _option(
        OUTPUT, "", "Weights, kernels, solver and times.", "-v", "--verbose"
    ),
    "record_file": typer.Argument(
        metavar="RUN.json", help=f"Record of a run. {_OWN_CODE}"
    ),
    "plan": typer.Argument(metavar="PLAN.toml", help=f"What to run. {_OWN_CODE}"),
    "source": typer.Argument(
        metavar="DIR", help="Folder with the results of mkclust bench."
    ),
    "out": _output("DIR", "Folder for the results."),
    "figures": _option(
        OUTPUT,
        "",
        "Also draw weights, times, convergence and ranks, as PDF and PNG.",
        "--figures",
    ),
    "latex": _option(OUTPUT, "", "Also write the scores as LaTeX.", "--latex"),
    "rows": _option(
        OUTPUT,
        "datasets|methods",
        "Rows of tables of LaTeX; by default those of which there are more.",
    ),
    "jobs": _option(
        METHOD, "N", "Number of processes; by default one per core.", min=1
    ),
    "retry": _option(METHOD, "", "Run again what failed before.", "--retry"),
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a command was asked for: the options that several commands share."""

    inputs: Sequence[str] = ()
    id: Sequence[str] = ()
    samples_in: Sequence[str] = ()
    drop: Sequence[str] = ()
    missing: Sequence[str] = ()
    trim_ids: Sequence[str] = ()
    groups: str | None = None
    adjust_for: str | None = None
    annotate: str | None = None
    align_with: str | None = None
    join: str | None = None
    impute: str | None = None
    n_clusters: Any = AUTO
    method: str = RECOMMENDED
    kernels: Sequence[str] = ()
    scale: Sequence[str] = ()
    seed: int = 0
    missing_views: str | None = None
    settings: Sequence[str] = ()
    landmarks: Any = AUTO
    address: str | None = None
    as_json: bool = False
    quiet: bool = False
    verbose: bool = False

    @property
    def files(self) -> list[str]:
        """The files of all tables, of those that are not clustered, too."""
        others = (self.annotate, self.adjust_for, self.align_with)
        return [*self.inputs, *(each for each in others if each is not None)]

    @property
    def asked_kernels(self) -> str | dict[str, str]:
        """The kernel for all views, or kernels by the names of views."""
        return _by_view("--kernels", self.kernels)

    @property
    def asked_scale(self) -> str | dict[str, str]:
        """How columns are scaled in all views, or by the names of views."""
        return _by_view("--scale", self.scale)


# Options of a request that say how files are read, what is printed, and those of a fit
# for any k.
FILES = ("inputs", "id", "samples_in", "drop", "missing", "trim_ids")
PRINTING = ("as_json", "quiet", "verbose")
KERNELS = ("missing_views", "kernels", "scale", "settings", "seed", "landmarks")
FIT = (*FILES, "groups", "adjust_for", "join", "impute", *KERNELS, *PRINTING)


def takes(*names: str, runs: str) -> Any:
    """Have a command take options of a request, and its own, and run ``module:name``.

    The module is imported when the command runs: help and mistakes need none. What it
    runs takes the request as ``request``, and the command's own options one by one.
    """

    def decorate(declared: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(declared).parameters.values()
        options = [(p.name, p.annotation, p.default) for p in own]
        options += [
            (f.name, f.type, f.default) for f in fields(Request) if f.name in names
        ]

        def command(**values: Any) -> None:
            if names:
                values["request"] = Request(
                    **{name: values.pop(name) for name in names}
                )
            module, _, name = runs.partition(":")
            function = getattr(import_module(f"mkclust.cli.{module}"), name)
            try:
                function(**values)
            except ValueError as error:
                if not set(FIT) <= set(names):
                    raise
                from mkclust.cli.obstacles import explain

                raise explain(values["request"], error) from error

        command.__doc__ = declared.__doc__
        command.__name__ = declared.__name__
        # In the help, options are in the order of their panels and of their texts.
        panels = [None, INPUT, METHOD, OUTPUT, ADVANCED]
        order = list(OPTIONS)
        options.sort(key=lambda option: order.index(option[0]))
        options.sort(key=lambda each: panels.index(OPTIONS[each[0]].rich_help_panel))
        parameters = [_parameter(*option) for option in options]
        signature = inspect.Signature(parameters)
        command.__signature__ = signature  # type: ignore[attr-defined]
        return command

    return decorate


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    """Return the parameter of an option as typer takes it."""
    if kind == Sequence[str]:
        kind = list[str]
    # Options that have no default.
    if name in ("inputs", "n_clusters"):
        default = inspect.Parameter.empty
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, OPTIONS[name]],
    )


def _by_view(option: str, values: Sequence[str]) -> str | dict[str, str]:
    """Return one value for all views, or values by the names of views."""
    pairs = [
        (name, value) for name, _, value in (each.rpartition("=") for each in values)
    ]
    if len(pairs) == 1 and not pairs[0][0]:
        return pairs[0][1]
    if any(not name or not value for name, value in pairs):
        given = f" {option} ".join(values)
        raise typer.BadParameter(
            f"{option} {given}: give one for all views, or VIEW= each time"
        )
    return dict(pairs) or AUTO
