"""The sparse graph of neighborhoods that clusters are cut from."""

from mkclust.graph.lists import Lists, find_lists, list_sizes
from mkclust.graph.numbers import Cuts, Way, cut_alike, cut_for_all
from mkclust.graph.partition import Cut, Graph, Memberships, cut, scaled_factor

__all__ = [
    "Cut",
    "Cuts",
    "Graph",
    "Lists",
    "Memberships",
    "Way",
    "cut",
    "cut_alike",
    "cut_for_all",
    "find_lists",
    "list_sizes",
    "scaled_factor",
]
