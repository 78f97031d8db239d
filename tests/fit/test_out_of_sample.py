import numpy as np
import pytest
import scipy.sparse as sp

from helpers.cli import three_clusters
from mkclust import AgreementKKM, AnchoredMKKM, AverageKKM, KernelBank, SimpleMKKM
from mkclust.exceptions import MissingViewsWarning
from mkclust.kernels import Nystroem

STANDARDS = [(True, True), (True, False), (False, True), (False, False)]
N, NEW = 50, 13
pytestmark = pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning")


@pytest.fixture
def joint():
    """Return three kernels over training and new samples together, the new ones
    last."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(N + NEW, d)) for d in (60, 70)]
    gaussian = KernelBank(widths=(1.0,), polynomials=(), linear=None).fit_transform(
        X[0]
    )
    return np.stack([*gaussian, *(x @ x.T for x in X)])


def parts(joint):
    """Return training kernels, cross kernels and self-similarities of the new
    samples."""
    own = np.diagonal(joint, axis1=1, axis2=2)[:, N:]
    return joint[:, :N, :N], joint[:, N:, :N], own


def standardize_by_hand(K, cross, own, center, normalize):
    """Center and scale training and cross kernels entry by entry, as the formulas
    say."""
    if center:
        row_means, mean = K.mean(axis=1), K.mean()
        means = cross.mean(axis=1)
        lengths, own = np.diag(K) - 2 * row_means + mean, own - 2 * means + mean
        cross = cross - means[:, None] - row_means + mean
        K = K - row_means[:, None] - row_means + mean
    else:
        lengths = np.diag(K)
    if normalize:
        cross = cross / np.sqrt(np.outer(own, lengths))
        K = K / np.sqrt(np.outer(lengths, lengths))
    return K, cross


@pytest.mark.parametrize(("center", "normalize"), STANDARDS)
def test_a_model_embeds_new_samples_as_the_formulas_say(joint, center, normalize):
    K, cross, own = parts(joint)
    model = SimpleMKKM(4, center=center, normalize=normalize, random_state=0).fit(K)
    by_hand = [
        standardize_by_hand(*x, center, normalize)
        for x in zip(K, cross, own, strict=True)
    ]
    weights = model.coefficients_
    mixed, mixed_cross = (
        sum(w * pair[i] for w, pair in zip(weights, by_hand, strict=True))
        for i in (0, 1)
    )
    H = model.embedding_
    expected = mixed_cross @ H @ np.linalg.inv(H.T @ mixed @ H)
    np.testing.assert_allclose(model.transform(cross, own), expected, atol=1e-9)
    rows = unit(model.transform(K))
    centers = np.stack([rows[model.labels_ == j].mean(axis=0) for j in range(4)])
    nearest = np.argmin(((unit(expected)[:, None] - centers) ** 2).sum(axis=-1), axis=1)
    # To k-means' own tolerance.
    assert np.mean(model.predict(cross, own) == nearest) > 0.9


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("center", [True, False])
def test_a_new_sample_without_a_direction_is_embedded_at_zero(center):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6)) + 3
    bank = KernelBank(widths=(), polynomials=(), linear="linear")
    model = SimpleMKKM(3, kernels=bank, center=center, random_state=0).fit(X)
    nowhere = X.mean(axis=0) if center else np.zeros(6)
    new = np.vstack([rng.normal(size=6), nowhere])
    found = model.transform(new)
    assert not found[1].any()
    assert found[0].any()
    assert model.predict(new).shape == (2,)


@pytest.mark.filterwarnings("ignore::mkclust.exceptions.FewerClustersWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("center", "normalize"), STANDARDS)
def test_coordinates_of_vanishing_eigenvalues_are_zero(center, normalize, dtype):
    X = np.random.default_rng(0).normal(size=(N, 2))
    K = (X @ X.T).astype(dtype)[None]
    model = AverageKKM(4, center=center, normalize=normalize, random_state=0).fit(K)
    rows, H = model.transform(K), model.embedding_[:, :2]
    np.testing.assert_allclose(
        rows[:, :2], H, atol=1e-5 if dtype == np.float32 else 1e-12
    )
    assert not rows[:, 2:].any()
    assert not model.transform(K[:, :5], np.diag(K[0])[None, :5])[:, 2:].any()


def test_training_kernels_are_recognized_unless_they_are_shuffled(joint):
    K, _, _ = parts(joint)
    model = AverageKKM(3, kernels="precomputed", random_state=0).fit(K)
    own, rows = np.diagonal(K, axis1=1, axis2=2), model.transform(K)
    np.testing.assert_allclose(rows, model.transform(K, own), atol=1e-13)
    np.testing.assert_allclose(
        rows, model.transform([sp.csr_array(k) for k in K]), atol=1e-13
    )
    order = np.random.default_rng(0).permutation(N)
    with pytest.raises(ValueError, match=r"kernel 1.*self_similarity"):
        model.transform(K[:, order])
    found = model.transform(K[:, order], own[:, order])
    np.testing.assert_allclose(found, rows[order], atol=1e-12)


@pytest.mark.parametrize("missing_views", [None, "zero"])
@pytest.mark.parametrize("form", ["views", "kernels", "features"])
def test_new_samples_need_no_views_of_weight_zero(form, missing_views):
    rng, y = np.random.default_rng(0), np.arange(120) % 3
    views = {
        name: 3 * rng.normal(size=(3, 5))[y] + rng.normal(size=(120, 5))
        for name in "ab"
    }
    views["noise"] = rng.normal(size=(120, 5))
    old, new = (
        {n: v[rows] for n, v in views.items()} for rows in (slice(90), slice(90, 120))
    )
    options = {
        "features": {"approximation": Nystroem(30)},
        "kernels": {"kernels": "precomputed"},
    }
    if form == "kernels":
        new = {name: gaussian(rows, old[name]) for name, rows in new.items()}
        old = {name: gaussian(rows, rows) for name, rows in old.items()}
    method = AnchoredMKKM if form == "features" else AgreementKKM
    model = method(
        3, missing_views=missing_views, random_state=0, **options.get(form, {})
    )
    assert model.fit(old).set_aside_ == ("noise",)
    fewer = {name: rows for name, rows in new.items() if name != "noise"}
    np.testing.assert_array_equal(model.predict(fewer), model.predict(new))
    if form != "features":  # which are scaled up by the number of views
        np.testing.assert_allclose(
            model.transform(fewer), model.transform(new), atol=1e-12
        )
    if form == "views":  # training samples are recognized whatever unused views hold
        other = old | {"noise": rng.normal(size=(90, 5))}
        np.testing.assert_allclose(
            model.transform(other), model.transform(old), atol=1e-12
        )
    with pytest.raises(ValueError, match="fitted on"):
        model.predict({"b": new["b"], "noise": new["noise"]})


def gaussian(X, Y):
    return np.exp(-np.square(X[:, None] - Y).sum(axis=2) / 20)


@pytest.mark.parametrize("form", ["views", "landmarks", "kernels", "outer"])
def test_a_view_that_is_not_passed_is_missing_from_all_new_samples_if_any_may_be(form):
    views, _ = three_clusters(60)
    old = {name: view[:45].copy() for name, view in views.items()}
    new = {name: view[45:] for name, view in views.items()}
    options = {"outer": {"join": "outer"}, "landmarks": {"approximation": Nystroem(20)}}
    if form == "kernels":
        new = {name: gaussian(new[name], old[name]) for name in old}
        old = {name: gaussian(rows, rows) for name, rows in old.items()}
    if form != "outer":  # where samples may lack views even if those of the fit do not
        old["right"][3] = np.nan
    if form == "kernels":
        old["right"][:, 3] = np.nan
        options["kernels"] = {"kernels": "precomputed"}
    model = AverageKKM(3, random_state=0, **options.get(form, {})).fit(old)

    expected = model.predict(new | {"right": np.full_like(new["right"], np.nan)})
    with pytest.warns(MissingViewsWarning, match="lacks 'right', .* every new sample"):
        assert model.predict({"left": new["left"]}).tolist() == expected.tolist()
    with pytest.raises(ValueError, match="other"):  # another name is no view of the fit
        model.predict({"left": new["left"], "other": new["right"]})


def test_new_samples_without_any_view_that_is_used_are_refused():
    views, _ = three_clusters(60)
    views["noise"] = np.random.default_rng(0).normal(size=(60, 3))
    model = AgreementKKM(3, join="outer", random_state=0).fit(views)
    assert model.set_aside_ == ("noise",)
    with pytest.raises(ValueError, match="'noise' only, .* 'left' and 'right'"):
        model.predict({"noise": views["noise"]})


def test_a_view_that_is_not_passed_is_refused_if_no_sample_may_lack_one():
    views, _ = three_clusters(60)
    model = AverageKKM(3, random_state=0).fit(views)
    with pytest.raises(ValueError, match="pass the same views"):
        model.predict({"left": views["left"]})
