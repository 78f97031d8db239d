"""New samples in another unit are named, and others are not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from helpers.cli import three_clusters
from mkclust import MKKM, AgreementKKM, AverageKKM, SimpleMKKM, load_model, save_model
from mkclust.exceptions import OtherRangeWarning
from mkclust.fit.coverage import FEWEST_VALUES, find_outside
from mkclust.kernels import Nystroem

MODELS = [
    AgreementKKM(3, random_state=0),
    SimpleMKKM(3, random_state=0),
    AverageKKM(3, random_state=0),
    MKKM(3, random_state=0),
    SimpleMKKM(3, random_state=0, approximation=Nystroem(30)),
]


def shares(n=90):
    """Return two views of shares, the second with many zeros."""
    views, _ = three_clusters(n)
    left = 1 / (1 + np.exp(-views["left"]))
    right = np.maximum(views["right"], 0) / 20
    return {"left": left, "right": right}


def messages(model, X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(X)
    return [str(each.message) for each in caught if each.category is OtherRangeWarning]


def part(views, rows):
    return {name: view[rows] for name, view in views.items()}


@pytest.mark.parametrize("model", MODELS, ids=lambda each: repr(each)[:20])
def test_percent_instead_of_shares_are_named_by_view_and_column(model, tmp_path):
    pytest.importorskip("skops")
    views = shares()
    model.fit(part(views, slice(60)))
    new = part(views, slice(60, None))
    assert messages(model, new) == []
    assert messages(model, part(views, slice(60))) == []
    percent = {"left": new["left"], "right": 100 * new["right"]}
    (message,) = messages(model, percent)
    assert "in right, 100% of the values of 30 samples" in message
    loaded = load_model(save_model(model, tmp_path / "model.skops"))
    assert messages(loaded, percent) == [message]
    assert messages(loaded, part(percent, slice(1))) != []


def test_columns_of_frames_are_named_and_zeros_of_sparse_views_are_not_compared():
    views = shares()
    frame = pd.DataFrame(views["left"], columns=["iron", "zinc", "lead"])
    model = AverageKKM(3, random_state=0)
    model.fit({"metals": frame[:60], "words": csr_array(views["right"][:60])})
    new = {
        "metals": frame[60:].assign(zinc=50.0),
        "words": csr_array(views["right"][60:]),
    }
    assert messages(model, new) == []
    new["metals"] = new["metals"].assign(lead=50.0)
    (message,) = messages(model, new)
    assert "50 in 'zinc'" in message
    assert messages(model, new | {"words": csr_array(-views["right"][60:])})[
        1
    ].startswith("in words, 100%")


def test_views_of_weight_zero_and_precomputed_kernels_are_not_compared():
    views = shares(150)
    views["noise"] = np.random.default_rng(0).normal(size=(150, 5))
    model = AgreementKKM(3, random_state=0).fit(part(views, slice(100)))
    assert model.set_aside_ == ("noise",)
    new = part(views, slice(100, None))
    assert messages(model, new | {"noise": 1e3 * new["noise"]}) == []
    K = views["left"] @ views["left"].T
    given = AverageKKM(3, kernels={"K": "precomputed"}, random_state=0)
    given.fit({"K": K[:100, :100], "left": views["left"][:100]})
    own = np.vstack([K.diagonal()[100:], np.full(50, np.nan)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", OtherRangeWarning)
        given.predict({"K": K[100:, :100], "left": new["left"]}, own)


@given(
    st.integers(0, 10_000),
    st.integers(10, 200),
    st.sampled_from(["normal", "cauchy", "rare"]),
)
@settings(max_examples=30, deadline=None)
def test_samples_of_the_same_kind_are_hardly_ever_outside(seed, n, kind):
    rng = np.random.default_rng(seed)
    draw = rng.standard_cauchy if kind == "cauchy" else rng.normal
    rows = draw(size=(n + 20, 30))
    if kind == "rare":
        rows[rng.uniform(size=rows.shape) < 0.8] = 0
    have_ranges = (rows[:n] != 0).sum(axis=0) >= FEWEST_VALUES
    n_compared = np.count_nonzero(rows[n:, have_ranges])
    share, *_ = find_outside(rows[:n], rows[n:])
    # Of a few values most may be outside by chance.
    assert share <= 0.5 or n_compared < 10
    far_away, *_ = find_outside(rows[:n], 1e3 + np.abs(rows[n:]))
    assert far_away > 0.5 or not have_ranges.any()
