import numpy as np
import pytest

from mkclust import AverageKKM
from mkclust.methods import solve_average_kkm
from mkclust.stack import as_stack
from problems import projector, random_kernels


@pytest.mark.data
def test_the_golden_average_is_reproduced(golden):
    stack = as_stack(golden["K"], center=False, normalize=False)
    solution = solve_average_kkm(stack, 4)
    assert solution.objective == pytest.approx(float(golden["avg_obj"]), rel=1e-12)
    np.testing.assert_allclose(solution.relaxation.eigenvalues[:5], golden["avg_eigs"], rtol=1e-10)
    np.testing.assert_allclose(projector(solution.partition), projector(golden["avg_H"]), atol=1e-9)


@pytest.mark.parametrize("n", [40, 260])
def test_the_partition_is_that_of_the_mean_matrix(n):
    kernels = random_kernels(n, 3, seed=1)
    model = AverageKKM(4, center=False, normalize=False, random_state=0).fit(kernels)
    values, vectors = np.linalg.eigh(kernels.mean(axis=0))
    assert model.objective_ == pytest.approx(values[-4:].sum(), rel=1e-9)
    np.testing.assert_allclose(projector(model.embedding_), projector(vectors[:, -4:]), atol=1e-5)
