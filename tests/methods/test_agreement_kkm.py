"""Neighborhoods in the compromise: a view that agrees with none changes no label and no
weight."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from helpers.agreement import written_out_compromise
from helpers.kernels import ONE_GAUSSIAN
from helpers.views import inserted, named_blobs, strangers
from mkclust import AgreementKKM, AnchoredMKKM, AverageKKM, KernelBank
from mkclust.exceptions import NoAgreementWarning
from mkclust.linalg import to_host
from mkclust.metrics import adjusted_rand_index
from mkclust.stack import as_stack

BANK = KernelBank(**ONE_GAUSSIAN)


def kernels_of(views):
    """Return one Gaussian kernel per view, by name."""
    return dict(zip(views, BANK.fit_transform(list(views.values())), strict=True))


def check_that_nothing_changed(model, without, others):
    """Check that a model of more views is one without the others: labels, and numbers
    to 1e-12."""
    names = list(model.kernel_names_)
    assert set(model.set_aside_) == set(others)
    aside = [names.index(name) for name in others]
    np.testing.assert_array_equal(model.labels_, without.labels_)
    for attribute in ("weights_", "coefficients_", "alignments_"):
        values = getattr(model, attribute)
        np.testing.assert_allclose(
            np.delete(values, aside), getattr(without, attribute), atol=1e-12
        )
    assert not model.weights_[aside].any()
    assert not model.coefficients_[aside].any()
    for attribute in ("embedding_", "objective_", "history_"):
        found, expected = (
            to_host(getattr(each, attribute)) for each in (model, without)
        )
        np.testing.assert_allclose(found, expected, atol=1e-9, rtol=1e-12)


@pytest.mark.parametrize("n", [60, 300])
@pytest.mark.parametrize(
    ("center", "normalize"), [(True, True), (True, False), (False, True)]
)
def test_the_mix_is_the_compromise_written_out(n, center, normalize):
    views, y = named_blobs(np.random.default_rng(n), n=n, k=4, strengths=(1, 0.8, 0.6))
    K = np.array(list(kernels_of(views).values()))
    options = {"center": center, "normalize": normalize, "random_state": 0}
    model = AgreementKKM(4, **options).fit(K)
    entries = as_stack(K, center=center, normalize=normalize).among().entries
    compromise, weights, coefficients = written_out_compromise(entries)
    np.testing.assert_allclose(model.weights_, weights, rtol=1e-9)
    np.testing.assert_allclose(model.coefficients_, coefficients, rtol=1e-9)
    np.testing.assert_allclose(model.mixed_kernel(K), compromise, atol=1e-9)
    assert adjusted_rand_index(y, model.labels_) > 0.9


def test_the_kernels_of_one_table_are_averaged():
    X = strangers(np.random.default_rng(0), 60)["noise"]
    average = AverageKKM(3, random_state=0).fit(X)
    model = AgreementKKM(3, random_state=0).fit(X)
    np.testing.assert_allclose(model.coefficients_, average.coefficients_, atol=1e-12)


def test_if_no_two_views_agree_all_are_used_and_a_random_category_does_not_decide():
    rng = np.random.default_rng(0)
    views, y = named_blobs(rng, n=200, strengths=(1,))
    views |= {"dice": np.eye(3)[rng.integers(3, size=200)]}
    with pytest.warns(NoAgreementWarning, match="limit for 200 samples"):
        model = AgreementKKM(3, random_state=0).fit(views)
    assert model.set_aside_ == ()
    assert np.all(model.weights_ > 0)
    assert adjusted_rand_index(y, model.labels_) > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("method", [AgreementKKM, AnchoredMKKM])
@given(st.integers(0, 10_000), st.sampled_from([50, 61, 130]), st.integers(1, 4))
def test_views_that_share_nothing_change_nothing(method, seed, n, n_others):
    rng = np.random.default_rng(seed)
    views, _ = named_blobs(rng, n=n)
    everyone = list(strangers(rng, n).items())
    others = dict(everyone[i] for i in rng.permutation(5)[:n_others])
    without = method(3, random_state=0).fit(views)
    model = method(3, random_state=0).fit(inserted(rng, views, others))
    assume(set(model.set_aside_) == set(others))  # by chance, less than 1% are used
    check_that_nothing_changed(model, without, others)
