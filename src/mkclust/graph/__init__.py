"""The sparse graph of neighborhoods that clusters are cut from."""

from mkclust.graph.lists import Lists, find_lists, list_sizes
from mkclust.graph.partition import Cut, Graph, cut, scaled_factor
from mkclust.graph.similarities import KernelBlock, MixAndViews, tie_of

__all__ = [
    "Cut",
    "Graph",
    "KernelBlock",
    "Lists",
    "MixAndViews",
    "cut",
    "find_lists",
    "list_sizes",
    "scaled_factor",
    "tie_of",
]
