"""What a model remembers of the columns of views that features stand for: ranks of some samples."""

import numpy as np
from scipy.stats import rankdata

from mkclust.linalg import ranges, select, to_host
from mkclust.linalg.sparse_rows import dense_rows
from mkclust.samples.blocks import Blocks

# Samples whose ranks are kept, as many as bytes tell apart, and as few as still tell columns apart.
MOST_SAMPLES, FEWEST_SAMPLES = 256, 32
# Ranks of one view that are kept, and entries of which ranks are computed at a time.
MOST_RANKS, ENTRIES_AT_ONCE = 1 << 24, 1 << 20

# The numbers of some samples, (s,), and their ranks in every column, (s, n_columns).
ColumnRanks = tuple[np.ndarray, np.ndarray]


def column_ranks(blocks: Blocks) -> dict[str, ColumnRanks]:
    """Return the ranks of some samples in every column, by which the column can be recognized.

    Parameters
    ----------
    blocks : Blocks
        The samples, finite.

    Returns
    -------
    dict of str to (ndarray of int of shape (s,), ndarray of uint8 of shape (s, n_columns))
        By view, rising numbers of samples that it has, and the ranks of their values, equal ones
        of equal values. Views with too many columns are left out.
    """
    n = blocks.n_samples
    numbers = np.sort(np.random.default_rng(0).permutation(n)[:MOST_SAMPLES])
    found = {}
    for name, (rows, samples) in blocks.take_seen(numbers).items():
        height, width = rows.shape
        if width * min(height, FEWEST_SAMPLES) > MOST_RANKS:
            continue
        kept = np.arange(min(height, MOST_RANKS // width))
        ranks = np.empty((len(kept), width), dtype=np.uint8)
        for part in ranges(width, max(1, ENTRIES_AT_ONCE // max(1, len(kept)))):
            entries = to_host(dense_rows(select(select(rows, kept), part, axis=1)))
            ranks[:, part] = rankdata(entries, method="dense", axis=0) - 1
        found[name] = samples[kept], ranks
    return found
