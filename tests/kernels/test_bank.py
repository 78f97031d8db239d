import pickle

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import (
    cosine_similarity,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
)

from mkclust.kernels import KernelBank
from mkclust.stack import RowSource


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def views(rng):
    # More rows than one block, so that the seams between blocks are tested too.
    return {
        "pixels": rng.normal(size=(300, 4)) + 2,
        "words": rng.exponential(size=(300, 9)),
    }


def bank_by_scikit_learn(X, Y, widths, polynomials, linear):
    median, scale = np.median(pdist(Y)), np.mean(np.sum(Y**2, axis=1))
    yield from (rbf_kernel(X, Y, gamma=0.5 / (width * median) ** 2) for width in widths)
    for offset, degree in polynomials:
        yield polynomial_kernel(X, Y, gamma=1 / scale, coef0=offset, degree=degree)
    if linear is not None:
        yield (
            linear_kernel(X, Y) / scale
            if linear == "linear"
            else cosine_similarity(X, Y)
        )


@pytest.mark.parametrize("linear", ["linear", "cosine", None])
def test_kernels_equal_those_of_scikit_learn(views, rng, linear):
    bank = KernelBank(linear=linear).fit(views)
    new = {name: rng.normal(size=(270, view.shape[1])) for name, view in views.items()}
    for X in (views, new):
        expected = [
            kernel
            for name in views
            for kernel in bank_by_scikit_learn(
                X[name], views[name], bank.widths, bank.polynomials, linear
            )
        ]
        np.testing.assert_allclose(bank.transform(X), expected, rtol=1e-10, atol=1e-12)


def test_kernels_of_the_training_views_are_exactly_symmetric(views):
    bank = KernelBank()
    kernels = bank.fit_transform(views)
    np.testing.assert_array_equal(kernels, kernels.transpose(0, 2, 1))
    copies = {name: view.copy() for name, view in reversed(views.items())}
    np.testing.assert_allclose(bank.transform(copies), kernels, rtol=1e-13)
    diagonals = np.diagonal(kernels, axis1=1, axis2=2)
    np.testing.assert_allclose(diagonals, bank.self_similarity(views), rtol=1e-13)
    assert np.all(diagonals[["gauss" in name for name in bank.kernel_names_]] == 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernels_on_the_fly_are_those_of_the_dense_bank(views, rng, dtype):
    views = {name: view.astype(dtype) for name, view in views.items()}
    views["words"][[5, 77]], views["words"][9] = views["words"][40], 0
    new = {
        name: rng.normal(size=(70, view.shape[1])).astype(dtype)
        for name, view in views.items()
    }
    dense, lazy = (
        KernelBank(linear="cosine"),
        KernelBank(linear="cosine", on_the_fly=True),
    )
    K, rows = dense.fit_transform(views), lazy.fit_transform(views)
    assert isinstance(rows, RowSource)
    assert (rows.n_kernels, rows.n_samples, rows.dtype) == (*K.shape[:2], K.dtype)
    close = (
        {"rtol": 1e-9, "atol": 1e-12}
        if dtype == np.float64
        else {"rtol": 1e-5, "atol": 1e-6}
    )
    np.testing.assert_allclose(rows.rows(33, 134), K[:, 33:134], **close)
    np.testing.assert_allclose(rows.diagonal(), np.einsum("pii->pi", K), **close)
    np.testing.assert_allclose(
        rows.only([20, 0]).rows(2, 99), K[[20, 0], 2:99], **close
    )
    expected, cross = dense.transform(new), lazy.transform(new)
    np.testing.assert_allclose(cross.rows(50, 10**6), expected[:, 50:], **close)
    blocks = np.concatenate([np.stack(block) for _, block in cross.blocks()], axis=1)
    np.testing.assert_allclose(blocks, expected, **close)
    stored = pickle.loads(pickle.dumps(rows))
    np.testing.assert_allclose(stored.rows(0, 9), K[:, :9], **close)


def test_new_views_unlike_the_training_views_are_refused(views):
    pixels, words = views.values()
    for fitted, new, message in (
        (views, {"pixels": pixels}, "fitted on .*'words': 9"),
        (pixels, [pixels, words], "fitted on .*'table': 4"),
        # The very words that scikit-learn's checks of estimators require.
        (
            pixels,
            words,
            "X has 9 features, but KernelBank is expecting 4 features as input",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            KernelBank().fit(fitted).transform(new)
    with pytest.raises(NotFittedError):
        KernelBank().self_similarity(views)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        *(
            ({"widths": value}, "widths=")
            for value in ((1.0, 0.0), (np.inf,), ("1",), 1.0)
        ),
        *(
            ({"polynomials": p}, "polynomials=")
            for p in (2, ((1,),), ((-1, 2),), ((1, 2.5),))
        ),
        ({"linear": "quadratic"}, "linear='quadratic'"),
        ({"widths": (), "polynomials": (), "linear": None}, "leaves no kernel"),
    ],
)
def test_parameters_that_make_no_kernel_are_refused(views, parameters, message):
    with pytest.raises(ValueError, match=message):
        KernelBank(**parameters).fit(views)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ({"a": np.full((5, 2), 0.1), "b": np.eye(5)}, "in view 'a' are identical"),
        ({"b": np.eye(5), "a": np.zeros((5, 2))}, "view 'a' are zero"),
        ({"b": np.eye(5), "a": 1e200 * np.eye(5)}, "view 'a' are too large"),
        (np.ones((1, 4)), "n_samples=1"),
    ],
)
def test_views_without_a_typical_distance_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        KernelBank().fit(X)
