"""The command line: ``mkclust demo``, ``mkclust cluster``, ``mkclust --version``.

Results go to standard output and to files; progress, warnings and errors go to standard error.
Whatever goes wrong in an expected way is one line, exit code 2, and no file left behind.
"""

import csv
import difflib
import hashlib
import io
import json
import math
import os
import platform
import secrets
import shutil
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy
import sklearn

import mkclust
from mkclust import datasets, metrics, plots

try:
    import typer
    from typer.core import TyperGroup
except ImportError:
    sys.stderr.write(
        'mkclust: the command line needs typer; install it with: pip install "mkclust[cli]"\n'
    )
    raise SystemExit(2) from None

MAX_ROWS = 60  # kernels in a printed table; all of them are in run.json
MAX_SIZES = 30  # clusters whose sizes are printed

# Usage errors derive from this class. Where it lives differs between versions of typer.
UsageError: type[Exception] = typer.BadParameter.__mro__[2]


class CommandError(Exception):
    """Say on the one line that the user sees what went wrong, in a way that was to be expected."""


class OneLineErrors(TyperGroup):
    """Commands whose expected failures end in one line on standard error."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run a command and exit: 0 done, 2 failed, 130 interrupted."""
        try:
            code = super().main(args, *rest, **(extra | {"standalone_mode": False}))
        except UsageError as error:
            code = _complain(_usage(error))
        except CommandError as error:
            code = _complain(str(error))
        except (KeyboardInterrupt, typer.Abort):
            code = 130
        if code == 130:
            typer.echo("mkclust: interrupted", err=True)
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    name="mkclust",
    cls=OneLineErrors,
    help="Certified multiple kernel clustering.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A kernel's name must not end a run on a terminal that lacks one of its letters.
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="mkclust")


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Certified multiple kernel clustering."""
    if version:
        typer.echo(f"mkclust {mkclust.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


# The options of the commands, named so that the signatures below stay legible.
Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help="Files (.npz, .npy, .mat, .h5; FILE::VARIABLE for a part of one) whose views or "
        "kernels are joined in this order, or the name of a data set: "
        f"{', '.join(datasets.AVAILABLE)}.",
    ),
]
NClusters = Annotated[int, typer.Option("-k", "--clusters", min=1, help="Number of clusters.")]
Method = Annotated[str, typer.Option(help=f"One of: {', '.join(mkclust.METHODS)}.")]
Kernels = Annotated[
    str,
    typer.Option(
        metavar="auto|precomputed",
        help="auto: a 3-D array holds kernels, 2-D arrays are views; "
        "precomputed: square 2-D arrays are kernels.",
    ),
]
Solver = Annotated[str | None, typer.Option(help="Solver, where the method has several.")]
LabelsFile = Annotated[Path, typer.Option(help="Where to write the labels.")]
RunFile = Annotated[Path, typer.Option(help="Where to write the record of the run.")]
PlotFile = Annotated[Path | None, typer.Option(help="Where to draw the fit (.png, .pdf, .svg).")]
Folder = Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the k-means step.")]
NInit = Annotated[int, typer.Option(min=1, help="Restarts of the k-means step.")]
Tol = Annotated[float | None, typer.Option(help="Tolerance of the solver.")]
MaxIter = Annotated[int | None, typer.Option(min=1, help="Most iterations of the solver.")]
Psd = Annotated[
    str | None,
    typer.Option(metavar="error|clip|shift", help="What to do with an indefinite kernel."),
]
NoCenter = Annotated[bool, typer.Option("--no-center", help="Do not center the kernels.")]
NoNormalize = Annotated[
    bool, typer.Option("--no-normalize", help="Do not scale the kernels to a unit diagonal.")
]
NoValidate = Annotated[
    bool, typer.Option("--no-validate", help="Do not check that the kernels are sound.")
]


@app.command()
def demo(out: Folder = Path("demo"), seed: Seed = 0) -> None:
    """Cluster handwritten digits from several views, and explain the result."""
    started = time.perf_counter()
    picture, table = out / "digits.png", out / "labels.csv"
    _check_plot(picture)
    _check_outputs([picture, table], new_folder=True)
    data = datasets.load("digits")
    typer.echo(
        f"SimpleMKKM clusters {data.n_samples} handwritten digits from {len(data.X)} views "
        "of each image into 10 clusters."
    )
    with Progress() as progress, _recorded_warnings() as log, _expected_failures():
        progress.phase(f"clustering {data.n_samples} samples, {len(data.X)} kernels")
        model = mkclust.SimpleMKKM(10, random_state=seed).fit(data.X)
        progress.phase("drawing")
        _write(
            {
                picture: lambda path: plots.save(plots.plot_fit(model, data.y), path),
                table: lambda path: path.write_bytes(_labels_csv(model.labels_)),
            }
        )
    _show_warnings(log)
    typer.echo("\n" + _score_table(_all_scores(model, data.y)))
    typer.echo("\n" + _kernel_table(model))
    typer.echo("\n" + _certificate(model))
    typer.echo(
        f"Seconds: {model.solve_seconds_:.2f} to solve, {model.check_seconds_:.2f} to check the "
        f"kernels, {time.perf_counter() - started:.2f} in all."
    )
    typer.echo(f"\nPicture: {picture}\nLabels: {table}")


@app.command()
def cluster(
    inputs: Inputs,
    n_clusters: NClusters,
    method: Method = "simplemkkm",
    kernels: Kernels = "auto",
    solver: Solver = None,
    labels: LabelsFile = Path("labels.csv"),
    run: RunFile = Path("run.json"),
    plot: PlotFile = None,
    seed: Seed = 0,
    n_init: NInit = 10,
    tol: Tol = None,
    max_iter: MaxIter = None,
    psd: Psd = None,
    no_center: NoCenter = False,
    no_normalize: NoNormalize = False,
    no_validate: NoValidate = False,
) -> None:
    """Cluster samples from several views or kernels of them."""
    started = time.perf_counter()
    _choose("--kernels", kernels, ("auto", "precomputed"))
    options = {
        "n_clusters": n_clusters,
        "n_init": n_init,
        "random_state": seed,
        "solver": solver,
        "tol": tol,
        "max_iter": max_iter,
        "psd": psd,
        "center": False if no_center else None,
        "normalize": False if no_normalize else None,
        "validate": False if no_validate else None,
    }
    model = _build(method, options)
    _check_plot(plot)
    outputs = [labels, run, *([] if plot is None else [plot])]
    _check_outputs(outputs, inputs)
    with Progress() as progress, _recorded_warnings() as log, _expected_failures():
        progress.phase("reading")
        data = _read(inputs, kernels == "precomputed")
        model.set_params(kernels="precomputed" if data.precomputed else "auto")
        progress.phase(f"clustering {data.n_samples} samples, {data.describe()}")
        model.fit(data.X)
        scores = _all_scores(model, data.y)
        seconds = time.perf_counter() - started
        record = _record(model, method, seed, data, scores, _lines(log), seconds)
        contents: dict[Path, Callable[[Path], Any]] = {
            labels: lambda path: path.write_bytes(_labels_csv(model.labels_)),
            run: lambda path: path.write_text(_strict_json(record), encoding="utf-8"),
        }
        if plot is not None:
            progress.phase("drawing")
            contents[plot] = lambda path: plots.save(plots.plot_fit(model, data.y), path)
        _write(contents)
    _show_warnings(log)
    for line in data.notes:
        typer.echo(line)
    typer.echo(
        f"{type(model).__name__}: {data.n_samples} samples, {_count(len(model.weights_), 'kernel')}"
        f", {_count(n_clusters, 'cluster')}, {seconds:.2f} s"
    )
    typer.echo("\n" + _kernel_table(model))
    typer.echo("\n" + _cluster_sizes(model.labels_))
    if hasattr(model, "baseline_agreement_"):
        agreement = f"{model.baseline_agreement_:.3f}"
        typer.echo(f"Agreement with the average kernel's clusters (adjusted Rand): {agreement}")
    typer.echo(_certificate(model))
    if scores:
        typer.echo("\n" + _score_table(scores))
    typer.echo("\n" + "\n".join(f"Wrote {path}" for path in outputs))


# --- failures, warnings, progress ----------------------------------------------------------------


def _complain(message: str) -> int:
    """Show an error on one line, and return the exit code."""
    typer.echo(f"mkclust: error: {_one_line(message)}", err=True)
    return 2


def _one_line(text: Any) -> str:
    """Return a text without line breaks."""
    return " ".join(str(text).split())


def _usage(error: Any) -> str:
    """Return what is wrong with the arguments, and where the help is."""
    context = getattr(error, "ctx", None)
    path = "mkclust" if context is None else context.command_path
    return f"{error.format_message().rstrip('.')} (see: {path} --help)"


@contextmanager
def _expected_failures() -> Iterator[None]:
    """Turn what reading, fitting and writing are known to raise into a failure of one line."""
    try:
        yield
    except MemoryError as error:
        advice = "use fewer samples or kernels, or single precision"
        raise CommandError(f"not enough memory ({error or 'no details'}); {advice}") from error
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        raise CommandError(f"{where}{error.strerror or error}") from error
    except (ValueError, TypeError, ImportError) as error:
        raise CommandError(str(error) or type(error).__name__) from error


@contextmanager
def _recorded_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Keep warnings back, to be shown without the line of source that raised them."""
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        yield log


def _lines(log: Iterable[warnings.WarningMessage]) -> list[str]:
    """Return the warnings meant for users, each once; deprecations speak to developers."""
    kinds = (UserWarning, RuntimeWarning)
    return list(dict.fromkeys(_one_line(w.message) for w in log if issubclass(w.category, kinds)))


def _show_warnings(log: Iterable[warnings.WarningMessage]) -> None:
    """Show warnings, one plain line each."""
    for line in _lines(log):
        typer.echo(f"warning: {line}", err=True)


class Progress:
    """A line on a terminal that says what is going on and for how long; elsewhere nothing."""

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._text = ""
        self._since = time.perf_counter()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._refresh, daemon=True)

    def __enter__(self) -> "Progress":
        if self._stream.isatty():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.ident is not None:
            self._done.set()
            self._thread.join()
            self._show("")

    def phase(self, text: str) -> None:
        """Say what begins now."""
        self._text, self._since = text, time.perf_counter()

    def _refresh(self) -> None:
        shown = ""
        while not self._done.wait(0.2):
            text = f"{self._text} ... {time.perf_counter() - self._since:.0f} s"
            if text != shown:
                self._show(text)
                shown = text

    def _show(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._stream.write("\r" + " " * width + "\r" + text[:width])
        self._stream.flush()


# --- what goes in --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """The views or the kernels of all inputs, joined in order."""

    parts: dict[str, Any]
    precomputed: bool
    n_samples: int
    y: Any
    files: list[dict[str, Any]]
    notes: list[str]

    @property
    def X(self) -> Any:
        """What ``fit`` takes: one view alone is a table, from which a bank of kernels is made."""
        lone = len(self.parts) == 1 and not self.precomputed
        return next(iter(self.parts.values())) if lone else self.parts

    def describe(self) -> str:
        """Return how many there are of what."""
        return _count(len(self.parts), "kernel" if self.precomputed else "view")


def _read(inputs: Sequence[str], square: bool) -> Data:
    """Read all inputs and join what they hold, refusing what does not belong together."""
    files = [_fingerprint(text) for text in inputs]
    found = [datasets.load(text, kernels=square) for text in inputs]
    first = found[0]
    for text, data in zip(inputs, found, strict=True):
        if data.n_samples != first.n_samples:
            raise CommandError(
                f"{text} has {data.n_samples} samples but {inputs[0]} has {first.n_samples}; "
                "all inputs must describe the same samples, in the same order"
            )
        if (data.views is None) != (first.views is None):
            pair = (text, inputs[0]) if data.views is None else (inputs[0], text)
            raise CommandError(
                f"{pair[0]} holds kernels but {pair[1]} holds views; pass --kernels precomputed "
                "if its matrices are kernels, or cluster the two apart"
            )
    labeled = [(data.name, data.y) for data in found if data.y is not None]
    if any(not np.array_equal(y, labeled[0][1]) for _, y in labeled):
        warnings.warn(
            f"the inputs hold different labels; scores are those of {labeled[0][0]}",
            stacklevel=2,
        )
    parts = _join(found)
    precomputed = first.views is None
    if not precomputed and all(_looks_like_kernel(view) for view in parts.values()):
        raise CommandError(
            f"{', '.join(inputs)}: every matrix in it is square and symmetric, as kernels are; "
            "pass --kernels precomputed"
        )
    for entry, data in zip(files, found, strict=True):
        entry["description"] = data.description
    notes = [
        data.description
        for text, data in zip(inputs, found, strict=True)
        if text not in datasets.AVAILABLE and data.description
    ]
    y = labeled[0][1] if labeled else None
    return Data(parts, precomputed, first.n_samples, y, files, notes)


def _join(found: Sequence[datasets.Dataset]) -> dict[str, Any]:
    """Return all views or kernels by name, the file's name before those that clash."""
    counts = Counter(name for data in found for name in data.kernel_names)
    parts: dict[str, Any] = {}
    for data in found:
        arrays = data.X if data.views is None else data.X.values()
        for name, array in zip(data.kernel_names, arrays, strict=True):
            base = name if counts[name] == 1 else f"{data.name}/{name}"
            unique, number = base, 1
            while unique in parts:
                number += 1
                unique = f"{base} ({number})"
            parts[unique] = array
    return parts


def _looks_like_kernel(view: Any) -> bool:
    """Return whether a matrix is square and symmetric."""
    rows, columns = view.shape
    return rows == columns > 1 and bool(np.array_equal(view, view.T))


def _fingerprint(text: str) -> dict[str, Any]:
    """Return an input's name, and size and hash of its file where it is one."""
    entry: dict[str, Any] = {"input": text, "bytes": None, "sha256": None}
    path = _input_path(text)
    if path is not None and path.is_file():
        with path.open("rb") as file:
            entry["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
            entry["bytes"] = file.tell()
    return entry


def _input_path(text: str) -> Path | None:
    """Return the file that an input reads, or None for a data set's name."""
    if text in datasets.AVAILABLE:
        return None
    name = text if os.path.exists(text) else text.rpartition("::")[0] or text
    return Path(name).expanduser()


def _choose(option: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is not among the choices, suggesting the nearest."""
    if value not in choices:
        near = difflib.get_close_matches(value, choices, n=1)
        advice = f"did you mean {near[0]!r}?" if near else "choose another"
        raise CommandError(f"{option} {value!r}: unknown; {advice} (one of: {', '.join(choices)})")


def _build(method: str, options: dict[str, Any]) -> Any:
    """Return an estimator with the options that were given, refusing those it does not have."""
    _choose("--method", method, list(mkclust.METHODS))
    model = mkclust.METHODS[method]()
    given = {name: value for name, value in options.items() if value is not None}
    if extra := sorted(given.keys() - model.get_params().keys()):
        names = ", ".join(extra)
        raise CommandError(f"--method {method} has no such option: {names}; leave it out")
    return model.set_params(**given)


# --- what comes out ------------------------------------------------------------------------------


def _check_plot(path: Path | None) -> None:
    """Refuse a picture that could not be drawn, before the work begins."""
    if path is None:
        return
    try:
        from matplotlib.figure import Figure
    except ImportError:
        advice = 'pip install "mkclust[plot]"'
        raise CommandError(f"drawing {path} needs matplotlib; install it with: {advice}") from None
    known = sorted(Figure().canvas.get_supported_filetypes())
    if path.suffix[1:].lower() not in known:
        found = f"unknown suffix {path.suffix!r}" if path.suffix else "no suffix"
        raise CommandError(f"{path}: {found} for a picture; choose from: {', '.join(known)}")


def _check_outputs(
    paths: Sequence[Path], inputs: Sequence[str] = (), new_folder: bool = False
) -> None:
    """Refuse outputs that could not be written or would destroy something."""
    taken = {os.path.realpath(path) for text in inputs if (path := _input_path(text))}
    for path in paths:
        target = os.path.realpath(path)
        if target in taken:
            raise CommandError(
                f"{path}: is an input, or another output; give each output its own name"
            )
        taken.add(target)
        if os.path.isdir(target):
            raise CommandError(f"{path}: is a folder; give the name of a file in it")
        if os.path.exists(target) and not os.path.isfile(target):
            raise CommandError(f"{path}: is not a regular file; give another name")
        folder = Path(target).parent
        while new_folder and not folder.exists():
            folder = folder.parent
        if not folder.exists():
            raise CommandError(f"{path}: there is no folder {path.parent}; create it first")
        # Permission bits do not tell all (root, read-only disks), so try.
        draft = _draft(folder / "mkclust")
        try:
            draft.touch(exist_ok=False)
            draft.unlink()
        except OSError as error:
            reason = error.strerror or error
            raise CommandError(f"{path}: cannot write to this folder ({reason})") from error


def _draft(path: Path) -> Path:
    """Return a new name beside a path, with its suffix."""
    return path.with_name(f".{secrets.token_hex(4)}.{path.name}")


def _write(contents: dict[Path, Callable[[Path], Any]]) -> None:
    """Write files so that each appears whole, and none before all are written."""
    drafts: list[tuple[Path, Path]] = []
    try:
        for path, write in contents.items():
            target = Path(os.path.realpath(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            drafts.append((_draft(target), target))
            write(drafts[-1][0])
        for draft, target in drafts:
            os.replace(draft, target)
    finally:
        for draft, _ in drafts:
            draft.unlink(missing_ok=True)


def _labels_csv(labels: Any) -> bytes:
    """Return the labels as a table with one row a sample."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["sample", "label"])
    writer.writerows(enumerate(np.asarray(labels).tolist()))
    return text.getvalue().encode()


def _record(
    model: Any,
    method: str,
    seed: int,
    data: Data,
    scores: dict[str, dict[str, float]],
    told: list[str],
    seconds: float,
) -> dict[str, Any]:
    """Return all that is worth keeping of a run."""
    learned = {
        "gap": "duality_gap_",
        "objective": "objective_",
        "cluster_gap": "cluster_gap_",
        "baseline_cluster_gap": "baseline_cluster_gap_",
        "eigengap": "eigengap_",
        "baseline_agreement": "baseline_agreement_",
        "converged": "converged_",
        "n_iter": "n_iter_",
        "n_passes": "n_passes_",
    }
    names = list(scores)
    return {
        "method": method,
        "n_samples": data.n_samples,
        "n_clusters": model.n_clusters,
        "cluster_sizes": np.bincount(model.labels_),
        "kernel_names": list(model.kernel_names_),
        "weights": model.weights_,
        "alignments": model.alignments_,
        **{key: getattr(model, attribute, None) for key, attribute in learned.items()},
        "scores": scores[names[0]] if names else None,
        "baseline_scores": scores[names[1]] if len(names) > 1 else None,
        "warnings": told,
        "parameters": model.get_params(deep=False),
        "seed": seed,
        "seconds": {
            "kernels": getattr(model, "kernel_seconds_", None),
            "check": getattr(model, "check_seconds_", None),
            "solve": getattr(model, "solve_seconds_", None),
            "total": seconds,
        },
        "versions": {
            "mkclust": mkclust.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
        "inputs": data.files,
    }


def _strict_json(record: Any) -> str:
    """Return a record as JSON that every reader takes: no NaN, no infinity."""
    return json.dumps(_plain(record), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:
    """Return a value as JSON knows them, numbers that are not finite as None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else repr(value)


def _all_scores(model: Any, y: Any) -> dict[str, dict[str, float]]:
    """Return the scores of a fit and of its baseline, or nothing without labels."""
    if y is None:
        return {}
    try:
        scores = {type(model).__name__: metrics.scores(y, model.labels_)}
        if hasattr(model, "baseline_labels_"):
            scores["average kernel"] = metrics.scores(y, model.baseline_labels_)
    except (ValueError, TypeError) as error:
        # Labels never decide whether a fit succeeds.
        warnings.warn(f"no scores: {error}", stacklevel=2)
        return {}
    return scores


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text, the first column to the left and the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]))
    return "\n".join(lines)


def _score_table(scores: dict[str, dict[str, float]]) -> str:
    """Return scores in percent."""
    keys = ("acc", "nmi", "purity", "ari")
    rows = [["scores (%)", "ACC", "NMI", "purity", "ARI"]]
    rows += [
        [name, *(f"{100 * values[key]:.1f}" for key in keys)] for name, values in scores.items()
    ]
    return _table(rows)


def _kernel_table(model: Any) -> str:
    """Return weights beside alignments, and the sentence on how to read them."""
    triples = zip(model.kernel_names_, model.weights_, model.alignments_, strict=True)
    rows = [["kernel", "weight", "alignment"]]
    rows += [[str(name), f"{weight:.4f}", f"{share:.4f}"] for name, weight, share in triples]
    hidden = len(rows) - 1 - MAX_ROWS
    lines = [_table(rows[: MAX_ROWS + 1])]
    if hidden > 0:
        lines.append(f"... and {hidden} more, in the record of the run")
    certified = hasattr(model, "duality_gap_")
    lines.append(plots.LARGE_WEIGHT if certified else plots.MIXING_WEIGHT)
    return "\n".join(lines)


def _cluster_sizes(labels: Any) -> str:
    """Return how many samples each cluster has, or their range where there are many."""
    sizes = np.bincount(labels)
    if len(sizes) <= MAX_SIZES:
        return f"Cluster sizes: {' '.join(map(str, sizes))}"
    middle = int(np.median(sizes))
    return f"Cluster sizes: {sizes.min()} to {sizes.max()}, median {middle}"


def _certificate(model: Any) -> str:
    """Return in a sentence how near the fit is to the global optimum, and what that leaves open."""
    gap = getattr(model, "duality_gap_", None)
    if gap is None:
        state = "converged" if model.converged_ else "stopped before it converged"
        return f"{type(model).__name__} {state} after {_count(model.n_iter_, 'iteration')}."
    if not model.converged_:
        return (
            f"Certificate: relative gap {gap:.1e}, and the solver stopped early: the objective is "
            "at most this far above the global optimum of the relaxed problem."
        )
    return (
        f"Certificate: relative gap {gap:.1e}. The relaxed problem is solved to global "
        "optimality; it does not say that clusters exist, that k is right or that the kernels "
        "are good."
    )


def _count(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


if __name__ == "__main__":
    main()
