import pickle
import warnings
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from conftest import blob_views, gaussian_kernels
from mkclust import (
    LFMVC,
    METHODS,
    MKKM,
    AgreementKKM,
    AnchoredMKKM,
    AverageKKM,
    KernelBank,
    SimpleMKKM,
    agreement,
)
from mkclust.datasets import load
from mkclust.explain import diagnose
from mkclust.kernels import Linear, Nystroem
from mkclust.methods.agreement import Agreement
from mkclust.stack import MatrixRows, as_stack

STANDARDS = [(True, True), (True, False), (False, True), (False, False)]
ONE_GAUSSIAN = {"widths": (1.0,), "polynomials": (), "linear": None}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the learned kernel has rank"),
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.NoAgreementWarning"),
    pytest.mark.filterwarnings("ignore::mkclust.exceptions.GroupsWarning"),
]


@pytest.fixture(params=METHODS)
def method(request):
    return METHODS[request.param]


def views_of(seed, **settings):
    """Return blob views without their classes."""
    return blob_views(np.random.default_rng(seed), **settings)[0]


def kernels_of(seed, **settings):
    """Return Gaussian kernels of blob views without their classes."""
    return gaussian_kernels(np.random.default_rng(seed), **settings)[0]


def diagnosed(X, n_clusters=4, method=AverageKKM, **settings):
    """Return the diagnosis of a method fitted on X, without refits and with one k-means start."""
    model = method(n_clusters, n_init=1, random_state=0, **settings).fit(X)
    return diagnose(model, X, leave_one_out=False)


def assert_same(first, second):
    """Compare two diagnoses field by field."""
    for field in fields(first):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if isinstance(one, Agreement):
            assert_same(one, other)
        else:
            np.testing.assert_array_equal(one, other)


def assert_close(first, second, *, tolerance):
    """Compare two diagnoses field by field, numbers up to a tolerance."""
    for field in fields(first):
        one, other = getattr(first, field.name), getattr(second, field.name)
        # The solver and the share of it that is found stop at tolerances of their own.
        loose = {"weights": 1e-3, "alignments": 1e-3}.get(field.name, tolerance)
        if isinstance(one, np.ndarray):
            np.testing.assert_allclose(one, other, rtol=loose, atol=loose, err_msg=field.name)
        elif isinstance(one, Agreement):
            assert_close(one, other, tolerance=tolerance)
        else:
            assert one == other


def center(K):
    """Return H K H, written out."""
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


# What is measured ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["kernels", "views", "table"])
def test_every_method_can_be_diagnosed(method, kind):
    views = views_of(0, n=60, k=3, strengths=(2, 2, 0), n_features=5)
    bank = KernelBank(widths=(1.0,), polynomials=((1, 2),), linear="linear")
    X = {"kernels": KernelBank(**ONE_GAUSSIAN).fit_transform(views), "views": views}
    X = X.get(kind, np.hstack(views))
    model = method(3, kernels=bank if kind == "table" else "auto", random_state=0).fit(X)
    found = diagnose(model, X)
    assert found.names == model.kernel_names_
    np.testing.assert_array_equal(found.weights, model.weights_)
    np.testing.assert_array_equal(found.alignments, model.alignments_)
    assert found.method == method.__name__
    assert found.redundancy.shape == (3, 3)
    for share in (found.top_share, found.cluster_gap, found.chance, np.abs(found.redundancy)):
        assert np.all((share >= 0) & (share <= 1))
    for index in (found.agreement, found.leave_one_out):
        assert index.shape == (3,)
        assert np.all((index >= -1) & (index <= 1))
    expected = {"kernels": ("kernel 2",), "views": ("view 2",), "table": ()}
    assert found.noise == expected[kind]


@pytest.mark.parametrize("n", [70, 230])
@pytest.mark.parametrize(("centered", "normalize"), STANDARDS)
def test_spectra_are_those_of_the_centered_kernels(n, centered, normalize):
    X = np.stack([V @ V.T for V in views_of(1, n=n, strengths=(2, 0.5, 0))])
    found = diagnosed(X, center=centered, normalize=normalize)
    stack = as_stack(X, center=centered, normalize=normalize)
    for p, K in enumerate(stack.among().entries):
        M = K if centered else center(K)
        values = np.linalg.eigvalsh(M)[::-1]
        assert found.top_share[p] == pytest.approx(values[:4].sum() / np.trace(M), abs=1e-8)
        assert found.cluster_gap[p] == pytest.approx(1 - values[3] / values[2], abs=1e-6)


@pytest.mark.parametrize(("centered", "normalize"), STANDARDS)
def test_what_kernels_share_is_what_agreement_measures(centered, normalize):
    X = np.stack([V @ V.T for V in views_of(2, n=50, strengths=(2, 1, 0))])
    found = diagnosed(X, center=centered, normalize=normalize)
    expected = agreement(X, center=centered, normalize=normalize)
    assert_same(found.view_agreement, expected)
    np.testing.assert_allclose(found.redundancy, expected.alignments, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found.chance, expected.chances.min(axis=1))


@pytest.mark.parametrize(("centered", "normalize"), STANDARDS)
def test_agreement_is_that_of_each_kernel_clustered_alone(centered, normalize):
    X = kernels_of(3, strengths=(2, 0.7, 0))
    model = SimpleMKKM(4, center=centered, normalize=normalize, random_state=5).fit(X)
    for p, value in enumerate(diagnose(model, X, leave_one_out=False).agreement):
        alone = AverageKKM(4, center=centered, normalize=normalize, random_state=5).fit(X[[p]])
        assert value == pytest.approx(adjusted_rand_score(model.labels_, alone.labels_))


def test_leaving_one_out_is_fitting_without_it(method):
    X = kernels_of(4, n=80, strengths=(1, 0.7, 0))
    model = method(4, random_state=3).fit(X)
    for p, value in enumerate(diagnose(model, X).leave_one_out):
        others = clone(model).fit(np.delete(X, p, axis=0))
        assert value == pytest.approx(adjusted_rand_score(model.labels_, others.labels_))


def test_kernels_of_one_view_stay_one_voice_where_a_kernel_is_left_out():
    views = views_of(5, n=90, strengths=(2, 2, 0))
    bank = KernelBank(widths=(0.5, 1.0, 2.0), polynomials=(), linear=None)
    model = AgreementKKM(4, kernels=bank, random_state=0).fit(views)
    assert model.set_aside_ == model.kernel_names_[6:]
    # What was set aside has no part in the clusters, and its kernels do not vouch for each other.
    np.testing.assert_allclose(diagnose(model, views).leave_one_out[6:], 1)


def test_leaving_one_view_out_is_fitting_the_other_views():
    views = dict(zip("abc", views_of(5, n=90, strengths=(1, 0.7, 0.7)), strict=True))
    model = MKKM(4, random_state=0).fit(views)
    for name, value in zip("abc", diagnose(model, views).leave_one_out, strict=True):
        others = {key: view for key, view in views.items() if key != name}
        expected = adjusted_rand_score(model.labels_, clone(model).fit(others).labels_)
        assert value == pytest.approx(expected)


def test_refits_can_be_left_out():
    X = kernels_of(0, n=60)
    model = AverageKKM(4, random_state=0).fit(X)
    quick, full = diagnose(model, X, leave_one_out=False), diagnose(model, X)
    assert np.isnan(quick.leave_one_out).all()
    assert "without it" in full.summary()
    assert "without it" not in quick.summary()
    assert_same(replace(full, leave_one_out=quick.leave_one_out), quick)


def test_a_kernel_that_the_others_cannot_do_without_has_no_index():
    # The second kernel tells two kinds of samples apart, which is too few for three clusters.
    X = [*views_of(6, n=60, k=3, strengths=(2,)), np.arange(60)[:, None] % 2.0]
    model = AverageKKM(3, normalize=False, random_state=0).fit(X)
    without = diagnose(model, X).leave_one_out
    assert np.isnan(without[0])
    assert without[1] > 0.9


# Noise -----------------------------------------------------------------------------------------


# Twenty draws for one method; what makes the noise is the same for all, so few for the others.
@pytest.mark.parametrize(
    ("method", "n_draws", "least"),
    [(AverageKKM, 20, 19), (SimpleMKKM, 5, 5), (MKKM, 5, 5), (LFMVC, 5, 5)],
)
def test_noise_is_named_and_nothing_else(method, n_draws, least):
    found = [
        diagnosed(kernels_of(seed, n=240, k=4, strengths=(2, 2, 0, 0, 0)), method=method).noise
        for seed in range(n_draws)
    ]
    assert sum(noise == ("kernel 2", "kernel 3", "kernel 4") for noise in found) >= least


def test_a_ruined_consensus_does_not_mislead():
    X = kernels_of(0, n=240, k=4, strengths=(2, 2, 0, 0, 0))
    model = SimpleMKKM(4, random_state=0).fit(X)
    assert adjusted_rand_score(np.arange(240) % 4, model.labels_) < 0.5
    assert np.argmax(model.weights_) >= 2
    found = diagnose(model, X, leave_one_out=False)
    assert found.noise == ("kernel 2", "kernel 3", "kernel 4")
    assert "Weights are not importance" in found.summary()


@pytest.mark.parametrize(
    ("strengths", "noise"),
    [
        ((2, 2, 2), ()),
        ((2, 0.7, 0), (2,)),
        ((2, 0.7, 0, 0), (2, 3)),
        ((1, 1, 0), (2,)),
        ((0, 0, 0, 0, 0), (0, 1, 2, 3, 4)),
    ],
)
@pytest.mark.parametrize("n", [60, 240])
def test_weak_views_are_no_noise(strengths, noise, n):
    right = 0
    for seed in range(8):
        found = diagnosed(kernels_of(seed, n=n, strengths=strengths))
        right += found.noise == tuple(f"kernel {p}" for p in noise)
    assert right >= 7


@pytest.mark.parametrize("k", [1, 2, 3, 5, 6])
def test_noise_is_found_whatever_the_number_of_clusters(k):
    for seed in range(4):
        found = diagnosed(kernels_of(seed, strengths=(2, 2, 0, 0)), k)
        assert found.noise == ("kernel 2", "kernel 3")


@pytest.mark.parametrize(("centered", "normalize"), STANDARDS)
def test_noise_is_found_whatever_the_standard(centered, normalize):
    for seed in range(3):
        X = kernels_of(seed, strengths=(2, 1, 0))
        assert diagnosed(X, center=centered, normalize=normalize).noise == ("kernel 2",)


@pytest.mark.parametrize("n_features", [1, 2, 3, 50])
def test_noise_of_any_dimension_is_noise(n_features):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        views = blob_views(rng, strengths=(2, 2))[0] + [rng.normal(size=(240, n_features))]
        assert diagnosed(views).noise == ("view 2",)


def test_no_view_of_the_digits_is_noise_but_dice_are():
    views = {name: view[:400] for name, view in load("digits").views.items()}
    assert diagnosed(views, 10).noise == ()
    for seed in range(3):
        dice = np.random.default_rng(seed).integers(1, 7, size=(400, 20))
        found = diagnosed({"dice": dice, **views}, 10)
        assert found.noise == ("dice",)


@pytest.mark.parametrize("n_levels", [2, 3, 5, 10])
def test_a_random_category_is_noise_though_its_clusters_are_perfect(n_levels):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        views = dict(zip("ab", blob_views(rng, strengths=(2, 2))[0], strict=True))
        views["coin"] = np.eye(n_levels)[rng.integers(n_levels, size=240)]
        found = diagnosed(views)
        assert found.noise == ("coin",)
        assert "'coin' looks like noise" in found.summary()
        assert "noise, or structure that no other kernel has" in found.summary()


def test_strong_structure_that_no_other_kernel_shares_is_named_with_the_noise():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        shared, own = (blob_views(rng, strengths=s)[0] for s in ((2, 2, 0), (2,)))
        found = diagnosed([*shared, own[0][rng.permutation(240)]])
        assert found.noise == ("view 2", "view 3")


def test_two_camps_are_named_and_neither_is_noise():
    rng = np.random.default_rng(0)
    first, second = (blob_views(rng, strengths=(2, 2))[0] for _ in range(2))
    order = rng.permutation(240)
    views = dict(zip("abcd", [*first, *(view[order] for view in second)], strict=True))
    for method in (AgreementKKM, AverageKKM):
        found = diagnosed(views, method=method)
        assert found.noise == ()
        said = found.summary()
        assert "2 groups that share nothing with each other" in said
        assert "a and b" in said
        assert "c and d" in said


def test_a_few_outliers_share_nothing():
    rng = np.random.default_rng(0)
    far = rng.normal(size=(240, 8))
    far[:3, 0] = [40, 45, 50]
    views = [*blob_views(rng, strengths=(2, 2))[0], far]
    linear = KernelBank(widths=(), polynomials=(), linear="linear")
    found = diagnosed(views, kernels=linear, normalize=False)
    assert found.noise == ("view 2",)


@pytest.mark.parametrize("seed", range(3))
def test_a_copy_of_noise_is_noise_and_a_copy_of_structure_is_not(seed):
    good, other, noise = views_of(seed, strengths=(2, 2, 0))
    found = diagnosed({"good": good, "other": other, "n": noise, "copy of n": 3 * noise})
    assert found.noise == ("n", "copy of n")
    assert found.duplicates == (("n", "copy of n"),)
    found = diagnosed({"good": good, "other": other, "copy": good - 1, "n": noise})
    assert found.noise == ("n",)
    assert found.duplicates == (("good", "copy"),)
    assert "'good' and 'copy' are nearly the same" in found.summary()
    # A copy vouches for nothing: one voice and noise cannot be told apart.
    found = diagnosed({"good": good, "copy": good - 1, "n": noise})
    assert found.noise == ("good", "copy", "n")


def test_copies_alone_cannot_be_called_noise():
    K = kernels_of(0, strengths=(0,))
    found = diagnosed(np.concatenate([K, K, K]))
    assert found.noise == ()
    assert len(found.duplicates) == 3
    assert "Nothing can tell here" in found.summary()


@pytest.mark.parametrize("seed", range(3))
def test_kernels_of_one_view_do_not_vouch_for_each_other(seed):
    views = views_of(seed, n=120, strengths=(2, 1, 0))
    for X, n_noise in ((views, 12), ([*views, views[2]], 24)):
        found = diagnosed(X, kernels=KernelBank())
        noise = [name for name in found.names if name.startswith(("view 2", "view 3"))]
        assert len(noise) == n_noise
        # The narrowest kernels of the other views, close to the identity, share nothing either.
        others = set(found.noise) - set(noise)
        assert set(noise) <= set(found.noise)
        assert all(name.endswith("x0.125") for name in others)


def test_with_few_samples_nothing_is_called_noise():
    for n in (3, 4, 6):
        found = diagnosed(kernels_of(0, n=n, k=2, strengths=(2, 0)), 2)
        assert found.noise == ()
        assert np.all(found.chance > 0)


def test_an_identity_shares_nothing():
    X = np.concatenate([kernels_of(0, n=120, strengths=(2, 2)), np.eye(120)[None]])
    found = diagnosed(X)
    assert found.chance[2] == 1
    assert found.noise == ("kernel 2",)


def test_a_kernel_that_is_constant_can_be_diagnosed():
    X = np.concatenate([kernels_of(0, n=220, strengths=(2, 2)), np.ones((1, 220, 220))])
    found = diagnosed(X, center=False)
    assert found.noise == ("kernel 2",)
    assert np.isnan(found.top_share[2])
    assert "-" in found.summary()


# Determinism and order -------------------------------------------------------------------------


@pytest.mark.parametrize("random_state", [None, 7, np.random.RandomState(0)])
def test_a_diagnosis_is_the_same_every_time(random_state):
    X = kernels_of(0, n=100, strengths=(0.7, 0.5, 0))
    model = SimpleMKKM(5, n_init=1, random_state=random_state).fit(X)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    assert_same(diagnose(model, X), diagnose(model, X))
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_model_and_input_are_left_alone():
    X = kernels_of(0, n=60)
    X.flags.writeable = False
    model = SimpleMKKM(4, random_state=0).fit(X)
    before = pickle.dumps(model)
    found = diagnose(model, X)
    assert pickle.dumps(model) == before
    found.weights[0] = 9
    assert model.weights_[0] != 9


def test_the_order_of_the_kernels_is_that_of_the_model():
    X = kernels_of(0, n=120, strengths=(2, 0, 1))
    first = diagnosed(X)
    second = diagnosed(X[[2, 0, 1]])
    for name in ("top_share", "cluster_gap", "chance", "agreement", "alignments"):
        moved = getattr(first, name)[[2, 0, 1]]
        np.testing.assert_allclose(getattr(second, name), moved, rtol=1e-6, atol=1e-6)
    assert (first.noise, second.noise) == (("kernel 1",), ("kernel 2",))


def test_named_kernels_are_found_by_their_names():
    X = dict(zip("abc", kernels_of(0, n=60, strengths=(2, 2, 0)), strict=True))
    model = AverageKKM(4, kernels="precomputed", random_state=0).fit(X)
    turned = {name: X[name] for name in "cab"}
    found = diagnose(model, turned)
    assert found.names == ("a", "b", "c")
    assert found.noise == ("c",)
    assert_same(found, diagnose(model, list(X.values())))


# Forms of input --------------------------------------------------------------------------------


def test_sparse_and_single_precision_kernels_are_read_like_others():
    X = kernels_of(0, n=100, strengths=(2, 1, 0))
    plain = diagnosed(list(X), kernels="precomputed")
    for other in ([sp.csr_array(K) for K in X], list(X.astype(np.float32))):
        found = diagnosed(other, kernels="precomputed")
        assert found.noise == plain.noise == ("kernel 2",)
        np.testing.assert_allclose(found.redundancy, plain.redundancy, atol=1e-4)
        np.testing.assert_allclose(found.top_share, plain.top_share, atol=1e-4)


@pytest.mark.parametrize("psd", ["clip", "shift"])
def test_repaired_kernels_are_repaired_again(psd):
    X = kernels_of(0, n=60, strengths=(2, 1, 0))
    X[1] -= 0.5 * np.eye(60)
    model = AverageKKM(4, psd=psd, random_state=0).fit(X)
    found = diagnose(model, X)
    K = as_stack(X, psd=psd).among().entries[1]
    values = np.linalg.eigvalsh(K)[::-1]
    assert found.top_share[1] == pytest.approx(values[:4].sum() / np.trace(K), abs=1e-8)
    others = clone(model).fit(X[1:])
    expected = adjusted_rand_score(model.labels_, others.labels_)
    assert found.leave_one_out[0] == pytest.approx(expected)


def test_views_of_one_feature_can_be_diagnosed():
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    views = [8.0 * y[:, None] + rng.normal(size=(150, 1)) for _ in range(2)]
    views.append(rng.normal(size=(150, 1)))
    for kernels in ("auto", KernelBank(widths=(), polynomials=(), linear="linear")):
        found = diagnosed(views, 3, kernels=kernels, normalize=False)
        assert found.noise == ("view 2",)


def test_one_cluster_has_no_gap_and_full_agreement():
    X = kernels_of(0, n=60, strengths=(2, 2, 0))
    model = SimpleMKKM(1, random_state=0).fit(X)
    found = diagnose(model, X)
    assert np.isnan(found.cluster_gap).all()
    np.testing.assert_array_equal(found.agreement, 1)
    np.testing.assert_array_equal(found.leave_one_out, 1)
    assert found.noise == ("kernel 2",)
    assert "1 cluster," in found.summary()
    assert "cluster gap" not in found.summary()


def test_a_data_frame_is_a_table():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.hstack(views_of(0, n=50))).add_prefix("x")
    model = AverageKKM(4, random_state=0).fit(frame)
    assert len(diagnose(model, frame, leave_one_out=False).names) == 12
    turned = diagnose(model, frame[frame.columns[::-1]], leave_one_out=False)
    expected = diagnose(model, frame, leave_one_out=False)
    np.testing.assert_allclose(turned.alignments, expected.alignments, rtol=1e-12, atol=1e-12)


# Words -----------------------------------------------------------------------------------------


def test_the_report_shows_every_kernel_and_weights_beside_alignments():
    names = ("rna", "a name that is long", "cnv")
    X = dict(zip(names, kernels_of(0, strengths=(2, 2, 0)), strict=True))
    model = AverageKKM(4, kernels="precomputed", random_state=0).fit(X)
    found = diagnose(model, X)
    text = str(found)
    assert text == found.summary()
    lines = text.splitlines()
    assert lines[0] == "AverageKKM, 4 clusters, 3 kernels"
    assert lines[4].split()[:3] == ["kernel", "weight", "alignment"]
    for p, name in enumerate(names):
        row = lines[5 + p]
        assert row.startswith(name)
        assert row.split()[-7:-5] == [f"{found.weights[p]:.2f}", f"{found.alignments[p]:.2f}"]
    assert len({len(line) for line in lines[4:8]}) == 1
    assert "Kernel 'cnv' looks like noise: it shares nothing with the other kernels" in text
    assert lines[2].startswith("2 of 3 views agree beyond chance: rna and a name that is long.")
    assert "with 'rna' and 'a name that is long'" in text
    assert "-0.00" not in text


def test_the_report_says_when_there_is_no_noise_and_when_there_is_nothing_else():
    assert "No kernel looks like noise" in diagnosed(kernels_of(0, strengths=(2, 2))).summary()
    assert "All kernels look like noise" in diagnosed(kernels_of(0, strengths=(0, 0))).summary()


def test_a_diagnosis_can_be_stored_but_not_changed():
    found = diagnosed(kernels_of(0, n=60))
    assert_same(pickle.loads(pickle.dumps(found)), found)
    with pytest.raises(FrozenInstanceError):
        found.noise = ()


def test_a_diagnosis_is_silent():
    X = kernels_of(0, n=240, strengths=(2, 2, 0, 0, 0))
    model = SimpleMKKM(4, max_iter=1, random_state=0).fit(X)
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        diagnose(model, X)
    assert not log


# Refusals --------------------------------------------------------------------------------------


def test_what_is_no_fitted_model_is_refused():
    X = kernels_of(0, n=40)
    with pytest.raises(NotFittedError, match="not fitted"):
        diagnose(AverageKKM(4), X)
    with pytest.raises(TypeError, match="model is a str: pass a fitted estimator"):
        diagnose("AverageKKM", X)


def test_other_kernels_than_the_fitted_ones_are_refused():
    X = kernels_of(0, n=40)
    model = AverageKKM(4, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 2 kernels, the model was fitted on 3"):
        diagnose(model, X[:2])
    with pytest.raises(ValueError, match=r"kernel 0 has the shape \(30, 30\).* 40 samples"):
        diagnose(model, X[:, :30, :30])
    with pytest.raises(ValueError, match="expects an array of shape"):
        diagnose(model, X[0])
    with pytest.raises(ValueError, match="X lacks the kernel 'kernel 0'"):
        diagnose(model, dict(zip("abc", X, strict=True)))


def test_other_views_than_the_fitted_ones_are_refused():
    X = views_of(0, n=40)
    model = AverageKKM(4, random_state=0).fit(X)
    with pytest.raises(ValueError, match="fitted on 3 views"):
        diagnose(model, X[:2])
    with pytest.raises(ValueError, match="X has 30 samples, the model was fitted on 40"):
        diagnose(model, [view[:30] for view in X])
    with pytest.raises(ValueError, match="other samples than the model was fitted on"):
        diagnose(model, [X[0], X[1], X[2] + 1])


def test_one_kernel_is_nothing_to_compare():
    X = kernels_of(0, n=40)[:1]
    with pytest.raises(ValueError, match="fitted on one kernel"):
        diagnose(AverageKKM(4, random_state=0).fit(X), X)


def test_two_kernels_of_an_anchored_model_are_left_out_one_by_one():
    views, _ = blob_views(np.random.default_rng(0), n=120, strengths=(2, 2))
    for anchor in (1.0, "auto"):
        model = AnchoredMKKM(4, anchor=anchor, random_state=0).fit(views)
        assert np.all(diagnose(model, views).leave_one_out > 0.9)


def test_where_no_kernel_matters_none_is_named_for_it():
    views, _ = blob_views(np.random.default_rng(0), n=120, strengths=(3, 3, 3))
    model = AverageKKM(4, random_state=0).fit(views)
    assert "No single kernel changes the clusters." in str(diagnose(model, views))


def test_kernels_or_samples_in_another_order_are_noticed():
    kernels, _ = gaussian_kernels(np.random.default_rng(0), n=120, strengths=(2, 1, 0))
    model = AverageKKM(4, random_state=0).fit(kernels)
    for other in (kernels[::-1], kernels[:, ::-1, ::-1]):
        with pytest.raises(ValueError, match="same kernels,? (and )?samples in the same order"):
            diagnose(model, np.ascontiguousarray(other))


# Kernels that are not in memory -------------------------------------------------------------------


@pytest.mark.parametrize("method", [AverageKKM, LFMVC, METHODS["lmkkm"]])
def test_kernels_made_on_the_fly_are_diagnosed_like_others(method):
    views = views_of(0, n=120, strengths=(2, 0.5, 0))
    found = []
    for on_the_fly in (False, True):
        bank = KernelBank(**ONE_GAUSSIAN, on_the_fly=on_the_fly)
        model = method(4, kernels=bank, n_init=2, random_state=0).fit(views)
        found.append(diagnose(model, views))
    assert_close(*found, tolerance=1e-6)
    with pytest.raises(ValueError, match="other samples than the model was fitted on"):
        diagnose(model, [views[0], views[1], views[2] + 1])


def test_rows_that_a_bank_computes_are_diagnosed_as_the_kernels_they_are():
    views = views_of(0, n=100, strengths=(2, 0.5, 0))
    rows = KernelBank(**ONE_GAUSSIAN, on_the_fly=True).fit_transform(views)
    found = []
    for kernels in (rows, rows.entries("the test")):
        model = AverageKKM(4, kernels="precomputed", n_init=2, random_state=0).fit(kernels)
        found.append(diagnose(model, kernels))
    assert_close(*found, tolerance=1e-6)


@pytest.mark.parametrize("kind", ["source", "map", "dataset", "datasets"])
def test_kernels_in_files_are_diagnosed_like_others(kind, tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    X = kernels_of(0, n=100, strengths=(2, 0.5, 0))
    model = SimpleMKKM(4, n_init=2, random_state=0).fit(X)
    expected = diagnose(model, X)
    monkeypatch.setattr("mkclust.stack.build.available_bytes", lambda: X[0].nbytes)
    with h5py.File(tmp_path / "kernels.h5", "w") as file:
        file["all"] = X
        for p, K in enumerate(X):
            file[f"single/{p}"] = K
        np.save(tmp_path / "kernels.npy", X)
        stored = {
            "source": lambda: MatrixRows(list(X)),
            "map": lambda: np.load(tmp_path / "kernels.npy", mmap_mode="r"),
            "dataset": lambda: file["all"],
            "datasets": lambda: [file[f"single/{p}"] for p in range(3)],
        }[kind]()
        assert as_stack(stored).kernels[0].storage == "streamed"
        settings = {"kernels": "precomputed"} if kind == "datasets" else {}
        model = SimpleMKKM(4, n_init=2, random_state=0, **settings).fit(stored)
        assert_close(diagnose(model, stored), expected, tolerance=1e-6)
        with pytest.raises(ValueError, match="X has 2 kernels, the model was fitted on 3"):
            diagnose(model, MatrixRows(list(X[:2])))
        with pytest.raises(ValueError, match=r"kernel 0 has the shape \(50, 50\)"):
            diagnose(model, MatrixRows(list(X[:, :50, :50])))


# Kernels known by features ------------------------------------------------------------------------


@pytest.mark.parametrize(("centered", "normalize"), STANDARDS)
@pytest.mark.parametrize("approximation", [Nystroem(15, random_state=3), Linear()], ids=str)
def test_features_are_diagnosed_like_the_kernels_that_they_make(approximation, centered, normalize):
    views = dict(zip("abc", views_of(1, n=100, strengths=(2, 0.7, 0)), strict=True))
    settings = {"center": centered, "normalize": normalize, "n_init": 2, "random_state": 0}
    model = SimpleMKKM(4, approximation=approximation, **settings).fit(views)
    kernels = {}
    for name, view in views.items():
        F = clone(approximation).fit(view).transform(view)
        kernels[name] = F @ F.T
    dense = SimpleMKKM(4, kernels="precomputed", **settings).fit(kernels)
    found = diagnose(model, views)
    assert_close(found, diagnose(dense, kernels), tolerance=1e-6)
    assert "c" in found.noise


@pytest.mark.parametrize("name", ["avg-kkm", "mkkm", "lf-mvc", "kamm-r"])
def test_features_of_full_rank_are_diagnosed_like_the_kernels(name):
    views = views_of(2, n=90, strengths=(2, 0.7, 0))
    # Features stand for the formula of a kernel, without shared neighborhoods.
    settings = {"kernels": "gaussian", "n_init": 2, "random_state": 0}
    dense = METHODS[name](4, **settings).fit(views)
    model = METHODS[name](4, approximation=Nystroem(90), **settings).fit(views)
    assert_close(diagnose(model, views), diagnose(dense, views), tolerance=1e-5)


def test_leaving_out_the_kernel_of_features_is_fitting_the_other_views():
    views = dict(zip("abc", views_of(5, n=150, strengths=(1, 0.7, 0.7)), strict=True))
    # With a seed of its own a map draws the same landmarks, whatever the other views are.
    features = Nystroem(20, random_state=0)
    model = MKKM(4, approximation=features, n_init=2, random_state=0).fit(views)
    for name, value in zip("abc", diagnose(model, views).leave_one_out, strict=True):
        others = {key: view for key, view in views.items() if key != name}
        expected = adjusted_rand_score(model.labels_, clone(model).fit(others).labels_)
        assert value == pytest.approx(expected)


def test_what_is_left_keeps_its_landmarks():
    views = views_of(0, n=120, k=3, strengths=(1, 0.7, 0.7))
    model = AverageKKM(3, approximation=Nystroem(3), random_state=0).fit(views)
    maps = model._source.features.maps
    features = [map_.transform(view) for map_, view in zip(maps, views, strict=True)]
    found, anew = diagnose(model, views).leave_one_out, []
    for p in range(3):
        others = [F @ F.T for q, F in enumerate(features) if q != p]
        dense = AverageKKM(3, kernels="precomputed", random_state=0).fit(others)
        expected = adjusted_rand_score(model.labels_, dense.labels_)
        assert found[p] == pytest.approx(expected)
        # A model of the other views gives those behind the missing one other seeds.
        fresh = clone(model).fit(views[:p] + views[p + 1 :])
        anew.append(adjusted_rand_score(model.labels_, fresh.labels_))
    assert np.abs(found - anew).max() > 0.1


def test_landmarks_of_a_generator_are_not_drawn_again():
    views = views_of(0, n=100, strengths=(1, 1, 0))
    generator = np.random.RandomState(0)
    model = AverageKKM(4, approximation=Nystroem(8), random_state=generator).fit(views)
    assert_same(diagnose(model, views), diagnose(model, views))


def test_clusters_that_no_other_features_show_are_named_with_the_noise():
    rng = np.random.default_rng(0)
    shared, own = (blob_views(rng, strengths=s)[0] for s in ((2, 2, 0), (2,)))
    views = [*shared, own[0][rng.permutation(240)]]
    for centered in (True, False):
        found = diagnosed(views, center=centered, approximation=Nystroem(60))
        assert found.noise == ("view 2", "view 3")


def test_views_in_another_order_are_found_by_their_names():
    views = dict(zip("abc", views_of(0, n=80, strengths=(2, 1, 0)), strict=True))
    model = AverageKKM(4, approximation=Nystroem(20), random_state=0).fit(views)
    turned = {name: views[name] for name in "cab"}
    assert_same(diagnose(model, turned), diagnose(model, views))


def test_other_views_than_those_of_the_features_are_refused():
    views = dict(zip("abc", views_of(0, n=80, strengths=(2, 1, 0)), strict=True))
    model = AverageKKM(4, approximation=Nystroem(20), random_state=0).fit(views)
    with pytest.raises(ValueError, match=r"X has the views .*, the model was fitted on"):
        diagnose(model, {name: views[name] for name in "ab"})
    with pytest.raises(ValueError, match="X has 70 samples, the model was fitted on 80"):
        diagnose(model, {name: view[:70] for name, view in views.items()})
    with pytest.raises(ValueError, match="X is not what the model was fitted on"):
        diagnose(model, {name: view[::-1] for name, view in views.items()})


def test_dask_arrays_are_diagnosed_like_others():
    da = pytest.importorskip("dask.array")
    views = dict(zip("abc", views_of(0, n=150, strengths=(2, 0.5, 0)), strict=True))
    lazy = {name: da.from_array(view, chunks=(60, 5)) for name, view in views.items()}
    model = AverageKKM(4, approximation=Nystroem(20), n_init=2, random_state=0)
    expected = diagnose(clone(model).fit(views), views)
    fitted = clone(model).fit(lazy)
    assert_close(diagnose(fitted, lazy), expected, tolerance=1e-8)
    # Cut otherwise than in fit.
    other = {name: view.rechunk((110, -1)) for name, view in lazy.items()}
    found = diagnose(fitted, other, leave_one_out=False)
    np.testing.assert_allclose(found.agreement, expected.agreement)
    assert_close(diagnose(fitted, views), expected, tolerance=1e-8)
