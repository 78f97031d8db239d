"""Read views or kernels, and labels, from files, or known data sets by name."""

from mkclust.datasets.dataset import Dataset, DatasetError
from mkclust.datasets.read import CATALOG, Entry, load

__all__ = ["CATALOG", "Dataset", "DatasetError", "Entry", "load"]
