"""The shared neighborhoods of the kernels that a bank makes of views."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse

from mkclust.kernels.formulas import Cosine, Formula, InnerProduct
from mkclust.kernels.neighborhoods import (
    ListsOfRows,
    Neighborhoods,
    block_ranges,
    cosine_neighborhoods,
    find_training_samples,
    join_by_cosine,
    join_by_similarity,
    join_nearest,
    lengths_of,
    nearest_neighborhoods,
)
from mkclust.kernels.rows import CrossRows, KernelRows
from mkclust.linalg import FactoredMatrix, astype, namespace, select, to_host
from mkclust.linalg.sparse_rows import dense_rows, stored_entries
from mkclust.types import Array

# How the most similar samples are found: by distances, by cosines, by distances that a view
# consists of, or by the kernel's own rows.
Measure = Literal["distance", "cosine", "given", "rows"]


def _measure(formula: Formula) -> Measure:
    """Return by what the most similar samples are found, scaled to a unit diagonal or not."""
    if formula.steepness:
        return "distance"
    return "cosine" if isinstance(formula, Cosine | InnerProduct) else "rows"


def _measures(bank: Any) -> Iterator[tuple[int, str, Measure]]:
    """Yield the place of every kernel with neighborhoods, its view, and how these are found."""
    place = 0
    for name, formulas in bank._formulas.items():
        for formula in formulas:
            if name in bank._neighbors:
                kind = bank.rules_[name]
                yield place, name, "given" if kind == "distances" else _measure(formula)
            place += 1


def view_neighborhoods(bank: Any) -> dict[int, Neighborhoods]:
    """Return the neighborhoods of the training samples by those kernels of a bank that have any.

    Kernels of a view with the same neighbors share them.
    """
    shared: dict[tuple[str, str], Neighborhoods] = {}
    every: dict[int, Neighborhoods] = {}
    for place, name, measure in _measures(bank):
        size = bank._neighbors[name].size
        if measure == "rows":
            every[place] = _by_rows(bank, place, size)
            continue
        if (name, measure) not in shared:
            rows = bank._prepared(name, bank.views_[name])
            shared[name, measure] = FIND[measure](rows, size)
        every[place] = shared[name, measure]
    return every


def lone_neighborhoods(bank: Any) -> dict[int, Neighborhoods]:
    """Return the neighborhoods of kernels that are nothing else, and those by links of graphs.

    Of a graph, the neighborhood of a sample is whom it is linked to.
    """
    names, every = list(bank.views_), {}
    for place, (view, share) in enumerate(zip(bank.kernel_views_, bank._shares, strict=True)):
        if share == 1:
            every[place] = bank.neighborhoods_[place]
        elif bank.rules_[names[view]] == "graph":
            every[place] = _by_links(bank.views_[names[view]])
    return every


def _by_links(view: Array) -> Neighborhoods:
    """Return the neighborhoods of samples whose rows are their links to all samples."""
    parts = block_ranges(view.shape[0], view.shape[1], view)
    links = [scipy.sparse.csr_array(to_host(view[part, :]) > 0) for part in parts]
    own = scipy.sparse.eye_array(view.shape[0], dtype=bool, format="csr")
    lists = scipy.sparse.vstack(links, "csr") + own
    return Neighborhoods.of_lists(lists, np.zeros(lists.shape[0]))


def _bank_of_kernel(bank: Any, place: int) -> tuple[Any, int]:
    """Return a bank of the one view that a kernel is of, and the place of the kernel there."""
    view = bank.kernel_views_[place]
    name = list(bank.views_)[view]
    return bank.of_view(name), place - bank.kernel_views_.index(view)


def _by_rows(bank: Any, place: int, size: int) -> Neighborhoods:
    """Return the neighborhoods by the rows of one kernel."""
    bank, place = _bank_of_kernel(bank, place)
    rows = KernelRows(bank, bank.views_).only([place])
    builder = ListsOfRows(size, lengths_of(to_host(rows.diagonal())[0]))
    for part, blocks in rows.blocks():
        builder.add(part.start, blocks[0])
    return builder.result()


def new_neighborhoods(bank: Any, views: dict[str, Array]) -> dict[int, FactoredMatrix]:
    """Return the similarities of new samples to the training samples, by a bank's neighborhoods."""
    shared: dict[tuple[str, str], FactoredMatrix] = {}
    matrices: dict[int, FactoredMatrix] = {}
    if not bank._neighbors:
        return matrices
    samples = find_training_samples(views, bank.views_)
    for place, name, measure in _measures(bank):
        neighborhoods, size = bank.neighborhoods_[place], bank._neighbors[name].size
        if measure == "rows":
            joined, own = _join_by_rows(bank, views, place, size)
            matrices[place] = neighborhoods.cross(joined, own, samples)
            continue
        if (name, measure) not in shared:
            new_rows = bank._prepared(name, views[name])
            rows = bank._prepared(name, bank.views_[name])
            joined, own = JOIN[measure](neighborhoods, size, new_rows, rows)
            shared[name, measure] = neighborhoods.cross(joined, own, samples)
        matrices[place] = shared[name, measure]
    return matrices


def _by_given_distances(distances: Array, size: int) -> Neighborhoods:
    """Return the neighborhoods of samples whose rows are their distances to all samples."""
    builder, unit = ListsOfRows(size, None), _mean_distance(distances)
    for part in block_ranges(distances.shape[0], distances.shape[1], distances):
        builder.add(part.start, _closeness(distances[part, :], unit))
    return builder.result()


def _join_by_given_distances(
    neighborhoods: Neighborhoods, size: int, new_rows: Array, rows: Array
) -> tuple[Any, Any]:
    """Return whose neighborhoods samples join by their distances, and who is in their own."""
    unit = _mean_distance(rows)
    parts = [
        join_by_similarity(neighborhoods, size, _closeness(new_rows[part, :], unit), None, None)
        for part in block_ranges(new_rows.shape[0], new_rows.shape[1], new_rows)
    ]
    joined, own = zip(*parts, strict=True)
    return scipy.sparse.vstack(joined, "csr"), scipy.sparse.vstack(own, "csr")


def _mean_distance(distances: Array) -> float:
    """Return the unit that distances count in, so that rounding is the same in all."""
    entries, (n, m) = astype(stored_entries(distances), "float64"), distances.shape
    return float(namespace(entries).sum(entries)) / (n * m) or 1.0


def _closeness(distances: Array, unit: float) -> Array:
    """Return similarities, above zero, that are the larger the smaller distances are."""
    return 1 / (1 + astype(dense_rows(distances), "float64") / unit)


def _join_by_rows(bank: Any, views: dict[str, Array], place: int, size: int) -> tuple[Any, Any]:
    """Return whose neighborhoods new samples join, and who is in theirs, by a kernel's rows."""
    cross, parts = CrossRows(bank, views).only([place]), []
    lengths, new_lengths = (
        lengths_of(to_host(select(bank._self_similarity(each), [place])[0, :]))
        for each in (bank.views_, views)
    )
    for rows, blocks in cross.blocks():
        some = new_lengths[rows]
        neighborhoods = bank.neighborhoods_[place]
        parts.append(join_by_similarity(neighborhoods, size, blocks[0], some, lengths))
    joined, own = zip(*parts, strict=True)
    return scipy.sparse.vstack(joined, "csr"), scipy.sparse.vstack(own, "csr")


FIND = {
    "distance": nearest_neighborhoods,
    "cosine": cosine_neighborhoods,
    "given": _by_given_distances,
}
JOIN = {
    "distance": join_nearest,
    "cosine": join_by_cosine,
    "given": _join_by_given_distances,
}
