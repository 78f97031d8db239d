"""Stacks of kernels: the interface between the methods and the data."""

from mkclust.data.row_source import RowSource
from mkclust.stack.build import as_stack, raw_kernels, repair_by
from mkclust.stack.checks import as_numbers, row_sums
from mkclust.stack.kernel import Computed, DenseKernel, Factored, Kernel, Mix
from mkclust.stack.observed import Observed
from mkclust.stack.sources import Source
from mkclust.stack.stack import Stack
from mkclust.stack.standardized import Standardization, Standardized

__all__ = [
    "Computed",
    "DenseKernel",
    "Factored",
    "Kernel",
    "Mix",
    "Observed",
    "RowSource",
    "Source",
    "Stack",
    "Standardization",
    "Standardized",
    "as_numbers",
    "as_stack",
    "raw_kernels",
    "repair_by",
    "row_sums",
]
