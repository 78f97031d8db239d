import numpy as np
import pytest

from mkclust.methods import METHODS, AverageKKM, SimpleMKKM
from mkclust.stack import as_stack


@pytest.fixture(scope="module")
def kernels():
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=3, size=(3, 4))
    X = [centers[np.arange(45) % 3] + rng.normal(size=(45, 4)) for _ in range(3)]
    return np.array([x @ x.T for x in X])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", METHODS)
def test_a_solve_alone_gives_what_the_fit_gives_and_leaves_the_model_unfitted(name, kernels):
    model = METHODS[name](3, random_state=0)
    solution = model.solve(as_stack(kernels))
    assert not hasattr(model, "labels_")
    assert solution.seconds > 0
    fitted = METHODS[name](3, random_state=0).fit(kernels)
    np.testing.assert_allclose(solution.weights, fitted.weights_, rtol=0, atol=1e-12)
    H, embedding = solution.partition, fitted.embedding_
    np.testing.assert_allclose(H @ H.T, embedding @ embedding.T, atol=1e-8)


def test_a_solve_refuses_what_a_fit_refuses(kernels):
    stack = as_stack(kernels)
    with pytest.raises(ValueError, match="n_clusters=45"):
        AverageKKM(45).solve(stack)
    with pytest.raises(ValueError, match="tol"):
        SimpleMKKM(3, tol=2.0).solve(stack)
    with pytest.raises(ValueError, match="tol"):
        SimpleMKKM(3, tol=2.0).check_parameters()
