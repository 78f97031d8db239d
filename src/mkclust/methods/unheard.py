"""Samples that are seen in none of the views that are mixed: nothing tells their cluster."""

import warnings
from collections.abc import Sequence
from typing import Any

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
    # What was learned of a sample speaks for it in all kernels but those that are set aside.
    is_learned = any(part.map.fill is not None for part in stack.parts)
    is_heard = stack.counted if is_learned else np.asarray(coefficients) != 0
    return np.flatnonzero(~stack.observed[:, is_heard].any(axis=1))


def unheard_among_new(model: Any, names: Sequence[str], missing: np.ndarray | None) -> np.ndarray:
    """Return the numbers of the new samples that no view with a weight has, rising.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted model.
    names : sequence of str
        Names of the views, or kernels, that the new samples are of.
    missing : ndarray of bool of shape (n_new, n_views) or None
        Which of them lack which of the samples; None where none is missing.
    """
    coefficients = getattr(model, "coefficients_", None)
    if missing is None or coefficients is None or not hasattr(model, "agreement_"):
        return np.arange(0)
    known = getattr(model, "view_names_in_", model.kernel_names_)
    is_learned = hasattr(model, "fill_history_")
    is_heard = model._source.extension.counted if is_learned else np.asarray(coefficients) != 0
    views = np.asarray(model.agreement_.views)[is_heard]
    heard = {known[view] for view in views}
    columns = [name in heard for name in (names if set(names) == set(known) else known)]
    return np.flatnonzero(missing[:, columns].all(axis=1))


def warn_of_unheard(
    unheard: np.ndarray,
    names: Sequence[str],
    observed: np.ndarray,
    ids: np.ndarray | None,
    stacklevel: int,
) -> None:
    """Warn of samples that are seen only in views without a weight.

    Parameters
    ----------
    unheard : ndarray of int
        The numbers of these samples.
    names : sequence of str
        Names of views or kernels.
    observed : ndarray of bool of shape (n_samples, len(names))
        Which of them have which samples.
    ids : ndarray of shape (n_samples,) or None
        Ids of the samples.
    stacklevel : int
        Whose line to show, as for ``warnings.warn``.
    """
    views = [names[p] for p in np.flatnonzero(observed[unheard].any(axis=0)).tolist()]
    are, their, them = ("is", "its", "it") if len(unheard) == 1 else ("are", "their", "them")
    warnings.warn(
        f"{len(unheard)} of {count(len(observed), 'sample')} {are} seen in no view that "
        f"has a weight, only in {join_words(views)}: "
        f"{join_words(unheard if ids is None else ids[unheard])}. There is no evidence for "
        f"{their} cluster: it is the one nearest to the average sample, and the clusters "
        f"were found without {them}. Leave such samples out, or use a method that gives "
        "every view a weight, such as AverageKKM",
        UnheardSamplesWarning,
        stacklevel=stacklevel + 1,
    )
