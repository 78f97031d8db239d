"""Samples that belong together: families, visits of a patient, batches, plates.

Samples of one group are similar in everything, so rows of independent views are not
exchangeable. Exchangeable are, at most, the samples within a group, and whole groups of
the same size.
"""

from typing import Any

import numpy as np
import pandas as pd

from mkclust.index import FITTED, index_of, match_rows
from mkclust.linalg import arrays_to_host


def read_groups(groups: Any, samples: Any, *, whose: str = FITTED) -> np.ndarray:
    """Return the number of each sample's group, (n,), in order of first appearance.

    A sample without a group (an empty cell) is a group of its own.

    Parameters
    ----------
    groups : Series, frame of one column, or array-like of shape (n,)
        Names of groups: of a Series or frame by the ids of the samples, else in their
        order.
    samples : pandas.Index or int
        The index of the samples, or their number.
    whose : str
        What messages call the samples.

    Examples
    --------
    >>> read_groups(["a", "b", "a", None, None], 5).tolist()
    [0, 1, 0, 2, 3]
    """
    index = index_of(groups)
    values = pd.DataFrame(arrays_to_host(groups))
    if index is None:
        index = len(values)

    if values.shape[1] != 1:
        raise ValueError(
            f"groups has {values.shape[1]} columns: pass one, with the name of each "
            "sample's group"
        )

    rows = match_rows(index, samples, "groups", whose, every=True)
    names = values.iloc[rows, 0].reset_index(drop=True)
    numbers, known = pd.factorize(names)
    is_alone = numbers < 0
    numbers[is_alone] = len(known) + np.arange(is_alone.sum())
    numbers, _ = pd.factorize(numbers)

    if not numbers.any():
        raise ValueError(
            f"groups has one group for all {len(numbers)} samples: pass ids that "
            "differ between families, patients, batches or plates, or leave groups out"
        )
    return np.asarray(numbers, dtype=np.intp)


def permutation_of_groups(groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a random order of the samples, (n,), that respects their groups.

    Samples are shuffled within their groups, and whole groups among those of the same
    size.

    >>> groups = np.array([0, 0, 1, 1, 2])
    >>> order = permutation_of_groups(groups, np.random.default_rng(0))
    >>> bool(groups[order[0]] == groups[order[1]]), int(order[4])
    (True, 4)
    """
    numbers, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    source = np.arange(len(numbers))
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        source[same] = rng.permutation(same)

    members = np.argsort(codes, kind="stable")
    shuffled = np.lexsort([rng.random(len(codes)), codes])
    starts = np.cumsum(sizes) - sizes
    within = np.arange(len(codes)) - np.repeat(starts, sizes)
    order = np.empty(len(codes), dtype=np.intp)
    places = np.repeat(starts[source], sizes) + within
    order[members] = shuffled[places]
    return order
