"""The methods: one page each, and the registry that everything else reads."""

from mkclust.methods.average import AverageKKM, solve_average_kkm
from mkclust.methods.base import MultipleKernelClusterer
from mkclust.methods.mkkm import MKKM, solve_mkkm
from mkclust.methods.reduced_gradient import solve_reduced_gradient
from mkclust.methods.simple_mkkm import SimpleMKKM, WeightsWarning, solve_simple_mkkm
from mkclust.methods.solution import Solution

__all__ = [
    "METHODS",
    "MKKM",
    "AverageKKM",
    "MultipleKernelClusterer",
    "SimpleMKKM",
    "Solution",
    "WeightsWarning",
    "solve_average_kkm",
    "solve_mkkm",
    "solve_reduced_gradient",
    "solve_simple_mkkm",
]

METHODS: dict[str, type[MultipleKernelClusterer]] = {
    "simplemkkm": SimpleMKKM,
    "avg-kkm": AverageKKM,
    "mkkm": MKKM,
}
