"""The shared neighborhoods of the kernels that a bank makes of views."""

from collections.abc import Iterator
from typing import Any, Literal

import scipy.sparse

from mkclust.kernels.formulas import Cosine, Formula, InnerProduct
from mkclust.kernels.neighborhoods import (
    ListsOfRows,
    NeighborhoodKernels,
    Neighborhoods,
    cosine_neighborhoods,
    find_training_samples,
    join_by_cosine,
    join_by_similarity,
    join_nearest,
    lengths_of,
    nearest_neighborhoods,
)
from mkclust.kernels.rows import CrossRows, KernelRows
from mkclust.linalg import FactoredMatrix, select, to_host
from mkclust.types import Array

# How the most similar samples are found: by distances, by cosines, or by the kernel's own rows.
Measure = Literal["distance", "cosine", "rows"]


def _measure(formula: Formula) -> Measure:
    """Return by what the most similar samples are found, scaled to a unit diagonal or not."""
    if formula.steepness:
        return "distance"
    return "cosine" if isinstance(formula, Cosine | InnerProduct) else "rows"


def _measures(bank: Any) -> Iterator[tuple[int, str, Measure]]:
    """Yield the place of every kernel of a bank, its view, and how its neighbors are found."""
    kinds = len(bank._formulas)
    for number, name in enumerate(bank.views_):
        for place, formula in enumerate(bank._formulas, number * kinds):
            yield place, name, _measure(formula)


def view_neighborhoods(bank: Any, size: int) -> tuple[Neighborhoods, ...]:
    """Return the neighborhoods of the training samples by every kernel of a fitted bank.

    Kernels of a view with the same neighbors share them.
    """
    shared: dict[tuple[str, str], Neighborhoods] = {}
    every: dict[int, Neighborhoods] = {}
    by_rows = []
    for place, name, measure in _measures(bank):
        if measure == "rows":
            by_rows.append(place)
            continue
        find = nearest_neighborhoods if measure == "distance" else cosine_neighborhoods
        if (name, measure) not in shared:
            shared[name, measure] = find(bank.views_[name], size)
        every[place] = shared[name, measure]
    if by_rows:
        rows = KernelRows(bank, bank.views_).only(by_rows)
        lengths = lengths_of(to_host(rows.diagonal()))
        builders = [ListsOfRows(size, each) for each in lengths]
        for part, blocks in rows.blocks():
            for builder, block in zip(builders, blocks, strict=True):
                builder.add(part.start, block)
        every |= {place: each.result() for place, each in zip(by_rows, builders, strict=True)}
    return tuple(every[place] for place in sorted(every))


def new_neighborhoods(bank: Any, views: dict[str, Array]) -> NeighborhoodKernels:
    """Return the similarities of new samples to the training samples, by a bank's neighborhoods."""
    samples = find_training_samples(views, bank.views_)
    shared: dict[tuple[str, str], FactoredMatrix] = {}
    matrices: list[FactoredMatrix] = []
    for place, name, measure in _measures(bank):
        neighborhoods, size = bank.neighborhoods_[place], bank.n_neighbors_
        if (name, measure) in shared:
            matrices.append(shared[name, measure])
            continue
        if measure == "rows":
            joined, own = _join_by_rows(bank, views, place)
        else:
            join = join_nearest if measure == "distance" else join_by_cosine
            joined, own = join(neighborhoods, size, views[name], bank.views_[name])
        matrices.append(neighborhoods.cross(joined, own, samples))
        if measure != "rows":
            shared[name, measure] = matrices[-1]
    return NeighborhoodKernels(tuple(matrices))


def _join_by_rows(bank: Any, views: dict[str, Array], place: int) -> tuple[Any, Any]:
    """Return whose neighborhoods new samples join, and who is in theirs, by a kernel's rows."""
    cross, parts = CrossRows(bank, views).only([place]), []
    lengths, new_lengths = (
        lengths_of(to_host(select(bank._self_similarity(each), [place])[0, :]))
        for each in (bank.views_, views)
    )
    for rows, blocks in cross.blocks():
        some = new_lengths[rows]
        neighborhoods = bank.neighborhoods_[place]
        parts.append(join_by_similarity(neighborhoods, bank.n_neighbors_, blocks[0], some, lengths))
    joined, own = zip(*parts, strict=True)
    return scipy.sparse.vstack(joined, "csr"), scipy.sparse.vstack(own, "csr")
