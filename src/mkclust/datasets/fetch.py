"""The UCI digits from OpenML, checked against fingerprints of their numbers."""

import hashlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from mkclust.datasets.base import Dataset, DatasetError
from mkclust.datasets.recipes import ONE_GAUSSIAN

# Name of each view, and number of its table at OpenML.
TABLES = {"pix": 20, "fou": 14, "mor": 18}

# UCI gives eight decimals. Copies that went through Weka have six, so that a table with fractions
# has a second fingerprint. Nothing else about the way numbers are written makes a difference.
FINGERPRINTS: Mapping[str, tuple[str, ...]] = {
    "pix": ("538ed9ad4bb986d8bb0d230192958d2b3970b50475c46c4e4488afdb34bfc804",),
    "fou": (
        "a73d4557e3a6cd0400623aad2f15b472a91a0422c884978840fc09b7cdfb93aa",
        "80ad908cc10c82647f7f203f753e09ef8d3cdda5fde38c32d655855830e3e1cd",
    ),
    "mor": (
        "69b858ec432d64f116aadbb915a931c260c2ea4ab9ef5e7ab794454ddc3efe12",
        "09137dab1cd09eb562bca489f91c15c86be42c6bc66a52382a11bd84e16ed875",
    ),
    "classes": ("7429a9d20dc73085673a7ba3c72155bcc1c0e976b02e9bb79b787790b533b439",),
}


def fetch_digit(data_home: str | os.PathLike[str] | None = None) -> Dataset:
    """Return the three views of the UCI digits that the paper uses, from OpenML.

    Parameters
    ----------
    data_home : str, path-like or None, default=None
        Folder in which scikit-learn keeps downloaded files; None: its own default.

    Returns
    -------
    Dataset
        The views ``pix``, ``fou`` and ``mor``, in the order of samples at OpenML.
    """
    tables = {name: _fetch_table(name, number, data_home) for name, number in TABLES.items()}
    views = {name: table for name, (table, _) in tables.items()}
    classes = {name: labels for name, (_, labels) in tables.items()}
    y = classes["pix"]
    for name, labels in classes.items():
        if not np.array_equal(labels, y):
            advice = "their rows are not those of the same samples; use UCI.mat instead"
            raise DatasetError(
                f"digit: OpenML's tables pix and {name} have other classes; {advice}"
            )
    digests = fingerprints(views, y)
    wrong = [name for name in FINGERPRINTS if digests[name] not in FINGERPRINTS[name]]
    if wrong:
        shapes = ", ".join(f"{name} {list(view.shape)}" for name, view in views.items())
        expected = f"differs in {', '.join(wrong)} from the UCI digits"
        advice = "delete scikit-learn's copy and try again, or use UCI.mat"
        raise DatasetError(f"digit: what OpenML sent ({shapes}) {expected}; {advice}")
    return Dataset("digit", views, None, y, tuple(views), bank={**ONE_GAUSSIAN})


def fingerprints(views: Mapping[str, np.ndarray], y: np.ndarray) -> dict[str, str]:
    """Return a hash of each view and of the classes, whatever the order of the samples.

    Parameters
    ----------
    views : mapping of str to ndarray of shape (n_samples, n_features)
        The views of the same samples.
    y : ndarray of shape (n_samples,)
        The classes. Their names do not matter.

    Returns
    -------
    dict of str to str
        SHA-256 of the numbers to eight decimals, by view, and of ``classes``.
    """
    with np.errstate(invalid="ignore"):
        integers = {name: np.rint(view * 1e8).astype("<i8") for name, view in views.items()}
    order = np.lexsort(np.hstack(list(integers.values())).T[::-1])
    _, first, codes = np.unique(y[order], return_index=True, return_inverse=True)
    # Numbered as they appear, so that "0" to "9" and "1" to "10" are the same classes.
    integers["classes"] = np.argsort(np.argsort(first))[codes][:, None].astype("<i8")
    ordered = {
        name: table if name == "classes" else table[order] for name, table in integers.items()
    }
    return {name: _digest(table) for name, table in ordered.items()}


def _digest(table: np.ndarray) -> str:
    """Return the SHA-256 of a table and of its shape."""
    return hashlib.sha256(repr(table.shape).encode() + table.tobytes()).hexdigest()


def _fetch_table(name: str, number: int, data_home: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers and the classes of one table at OpenML."""
    from sklearn.datasets import fetch_openml

    advice = "put UCI.mat into the folder that MKCLUST_DATA names, or try again"
    try:
        # Neither a data frame nor the default parser: they need pandas.
        answer = fetch_openml(
            data_id=number, as_frame=False, parser="liac-arff", data_home=data_home
        )
        table = np.array(answer.data, dtype=np.float64)
        # OpenML keeps pixels as categories, and scikit-learn gives the number of a category.
        for column, feature in enumerate(answer.feature_names):
            if feature in answer.categories:
                values = np.array(answer.categories[feature], dtype=np.float64)
                table[:, column] = values[table[:, column].astype(int)]
        classes = np.array(answer.target, dtype=np.float64).astype(np.int64)
    except OSError as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise DatasetError(f"digit: OpenML cannot be reached ({reason}); {advice}") from error
    except Exception as error:
        # An answer that is not the table may fail anywhere in its parsing.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        problem = f"OpenML's table {number} ({name}) cannot be read ({reason})"
        raise DatasetError(f"digit: {problem}; {advice}") from error
    return table, classes
