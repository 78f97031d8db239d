"""Samples in groups: what independent views share by families, patients, batches or
plates."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from mkclust import AgreementKKM, AnchoredMKKM, agreement, stability
from mkclust.exceptions import NoAgreementWarning
from mkclust.kernels import Nystroem
from mkclust.methods import METHODS


def of_groups(rng, groups, alike=0.8, n_columns=5):
    """Return a view in which samples of a group are alike, independent of everything
    else."""
    means = rng.normal(size=(groups.max() + 1, n_columns))[groups]
    return np.sqrt(alike) * means + np.sqrt(1 - alike) * rng.normal(size=means.shape)


def scattered(rng, sizes):
    """Return the groups of samples in random order."""
    return rng.permutation(np.repeat(np.arange(len(sizes)), sizes))


def clustered(rng, y, groups, n_views=2, effect=1.0):
    """Return views of common clusters, with effects of the groups of their own."""
    views = {}
    for name in "abcd"[:n_views]:
        places = 1.5 * rng.normal(size=(y.max() + 1, 10))[y]
        effects = effect * rng.normal(size=(groups.max() + 1, 10))[groups]
        views[name] = places + effects + rng.normal(size=places.shape)
    return views


def pairs_of(found):
    """Return the p-values of all pairs of views."""
    return found.p_values[np.triu_indices(len(found.names), 1)]


def test_independent_views_of_scattered_families_agree_only_if_families_are_ignored():
    ignored, respected = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        families = scattered(rng, [5] * 40)
        views = {name: of_groups(rng, families) for name in "abcd"}
        ignored.append(agreement(views))
        respected.append(agreement(views, groups=families))
    without = np.concatenate([pairs_of(found) for found in ignored])
    p_values = np.concatenate([pairs_of(found) for found in respected])
    assert len(p_values) == 24
    limit = respected[0].limits[0, 1]
    assert np.mean(without < limit) > 0.9
    assert not np.any(p_values < limit)
    for level in (0.2, 0.1, 0.05, 0.01):
        assert np.mean(p_values < level) <= level
    assert "within and between 40 groups of samples" in respected[0].verdict()
    assert "groups of samples" not in ignored[0].verdict()


SIZES = {
    "families": [5] * 40,
    "families and single samples": [1] * 40 + [2] * 30 + [5] * 20,
    "patients with different numbers of samples": list(range(2, 18)),
    "batches": [40, 50, 60, 30],
    "few families": [5] * 12,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SIZES)
def test_p_values_are_valid_whatever_the_sizes_of_groups_are(kind):
    p_values = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        groups = scattered(rng, SIZES[kind])
        views = {
            str(alike): of_groups(rng, groups, alike) for alike in (0.3, 0.6, 0.8, 0.95)
        }
        p_values.extend(pairs_of(agreement(views, groups=groups)))
    for level in (0.1, 0.05, 0.01):
        expected = level * len(p_values)
        assert np.sum(np.array(p_values) < level) <= expected + 3 * np.sqrt(expected)


@pytest.mark.parametrize("kind", ["families", "batches"])
@pytest.mark.parametrize("of_families", [True, False])
def test_clusters_that_views_share_are_found_within_and_between_groups(
    kind, of_families
):
    rng = np.random.default_rng(0)
    groups = scattered(rng, SIZES[kind])
    y = rng.integers(3, size=len(groups))
    if of_families:
        y = y[: groups.max() + 1][groups]
    found = agreement(clustered(rng, y, groups), groups=groups)
    # Four batches are too few to compare as a whole, and within them there is one
    # cluster.
    assert found.any_share == (kind == "families" or not of_families)
    assert found.are_groups_compared == (kind == "families")
    whole = "too few to compare them as a whole" in found.verdict()
    assert whole == (kind == "batches")


def test_too_few_samples_in_groups_are_not_tested():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], 2)
    views = {name: of_groups(rng, groups) for name in "ab"}
    found = agreement(views, groups=groups)
    assert not found.is_testable
    assert (
        "6 samples in 3 groups are too few to test: all views are used."
        in found.verdict()
    )


def test_groups_of_one_sample_each_are_no_groups_but_for_the_second_test():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    views = clustered(rng, y, np.arange(60)) | {"noise": rng.normal(size=(60, 4))}
    plain, grouped = agreement(views), agreement(views, groups=np.arange(60))
    expected = np.minimum(2 * plain.p_values, 1)
    np.testing.assert_allclose(grouped.p_values, expected, rtol=1e-6)
    np.testing.assert_allclose(grouped.alignments, plain.alignments)


@pytest.mark.parametrize(
    "model",
    [
        AgreementKKM(3, random_state=0),
        AnchoredMKKM(3, random_state=0),
        AnchoredMKKM(3, approximation=Nystroem(40), random_state=0),
    ],
)
def test_a_view_that_shares_only_the_families_is_set_aside(model):
    rng = np.random.default_rng(1)
    families = scattered(rng, [5] * 40)
    y = rng.integers(3, size=200)
    ids = pd.Index([f"sample {i}" for i in range(200)])
    views = clustered(rng, y, families) | {"other": of_groups(rng, families)}
    frames = {name: pd.DataFrame(view, ids) for name, view in views.items()}
    ignored = clone(model).fit(frames)
    assert ignored.set_aside_ == ()

    named = pd.Series([f"family {i}" for i in families], ids)
    respected = clone(model).fit(frames, groups=named.iloc[rng.permutation(200)])
    assert respected.set_aside_ == ("other",)
    assert respected.agreement_.n_sample_groups == 40

    # In the order of the samples, and with samples that views lack.
    frames["a"].iloc[:20] = np.nan
    frames["other"].iloc[90:100] = np.nan
    incomplete = clone(model).set_params(missing_views="rescale")
    incomplete.fit(frames, groups=families)
    assert incomplete.set_aside_ == ("other",)
    assert incomplete.agreement_.pair_samples[0].tolist() == [180, 180, 170]


@pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning")
@pytest.mark.parametrize("name", ["simplemkkm", "avg-kkm", "agreement-kkm"])
def test_every_method_takes_groups_and_warns_if_only_these_are_shared(name):
    rng = np.random.default_rng(2)
    families = scattered(rng, [5] * 30)
    views = {name: of_groups(rng, families) for name in "ab"}
    model = METHODS[name](3, random_state=0)
    assert model.fit(views).agreement_.any_share
    with pytest.warns(NoAgreementWarning, match="30 groups of samples"):
        model.fit(views, groups=families)
    with pytest.raises(ValueError, match="groups has 3 rows"):
        model.fit(views, groups=[1, 2, 3])


def test_refits_of_stability_respect_the_groups_of_the_fit():
    rng = np.random.default_rng(3)
    families = scattered(rng, [5] * 30)
    y = rng.integers(3, size=150)
    views = clustered(rng, y, families) | {"other": of_groups(rng, families)}
    model = AgreementKKM(3, random_state=0).fit(views, groups=families)
    assert model.set_aside_ == ("other",)
    without = {name: views[name] for name in "ab"}
    alone = AgreementKKM(3, random_state=0).fit(without, groups=families)
    found, expected = (
        stability(m, X, n_resamples=3) for m, X in ((model, views), (alone, without))
    )
    np.testing.assert_allclose(found.agreements, expected.agreements)
