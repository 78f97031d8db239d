"""Views that lack samples: which are included, and what becomes of samples of the others."""

import warnings

import numpy as np
import pytest

from agreeing import named_blobs, one_hot
from mkclust import METHODS
from mkclust.exceptions import UncoveredSamplesWarning
from mkclust.methods.agreement import measure_agreement
from mkclust.samples.samples import Samples
from mkclust.stack import as_stack

pytestmark = pytest.mark.slow

SETTING_ASIDE = ("agreement-kkm", "anchored-mkkm")


def gaussian(X):
    """Return a Gaussian kernel of median width."""
    lengths = np.square(X).sum(axis=1)
    squares = np.maximum(lengths[:, None] + lengths - 2 * X @ X.T, 0)
    return np.exp(-squares / np.median(squares))


def kernels_of(views, observed, ids=None, start=0):
    """Return kernels of which each has the samples that its view has, from one sample on."""
    observed = observed[start:]
    pairs = zip(views.values(), observed.T, strict=True)
    parts = tuple(gaussian(X)[start:, start:][np.ix_(seen, seen)] for X, seen in pairs)
    missing = ~observed if (~observed).any() else None
    return Samples("kernels", tuple(views), parts, names_given=True, missing=missing, ids=ids)


def noisy_problem(seed=0, n=80, missing=0.3, n_uncovered=5):
    """Return three views that agree and one of noise, and which samples each has.

    The first samples are seen in the noise only.
    """
    rng = np.random.default_rng(seed)
    views, y = named_blobs(rng, n, strengths=(3, 3, 2))
    views["noise"] = rng.normal(size=(n, 5))
    observed = rng.random((n, 4)) >= missing
    observed[~observed[:, :3].any(axis=1), 0] = True
    observed[:n_uncovered] = [False, False, False, True]
    return views, observed, y


def fitted(name, samples, **options):
    """Return a model, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = METHODS[name](3, kernels="precomputed", random_state=0, **options).fit(samples)
    return model, [w for w in caught if w.category is UncoveredSamplesWarning]


@pytest.mark.parametrize("name", SETTING_ASIDE)
@pytest.mark.parametrize("missing_views", ["zero", "rescale"])
def test_samples_that_only_a_view_set_aside_has_change_nothing(name, missing_views):
    views, observed, _ = noisy_problem()
    model, said = fitted(name, kernels_of(views, observed), missing_views=missing_views)
    assert model.set_aside_ == ("noise",)
    assert model.uncovered_samples_.tolist() == [0, 1, 2, 3, 4]
    assert len(said) == 1
    assert said[0].filename == __file__
    del views["noise"]
    alone, said = fitted(
        name, kernels_of(views, observed[:, :3], start=5), missing_views=missing_views
    )
    assert not said
    assert not hasattr(alone, "uncovered_samples_")
    assert np.array_equal(model.labels_[5:], alone.labels_)
    np.testing.assert_allclose(model.weights_[:3], alone.weights_, rtol=1e-6)
    np.testing.assert_allclose(np.abs(model.embedding_[5:]), np.abs(alone.embedding_), atol=1e-6)
    assert set(model.labels_[:5].tolist()) == {-1}
    assert not model.embedding_[:5].any()


@pytest.mark.parametrize("missing", [0.3, 0.5, 0.7])
def test_chances_are_no_smaller_than_chance_makes_them_where_samples_are_missing(missing):
    chances = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = 100
        views = [rng.normal(size=(n, 8)), one_hot(rng, n, 3), rng.normal(size=(n, 1))]
        views = {f"view {p}": X + 1e-3 * rng.normal(size=X.shape) for p, X in enumerate(views)}
        observed = rng.random((n, 3)) >= missing
        observed[~observed.any(axis=1), 0] = True
        found = measure_agreement(as_stack(kernels_of(views, observed), validate=False))
        assert not found.any_share
        chances.extend(found.pair_chances[np.triu_indices(3, 1)])
    # Of 120, one in ten below a tenth is expected, and 21 or more one time in two hundred.
    assert np.sum(np.array(chances) < 0.1) <= 21
    assert np.sum(np.array(chances) < 0.01) <= 5
    assert min(chances) > 1e-5
