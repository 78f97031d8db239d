"""Samples drawn by what they contain, so that the order of the rows is irrelevant."""

from typing import Any

import numpy as np
import pandas as pd

from mkclust.data.blocks import Block, Blocks
from mkclust.linalg import to_host
from mkclust.linalg.sparse_rows import issparse

# Odd constants that spread the bits of a number over a word.
_FACTOR, _STEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)


def draw_samples(
    blocks: Blocks, count: int, ids: np.ndarray | None = None
) -> np.ndarray:
    """Return the numbers of some samples, those drawn first before others, (count,).

    They are drawn by their ids, or by their numbers in all views, whose order does not
    matter: fewer samples are the first of more. Equal samples are drawn independently.
    """
    if ids is None:
        keys = blocks.map(_hash_block)
    else:
        texts = np.array([str(each) for each in ids], dtype=object)
        keys = pd.util.hash_array(texts)

    # Equal ones become different.
    ranks = pd.Series(keys).groupby(keys).cumcount().to_numpy(np.uint64)
    order = np.argsort(_mixed(keys + ranks * _STEP), kind="stable")
    return order[:count]


def _hash_block(block: Block, start: int = 0) -> np.ndarray:
    """Return a word for every sample of a block, the same for the same numbers."""
    keys = np.zeros(block.n_rows, np.uint64)
    for name, rows in block.items():
        index: Any = block.index(name)
        if index is None:
            index = slice(None)
        keys[index] += _hash_rows(rows)
    return _mixed(keys)


def _hash_rows(rows: Any) -> np.ndarray:
    """Return a word for every row; those of all zeros are zero."""
    if issparse(rows):
        words = _words(rows.data, rows.indices)
        running = np.cumsum(words, dtype=np.uint64)
        sums = np.append(np.uint64(0), running)
        ends = rows.indptr[1:]
        starts = rows.indptr[:-1]
        return sums[ends] - sums[starts]
    numbers = to_host(rows)
    words = _words(numbers, np.arange(numbers.shape[1]))
    return words.sum(axis=1, dtype=np.uint64)


def _words(numbers: Any, columns: np.ndarray) -> np.ndarray:
    """Return a word for every number and its column; zero for zero."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.uint64)
    words = _mixed(bits ^ (columns.astype(np.uint64) * _STEP))
    return np.where(numbers == 0, np.uint64(0), words)


def _mixed(words: np.ndarray) -> np.ndarray:
    """Return words of which every bit depends on all bits of the given ones."""
    words = words * _FACTOR
    words ^= words >> np.uint64(32)
    words *= _STEP
    words ^= words >> np.uint64(29)
    return words
