"""Eigendecompositions, and what happens where a driver of LAPACK fails."""

import numpy as np
import pytest
import scipy.linalg
from numpy.linalg import LinAlgError

from mkclust.linalg import eigh, eigvalsh, to_host

MATRICES = {
    "identity": np.eye(80),
    "centered identity": np.eye(80) - 1 / 80,
    "tiny": 1e-300 * (np.eye(80) + np.ones((80, 80))),
}


def fails(*args, driver=None, **options):
    """Stand for a driver that fails; the last one of SciPy's works."""
    if driver == "ev":
        return SCIPY(*args, driver=driver, **options)
    raise LinAlgError("Internal Error.")


SCIPY = scipy.linalg.eigh
BROKEN = {"nothing": (), "NumPy": ((np.linalg, "eigh"), (np.linalg, "eigvalsh"))}
BROKEN["both"] = ((scipy.linalg, "eigh"), *BROKEN["NumPy"])


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("library", [None, "array_api_strict"])
@pytest.mark.parametrize("M", MATRICES.values(), ids=MATRICES)
def test_eigenpairs_are_found_by_another_driver_where_one_fails(
    monkeypatch, M, library, broken
):
    known = np.linalg.eigvalsh(M)
    for module, name in broken:
        monkeypatch.setattr(module, name, fails)
    given = M if library is None else pytest.importorskip(library).asarray(M)
    size = np.abs(known).max() or 1.0
    np.testing.assert_allclose(eigvalsh(given) / size, known / size, atol=1e-12)
    values, vectors = eigh(given)
    vectors = to_host(vectors)
    np.testing.assert_allclose(values / size, known / size, atol=1e-12)
    np.testing.assert_allclose(
        (M / size) @ vectors, vectors * values / size, atol=1e-12
    )
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(80), atol=1e-12)
