"""Files of AnnData (one matrix with named rows and columns) and MuData (several)."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mkclust.datasets.arrays import open_node
from mkclust.datasets.dataset import (
    Dataset,
    DatasetError,
    check_memory,
    find_labels,
    labeled,
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
    if path.suffix.lower() == ".h5mu":
        content = mudata.read_h5mu(path)
        held = dict(content.mod)
        usual = set(held)
    else:
        content = anndata.read_h5ad(path)
        held = _parts(content)
        usual = {"X"}
    chosen = selection or usual
    unknown = sorted(chosen - held.keys())
    if unknown:
        raise DatasetError(
            f"{path}: no {unknown[0]} in it; select among {', '.join(held)} by ::NAME"
        )
    if not len(content):
        raise DatasetError(f"{path}: has no observations; check that it is complete")
    views = {name: part for name, part in held.items() if name in chosen}
    if usual == {"X"} and not selection:
        views = {path.stem: held["X"]}
    text = f"Read from {path.name}. Ids: obs_names."
    data = Dataset(path.stem, views, None, None, tuple(views), text)
    # Modalities may have other observations.
    if len(content) != data.n_samples:
        return data
    return labeled(data, content.obs, find_labels(content.obs, asked))


def _parts(content: Any) -> dict[str, Any]:
    """Return the matrices of AnnData by name: X, layers and ``obsm``."""
    import anndata

    parts: dict[str, Any] = {}
    if content.X is not None:
        parts["X"] = content

    for name, layer in content.layers.items():
        parts[name] = anndata.AnnData(layer, content.obs[[]], content.var[[]])
    for name, values in content.obsm.items():
        if not hasattr(values, "columns"):
            columns = [f"{name} {i + 1}" for i in range(values.shape[1])]
            values = pd.DataFrame(np.asarray(values), content.obs_names, columns)
        parts[name] = values
    return parts
