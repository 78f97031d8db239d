import numpy as np
import pytest

from helpers.problems import projector
from mkclust.methods.lf_mvc import fuse


@pytest.mark.data
@pytest.mark.parametrize("setting", [1, 2, 3])
def test_the_authors_code_is_reproduced_from_partitions_that_are_not_aligned(
    golden, setting
):
    H, H_0, name = list(golden["lf_HP"]), golden["lf_H0"], f"lf_v2_{setting}"
    options = {"reg": float(golden["lf_lambda"][setting - 1]), "align": False}
    found, expected = fuse(H, H_0, max_iter=101, **options), golden[f"{name}_obj"]
    assert found.converged
    assert len(found.history) == len(expected) + 1
    np.testing.assert_allclose(found.history[:-1], expected, rtol=1e-8)
    np.testing.assert_allclose(found.weights, golden[f"{name}_gamma"], atol=1e-6)
    np.testing.assert_allclose(found.rotations, golden[f"{name}_WP"], atol=1e-6)
    # Their partition belongs to the rotations and weights before the last update.
    before = fuse(H, H_0, max_iter=len(expected) - 1, tol=1e-300, **options)
    stored = projector(golden[f"{name}_Hstar"])
    np.testing.assert_allclose(projector(before.partition), stored, atol=1e-6)
