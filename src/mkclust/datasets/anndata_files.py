"""Files of AnnData (one matrix with named rows and columns) and MuData (several)."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mkclust.datasets.arrays import open_node
from mkclust.datasets.dataset import (
    Dataset,
    DatasetError,
    as_labels,
    check_memory,
    find_labels,
)


def read_anndata(
    path: Path, selection: frozenset[str], asked: str | None = None
) -> Dataset:
    """Read X, layers or ``obsm`` of a ``.h5ad`` file, or modalities of a ``.h5mu``."""
    import anndata
    import h5py
    import mudata

    def check_links(group: Any) -> None:
        """Open all nodes of a file, which refuses links to other files."""
        for name in group:
            node = open_node(path, group, name)
            if isinstance(node, h5py.Group):
                check_links(node)

    check_memory(path, path.stat().st_size)
    with h5py.File(path, "r") as file:
        check_links(file)
    held: dict[str, Any]
    is_mudata = path.suffix.lower() == ".h5mu"
    if is_mudata:
        content = mudata.read_h5mu(path)
        held = dict(content.mod)
    else:
        content = anndata.read_h5ad(path)
        held = _parts(content)
    unknown = sorted(selection - held.keys())
    if unknown:
        raise DatasetError(
            f"{path}: no {unknown[0]} in it; select among {', '.join(held)}"
        )
    if not is_mudata and not selection:
        if "X" not in held:
            raise DatasetError(
                f"{path}: has no matrix X; select among {', '.join(held)} by ::NAME"
            )
        held = {path.stem: held["X"]}
    if not len(content):
        raise DatasetError(f"{path}: has no observations; check that it is complete")
    views = {
        name: part for name, part in held.items() if not selection or name in selection
    }
    names = find_labels(content.obs, asked)
    same = len(content) == next(iter(views.values())).shape[0]
    label_name = ""
    y = None
    if names and same:
        label_name = names[0]
        y = as_labels(content.obs[label_name])

    description = f"Read from {path.name}. Ids: obs_names."
    return Dataset(
        path.stem, views, None, y, tuple(views), description, label_name=label_name
    )


def _parts(content: Any) -> dict[str, Any]:
    """Return the matrices of AnnData by name: X, layers and ``obsm``."""
    import anndata

    parts = {}
    if content.X is not None:
        parts = {"X": content}

    for name, layer in content.layers.items():
        parts[name] = anndata.AnnData(
            X=layer,
            obs=content.obs[[]],
            var=content.var[[]],
        )
    for name, values in content.obsm.items():
        if not hasattr(values, "columns"):
            columns = [f"{name} {i + 1}" for i in range(values.shape[1])]
            values = pd.DataFrame(np.asarray(values), content.obs_names, columns)
        parts[name] = values
    return parts
