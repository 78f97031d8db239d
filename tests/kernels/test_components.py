"""Principal components are left as they are: their spreads say how much they matter."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from mkclust import AnchoredMKKM, KernelBank, view
from mkclust.data import read_samples
from mkclust.datasets import load
from mkclust.kernels import Nystroem
from mkclust.kernels.profile import are_components

N = 300
ONE = {"widths": (1.0,), "polynomials": (), "linear": None, "rules": "kind"}


def measured(rng, n=N, d=80):
    """Return samples of four groups, of which a few columns know."""
    centers = 3 * rng.normal(size=(4, d)) * (rng.random(d) < 0.2)
    return 5 + centers[np.arange(n) % 4] + rng.normal(size=(n, d))


def components(n_components, seed=0, n=N, **options):
    rows = measured(np.random.default_rng(seed), n)
    return PCA(n_components, random_state=0, **options).fit_transform(rows)


@pytest.mark.parametrize("n_components", [3, 10, 30])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "arpack", "randomized"])
def test_components_are_recognized_in_any_precision_by_any_solver(
    n_components, dtype, solver
):
    rows = measured(np.random.default_rng(n_components)).astype(dtype)
    scores = PCA(n_components, svd_solver=solver, random_state=0).fit_transform(rows)
    assert scores.dtype == dtype
    bank = KernelBank(**ONE).fit({"cells": scores})
    assert bank.rules_ == {"cells": "components"}
    assert "principal components); rows as they are" in bank.explain()
    # Only falling spreads are those of components.
    assert not are_components(scores[:, ::-1])


@pytest.mark.parametrize("n_columns", [2, 3, 5, 20])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, shape: rng.normal(size=shape),
        lambda rng, shape: rng.lognormal(0, 2, size=shape),
        lambda rng, shape: rng.standard_cauchy(size=shape),
        lambda rng, shape: rng.poisson(3, size=shape),
    ],
)
def test_independent_columns_are_no_components_even_in_the_order_of_their_spreads(
    n_columns, draw
):
    rng = np.random.default_rng(n_columns)
    for n in (25, 100, 1000):
        for _ in range(10):
            X = draw(rng, (n, n_columns)) * 10 ** rng.uniform(-2, 2, n_columns)
            assert not are_components(X[:, np.argsort(-X.std(axis=0))])


def test_columns_with_a_few_huge_entries_are_no_components():
    X = np.random.default_rng(0).normal(size=(200, 8))
    X[np.arange(8), np.arange(8)] = np.geomspace(1e6, 1e3, 8)
    assert not are_components(X)


def test_the_levels_of_a_balanced_design_are_no_components():
    grid = np.meshgrid(*[np.arange(5)] * 3)
    design = np.stack(
        [10.0 ** (2 - p) * each.ravel() for p, each in enumerate(grid)], axis=1
    )
    assert np.abs(np.corrcoef(design.T) - np.eye(3)).max() < 1e-12
    assert not are_components(design)


def test_a_scale_that_is_asked_for_is_that_of_components_too():
    scores = components(10)
    asked = KernelBank(**ONE, scale="standard").fit_transform({"cells": scores})
    by_hand = KernelBank(**ONE, scale="none").fit_transform(
        {"cells": scores / scores.std(axis=0)}
    )
    np.testing.assert_allclose(asked, by_hand, atol=1e-10)


def test_what_a_transformer_makes_may_be_components():
    rows = measured(np.random.default_rng(0))
    bank = KernelBank(**ONE | {"rules": {"cells": view(PCA(10))}}).fit({"cells": rows})
    assert bank.rules_ == {"cells": "components"}


@pytest.mark.parametrize("options", [{}, {"approximation": Nystroem(n_components=50)}])
def test_fits_and_predictions_leave_components_as_they_are(options):
    views = {"rna": components(10, seed=0), "protein": components(5, seed=1)}
    model = AnchoredMKKM(4, random_state=0, **options).fit(views)
    unscaled = AnchoredMKKM(4, random_state=0, scale="none", **options).fit(views)
    np.testing.assert_allclose(model.weights_, unscaled.weights_, atol=1e-8)
    np.testing.assert_array_equal(model.labels_, unscaled.labels_)
    assert "rows as they are" in model.summary()
    # A few rows alone are no components: what was decided in the fit holds.
    some = {name: rows[3:20] for name, rows in views.items()}
    assert not are_components(some["protein"])
    np.testing.assert_array_equal(model.predict(some), model.labels_[3:20])


@pytest.mark.slow
def test_components_of_more_samples_than_are_learned_from_are_left_as_they_are():
    scores = components(6, n=21_000)
    views = {
        "rna": scores,
        "protein": scores + np.random.default_rng(0).normal(size=scores.shape),
    }
    model = AnchoredMKKM(
        4, approximation=Nystroem(n_components=20), random_state=0
    ).fit(views)
    rna, protein = model.summary().splitlines()[2:4]
    assert "rna: rows as they are" in rna
    assert "divided by their spread" in protein


def test_components_in_a_file_of_cells_are_recognized(tmp_path):
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(measured(np.random.default_rng(0)).astype("float32"))
    cells.obsm["X_pca"] = components(12).astype("float32")
    cells.write_h5ad(tmp_path / "cells.h5ad")
    samples = read_samples(load(f"{tmp_path / 'cells.h5ad'}::X_pca").views)
    assert list(KernelBank(**ONE).fit(samples).rules_.values()) == ["components"]
