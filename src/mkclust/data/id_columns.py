"""Columns that are not variables: ids of samples, and results of this library."""

import re
from typing import Any

import pandas as pd
from pandas.api.types import is_bool_dtype, is_integer_dtype

from mkclust.data.survival_columns import TIMES

# Words in names of columns of whole numbers that may all differ because of what they
# measure.
MEASURED = TIMES | {
    "age",
    "date",
    "hour",
    "hours",
    "minute",
    "minutes",
    "second",
    "seconds",
}


def looks_like_an_id(name: object, values: Any) -> bool:
    """Return whether a column numbers the samples, by its name or by its values.

    Values are those of one column, a Series or an array. Whole numbers stored as floats
    are taken for measurements, and two values or fewer for a mark: ``smoker_no`` of 0
    and 1.

    >>> looks_like_an_id("patient_id", ["a", "b", "c"])
    True
    >>> looks_like_an_id("id", [1, 1, 0])
    False
    >>> looks_like_an_id("x", [1003, 1001, 1002]), looks_like_an_id("age", [61, 54, 54])
    (True, False)
    """
    column = pd.Series(values)
    known = column.dropna()

    if known.nunique() <= 2:
        return False

    if has_name_of_ids(name):
        return True
    return (
        len(known) == len(column) and counts_samples(column) and not measures_time(name)
    )


def has_name_of_ids(name: object) -> bool:
    """Return whether a name is ``id``, or ends in the word ``id`` or ``no``."""
    # Words end at other signs than letters and digits, and before capitals.
    parts = re.split(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])", str(name))
    words = [word for word in parts if word]

    # The last words of names of columns that number or name samples: patient_id,
    # SampleNo, ID.
    words_of_ids = {"id", "ids", "no"}
    return bool(words) and words[-1].lower() in words_of_ids


def measures_time(name: object) -> bool:
    """Return whether a name has a word for a time or an age: ``AgeAtVisit``.

    >>> measures_time("age"), measures_time("age2"), measures_time("hospital")
    (True, True, False)
    """
    words = re.split(r"[\W_\d]+|(?<=[a-z])(?=[A-Z])", str(name))

    return not MEASURED.isdisjoint(word.lower() for word in words)


def counts_samples(column: pd.Series) -> bool:
    """Return whether a column holds integers that are all different."""
    is_integer = is_integer_dtype(column.dtype)
    is_whole = is_integer and not is_bool_dtype(column.dtype)

    return bool(is_whole and column.is_unique)


def is_own_column(name: object) -> bool:
    """Return whether `mkclust.to_anndata` writes a column of this name.

    >>> is_own_column("mkclust"), is_own_column("rna:mkclust"), is_own_column("cluster")
    (True, True, False)
    """
    # What `mkclust.to_anndata` adds to the observations.
    own = {"mkclust", "mkclust_silhouette"}
    return str(name).rpartition(":")[-1] in own
