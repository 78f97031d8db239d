"""Files of AnnData and MuData: a matrix with names for its rows and columns, or one a modality."""

from pathlib import Path
from typing import Any

import numpy as np

from mkclust.datasets.base import LABELS, Dataset, DatasetError
from mkclust.datasets.layout import stem_of


def read_anndata(path: Path, selection: frozenset[str], follow_links: bool = False) -> Dataset:
    """Read a ``.h5ad`` file, one view, or a ``.h5mu`` file, one view a modality.

    Parameters
    ----------
    path : Path
        The file.
    selection : frozenset of str
        Modalities of a ``.h5mu`` file, layers or ``obsm`` of a ``.h5ad`` file; empty: all
        modalities, or X.
    follow_links : bool, default=False
        Whether the file may lead to others.

    Returns
    -------
    Dataset
        Views are AnnData, whose matrix may be sparse, or data frames of what ``obsm`` holds.
    """
    is_mudata = path.suffix.lower() == ".h5mu"
    try:
        import anndata

        if is_mudata:
            import mudata
    except ImportError as error:
        advice = 'reading it needs anndata and mudata: pip install "mkclust[anndata]"'
        kind = "MuData" if is_mudata else "AnnData"
        raise DatasetError(f"{path}: is a file of {kind}; {advice}") from error
    try:
        if not follow_links:
            _refuse_links(path)
        content = mudata.read_h5mu(path) if is_mudata else anndata.read_h5ad(path)
    except DatasetError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        advice = "check that it is complete, and of the format of its suffix"
        raise DatasetError(f"{path}: cannot be read ({reason}); {advice}") from error
    views = _modalities(path, content, selection) if is_mudata else _parts(path, content, selection)
    description = f"Read from {path.name}. Ids: obs_names."
    first = next(iter(views.values()))
    same = len(content) == first.shape[0]
    return Dataset(
        stem_of(path), views, None, _labels(content) if same else None, tuple(views), description
    )


def _refuse_links(path: Path) -> None:
    """Refuse a file that leads to others, as all HDF5 files are unless these are asked for."""
    import h5py

    def visit(group: Any) -> None:
        for name in group:
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                _refuse(path, f"{group.name}/{name}", link.filename)
            if isinstance(link, h5py.SoftLink):
                continue
            node = group[name]
            if isinstance(node, h5py.Group):
                visit(node)
            elif isinstance(node, h5py.Dataset):
                sources = node.virtual_sources() if node.is_virtual else ()
                files = [*(name for name, *_ in node.external or ())]
                files += [each.file_name for each in sources if each.file_name != "."]
                if files:
                    _refuse(path, node.name, files[0])

    with h5py.File(path, "r") as file:
        visit(file)


def _refuse(path: Path, place: str, other: str) -> None:
    """Refuse a file that leads to another one."""
    advice = "pass follow_links=True, or --follow-links, if you trust the file"
    raise DatasetError(f"{path}: {place.strip('/')} leads to another file, {other}; {advice}")


def _modalities(path: Path, content: Any, selection: frozenset[str]) -> dict[str, Any]:
    """Return the modalities of MuData."""
    if missing := sorted(selection - set(content.mod)):
        held = ", ".join(content.mod)
        raise DatasetError(f"{path}: no modality {missing[0]} in it; select among {held}")
    return {name: part for name, part in content.mod.items() if not selection or name in selection}


def _parts(path: Path, content: Any, selection: frozenset[str]) -> dict[str, Any]:
    """Return what is selected of AnnData: its matrix, layers, or what obsm holds."""
    import anndata
    import pandas as pd

    if not selection:
        if content.X is None:
            held = ", ".join([*content.layers, *content.obsm]) or "nothing else"
            advice = f"select among {held}, by ::NAME"
            raise DatasetError(f"{path}: has no matrix X; {advice}")
        return {stem_of(path): content}
    views: dict[str, Any] = {}
    for name in sorted(selection):
        if name == "X" and content.X is not None:
            views[name] = content
        elif name in content.layers:
            views[name] = anndata.AnnData(
                X=content.layers[name], obs=content.obs[[]], var=content.var[[]]
            )
        elif name in content.obsm:
            values = content.obsm[name]
            columns = [f"{name} {i + 1}" for i in range(values.shape[1])]
            if not hasattr(values, "columns"):
                values = pd.DataFrame(np.asarray(values), content.obs_names, columns)
            views[name] = values
        else:
            held = ", ".join(["X", *content.layers, *content.obsm])
            raise DatasetError(f"{path}: no {name} in it; select among {held}")
    return views


def _labels(content: Any) -> np.ndarray | None:
    """Return the labels among the columns of obs, None without."""
    name = next((name for name in LABELS if name in content.obs.columns), None)
    if name is None:
        return None
    values = content.obs[name]
    return values.to_numpy() if values.dtype.kind in "biuf" else values.astype(str).to_numpy(str)
