"""From views of the samples to kernels, or to features that stand for them."""

from mkclust.kernels.bank import KernelBank, default_bank
from mkclust.kernels.kinds import view
from mkclust.kernels.maps import Linear, Nystroem

__all__ = ["KernelBank", "Linear", "Nystroem", "default_bank", "view"]
