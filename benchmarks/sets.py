"""Sets with classes on which first answers are judged, real and simulated.

    from sets import FAMILIES, REAL, load
    views, classes = load("BBCSport")           # read from the folder MKCLUST_DATA
    views, classes = load("unequal", seed=3)    # simulated

Real sets have at most `LARGEST` samples, always the same ones. Each family is a
situation that users have; a seed makes a member of it:

blobs              six round clusters of about equal size in three views
unequal            five clusters of 60, 25, 10, 3 and 2 % of the samples
two unequal        two clusters of 92 and 8 %
far unequal        unequal clusters 8 or 12 standard deviations from the first; 180:20,
                   190:10, 100:40:20 or 100:50:10:5 by the seed
dense and diffuse  150 samples with a spread of .2, and 30 with a spread of 2
cells              eight types of 30 to 2 % in three groups, each with a spread of its
                   own
densities          four clusters with spreads from .5 to 2.4
rings              one center and two spreads, two columns a view
moons, circles     two half-moons; a circle around a circle
overlap            two overlapping clusters in three views
partial            six clusters, of which each view sees some
many               40 clusters of ten samples
omics              60 to 300 samples, hundreds of columns, common and own nuisances,
                   heavy tails
small              60 samples, one view of 200 columns beside one of 6
cite               2,500 cells of twelve types, 30 to .5 %; three types differ in
                   proteins only
"""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.random import Generator
from sklearn import datasets as bundled

from mkclust.datasets import DatasetError
from paper.datasets import load as load_paper

Views = dict[str, np.ndarray]
Simulated = tuple[list[np.ndarray], np.ndarray]

LARGEST = 800
# Sets that `paper.datasets` reads, by the names they have there.
OF_PAPER = {
    "BBCSport": "bbcsport",
    "3Sources": "3sources",
    "MSRC-v5": "msrc-v5",
    "Hdigit": "hdigit",
    "Cora": "cora",
    "Handwritten": "handwritten",
    "UCI": "digit",
    "flower17": "flo17-substitute",
    "COIL20": "coil20",
}
# Sets that scikit-learn brings along, and the columns with which their views begin and
# end.
BUNDLED = {
    "wine": (bundled.load_wine, (0, 5, 9, 13)),
    "cancer": (bundled.load_breast_cancer, (0, 10, 20, 30)),
    "iris": (bundled.load_iris, (0, 2, 4)),
}
# Sets of the archive more/first_answer.npz: dense or sparse views, numbered.
NUMBERED = ("100Leaves", "20NewsGroups", "ACM", "BBC4views", "CiteSeer", "Cornell")
NUMBERED += (
    "MNIST-4",
    "Movies",
    "ORL_4views",
    "Prokaryotic",
    "Reuters-1200",
    "Scene-15",
)
NUMBERED += ("Texas", "Washington", "WebKB", "Wikipedia", "Wisconsin", "synthetic3d")
# Sets of the archive more/more.npz and of the folder more/tables: views by name, empty
# cells.
NAMED = ("A549", "ALOI10", "BRCA348", "BasicMotions", "Byar", "MiceProtein", "Penguins")
NAMED += ("ROSMAP", "Rivers", "SNARE", "Yale", "liver", "multidrug")
REAL = (*OF_PAPER, *BUNDLED, *NUMBERED, *NAMED)
# Sizes of the clusters of "far unequal", by the seed.
FAR_SIZES = ((180, 20), (190, 10), (100, 40, 20), (100, 50, 10, 5))


def load(name: str, seed: int = 0) -> tuple[Views, np.ndarray]:
    """Return the views of a set, and its classes from 0; the seed makes a simulated
    one."""
    if name in SIMULATED:
        views, classes = SIMULATED[name](seed)
        return numbered(views), classes
    if name not in REAL:
        known = ", ".join((*REAL, *SIMULATED))
        raise DatasetError(f"{name}: no such set; the known ones are {known}")
    views, classes = read(name)
    codes = np.unique(np.ravel(classes), return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(codes))
    kept = np.sort(order[:LARGEST])
    parts = [view[kept] for view in views]
    varies = [np.ptp(part, axis=0).max() > 0 for part in parts]
    chosen = [part for part, is_used in zip(parts, varies, strict=True) if is_used]
    return numbered(chosen), codes[kept]


def numbered(views: list[np.ndarray]) -> Views:
    """Give views names."""
    return {f"view {number}": view for number, view in enumerate(views)}


def folder() -> Path:
    """Return the folder of the real data."""
    if not (place := os.environ.get("MKCLUST_DATA")):
        raise DatasetError(
            "Real sets are read from the folder MKCLUST_DATA: set it to one."
        )
    return Path(place).expanduser()


def read(name: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the views and classes of a real set, all of its samples."""
    if name in BUNDLED:
        bunch, cuts = BUNDLED[name][0](), BUNDLED[name][1]
        return np.split(bunch.data, cuts[1:-1], axis=1), bunch.target
    if name in OF_PAPER:
        folder()
        data = load_paper(OF_PAPER[name])
        return [np.asarray(view, dtype=float) for view in data.views.values()], data.y
    return read_numbered(name) if name in NUMBERED else read_named(name)


def archive(file: str) -> np.lib.npyio.NpzFile:
    """Open an archive of several sets."""
    path = folder() / "more" / file
    if not path.is_file():
        raise DatasetError(
            f"{path}: not found; MKCLUST_DATA names the folder of more/{file}"
        )
    return np.load(path)


def read_numbered(name: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the views and classes of a set whose views are numbered, dense or
    sparse."""
    with archive("first_answer.npz") as arrays:
        labels = {
            key.split("|")[1] for key in arrays.files if key.startswith(f"{name}|")
        }
        numbers = sorted(int(label) for label in labels if label.isdigit())
        views = [read_view(arrays, f"{name}|{number}") for number in numbers]
        return views, arrays[f"{name}|y"]


def read_view(arrays: np.lib.npyio.NpzFile, key: str) -> np.ndarray:
    """Return a view that is stored as an array, or as the parts of a sparse one."""
    if f"{key}|dense" in arrays.files:
        return arrays[f"{key}|dense"].astype(float)
    places = [arrays[f"{key}|{part}"].astype(int) for part in ("indices", "indptr")]
    numbers = arrays[f"{key}|data"].astype(float)
    return sp.csr_matrix(
        (numbers, *places), shape=tuple(arrays[f"{key}|shape"])
    ).toarray()


def read_named(name: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the views and classes of a set of arrays, or tables, with empty cells.

    Categories become columns of 0 and 1, and empty cells the medians of their columns.
    """
    with archive("more.npz") as arrays:
        keys = [key for key in arrays.files if key.startswith(f"{name}|")]
        found = [arrays[key] for key in keys]
        classes = arrays[f"{name}|y"]
    views = [view.astype(float) for view in found if view.ndim == 2]
    for path in sorted((folder() / "more/tables" / name).glob("*.csv")):
        views.append(pd.get_dummies(pd.read_csv(path)).to_numpy(dtype=float))
    filled = [
        np.where(np.isnan(view), np.nanmedian(view, axis=0), view) for view in views
    ]
    return [view[:, view.std(axis=0) > 0] for view in filled], classes


def generator(seed: int) -> Generator:
    """Return the random numbers of a member of a family."""
    return np.random.default_rng(1000 + seed)


def gaussians(
    rng: Generator,
    y: np.ndarray,
    widths: tuple[int, ...],
    strength: float,
    spread: float | np.ndarray = 1.0,
) -> list[np.ndarray]:
    """Return views of normal columns around a random center of each cluster."""
    views = []
    for width in widths:
        centers = strength * rng.normal(size=(y.max() + 1, width))
        views.append(centers[y] + spread * rng.normal(size=(len(y), width)))
    return views


def apart(
    rng: Generator, sizes: tuple[int, ...], distance: float, spreads: tuple[float, ...]
) -> Simulated:
    """Return two views of clusters, each at a distance from the first along an axis of
    its own."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    centers = distance * np.eye(len(sizes), 6)
    centers[0] = 0
    spread = np.array(spreads)[y][:, None]
    return [centers[y] + spread * rng.normal(size=(len(y), 6)) for _ in range(2)], y


def blobs(seed: int) -> Simulated:
    rng = generator(seed)
    y = rng.integers(6, size=500)
    return gaussians(rng, y, (8, 15, 30), 1.3), y


def unequal(seed: int) -> Simulated:
    rng = generator(seed)
    y = rng.choice(5, p=[0.6, 0.25, 0.1, 0.03, 0.02], size=600)
    return gaussians(rng, y, (10, 20), 1.8), y


def two_unequal(seed: int) -> Simulated:
    rng = generator(seed)
    y = (rng.random(500) < 0.08).astype(int)
    return gaussians(rng, y, (20, 30), 1.1), y


def far_unequal(seed: int) -> Simulated:
    sizes = FAR_SIZES[seed % len(FAR_SIZES)]
    distance = 12 if len(sizes) == 2 else 8
    return apart(generator(seed), sizes, distance, (1.0,) * len(sizes))


def dense_and_diffuse(seed: int) -> Simulated:
    return apart(generator(seed), (150, 30), 6, (0.2, 2.0))


def cells(seed: int) -> Simulated:
    rng = generator(seed)
    y = rng.choice(8, p=[0.3, 0.22, 0.16, 0.12, 0.09, 0.06, 0.03, 0.02], size=700)
    views = []
    for width in (40, 15):
        groups = 2 * rng.normal(size=(3, width))
        centers = groups[np.arange(8) % 3] + rng.normal(size=(8, width))
        noise = rng.normal(size=(700, width))
        spreads = 0.6 + 0.8 * rng.random((8, 1))
        views.append(centers[y] + spreads[y] * noise)
    return views, y


def densities(seed: int) -> Simulated:
    y = np.arange(480) % 4
    spreads = np.array([0.5, 1.0, 1.6, 2.4])
    return gaussians(generator(seed), y, (10, 20), 2.2, spreads[y][:, None]), y


def rings(seed: int) -> Simulated:
    rng = generator(seed)
    y = np.arange(220) % 2
    spread = (0.8 + 1.5 * y)[:, None]
    return [spread * rng.normal(size=(220, 2)) for _ in range(2)], y


def moons(seed: int) -> Simulated:
    rng = generator(seed)
    X, y = bundled.make_moons(400, noise=0.12, random_state=seed)
    with_noise_column = np.hstack([X, 0.3 * rng.normal(size=(400, 1))])
    return [with_noise_column, X[:, ::-1] + 0.15 * rng.normal(size=(400, 2))], y


def circles(seed: int) -> Simulated:
    X, y = bundled.make_circles(400, noise=0.06, factor=0.5, random_state=seed)
    return [X, X[:, ::-1] + 0.05 * generator(seed).normal(size=(400, 2))], y


def overlap(seed: int) -> Simulated:
    rng = generator(seed)
    y = np.arange(300) % 2
    centers = np.zeros((2, 10))
    centers[0, :3] = -0.55
    centers[1, :3] = 0.55
    return [centers[y] + rng.normal(size=(300, 10)) for _ in range(3)], y


def partial(seed: int) -> Simulated:
    rng = generator(seed)
    y = np.arange(540) % 6
    # View v tells two clusters from all others: number 2 v, and those beside it.
    seen = [np.minimum(np.abs(y - 2 * number), 2) for number in range(3)]
    return [gaussians(rng, places, (12,), 2.0)[0] for places in seen], y


def many(seed: int) -> Simulated:
    y = np.arange(400) % 40
    return gaussians(generator(seed), y, (15, 25), 1.2), y


def small(seed: int) -> Simulated:
    y = np.arange(60) % 3
    return gaussians(generator(seed), y, (6, 200), 1.5), y


def omics(seed: int) -> Simulated:
    rng = generator(seed)
    n = (60, 150, 300)[seed % 3]
    drawn = rng.choice(4, p=[0.4, 0.3, 0.2, 0.1], size=n - 16)
    y = np.concatenate([np.repeat(np.arange(4), 4), drawn])
    common = rng.normal(size=(n, 2))
    views = []
    for width in (800, 300, 150):
        differs = rng.random((4, width)) < 0.12
        effects = np.where(differs, 1.3 * rng.normal(size=(4, width)), 0)
        nuisance = 0.35 * rng.normal(size=(n, 3)) @ rng.normal(size=(3, width))
        nuisance += 0.2 * common @ rng.normal(size=(2, width))
        views.append(effects[y] + nuisance + rng.standard_t(5, size=(n, width)))
    return views, y


def cite(seed: int) -> Simulated:
    """Return 20 principal components of genes, and centered log counts of proteins."""
    genes, proteins, y = count_cells(2500, seed)
    logs = np.log1p(1e4 * genes / genes.sum(axis=1, keepdims=True))
    left, lengths, _ = np.linalg.svd(logs - logs.mean(axis=0), full_matrices=False)
    ratios = np.log1p(proteins)
    return [left[:, :20] * lengths[:20], ratios - ratios.mean(axis=1, keepdims=True)], y


# Lineages of the twelve types of "cite", and types that have the genes of another one.
LINEAGES = np.array([0, 0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3])
TWINS = {1: 0, 6: 3, 8: 4}
SHARES = (0.30, 0.20, 0.14, 0.10, 0.08, 0.06, 0.045, 0.03, 0.02, 0.012, 0.008, 0.005)


def count_cells(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return counts of 2,000 genes and 25 proteins in n cells, and their types.

    The tissue is always the same one. Cells are of two batches, have sizes of their
    own, and their counts are negative binomial.
    """
    tissue = np.random.default_rng(123)
    rng = np.random.default_rng(seed)
    expression = express_genes(tissue, 2000)
    batch_effects = tissue.normal(0, 0.25, (2, 2000))
    y = rng.choice(12, n, p=SHARES)
    batch = rng.integers(2, size=n)
    mean = np.exp(expression[y] + batch_effects[batch])
    # About 700 counts a cell.
    depth = 700 * rng.lognormal(0, 0.45, n)[:, None]
    mean *= depth / np.exp(expression).sum(axis=1).mean()
    genes = rng.poisson(mean * rng.gamma(2.0, 0.5, mean.shape)).astype(np.float32)
    background = tissue.lognormal(3, 0.6, 25)
    fold = tissue.uniform(5, 15, 25)
    background = background * np.exp(tissue.normal(0, 0.2, (2, 25))[batch])
    level = background * np.where(carry_proteins()[y], fold, 1.0)
    level *= rng.lognormal(0, 0.35, n)[:, None]
    proteins = rng.poisson(level * rng.gamma(4.0, 0.25, level.shape)).astype(np.float32)
    return genes, proteins, y


def express_genes(tissue: Generator, n_genes: int) -> np.ndarray:
    """Return the logarithms of the expression of genes, by type."""
    base = tissue.normal(-1.2, 1.3, n_genes)
    of_lineage = np.zeros((4, n_genes))
    for effects in of_lineage:
        effects[tissue.choice(n_genes, 80, False)] = tissue.normal(1.8, 0.5, 80)
    of_type = np.zeros((12, n_genes))
    for number in range(12):
        if number not in TWINS:
            effects = tissue.normal(1.3, 0.4, 40)
            of_type[number, tissue.choice(n_genes, 40, False)] = effects
    for number, other in TWINS.items():
        of_type[number] = of_type[other]
        of_type[number, tissue.choice(n_genes, 4, False)] += 0.6
    return base + of_lineage[LINEAGES] + of_type


def carry_proteins() -> np.ndarray:
    """Return which type carries which protein: that of its lineage, its own, and shared
    ones."""
    carried = np.zeros((12, 25), bool)
    types = np.arange(12)
    carried[types, LINEAGES] = True
    carried[types, 4 + types] = True
    carried[[0, 4], 16] = True
    carried[[1, 8], 17] = True
    carried[3, 18] = True
    carried[6, 19] = True
    return carried


SIMULATED: dict[str, Callable[[int], Simulated]] = {
    "blobs": blobs,
    "unequal": unequal,
    "two unequal": two_unequal,
    "far unequal": far_unequal,
    "dense and diffuse": dense_and_diffuse,
    "cells": cells,
    "densities": densities,
    "rings": rings,
    "moons": moons,
    "circles": circles,
    "overlap": overlap,
    "partial": partial,
    "many": many,
    "omics": omics,
    "small": small,
    "cite": cite,
}
# The hardest family, which no mean over families includes.
TOUCHSTONE = ("cite",)
FAMILIES = tuple(name for name in SIMULATED if name not in TOUCHSTONE)


def with_noise(views: Views, seed: int) -> Views:
    """Return the views beside one of twenty normal columns."""
    n = len(next(iter(views.values())))
    return views | {"noise": np.random.default_rng(seed).normal(size=(n, 20))}


def with_category(views: Views, seed: int) -> Views:
    """Return the views beside a random category of three levels, one-hot coded."""
    n = len(next(iter(views.values())))
    levels = np.random.default_rng(seed).integers(3, size=n)
    return views | {"category": np.eye(3)[levels]}


def with_missing(views: Views, share: float, seed: int) -> Views:
    """Return the views without a share of all pairs of sample and view, as rows of NaN.

    A sample that loses all of its views gets one of them back.
    """
    n = len(next(iter(views.values())))
    rng = np.random.default_rng(1000 * seed + round(100 * share))
    observed = rng.random((n, len(views))) >= share
    for row in np.flatnonzero(~observed.any(axis=1)):
        observed[row, rng.integers(len(views))] = True
    pairs = zip(views.items(), observed.T, strict=True)
    return {name: np.where(seen[:, None], view, np.nan) for (name, view), seen in pairs}
