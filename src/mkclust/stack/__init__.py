"""Stacks of kernels: the one border between the methods and the data."""

from mkclust.samples.row_source import RowSource
from mkclust.stack.base import KernelOperator, KernelStack, Operator, Standardization
from mkclust.stack.checks import as_numbers, row_sums
from mkclust.stack.dense import DenseStack
from mkclust.stack.door import as_stack
from mkclust.stack.rows import MatrixRows
from mkclust.stack.streamed import StreamedStack

__all__ = [
    "DenseStack",
    "KernelOperator",
    "KernelStack",
    "MatrixRows",
    "Operator",
    "RowSource",
    "Standardization",
    "StreamedStack",
    "as_numbers",
    "as_stack",
    "row_sums",
]
