"""Samples may be missing from kernels: each kernel is then the block of those that it
has."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from helpers.kernels import Rows
from mkclust.data.options import TableOptions
from mkclust.data.row_source import RowSubset
from mkclust.data.samples import read_kernels, read_samples
from mkclust.stack import as_stack

pytestmark = pytest.mark.slow

NAN = np.nan
MASK = np.ones((5, 2), bool)
MASK[[0, 3], 1] = False


def kernels(n=5, m=2, seed=0):
    X = np.random.default_rng(seed).normal(size=(m, n, 3))
    return X @ X.transpose(0, 2, 1)


def without(K, p, sample):
    """Empty the row and the column of one sample in one kernel."""
    K[p, sample], K[p, :, sample] = NAN, NAN


def block(K, p, samples):
    return K[p][np.ix_(samples, samples)]


FORMS = {
    "stack": lambda K: K,
    "dict": lambda K: {f"k{p}": kernel for p, kernel in enumerate(K)},
    "sparse": lambda K: [scipy.sparse.csr_array(kernel) for kernel in K],
    "masked stack": np.ma.masked_invalid,
    "objects": lambda K: [kernel.astype(object) for kernel in K],
    "single": lambda K: K.astype("float32"),
}


@pytest.mark.parametrize("form", FORMS)
def test_empty_rows_and_columns_are_samples_that_a_kernel_lacks(form):
    K = kernels()
    without(K, 0, 1)
    without(K, 1, 4)
    samples = read_samples(FORMS[form](K), expected="precomputed")
    assert samples.missing.tolist() == [[i == 1, i == 4] for i in range(5)]
    for p, numbers in enumerate(([0, 2, 3, 4], [0, 1, 2, 3])):
        part = samples.parts[p]
        found = (
            part.toarray() if scipy.sparse.issparse(part) else np.asarray(part, float)
        )
        np.testing.assert_allclose(found, block(K, p, numbers), rtol=1e-6)


def test_a_row_with_an_entry_is_refused():
    K = kernels()
    without(K, 0, 1)
    K[0, 1, 2] = 1.0
    assert read_kernels(K).missing is None
    with pytest.raises(ValueError, match="finite|NaN"):
        as_stack(K)


def test_of_a_memory_map_the_diagonal_tells_and_the_block_stays_in_the_file(tmp_path):
    K = kernels()
    without(K, 1, 2)
    np.save(tmp_path / "K.npy", K)
    whole = np.load(tmp_path / "K.npy", mmap_mode="r")
    for form in (whole, [whole[0], whole[1]]):
        samples = read_kernels(form)
        assert samples.missing.tolist() == [[False, i == 2] for i in range(5)]
        found, expected = samples.parts[1], block(K, 1, [0, 1, 3, 4])
        assert isinstance(found, RowSubset)
        assert (found.shape, found.ndim, found.dtype) == ((4, 4), 2, K.dtype)
        for rows in (slice(1, 3), np.array([3, 0]), slice(0), slice(None)):
            np.testing.assert_array_equal(found[rows], expected[rows])
        some = samples.take(np.array([1, 2, 4]))
        np.testing.assert_array_equal(np.asarray(some.parts[1]), block(K, 1, [1, 4]))


def test_a_dataset_is_masked_and_not_read(tmp_path):
    h5py, K = pytest.importorskip("h5py"), kernels()
    with h5py.File(tmp_path / "K.h5", "w") as file:
        whole = file.create_dataset("K", data=K, chunks=(1, 2, 2))
        samples = read_kernels(whole, observed=MASK)
        assert samples.observed["kernel 1"].tolist() == [1, 2, 4]
        np.testing.assert_array_equal(np.asarray(samples.parts[0]), K[0])
        np.testing.assert_array_equal(samples.parts[1][1:], block(K, 1, [1, 2, 4])[1:])


def test_a_mask_takes_whole_kernels_or_their_blocks():
    K = kernels()
    expected = block(K, 1, [1, 2, 4])
    for form in (K, list(K), {"a": K[0], "b": expected}, read_kernels(K)):
        samples = read_kernels(form, observed=MASK)
        np.testing.assert_array_equal(samples.missing, ~MASK)
        np.testing.assert_array_equal(samples.parts[1], expected)
    with pytest.raises(
        ValueError, match="Kernel 'kernel 1' has 2 rows, and observed says that 3"
    ):
        read_kernels([K[0], K[1][:2, :2]], observed=MASK)


def test_kernels_known_by_their_rows_are_neither_masked_nor_cut():
    samples = read_kernels(Rows(kernels()))
    assert (samples.n_samples, samples.missing) == (5, None)
    with pytest.raises(TypeError, match="rows alone"):
        read_kernels(Rows(kernels()), observed=MASK)
    with pytest.raises(TypeError, match="rows alone"):
        samples.take(np.arange(3))


def test_new_samples_may_lack_kernels():
    K = kernels(n=6)[:, :3]
    K[0, 1], K[1] = NAN, NAN
    with pytest.raises(ValueError, match="missing from every kernel: 1"):
        read_kernels(K, cross=True)
    K[1, 1] = 1.0
    for form in (K, list(K)):
        samples = read_kernels(form, cross=True)
        assert samples.missing.tolist() == [[False, True], [True, False], [False, True]]
        assert [part.shape for part in samples.parts] == [(2, 6), (1, 6)]


@given(st.integers(0, 2**32 - 1))
def test_kernels_as_frames_are_joined_by_all_ids(seed):
    rng, K = np.random.default_rng(seed), kernels(n=7, seed=seed)
    ids = np.array([f"s{i}" for i in range(7)])
    parts = [rng.permutation(6)[:5], rng.permutation([0, 1, 2, 6, 3])]
    frames = [
        pd.DataFrame(block(K, p, n), index=ids[n], columns=ids[n]).sample(
            frac=1, axis=1
        )
        for p, n in enumerate(parts)
    ]
    samples = read_samples(
        frames, expected="precomputed", options=TableOptions(join="outer")
    )
    everybody = list(dict.fromkeys(np.concatenate(parts).tolist()))
    assert samples.ids.tolist() == ids[everybody].tolist()
    for p, (name, numbers) in enumerate(samples.observed.items()):
        own = [everybody[i] for i in numbers]
        np.testing.assert_array_equal(samples.by_name[name], block(K, p, own))
    with pytest.raises(ValueError, match="was read before"):
        read_samples(samples, expected="precomputed", ids=samples.ids[::-1])
