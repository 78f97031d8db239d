"""Fewer cases than a grid has cells: every pair of choices, or some cases of which are
slow."""

from itertools import combinations, product

import pytest

# One method of each way to solve and to predict.
REPRESENTATIVES = ("simplemkkm", "agreement-kkm", "lmkkm", "lf-mvc")


def slow(*cases):
    """Return cases that only `make test-all` runs; a tuple is a case of several
    parameters."""
    rows = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*row, marks=pytest.mark.slow) for row in rows]


def first_quick(n, cases):
    """Return cases of which the first n are run by `make test`, and all by `make
    test-all`."""
    cases = list(cases)
    return [*cases[:n], *slow(*cases[n:])]


def every_pair(*axes):
    """Return cases in which every value of an axis meets every value of every other
    axis.

    >>> every_pair("ab", [0, 1], [True, False])
    [('a', 0, True), ('a', 1, False), ('b', 0, False), ('b', 1, True)]
    """
    cells = {}
    for places in product(*(range(len(axis)) for axis in axes)):
        cells[places] = set(combinations(enumerate(places), 2))
    left = set().union(*cells.values())
    chosen = []
    while left:
        best = max(cells, key=lambda places: len(cells[places] & left))
        left -= cells.pop(best)
        chosen.append(best)
    return [
        tuple(axis[place] for axis, place in zip(axes, places, strict=True))
        for places in sorted(chosen)
    ]
