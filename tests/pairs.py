"""Fewer cases than a grid has cells, where no more than two choices are thought to meet."""

from itertools import combinations, product


def every_pair(*axes):
    """Return cases in which every value of an axis meets every value of every other axis.

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
