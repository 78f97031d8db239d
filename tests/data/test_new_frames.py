"""The order of rows and columns of frames decides nothing, in the fit or for new samples."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from mkclust import AverageKKM, SimpleMKKM
from mkclust.kernels import Nystroem

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
N = 36
Y = np.arange(N) % 3


def wide():
    """Return a table of numbers, text and truth values in which there are three clusters."""
    rng = np.random.default_rng(0)
    numbers = 6 * rng.normal(size=(3, 3))[Y] + rng.normal(size=(N, 3))
    frame = pd.DataFrame(numbers, [f"s{i}" for i in range(N)], ["x_0", "x_1", "y_0"])
    return frame.assign(y_sex=list("fmx") * (N // 3), y_old=Y > 0)


def permuted(frame, seed):
    rng = np.random.default_rng(seed)
    return frame.iloc[rng.permutation(len(frame)), rng.permutation(frame.shape[1])]


MODELS = {
    "filled": SimpleMKKM(3, impute="median", random_state=0, n_init=3),
    "features": AverageKKM(3, approximation=Nystroem(15), random_state=0, n_init=3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@given(seeds=st.lists(st.integers(0, 999), min_size=4, max_size=4), count=st.integers(1, N))
def test_the_order_of_rows_and_columns_of_new_frames_changes_no_label(name, seeds, count):
    a, b = wide()[["x_0", "x_1"]], wide()[["y_0", "y_sex", "y_old"]]
    model = clone(MODELS[name]).fit({"a": permuted(a, seeds[0]), "b": permuted(b, seeds[1])})
    if name == "filled":
        a.iloc[0, 0], b.iloc[0, 1] = np.nan, None
    expected = model.predict({"a": a, "b": b})
    numbers = np.random.default_rng(seeds[2]).permutation(N)[:count]
    new = {"a": permuted(a.iloc[numbers], seeds[2]), "b": permuted(b.iloc[numbers], seeds[3])}
    order = a.index.get_indexer(new["a"].index)
    np.testing.assert_array_equal(model.predict(new), expected[order])


@given(seed=st.integers(0, 999), library=st.sampled_from(["pandas", "polars"]))
def test_the_order_of_columns_of_a_wide_frame_changes_no_label(seed, library):
    frame, columns = wide(), np.random.default_rng(seed).permutation(wide().columns).tolist()
    if library == "polars":
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame({name: frame[name].to_list() for name in frame})
    views = {"x": "x_", "y": ["y_0", "y_sex", "y_old"]}
    model = SimpleMKKM(3, views=views, random_state=0).fit(frame)
    np.testing.assert_array_equal(model.predict(frame[columns]), model.labels_)
    again = clone(model).fit(frame[columns])
    np.testing.assert_array_equal(again.labels_, model.labels_)
