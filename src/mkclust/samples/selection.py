"""One wide table taken apart into views, by lists of columns or by prefixes of their names."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mkclust.samples.forms import depth
from mkclust.samples.frames import AnnotatedMatrix, has_columns, take_columns
from mkclust.text import did_you_mean, join_words


def split_columns(X: Any, views: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Take one wide table apart into views.

    Parameters
    ----------
    X : data frame, array or sparse matrix of shape (n_samples, n_columns)
        The table.
    views : mapping of str to (list, slice or str)
        The columns of each view: their names or numbers, or a prefix of their names.

    Returns
    -------
    parts : dict of str to table
        The views.
    notes : tuple of str
        Which columns are in no view.

    Raises
    ------
    ValueError, TypeError
        Where there is no such column, a prefix begins none, or a column is in two views.
    """
    several = isinstance(X, Mapping) and not issparse(X)
    if several or (isinstance(X, list | tuple) and depth(X) != 2) or depth(X) != 2:
        what = type(X).__name__ if several or not hasattr(X, "shape") else f"array of {X.shape}"
        raise TypeError(
            f"views={list(views)} takes one table of samples by features apart, and X is a {what}: "
            "pass one data frame or 2-D array, or views=None."
        )
    table: Any = np.asarray(X) if isinstance(X, list | tuple) else X
    is_named = has_columns(table) or isinstance(table, AnnotatedMatrix)
    names = list(table.columns) if is_named else None
    places = {name: _places(name, each, names, table.shape[1]) for name, each in views.items()}
    owners: dict[int, str] = {}
    for name, columns in places.items():
        for place in columns:
            if place in owners:
                column = names[place] if names else place
                raise ValueError(
                    f"the column {column!r} is in the views {owners[place]!r} and {name!r}: leave "
                    "it to one of them."
                )
            owners[place] = name
    unused = [place for place in range(table.shape[1]) if place not in owners]
    note = f"{len(unused):,} of {table.shape[1]:,} columns are in no view: " + join_words(
        names[place] if names else place for place in unused
    )
    parts = {name: take_columns(table, columns) for name, columns in places.items()}
    return parts, (note,) if unused else ()


def _places(view: str, choice: Any, names: list[Any] | None, width: int) -> list[int]:
    """Return the numbers of the columns of a view, or say what is wrong with its choice."""
    if isinstance(choice, str):
        places = _begun_with(view, choice, names)
    elif isinstance(choice, slice):
        places = list(range(*choice.indices(width)))
    else:
        columns = choice.tolist() if isinstance(choice, np.ndarray) else list(choice)
        places = _numbered(view, columns, names, width)
    if not places:
        raise ValueError(f"views asks for no column for the view {view!r}: it has {choice!r}.")
    if len(set(places)) < len(places):
        twice = next(place for place in places if places.count(place) > 1)
        column = names[twice] if names else twice
        raise ValueError(f"the column {column!r} is twice in the view {view!r}: name it once.")
    return places


def _begun_with(view: str, prefix: str, names: list[Any] | None) -> list[int]:
    """Return the numbers of the columns that begin with a prefix."""
    if names is None:
        raise ValueError(
            f"views asks for the columns that begin with {prefix!r} for the view {view!r}, and X "
            "has no names for its columns: pass a data frame, or numbers of columns."
        )
    places = [
        i for i, name in enumerate(names) if isinstance(name, str) and name.startswith(prefix)
    ]
    if not places:
        near = did_you_mean(prefix, sorted({str(name)[: len(prefix)] for name in names}))
        raise ValueError(
            f"no column begins with {prefix!r}, which is to be the view {view!r}{near}: the "
            f"columns are {join_words(map(repr, names))}."
        )
    return places


def _numbered(view: str, columns: list[Any], names: list[Any] | None, width: int) -> list[int]:
    """Return the numbers of columns that are given by their names or by their numbers."""
    by_name = {} if names is None else {name: place for place, name in enumerate(names)}
    if names is not None and len(by_name) < len(names):
        doubles = [name for name in columns if names.count(name) > 1]
        if doubles:
            raise ValueError(
                f"the table has several columns of the name {doubles[0]!r}, which views asks for: "
                "rename them."
            )
    is_number = [isinstance(c, int) and not isinstance(c, bool) for c in columns]
    if unknown := [
        column
        for column, numbered in zip(columns, is_number, strict=True)
        if column not in by_name and not (numbered and -width <= column < width)
    ]:
        if names is None:
            raise ValueError(
                f"views asks for the column {unknown[0]!r} for the view {view!r}, and X has the "
                f"columns 0 to {width - 1}: pass numbers of these."
            )
        near = did_you_mean(str(unknown[0]), [str(name) for name in names])
        raise ValueError(
            f"there is no column {join_words(map(repr, unknown))}, which views asks for in the "
            f"view {view!r}{near}: the columns are {join_words(map(repr, names))}."
        )
    return [by_name[c] if c in by_name else c % width for c in columns]
