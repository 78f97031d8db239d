"""What becomes a stack, what is refused, and what is repaired."""

import numpy as np
import pytest
import scipy.sparse as sp

from helpers.kernels import M, N, Rows, integer_kernels, on_disk, standardized
from mkclust.stack import as_stack


def indefinite(n, seed=0, negative=-0.2):
    """Return a kernel with some negative eigenvalues, all on vectors that centering
    keeps."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(np.hstack([np.ones((n, 1)), rng.normal(size=(n, n - 1))]))
    values = np.concatenate(
        [[0.5], rng.uniform(0.1, 1, size=n - 4), negative * np.ones(3)]
    )
    K = (Q * values) @ Q.T
    return (K + K.T) / 2


@pytest.mark.parametrize("n", [60, 520])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("center", [True, False])
def test_repaired_kernels_are_positive_semidefinite_with_unit_diagonals(
    n, dtype, center
):
    kernels = [
        indefinite(n).astype(dtype),
        np.eye(n, dtype=dtype),
        indefinite(n, 1).astype(dtype),
    ]
    before = [K.copy() for K in kernels]
    stack = as_stack(kernels, psd="shift", center=center)
    tolerance = 1e-5 if dtype == np.float32 else 1e-8
    V = np.random.default_rng(0).normal(size=(n, 2))
    assert [K.standardization.is_repaired for K in stack.kernels] == [True, False, True]
    for kernel, given, copy in zip(stack.kernels, kernels, before, strict=True):
        K = kernel.dense()
        np.testing.assert_allclose(np.diag(K), 1, atol=tolerance)
        assert np.linalg.eigvalsh(K)[0] > -tolerance
        np.testing.assert_allclose(kernel @ V, K @ V, atol=100 * tolerance)
        # All training samples as new ones, from the kernel as it was given.
        again = kernel.standardization.project(
            given, V, given.diagonal(), is_training=True
        )
        np.testing.assert_allclose(again, K @ V, atol=100 * tolerance)
        np.testing.assert_array_equal(given, copy)


@pytest.mark.parametrize("n", [60, 520])
@pytest.mark.parametrize("center", [True, False])
def test_shifting_adds_just_the_smallest_eigenvalue(n, center):
    K = indefinite(n)
    stack = as_stack([K], psd="shift", center=center, normalize=False)
    lowest = np.linalg.eigvalsh(standardized(K[None], center, False)[0])[0]
    expected = standardized((K - lowest * np.eye(n))[None], center, False)[0]
    found = stack.kernels[0].dense()
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.linalg.eigvalsh(found)[0] > -1e-12


@pytest.mark.parametrize("streamed", [False, True])
def test_one_entry_that_differs_from_its_mirror_image_is_seen(streamed):
    X = np.random.default_rng(0).normal(size=(700, 4))
    K = X @ X.T
    K[697, 5] += 1e-4 * np.abs(K).max()
    with pytest.raises(ValueError, match="kernel 0 is not symmetric"):
        as_stack([K], streamed=streamed)
    K[697, 5] -= (1 - 1e-7) * 1e-4 * np.abs(K).max()
    symmetric = as_stack([K], streamed=streamed, normalize=False).kernels[0].dense()
    np.testing.assert_allclose(symmetric, symmetric.T, atol=1e-12)


def of_much_alike_samples(n, scale):
    """Return a wide Gaussian kernel, in which centering leaves little more than
    rounding."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    return np.exp(-scale * np.square(X[:, None] - X).sum(axis=2))


@pytest.mark.parametrize(("dtype", "scale"), [(np.float64, 1e-9), (np.float32, 1e-4)])
@pytest.mark.parametrize("n", [40, 60, 200, 600])
def test_subsets_are_sound_if_the_rounding_of_their_entries_is_all_that_is_negative(
    n, dtype, scale
):
    K = of_much_alike_samples(600, scale).astype(dtype)[:n, :n]
    assert as_stack([K]).n_samples == n

    # What is negative by far more than entries are rounded is refused all the same.
    X = np.random.default_rng(1).normal(size=(n, 3))
    with pytest.raises(ValueError, match="kernel 0 is indefinite"):
        as_stack([K - (0.1 * scale * X @ X.T).astype(dtype)])


def test_a_few_negative_directions_of_many_samples_are_seen():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(900, 6)), rng.normal(size=(900, 2))
    with pytest.raises(ValueError, match="kernel 1 is indefinite"):
        as_stack([X @ X.T, X @ X.T - 0.1 * Y @ Y.T])


REFUSED = {
    "NaN": (lambda K: K.__setitem__((3, 4), np.nan), "kernel 1 contains NaN"),
    "infinity": (
        lambda K: K.__setitem__((3, 4), np.inf),
        "kernel 1 contains NaN or inf",
    ),
    "constant": (lambda K: K.fill(2.0), "kernel 1 is constant"),
    "zero": (lambda K: K.fill(0.0), "kernel 1 is zero"),
    "an empty sample": (
        lambda K: (K.__setitem__(7, 0.0), K.__setitem__((slice(None), 7), 0.0)),
        "kernel 1: samples 7 have zero self-similarity",
    ),
    "tiny": (lambda K: np.multiply(K, 1e-300, out=K), "kernel 1 has entries so small"),
    "overflow": (
        lambda K: np.multiply(K, 4e306, out=K),
        "kernel 1 has entries so large",
    ),
    "distances": (
        lambda K: K.__setitem__(
            (...,), np.abs(np.subtract.outer(np.arange(N), np.arange(N))).astype(float)
        ),
        "kernel 1 looks like distances",
    ),
    "negative diagonal": (
        lambda K: K.__setitem__((...,), -np.eye(N)),
        "kernel 1 is indefinite",
    ),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_wrong_with_a_kernel_is_named(kind, streamed):
    change, message = REFUSED[kind]
    kernels = integer_kernels()
    change(kernels[1])
    with pytest.raises(ValueError, match=message):
        as_stack(kernels, streamed=streamed, center=kind != "an empty sample")


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        (integer_kernels()[0], r"pass K\[None\]"),
        ([], "no kernels"),
        ([np.ones((3, 4))], "kernel 0 is not square"),
        ([np.eye(3), np.eye(4)], "kernels of different sizes"),
        ([np.ones(3)], "two dimensions"),
        ([np.zeros((0, 0))], "empty"),
        ([np.eye(3) * 1j], "kernel 0 .* real numbers"),
        ([np.array([["a", "b"], ["c", "d"]], object)], "kernel 0 .*numbers"),
        ([sp.csr_array(np.full((2, 2), np.nan))], "NaN"),
        (np.moveaxis(integer_kernels(), 0, 2), r"np.moveaxis\(K, 2, 0\)"),
    ],
)
def test_what_is_no_set_of_kernels_is_refused_with_what_to_pass(kernels, message):
    with pytest.raises(ValueError, match=message):
        as_stack(kernels)


@pytest.mark.parametrize("options", [{"psd": "shift"}, {"streamed": False}])
def test_rows_cannot_be_repaired_or_held(options):
    with pytest.raises(ValueError, match="needs the kernels in memory"):
        as_stack(Rows(integer_kernels()), **options)


def test_memory_maps_are_streamed_if_a_mix_would_not_fit(tmp_path, monkeypatch):
    whole = on_disk(integer_kernels(), tmp_path)
    assert {K.storage for K in as_stack(whole).kernels} == {"dense"}
    monkeypatch.setattr(
        "mkclust.stack.build.available_bytes", lambda: 4 * N * N * 8 - 1
    )
    assert {K.storage for K in as_stack(whole).kernels} == {"streamed"}


def test_datasets_that_fit_are_loaded_and_others_streamed(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "kernels.h5", "w") as file:
        data = file.create_dataset("K", data=integer_kernels(), chunks=(1, 16, 9))
        expected = standardized(integer_kernels())
        assert {K.storage for K in as_stack(data).kernels} == {"dense"}
        monkeypatch.setattr(
            "mkclust.stack.build.available_bytes", lambda: (M + 1) * N * N * 8
        )
        stack = as_stack(data)
        assert {K.storage for K in stack.kernels} == {"streamed"}
        np.testing.assert_allclose(stack.among().entries, expected, atol=1e-11)
