"""Rows of a view in the coordinates that formulas compare, and pairs of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mkclust.linalg import arrays_to_host, astype, namespace, precision_of, ranges, select, to_host
from mkclust.linalg.in_triton import written_in_triton
from mkclust.linalg.sparse_rows import dense_rows, row_products
from mkclust.samples.distances import clip_rounding
from mkclust.types import Array

# Entries of rows that are brought to float64 at a time.
BLOCK_ENTRIES = 2**22
# With fewer samples, compiling a product that stores nothing takes longer than it saves.
FEWEST_FUSED = 2**14


@dataclass(frozen=True)
class Units:
    """What coordinates of the rows of a view are measured from, and in."""

    # A common origin: close to all rows, it saves digits of distances.
    origin: Any = field(repr=False)
    median: float  # median distance between two training rows
    scale: float  # mean squared norm of a training row

    @property
    def length(self) -> float:
        """The power of two nearest to the root mean squared norm: dividing by it costs no digit."""
        return 2.0 ** round(np.log2(np.sqrt(self.scale)))

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: arrays on the host, wherever they are."""
        return vars(self) | {"origin": arrays_to_host(self.origin)}


@dataclass(frozen=True)
class Points:
    """Rows of one view in the coordinates that its formulas compare."""

    coordinates: dict[str, Any] = field(repr=False)  # by name, with one entry or row per sample
    units: Units  # the units of the coordinates

    def __getitem__(self, name: str) -> Array:
        return self.coordinates[name]

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: arrays on the host, which computes in float64."""
        coordinates = {name: to_host(each) for name, each in self.coordinates.items()}
        return {"coordinates": coordinates, "units": self.units}

    @cached_property
    def split(self) -> Any:
        """Rows as Gaussian products take them that store no entries; None if there are none."""
        rows = self.coordinates.get("centered")
        if rows is None or rows.shape[0] < FEWEST_FUSED or precision_of(rows) != "float32":
            return None
        fused = written_in_triton("fused_products", rows)
        return None if fused is None else fused.split_points(rows)

    def part(self, samples: slice) -> "Points":
        """Return some of the rows."""
        some = {name: select(each, samples) for name, each in self.coordinates.items()}
        return Points(some, self.units)

    def among(self, samples: np.ndarray) -> "Points":
        """Return some of the training rows; distances only to the same samples."""
        some = {name: select(each, samples) for name, each in self.coordinates.items()}
        if "distances" in some:
            some["distances"] = select(some["distances"], samples, axis=1)
        return Points(some, self.units)


@dataclass(frozen=True)
class Pairs:
    """Some samples and some training samples, with what several formulas of a view share."""

    x: Points  # the samples, and the training samples
    y: Points
    columns: slice  # the indices of the training samples
    precision: str  # number type of the entries

    @cached_property
    def squared_distances(self) -> Array:
        """Squared distances in units of the median distance."""
        norms = self.x["norms"][:, None] + self.y["norms"]
        squared = row_products(self.x["centered"], self.y["centered"])
        squared *= -2
        squared += norms
        return clip_rounding(squared, norms)

    @cached_property
    def products(self) -> Array:
        """Inner products in units of the mean squared norm."""
        units, products = self.x.units, row_products(self.x["scaled"], self.y["scaled"])
        products *= units.length**2 / units.scale
        return products

    def compare(self, function: Callable[[Array, Array], Array]) -> Array:
        """Apply a function to all rows x and some rows y at a time, dense in float64."""
        x, y = _dense(self.x["rows"]), self.y["rows"]
        parts = ranges(y.shape[0], max(1, BLOCK_ENTRIES // max(1, y.shape[1])))
        return namespace(x).concat([function(x, _dense(select(y, part))) for part in parts], axis=1)


def _dense(rows: Array) -> Array:
    """Return some rows as a dense array in float64."""
    return astype(dense_rows(rows), "float64")
