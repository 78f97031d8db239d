import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from helpers.kernels import ONE_GAUSSIAN, gaussian_kernels
from helpers.views import blob_views
from mkclust import (
    METHODS,
    AgreementKKM,
    AnchoredMKKM,
    AverageKKM,
    KernelBank,
    SimpleMKKM,
)
from mkclust.explain import diagnose
from mkclust.kernels import Linear, Nystroem
from mkclust.stack import as_stack

STANDARDS = [(True, True), (True, False), (False, True), (False, False)]

pytestmark = [
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the learned kernel has rank"),
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.NoAgreementWarning"),
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.GroupsWarning"),
]


def views_of(seed, **settings):
    return blob_views(np.random.default_rng(seed), **settings)[0]


def kernels_of(seed, **settings):
    return gaussian_kernels(np.random.default_rng(seed), **settings)[0]


def diagnosed(X, n_clusters=4, method=AverageKKM, **settings):
    model = method(n_clusters, n_init=1, random_state=0, **settings).fit(X)
    return diagnose(model, X, leave_one_out=False)


def center(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


@pytest.mark.slow
@pytest.mark.parametrize("n", [70, 230])
@pytest.mark.parametrize(("centered", "normalize"), STANDARDS)
def test_spectra_are_those_of_the_centered_kernels(n, centered, normalize):
    X = np.stack([V @ V.T for V in views_of(1, n=n, strengths=(2, 0.5, 0))])
    found = diagnosed(X, center=centered, normalize=normalize)
    stack = as_stack(X, center=centered, normalize=normalize)
    for p, K in enumerate(stack.among().entries):
        M = K if centered else center(K)
        values = np.linalg.eigvalsh(M)[::-1]
        assert found.table["top_share"].iloc[p] == pytest.approx(
            values[:4].sum() / np.trace(M), abs=1e-8
        )
        assert found.table["cluster_gap"].iloc[p] == pytest.approx(
            1 - values[3] / values[2], abs=1e-6
        )


@pytest.mark.slow
@pytest.mark.parametrize(("centered", "normalize"), STANDARDS)
def test_agreement_is_that_of_each_kernel_clustered_alone(centered, normalize):
    X = kernels_of(3, strengths=(2, 0.7, 0))
    model = SimpleMKKM(4, center=centered, normalize=normalize, random_state=5).fit(X)
    found = diagnose(model, X, leave_one_out=False)
    for p, value in enumerate(found.table["agreement"]):
        options = {
            "center": centered,
            "normalize": normalize,
            "rounding": model.rounding_,
        }
        alone = AverageKKM(4, random_state=5, **options).fit(X[[p]])
        assert value == pytest.approx(adjusted_rand_score(model.labels_, alone.labels_))


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_leaving_one_out_is_fitting_without_it(name):
    X = kernels_of(4, n=80, strengths=(1, 0.7, 0))
    method = METHODS[name](4, random_state=3)
    if "rounding" in method.get_params():
        method.set_params(rounding="unit")
    model = method.fit(X)
    for p, value in enumerate(diagnose(model, X).table["leave_one_out"]):
        others = clone(model).fit(np.delete(X, p, axis=0))
        assert value == pytest.approx(
            adjusted_rand_score(model.labels_, others.labels_)
        )


@pytest.mark.slow
def test_kernels_of_one_view_count_as_one_view_if_a_kernel_is_left_out():
    views = views_of(5, n=90, strengths=(2, 2, 0))
    bank = KernelBank(widths=(0.5, 1.0, 2.0), polynomials=(), linear=None)
    model = AgreementKKM(4, kernels=bank, random_state=0).fit(views)
    assert model.set_aside_ == model.kernel_names_[6:]
    # What was set aside has no part in the clusters, and its kernels prove nothing on
    # each other.
    np.testing.assert_allclose(diagnose(model, views).table["leave_one_out"][6:], 1)


def test_without_the_only_kernel_of_the_clusters_these_are_lost():
    # The second kernel distinguishes two kinds of samples, too few for three clusters.
    X = [*views_of(6, n=60, k=3, strengths=(2,)), np.arange(60)[:, None] % 2.0]
    model = AverageKKM(3, normalize=False, rounding="unit", random_state=0).fit(X)
    without = diagnose(model, X).table["leave_one_out"]
    assert not without.iloc[0] > 0.1
    assert without.iloc[1] > 0.9


@pytest.mark.slow
def test_a_copy_of_noise_is_noise_and_a_copy_of_structure_is_not():
    good, other, noise = views_of(0, strengths=(2, 2, 0))
    found = diagnosed(
        {"good": good, "other": other, "n": noise, "copy of n": 3 * noise}
    )
    assert found.noise == ("n", "copy of n")
    assert found.duplicates == (("n", "copy of n"),)
    found = diagnosed({"good": good, "other": other, "copy": good - 1, "n": noise})
    assert found.noise == ("n",)
    assert found.duplicates == (("good", "copy"),)


@pytest.mark.parametrize("entry", [1.0, 0.1])
def test_a_kernel_that_is_constant_can_be_diagnosed(entry):
    X = np.concatenate(
        [kernels_of(0, n=220, strengths=(2, 2)), np.full((1, 220, 220), entry)]
    )
    found = diagnosed(X, center=False)
    assert found.noise == ("kernel 2",)
    assert np.isnan(
        found.table.loc["kernel 2", ["cluster_gap", "top_share"]].astype(float)
    ).all()


def test_one_cluster_has_no_gap_and_full_agreement():
    X = kernels_of(0, n=60, strengths=(2, 2, 0))
    model = SimpleMKKM(1, random_state=0).fit(X)
    found = diagnose(model, X)
    assert np.isnan(found.table["cluster_gap"]).all()
    np.testing.assert_array_equal(found.table["agreement"], 1)
    np.testing.assert_array_equal(found.table["leave_one_out"], 1)


def test_a_single_column_that_decides_the_clusters_is_named():
    rng = np.random.default_rng(0)
    views, y = blob_views(rng, n=200, k=3, strengths=(0.5,), n_features=50)
    column = np.eye(3)[np.where(rng.random(200) < 0.8, y, rng.integers(3, size=200))]
    X = {"table": views[0], "column": column}
    assert "View 'column' decides the clusters" in str(diagnosed(X, 3))
    assert "decides" not in str(diagnosed(X, 3, AgreementKKM))


def test_other_kernels_or_views_than_the_fitted_ones_are_refused():
    X, views = kernels_of(0, n=40), views_of(0, n=40)
    for given, other, message in (
        (X, X[:2], "2 kernels"),
        (X, X[:, :30, :30], "30 samples"),
        (X, np.ascontiguousarray(X[::-1]), "other samples"),
        (views, [view[:30] for view in views], "30 samples"),
        (X[:1], X[:1], "one kernel"),
    ):
        with pytest.raises(ValueError, match=message):
            diagnose(AverageKKM(4, random_state=0).fit(given), other)


@pytest.mark.slow
@pytest.mark.parametrize(("centered", "normalize"), STANDARDS)
@pytest.mark.parametrize(
    "approximation", [Nystroem(15, random_state=3), Linear()], ids=str
)
def test_features_are_diagnosed_like_the_kernels_that_they_make(
    approximation, centered, normalize
):
    views = dict(zip("abc", views_of(1, n=100, strengths=(2, 0.7, 0)), strict=True))
    settings = {
        "center": centered,
        "normalize": normalize,
        "n_init": 2,
        "random_state": 0,
    }
    model = SimpleMKKM(4, scale="none", approximation=approximation, **settings).fit(
        views
    )
    kernels = {}
    for name, view in views.items():
        F = clone(approximation).fit(view).transform(view)
        kernels[name] = F @ F.T
    dense = SimpleMKKM(4, kernels="precomputed", **settings).fit(kernels)
    found, expected = diagnose(model, views), diagnose(dense, kernels)
    for column in found.table:
        # The solver and the share of it that is found stop at tolerances of their own.
        tolerance = 1e-3 if column in ("weight", "alignment") else 1e-6
        one, other = found.table[column], expected.table[column]
        np.testing.assert_allclose(
            one, other, rtol=tolerance, atol=tolerance, err_msg=column
        )
    assert found.noise == expected.noise
    assert "c" in found.noise


def test_a_large_model_is_diagnosed_on_some_of_its_samples():
    views = views_of(0, n=300, k=3, strengths=(2, 2, 0))
    for X in (views, KernelBank(**ONE_GAUSSIAN).fit_transform(views)):
        model = AverageKKM(3, n_init=2, random_state=0).fit(X)
        found = diagnose(model, X, max_samples=100)
        assert 90 <= found.n_diagnosed <= 100
        assert found.refit_agreement > 0.9
        np.testing.assert_array_equal(found.table["weight"], model.weights_)
        assert len(found.noise) == 1


@pytest.mark.parametrize(
    "unfitted",
    [AgreementKKM(3, anchors=90), AnchoredMKKM(3, approximation=Nystroem(60))],
)
def test_numbers_and_categories_of_a_table_stay_one_source_in_the_refit(unfitted):
    rng, y = np.random.default_rng(0), np.arange(150) % 3
    is_male = rng.random(150) < 0.5
    height = 165 + 12 * is_male + rng.normal(scale=4, size=150)
    tables = {
        "omics": pd.DataFrame(
            2 * rng.normal(size=(3, 40))[y] + rng.normal(size=(150, 40))
        ),
        "clinical": pd.DataFrame(
            {"height": height, "sex": np.where(is_male, "m", "f")}
        ),
    }
    model = clone(unfitted).set_params(random_state=0).fit(tables)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    found = diagnose(model, tables, leave_one_out=False)
    assert found.refit_agreement > 0.9
    assert found.table["agreement"].idxmax() == "omics"
