"""Products on tensor cores, against those in double precision: on CUDA devices only."""

import numpy as np
import pytest

from helpers.arrays import ON_CUDA, as_library
from mkclust import KernelBank
from mkclust.linalg import random_normal
from mkclust.linalg.arrays import FEWEST_FUSED, triton_module
from mkclust.stack import as_stack

pytestmark = [pytest.mark.slow, *ON_CUDA]


@pytest.fixture
def products():
    module = triton_module("fused_products", as_library("cuda", np.zeros(FEWEST_FUSED)))
    if module is None:
        pytest.skip("Triton does not work here")
    return module


def relative_error(found, expected):
    return float((found - expected).norm() / expected.norm())


def gaussian(rows, factor):
    import torch

    rows = rows.to(torch.float64)
    distances = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    return torch.exp(-factor / 2 * distances**2)


@pytest.mark.parametrize(
    ("n", "d", "b"),
    [(4096, 30, 28), (1, 3, 1), (127, 1, 3), (4099, 100, 64), (5000, 7, 70)],
)
@pytest.mark.parametrize("factor", [0.25, 1.0, 16.0])
def test_products_without_entries_are_those_of_the_kernel(products, n, d, b, factor):
    rng = np.random.default_rng(0)
    rows = as_library("cuda", rng.normal(size=(n, d)) * 0.7 / np.sqrt(d)).float()
    X = random_normal((n, b), rows, 1)
    product = products.gaussian_products(products.split_points(rows), factor, X)
    assert product.dtype == X.dtype
    assert relative_error(product, gaussian(rows, factor) @ X) < 3e-6


def test_rows_that_cannot_be_split_are_left_to_others(products):
    zeros = as_library("cuda", np.zeros((20, 3))).float()
    assert products.split_points(zeros) is None
    assert products.split_points(zeros + float("inf")) is None
    many = as_library("cuda", np.ones((20, products.MOST_FEATURES + 1))).float()
    assert products.split_points(many) is None


def test_kernels_on_the_fly_are_multiplied_as_their_rows_are():
    rng = np.random.default_rng(0)
    n = FEWEST_FUSED + 3
    views = as_library("cuda", [rng.normal(size=(n, d)) for d in (1, 9)])
    bank = KernelBank(
        widths=(0.5, 1.0, 2.0), polynomials=((1, 2),), linear=None, on_the_fly=True
    )
    sources = [
        bank.fit_transform([getattr(view, kind)() for view in views])
        for kind in ("float", "double")
    ]
    stacks = [as_stack(source, validate=False) for source in sources]
    V = random_normal((n, 5), views[0], 1)
    assert sources[0].product(0, V) is not None
    assert sources[0].product(3, V) is None  # a polynomial
    assert sources[1].product(0, V) is None  # in double precision
    single, double = (stack.apply(V) for stack in stacks)
    for p in range(8):
        assert relative_error(single[p, :, :], double[p, :, :]) < 1e-4
    coefficients = np.linspace(0.1, 0.9, 8)
    mixed, exact = (stack.mix(coefficients) @ V for stack in stacks)
    assert relative_error(mixed, exact) < 1e-4
