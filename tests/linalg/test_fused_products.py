"""Products on tensor cores, against those in double precision: on CUDA devices only."""

import numpy as np
import pytest
from mkclust.kernels.tiles import FEWEST_FUSED

from libraries import ON_CUDA, as_library
from mkclust import KernelBank
from mkclust.linalg import noise, to_host
from mkclust.linalg.in_triton import written_in_triton
from mkclust.stack import as_stack

pytestmark = [pytest.mark.slow, *ON_CUDA]


@pytest.fixture
def fused():
    module = written_in_triton("fused_products", as_library("cuda", np.zeros(1)))
    if module is None:
        pytest.skip("Triton does not work here")
    return module


def relative_error(found, expected):
    return float((found - expected).norm() / expected.norm())


def gaussian(columns, steepness):
    import torch

    rows = columns.T.to(torch.float64)
    distances = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    return torch.exp(-steepness / 2 * distances**2)


@pytest.mark.parametrize(
    ("n", "d", "b"), [(4096, 30, 28), (1, 3, 1), (127, 1, 3), (4099, 100, 64), (5000, 7, 70)]
)
@pytest.mark.parametrize("steepness", [0.25, 1.0, 16.0])
def test_products_without_entries_are_those_of_the_kernel(fused, n, d, b, steepness):
    rng = np.random.default_rng(0)
    columns = as_library("cuda", rng.normal(size=(d, n)) * 0.7 / np.sqrt(d)).float()
    X = noise((n, b), 1, columns)
    product = fused.gaussian_products(fused.split_points(columns), steepness, X)
    assert product.dtype == X.dtype
    assert relative_error(product, gaussian(columns, steepness) @ X) < 3e-6
    ones = X[:, :1] * 0 + 1
    sums = fused.gaussian_products(fused.split_points(columns), steepness, ones)
    assert relative_error(sums, gaussian(columns, steepness) @ ones) < 3e-6


def test_rows_that_are_alike_are_at_no_distance_however_far_they_are(fused):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, 60)) * 0.1 + 40.0
    columns = as_library("cuda", np.repeat(rows, 3, axis=1)).float()
    X = noise((180, 4), 1, columns)
    product = fused.gaussian_products(fused.split_points(columns), 1.0, X, 1e-6)
    assert relative_error(product, gaussian(columns, 1.0) @ X) < 1e-2  # rounding of the rows
    same = to_host(product).reshape(60, 3, 4)
    np.testing.assert_allclose(same[:, 0], same[:, 1], atol=1e-5)


def test_rows_that_cannot_be_split_are_left_to_others(fused):
    zeros = as_library("cuda", np.zeros((3, 20))).float()
    assert fused.split_points(zeros) is None
    assert fused.split_points(zeros + float("inf")) is None
    many = as_library("cuda", np.ones((fused.MOST_FEATURES + 1, 20))).float()
    assert fused.split_points(many) is None


@pytest.mark.parametrize("b", [1, 28, 62])
@pytest.mark.parametrize("kind", ["kernel", "scaled", "indefinite", "tiny"])
def test_products_of_stored_entries_are_those_of_double_precision(fused, kind, b):
    n = fused.FEWEST_SAMPLES + 5
    rng = np.random.default_rng(0)
    A = as_library("cuda", rng.normal(size=(n, 20))).float()
    lengths = as_library("cuda", 10.0 ** rng.uniform(-6, 6, n))
    M = {
        "kernel": lambda: A @ A.T,
        "scaled": lambda: (A @ A.T) * lengths.float()[:, None] * lengths.float(),
        "indefinite": lambda: (A @ A.T).fill_diagonal_(0.0),
        "tiny": lambda: (A @ A.T) * 1e-30,
    }[kind]().contiguous()
    X = noise((n, b), 1, A) / (lengths[:, None] if kind == "scaled" else 1.0)
    weights = 1 / lengths[:, None] if kind == "scaled" else 1.0
    product = fused.stored_products(M, X)
    assert relative_error(product * weights, (M.double() @ X) * weights) < 1e-6


def test_stored_entries_that_do_not_suit_are_left_to_others(fused):
    import torch

    n = fused.FEWEST_SAMPLES
    M = torch.zeros((n, n), device="cuda")
    thin = torch.zeros((n, 3), device="cuda", dtype=torch.float64)
    assert fused.stored_products(M.T[: n // 2, : n // 2], thin[: n // 2]) is None
    assert fused.stored_products(M[:, ::2].T, thin) is None
    wide = torch.zeros((n, fused.MOST_COLUMNS + 1), device="cuda", dtype=torch.float64)
    assert fused.stored_products(M, wide) is None


def test_kernels_on_the_fly_are_multiplied_as_their_rows_are():
    rng = np.random.default_rng(0)
    n = FEWEST_FUSED + 3
    views = as_library("cuda", [rng.normal(size=(n, d)) for d in (1, 9)])
    bank = KernelBank(widths=(0.5, 1.0, 2.0), polynomials=((1, 2),), linear=None, on_the_fly=True)
    stacks = [
        as_stack(bank.fit_transform([getattr(view, kind)() for view in views]), validate=False)
        for kind in ("float", "double")
    ]
    V = noise((n, 5), 1, views[0])
    assert stacks[0].source.product(0, V) is not None
    assert stacks[0].source.product(3, V) is None  # a polynomial
    assert stacks[1].source.product(0, V) is None  # in double precision
    single, double = (stack.apply(V) for stack in stacks)
    for p in range(8):
        assert relative_error(single[p, :, :], double[p, :, :]) < 1e-4
    coefficients = np.linspace(0.1, 0.9, 8)
    mixed, exact = (stack.combine(coefficients) @ V for stack in stacks)
    assert relative_error(mixed, exact) < 1e-4
    np.testing.assert_allclose(
        to_host(stacks[0].standardizations[1].row_means),
        to_host(stacks[1].standardizations[1].row_means),
        rtol=1e-6,
    )
