"""What is asked of models about samples that are missing: the right ones, in true words."""

import numpy as np
import pytest
from test_fits_of_missing_samples import K, N, kernels_with_nan, pattern, views_of, with_nan

from mkclust import AverageKKM, SimpleMKKM

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def data():
    views, _ = views_of()
    return views, pattern()


def test_masked_kernels_are_not_taken_for_views(data):
    views, observed = data
    kernels = list(np.nan_to_num(kernels_with_nan(views, observed)))
    with pytest.raises(ValueError, match="kernels='precomputed'"):
        AverageKKM(K).fit(kernels, observed=observed)


def test_a_mask_that_is_passed_for_labels_is_refused(data):
    views, observed = data
    with pytest.raises(ValueError, match="observed=mask"):
        SimpleMKKM(K).fit(views, observed)


def test_chunks_of_new_samples_may_lack_a_view():
    da = pytest.importorskip("dask.array")
    views, _ = views_of(60)
    observed = pattern(60)
    observed[:15, 0], observed[:15, 1] = False, True
    X = with_nan(views, observed)
    model = SimpleMKKM(K, random_state=0).fit(X)
    for height in (60, 15):
        lazy = {name: da.from_array(view, chunks=(height, -1)) for name, view in X.items()}
        np.testing.assert_array_equal(model.predict(lazy).compute(), model.labels_)


@pytest.mark.parametrize("psd", ["shift", "clip"])
def test_repaired_kernels_that_lack_the_same_samples_know_these_again(psd):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 60, 4))
    kernels = X @ X.transpose(0, 2, 1) - 2 * np.eye(60)
    for p in (0, 1):
        kernels[p, :20], kernels[p, :, :20] = np.nan, np.nan
    kernels[2, 40:], kernels[2, :, 40:] = np.nan, np.nan
    model = AverageKKM(K, kernels="precomputed", psd=psd, random_state=0).fit(list(kernels))
    np.testing.assert_array_equal(model.predict(list(kernels)), model.labels_)


def test_labels_of_new_frames_are_in_the_order_of_their_outer_join(data):
    pd = pytest.importorskip("pandas")
    views, _ = data
    model = SimpleMKKM(K, random_state=0, join="outer").fit(
        {
            name: pd.DataFrame(view, index=[f"s{i}" for i in range(N)])
            for name, view in views.items()
        }
    )
    new = {
        "a": pd.DataFrame(views["a"][:3], index=["x", "y", "z"]),
        "b": pd.DataFrame(views["b"][2:5], index=["z", "u", "v"]),
        "c": pd.DataFrame(views["c"][:0]).set_axis([], axis=0),
    }
    assert model.predict(new).shape == (5,)
    rows = model.set_output(transform="pandas").transform(new)
    assert list(rows.index) == ["x", "y", "z", "u", "v"]
