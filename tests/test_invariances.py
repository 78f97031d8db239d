"""Invariances of SimpleMKKM; those of all methods are in test_contract.py."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.kernels import gaussian_kernels
from mkclust import SimpleMKKM
from mkclust.metrics import adjusted_rand_index

pytestmark = pytest.mark.filterwarnings("ignore")
seeds = st.integers(0, 10_000)


def fitted(kernels, **settings):
    return SimpleMKKM(3, random_state=0, **settings).fit(kernels)


def problem(seed, n=60, m=3):
    """Return separable kernels with random strengths."""
    rng = np.random.default_rng(seed)
    return gaussian_kernels(rng, n=n, k=3, strengths=rng.uniform(1.5, 3, m))[0]


@given(seeds, st.floats(1e-6, 1e6))
def test_scaling_all_kernels_changes_no_weight(seed, factor):
    kernels = problem(seed)
    a, b = (fitted(K, normalize=False, tol=1e-9) for K in (kernels, factor * kernels))
    np.testing.assert_allclose(a.weights_, b.weights_, atol=1e-5)
    assert b.objective_ == pytest.approx(factor * a.objective_, rel=1e-6)
    assert adjusted_rand_index(a.labels_, b.labels_) == pytest.approx(1)


@given(seeds)
def test_duplicated_samples_get_the_same_label(seed):
    kernels = problem(seed, n=40)
    twice = np.concatenate([np.arange(40), np.arange(40)])
    model = fitted(kernels[:, twice][:, :, twice])
    np.testing.assert_array_equal(model.labels_[:40], model.labels_[40:])


@given(seeds)
def test_one_kernel_is_plain_kernel_k_means(seed):
    kernels = problem(seed, m=1)
    model = fitted(kernels)
    assert model.weights_.tolist() == [1.0]
    assert model.alignments_ == pytest.approx([1.0])
    assert model.baseline_agreement_ == pytest.approx(1)
    assert model.duality_gap_ <= 1e-6


@pytest.mark.slow
@given(seeds, st.sampled_from([60, 260]))
def test_single_precision_gives_nearly_the_same_answer(seed, n):
    kernels = problem(seed, n=n)
    a, b = fitted(kernels), fitted(kernels.astype(np.float32))
    np.testing.assert_allclose(a.weights_, b.weights_, atol=2e-3)
    assert b.weights_.dtype == np.float64
    assert b.objective_ == pytest.approx(a.objective_, rel=1e-5)
    assert adjusted_rand_index(a.labels_, b.labels_) == pytest.approx(1)
