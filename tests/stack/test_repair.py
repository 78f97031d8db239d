"""Indefinite kernels, repaired: clusters and new samples go by what was repaired."""

import numpy as np
import pytest

from helpers.views import blob_views
from mkclust import AverageKKM, SimpleMKKM

pytestmark = pytest.mark.slow


def one_of_several(n=60, seed=0):
    """Return an indefinite kernel between two sound ones, with self-similarities that
    differ."""
    (A, B, C), _ = blob_views(
        np.random.default_rng(seed), n=n, k=3, strengths=(2, 2, 1)
    )
    return np.stack([A @ A.T, B @ B.T - 0.4 * C @ C.T, C @ C.T])


def test_a_shift_is_part_of_a_new_samples_self_similarity():
    K, new = one_of_several()[1], np.random.default_rng(0).normal(size=(9, 60))
    own = np.full((1, 9), 50.0)
    model = AverageKKM(3, psd="shift", center=False, random_state=0).fit(K[None])
    shift = -np.linalg.eigvalsh(K)[0] * (1 + 1e-6)
    scale = 1 / np.sqrt(K.diagonal() + shift)
    values, V = np.linalg.eigh(scale[:, None] * (K + shift * np.eye(60)) * scale)
    expected = (new * scale) @ V[:, :-4:-1] / values[:-4:-1] / np.sqrt(50 + shift)
    found = model.transform(new[None], own)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-8)


def test_self_similarities_may_be_negative_only_if_the_kernel_was_repaired():
    K = one_of_several() - 12 * np.eye(60)
    own = np.stack([k.diagonal() for k in K])
    model = SimpleMKKM(3, psd="shift", random_state=0).fit(K)
    np.testing.assert_array_equal(
        model.predict(K[:, ::2], own[:, ::2]), model.labels_[::2]
    )
    sound = SimpleMKKM(3, random_state=0).fit(one_of_several()[::2])
    with pytest.raises(ValueError, match="negative"):
        sound.predict(K[::2, ::2], own[::2, ::2])
