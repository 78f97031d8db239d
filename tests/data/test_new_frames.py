"""The order of the columns of a frame decides nothing, in the fit or for new samples."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from mkclust import SimpleMKKM

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
N = 36
Y = np.arange(N) % 3


def wide():
    """Return a table of numbers, text and truth values in which there are three clusters."""
    rng = np.random.default_rng(0)
    numbers = 6 * rng.normal(size=(3, 3))[Y] + rng.normal(size=(N, 3))
    frame = pd.DataFrame(numbers, [f"s{i}" for i in range(N)], ["x_0", "x_1", "y_0"])
    return frame.assign(y_sex=list("fmx") * (N // 3), y_old=Y > 0)


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
