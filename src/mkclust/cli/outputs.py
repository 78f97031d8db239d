"""What comes out: outputs checked before the work begins, then written whole or not at all."""

import json
import math
import os
import platform
import secrets
import signal
import stat
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from mkclust import metrics, plots
from mkclust.cli.failures import CommandError
from mkclust.cli.inputs import Data, input_path
from mkclust.explain.page import fit_page
from mkclust.version import __version__
from mkclust.web import plotting_script


def check_plot(path: Path | None) -> None:
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


def check_report(path: Path | None) -> None:
    """Refuse a page that could not be written, before the work begins."""
    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        found = f"unknown suffix {path.suffix!r}" if path.suffix else "no suffix"
        raise CommandError(f"{path}: {found} for a report, which is a page: name it .html")
    try:
        plotting_script()
    except ImportError as error:
        raise CommandError(f"writing {path}: {error}") from None


def check_outputs(
    paths: Sequence[Path], inputs: Sequence[str] = (), new_folder: bool = False
) -> None:
    """Refuse outputs that could not be written or would destroy something."""
    taken = [path for text in inputs if (path := input_path(text))]
    for path in paths:
        check_apart([path], taken)
        taken.append(path)
        _check_target(path)
        folder = Path(os.path.realpath(path)).parent
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


def check_apart(paths: Sequence[Path], taken: Sequence[Path]) -> None:
    """Refuse outputs that are one of the files that are taken, whatever its name."""
    for path in paths:
        if any(_is_same_file(path, other) for other in taken):
            raise CommandError(
                f"{path}: is an input, or another output; give each output its own name"
            )


def _is_same_file(path: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file, be it there or not."""
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    return path.exists() and other.exists() and os.path.samefile(path, other)


def _check_target(path: Path) -> None:
    """Refuse to replace what is not a plain file of its own."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}; give another name") from error
    if stat.S_ISDIR(status.st_mode):
        raise CommandError(f"{path}: is a folder; give the name of a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise CommandError(
            f"{path}: is not a regular file, which alone is written whole or not at all; give "
            "another name"
        )
    for stream, name in ((1, "standard output"), (2, "standard error")):
        with suppress(OSError):
            if os.path.samestat(os.fstat(stream), status):
                raise CommandError(f"{path}: is where {name} goes; give another name")


def _draft(path: Path) -> Path:
    """Return a new name beside a path, with its suffix."""
    return path.with_name(f".{secrets.token_hex(8)}{path.suffix}")


def write_files(contents: dict[Path, Callable[[Path], Any]]) -> None:
    """Write files so that each appears whole, and none before all are written."""
    drafts: list[tuple[Path, Path]] = []
    try:
        for path, write in contents.items():
            target = Path(os.path.realpath(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            drafts.append((_draft(target), target))
            write(drafts[-1][0])
        with _interrupted_afterwards():
            for draft, target in drafts:
                os.replace(draft, target)
    finally:
        with _interrupted_afterwards():
            for draft, _ in drafts:
                draft.unlink(missing_ok=True)


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Have Ctrl-C wait until what is inside is done."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread is interrupted.
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        # None: a handler that was not set from Python, which cannot be put back from here.
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
    if pressed and before is not signal.SIG_IGN:
        raise KeyboardInterrupt


def draw_last(path: Path, model: Any, y: Any, *, written: str) -> None:
    """Draw a fit whose labels are written already, which a failure says."""
    try:
        write_files({path: lambda draft: plots.save(plots.plot_fit(model, y), draft)})
    except Exception as error:
        # Drawing may raise nearly anything, and none of it takes back a finished fit.
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        raise CommandError(
            f"{path}: cannot be drawn ({reason}); the labels and the record were written: {written}"
        ) from error


def report_last(
    path: Path, model: Any, X: Any, y: Any, told: Sequence[str], *, written: str
) -> None:
    """Write the page of a fit whose labels are written already, which a failure says."""
    try:
        page = fit_page(model, X, y=y, warned=told)
        write_files({path: lambda draft: draft.write_text(page, encoding="utf-8")})
    except Exception as error:
        # As with pictures: no failure here takes back a finished fit.
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        raise CommandError(
            f"{path}: cannot be written ({reason}); the labels and the record were written: "
            f"{written}"
        ) from error


def labels_csv(labels: Any) -> bytes:
    """Return the labels as a table with one row a sample."""
    rows = map("%d,%d".__mod__, enumerate(np.asarray(labels).tolist()))
    return "\n".join(["sample,label", *rows, ""]).encode()


def run_record(
    model: Any,
    method: str,
    seed: int,
    data: Data,
    scores: dict[str, dict[str, float]],
    told: list[str],
    seconds: float,
    landmarks: int | None = None,
) -> dict[str, Any]:
    """Return all that is worth keeping of a run."""
    learned = {
        "gap": "duality_gap_",
        "certificate": "certificate_",
        "objective": "objective_",
        "cluster_gap": "cluster_gap_",
        "baseline_cluster_gap": "baseline_cluster_gap_",
        "eigengap": "eigengap_",
        "baseline_agreement": "baseline_agreement_",
        "converged": "converged_",
        "n_iter": "n_iter_",
        "n_passes": "n_passes_",
        "approximation_error": "approximation_error_",
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
        "approximation": None if landmarks is None else "nystroem",
        "landmarks": landmarks,
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
            "mkclust": __version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
        "inputs": data.files,
    }


def strict_json(record: Any) -> str:
    """Return a record as JSON that every reader takes: no NaN, no infinity, nothing invisible."""
    text = json.dumps(_plain(record), indent=2, allow_nan=False, ensure_ascii=False)
    # Only within strings can there be such characters, so that an escape reads as the same text.
    shown = (c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
    return "".join(shown) + "\n"


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


def all_scores(model: Any, y: Any) -> dict[str, dict[str, float]]:
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
