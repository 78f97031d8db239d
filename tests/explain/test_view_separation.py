"""Which view separates which clusters: views that were made to, and brute force."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from mkclust import AgreementKKM, AverageKKM, SimpleMKKM, view_separation
from mkclust.explain.view_separation import N_PERMUTATIONS, ViewSeparation, _areas
from mkclust.kernels import Nystroem


def made(groups, n=40, noise=1.0, strength=6.0, seed=0):
    """Return views in which clusters of the same group are alike."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), n)
    views = {}
    for name, of in groups.items():
        places = strength * np.eye(3)[np.array(of)[y]]
        views[name] = places + noise * rng.normal(size=(3 * n, 3))
    return views, y


VIEWS = {"rna": (0, 1, 2), "methylation": (0, 1, 1), "protein": (0, 0, 1)}


@pytest.fixture(scope="module")
def fitted():
    views, y = made(VIEWS)
    model = AgreementKKM(3, random_state=0).fit(views)
    model.labels_ = y
    return model, views


def test_a_view_separates_the_clusters_that_it_was_made_to(fitted):
    found = view_separation(*fitted)
    for name, of in VIEWS.items():
        rows = found.table[found.table["view"] == name]
        for each in rows.itertuples():
            differ = of[each.one] != of[each.other]
            assert (each.auc > 0.95) == differ
            assert (each.auc > each.chance) == differ or each.auc < 0.8
            assert each.n_samples == 80
    said = " ".join(found.sentences())
    assert "0 and 2 differ in every view." in said
    assert "0 and 1 differ in rna and methylation only." in said
    assert "1 and 2 differ in rna and protein only." in said
    assert said in found.summary().replace("\n", " ")
    areas = found.plot().areas
    assert areas.shape == (3, 3)
    assert areas[0] == pytest.approx(found.table["auc"][:3])


def test_what_most_pairs_have_in_common_is_said_once():
    pairs = list(combinations(range(4), 2))
    rows = [
        (view, one, other, 0.5 if (view, one, other) == ("a", 2, 3) else 1.0, 0.7, 40)
        for view in "ab"
        for one, other in pairs
    ]
    columns = ["view", "one", "other", "auc", "chance", "n_samples"]
    found = ViewSeparation(pd.DataFrame(rows, columns=columns), tuple("wxyz"), 80)
    assert found.sentences() == [
        "y and z differ in b only.",
        "Every other two clusters differ in every view.",
    ]


def test_areas_are_those_of_every_sample_against_the_other_parts():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(30, 4)) + (np.arange(30) < 12)[:, None]
    K = points @ points.T
    found = _areas(K, 12, np.random.default_rng(0))
    assert len(found) == 1 + N_PERMUTATIONS

    again = np.random.default_rng(0)
    folds = np.concatenate([again.permutation(size) % 5 for size in (12, 18)])
    first = np.arange(30) < 12
    areas = []
    for fold in range(5):
        out = folds != fold
        scores = K[:, out & first].mean(axis=1) - K[:, out & ~first].mean(axis=1)
        areas.append(roc_auc_score(first[~out], scores[~out]))
    assert found[0] == pytest.approx(np.mean(areas))


@pytest.mark.slow
def test_a_view_that_does_not_know_the_clusters_is_at_one_half():
    areas = []
    above = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(40, 60))
        found = _areas(points @ points.T, 15, rng)
        areas.append(found[0])
        above.append(found[0] > found[1:].max())
    assert np.mean(areas) == pytest.approx(0.5, abs=3 * np.std(areas) / np.sqrt(60))
    assert np.mean(above) <= 0.06


def test_samples_that_a_view_lacks_are_left_out():
    views, y = made(VIEWS)
    ids = [f"p{place}" for place in range(120)]
    frames = {name: pd.DataFrame(view, ids) for name, view in views.items()}
    frames["protein"] = frames["protein"].iloc[10:]
    model = AgreementKKM(3, join="outer", random_state=0).fit(frames)
    model.labels_ = y
    table = view_separation(model, frames).table.set_index(["view", "one", "other"])
    assert table.loc[("protein", 0, 1), "n_samples"] == 70
    assert table.loc[("rna", 0, 1), "n_samples"] == 80


def test_a_part_of_the_samples_and_features_of_kernels_give_nearly_the_same():
    views, _ = made({"rna": (0, 1, 2), "other": (0, 1, 2)})
    model = SimpleMKKM(3, random_state=0, approximation=Nystroem(40)).fit(views)
    found = view_separation(model, views, max_samples=60)
    assert found.n_used == 60
    assert (found.table["auc"] > 0.95).all()
    assert found.sentences() == ["Every two clusters differ in every view."]


def test_one_kernel_and_small_clusters_have_an_answer():
    kernels = np.stack([np.eye(7) + 0.1])
    model = AverageKKM(2, random_state=0).fit(kernels)
    model.labels_ = np.array([0, 0, 0, 0, 0, 0, 1])
    found = view_separation(model, kernels)
    assert found.table["auc"].isna().all()
    assert found.sentences() == ["0 and 1 differ clearly in no single view."]
