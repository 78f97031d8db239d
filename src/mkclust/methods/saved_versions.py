"""What a stored model notes of the versions that wrote it, and what becomes of other versions.

The rule, for files of `mkclust.save_model`, for pickles and for joblib alike:

- A model of another format, or of a newer release than the library (0.3 read by 0.2), is refused:
  it may hold what this library does not know.
- A model of the same format and of this or an older release is loaded. Where mkclust, NumPy, SciPy
  or scikit-learn have other versions than they had, a `ModelVersionWarning` says which.

Releases are told by their first two numbers; the third one changes nothing that is stored. The
format is a number that grows when models of older releases can no longer be read.
"""

import re
import warnings
from typing import Any

from mkclust.text import join_words
from mkclust.version import __version__, versions

FORMAT = 1
# The name of the note in the state of a model.
NOTE = "_saved_with"
# Packages whose other versions may compute otherwise.
COMPARED = ("mkclust", "numpy", "scipy", "scikit-learn")


class ModelVersionError(ValueError):
    """A stored model was written by a version that this one may misread."""


class ModelVersionWarning(UserWarning):
    """A stored model was written with other versions of what it computes with."""


def version_note() -> dict[str, Any]:
    """Return what a stored model says of its origin: its format, and versions by package."""
    return {"format": FORMAT, "versions": versions()}


def check_format(note: Any, what: str) -> None:
    """Refuse a model that this library may misread.

    Parameters
    ----------
    note : dict or anything
        As `version_note` returns it; what is not one tells nothing, and is taken for the first
        format, whose pickles had no note.
    what : str
        What is loaded, for messages: a file, or a model.
    """
    note = note if isinstance(note, dict) else {}
    saved, stored_format = _saved_versions(note), note.get("format", 1)
    writer = saved.get("mkclust", "an unknown version")
    newer = _release(saved.get("mkclust")) > _release(__version__)
    if newer or (isinstance(stored_format, int) and stored_format > FORMAT):
        raise ModelVersionError(
            f"{what} was written by mkclust {writer}, in the format {stored_format!r}; this is "
            f"mkclust {__version__}, which reads the format {FORMAT} of its own and older "
            "releases: upgrade mkclust, or fit the model again"
        )
    if stored_format != FORMAT:
        raise ModelVersionError(
            f"{what} was written by mkclust {writer}, in the format {stored_format!r}; this is "
            f"mkclust {__version__}, which reads the format {FORMAT}: load it with the version "
            "that wrote it, or fit the model again"
        )


def warn_of_versions(note: Any, what: str, stacklevel: int) -> None:
    """Warn where a model was stored with other versions of what it computes with."""
    here, saved = versions(), _saved_versions(note)
    others = [
        f"{name} {saved.get(name, 'unknown')} (here {here[name]})"
        for name in COMPARED
        if saved.get(name) != here[name]
    ]
    if others:
        warnings.warn(
            f"{what} was saved with {join_words(others)}: predictions may differ; fit the model "
            "again where that matters",
            ModelVersionWarning,
            stacklevel=stacklevel + 1,
        )


def _saved_versions(note: Any) -> dict[str, str]:
    """Return the versions of a note, whatever else may stand there."""
    saved = note.get("versions") if isinstance(note, dict) else None
    return saved if isinstance(saved, dict) else {}


def _release(version: Any) -> tuple[int, int]:
    """Return the first two numbers of a version; zeros where it has none."""
    numbers = re.match(r"(\d+)\.(\d+)", version) if isinstance(version, str) else None
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
