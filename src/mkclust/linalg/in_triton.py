"""Code in Triton, the compiler that comes with torch, if it works."""

import warnings
from functools import cache
from typing import Any

from mkclust.linalg.arrays import is_on_accelerator, is_torch_array


def fused_products(like: Any) -> Any:
    """Return the module of that name for tensors on an accelerator, None if it cannot be used."""
    return _tried_out() if is_torch_array(like) and is_on_accelerator(like) else None


@cache
def _tried_out() -> Any:
    try:
        from mkclust.linalg import fused_products

        fused_products.try_out()
    except ImportError:
        return None
    except Exception as error:  # such as no C compiler, which Triton asks for
        message = f"computing with kernels takes longer, Triton does not work: {error}"
        warnings.warn(message, stacklevel=2)
        return None
    return fused_products
