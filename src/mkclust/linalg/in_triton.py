"""What is written in Triton, which comes with torch, where it works."""

import importlib
import warnings
from functools import cache
from typing import Any

from mkclust.linalg.arrays import is_on_accelerator, is_torch_array


def written_in_triton(module: str, like: Any) -> Any:
    """Return a module of this folder that is written in Triton, None where it cannot be used.

    Parameters
    ----------
    module : str
        Its name.
    like : array
        What it is to compute with: of use are tensors of torch on an accelerator.

    Returns
    -------
    module or None
    """
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
        warnings.warn(
            f"computing with kernels takes longer, Triton does not work: {error}", stacklevel=2
        )
        return None
    return imported
