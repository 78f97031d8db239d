"""From views of the samples to kernels, or to features whose inner products approximate them."""

from mkclust.kernels.bank import KernelBank
from mkclust.kernels.maps import Linear, Nystroem
from mkclust.kernels.requested import default_bank
from mkclust.kernels.view import view

__all__ = [
    "KernelBank",
    "Linear",
    "Nystroem",
    "default_bank",
    "view",
]
