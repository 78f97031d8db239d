"""Code in Triton, the compiler that comes with torch, if it works."""

import importlib
import warnings
from functools import cache
from typing import Any

from mkclust.linalg.arrays import is_on_accelerator, is_torch_array


def written_in_triton(module: str, like: Any) -> Any:
    """Return a module of this folder for tensors on an accelerator, None if it cannot be used."""
    return _tried_out(module) if is_torch_array(like) and is_on_accelerator(like) else None


@cache
def _tried_out(module: str) -> Any:
    """Import a module and try it out, once."""
    try:
        imported = importlib.import_module(f"mkclust.linalg.{module}")
        imported.try_out()
    except ImportError:
        return None
    except Exception as error:  # such as no C compiler, which Triton asks for
        message = f"computing with kernels takes longer, Triton does not work: {error}"
        warnings.warn(message, stacklevel=2)
        return None
    return imported
