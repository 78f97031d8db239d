"""Tables of the same samples, joined by id: what each contributes, and what is kept."""

from collections.abc import Mapping, Sequence
from typing import Any

from mkclust import datasets
from mkclust.cli.table_request import TableRequest
from mkclust.samples.frames import is_frame
from mkclust.samples.ids import is_kernel


def row_ids(view: Any) -> Any:
    """Return the ids of a view as an index of pandas, None where it has none."""
    if hasattr(view, "obs_names"):
        return view.obs_names
    if is_frame(view) and type(view.index).__name__ != "RangeIndex":
        return view.index
    return None


def common_ids(indices: Sequence[Any]) -> Any:
    """Return the ids that all indices hold, in the order of the first."""
    common = indices[0]
    for ids in indices[1:]:
        common = common[common.isin(ids)]
    return common


def contributions(
    inputs: Sequence[str], data_sets: Sequence[datasets.Dataset], kept: int
) -> list[str]:
    """Return what each table contributes and what the join keeps, a line each.

    Parameters
    ----------
    inputs : sequence of str
        What was asked for.
    data_sets : sequence of Dataset
        What was read.
    kept : int
        How many samples there are in the end.
    """
    lines, sizes = [], []
    for text, data in zip(inputs, data_sets, strict=True):
        for name, view in (data.views or {}).items():
            ids = row_ids(view)
            sizes += [] if ids is None else [len(ids)]
            how = "paired by row" if ids is None else f"ids such as {str(ids[0])!r}"
            lines.append(
                f"{name} ({text}): {view.shape[0]} samples x {view.shape[1]} columns, {how}"
            )
    if not sizes:
        return []
    if max(sizes) == kept:
        return [*lines, f"Joined by id: all {kept} samples."]
    return [*lines, f"Joined by id: {kept} samples are in all files, of up to {max(sizes)}."]


def columns_in_order(parts: Mapping[str, Any], request: TableRequest) -> dict[str, Any]:
    """Return views where those of pairs of samples have columns in the order of the samples.

    Parameters
    ----------
    parts : mapping of str to view
        All views.
    request : TableRequest
        Whether samples are left out.
    """
    indices = [ids for view in parts.values() if (ids := row_ids(view)) is not None]
    if not indices:
        return dict(parts)
    order = common_ids(indices) if request.join == "inner" else indices[0]
    return {
        name: view.loc[:, order]
        if is_frame(view) and is_kernel(view) and order.isin(view.columns).all()
        else view
        for name, view in parts.items()
    }
