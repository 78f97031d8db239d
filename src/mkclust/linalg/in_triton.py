"""Code in Triton, the compiler that comes with torch, if it works."""

from functools import cache
from importlib import import_module
from typing import Any

from mkclust.exceptions import warn
from mkclust.linalg.arrays import is_on_accelerator, is_torch_array

# With fewer samples, compiling the code takes longer than it saves.
FEWEST_FUSED = 8000


def triton_module(name: str, like: Any) -> Any:
    """Return a module of this package that computes with tensors of n rows.

    None if it cannot be used, or if they are on the host, or few.
    """
    if not is_torch_array(like) or not is_on_accelerator(like):
        return None
    if like.shape[0] >= FEWEST_FUSED:
        return _tried_out(name)
    return None


@cache
def _tried_out(name: str) -> Any:
    """Return a module of this package if what it compiles works, else None."""
    try:
        module = import_module(f"mkclust.linalg.{name}")
        module.try_out()
    except ImportError:
        return None
    except Exception as error:  # such as no C compiler, which Triton asks for
        message = f"computing with kernels takes longer, Triton does not work: {error}"
        warn(message)
        return None
    return module
