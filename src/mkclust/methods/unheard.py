"""Samples that are seen in none of the views that are mixed: nothing tells their cluster."""

import warnings

import numpy as np

from mkclust.stack import KernelStack
from mkclust.text import count, join_words


class UnheardSamplesWarning(UserWarning):
    """Samples are seen only in views that have no weight: nothing tells their cluster."""


def unheard_samples(stack: KernelStack, coefficients: np.ndarray | None) -> np.ndarray:
    """Return the numbers of the samples that no kernel of the mix has, rising.

    Parameters
    ----------
    stack : KernelStack
        The kernels.
    coefficients : ndarray of shape (m,) or None
        What mixes them; None where a method mixes no kernels, and hears all.
    """
    if stack.observed is None or coefficients is None:
        return np.arange(0)
    return np.flatnonzero(~stack.observed[:, np.flatnonzero(coefficients)].any(axis=1))


def warn_of_unheard(
    stack: KernelStack, unheard: np.ndarray, ids: np.ndarray | None, stacklevel: int
) -> None:
    """Warn of samples that are seen only in views without a weight."""
    assert stack.observed is not None
    views = [stack.names[p] for p in np.flatnonzero(stack.observed[unheard].any(axis=0))]
    names = unheard if ids is None else ids[unheard]
    warnings.warn(
        f"{len(unheard)} of {count(len(stack.observed), 'sample')} "
        f"{'is' if len(unheard) == 1 else 'are'} seen in no view that has a weight, only in "
        f"{join_words(views)}: {join_words(names)}. Nothing tells "
        f"{'its' if len(unheard) == 1 else 'their'} cluster: it is the one nearest to the average "
        "sample, and the clusters were found without "
        f"{'it' if len(unheard) == 1 else 'them'}. Leave such samples out (unheard_ has their "
        "numbers), or take a method that gives every view a weight, such as AverageKKM",
        UnheardSamplesWarning,
        stacklevel=stacklevel + 1,
    )
