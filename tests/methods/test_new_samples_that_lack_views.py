"""What is asked of models about samples that are missing: the right ones, in true words."""

from dataclasses import replace

import numpy as np
import pytest
from test_fits_of_missing_samples import K, N, kernels_with_nan, pattern, views_of, with_nan

from mkclust import AgreementKKM, AverageKKM, SimpleMKKM
from mkclust.samples import read_samples
from mkclust.samples.row_source import RowSubset
from mkclust.stack.observed import with_active

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
        np.testing.assert_array_equal(model.predict(lazy), model.labels_)


def test_all_new_samples_may_lack_a_view_by_a_mask(data):
    views, observed = data
    model = SimpleMKKM(K, random_state=0).fit(with_nan(views, observed))
    new = {name: view[:5] for name, view in views.items()}
    mask = np.ones((5, 3), bool)
    mask[:, 1] = False
    expected = model.predict(new | {"b": np.full((5, 6), np.nan)})
    np.testing.assert_array_equal(model.predict(new, observed=mask), expected)
    np.testing.assert_array_equal(model.predict(read_samples(new), observed=mask), expected)


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


def test_what_was_learned_is_scaled_by_nothing_in_kernels_and_in_views(data):
    views, observed = data
    for X, kernels in (
        (with_nan(views, observed), "auto"),
        (list(kernels_with_nan(views, observed)), "precomputed"),
    ):
        model = AgreementKKM(K, missing_views="learn", kernels=kernels, random_state=0).fit(X)
        stack = model._source.training_stack(model, X)
        again = replace(stack, kernels=with_active(stack.kernels, range(stack.n_kernels)))
        np.testing.assert_allclose(again.among().entries, stack.among().entries, atol=1e-12)


def test_kernels_in_files_are_brought_to_another_order_by_rows_and_columns(tmp_path):
    M = np.random.default_rng(0).normal(size=(8, 8))
    np.save(tmp_path / "kernel.npy", M)
    on_disk, order = np.load(tmp_path / "kernel.npy", mmap_mode="r"), np.array([3, 1, 0, 2])
    everyone = np.random.default_rng(1).permutation(8)
    for samples in (order, everyone):
        np.testing.assert_array_equal(
            RowSubset(on_disk, samples, is_kernel=True)[:], M[np.ix_(samples, samples)]
        )


def test_messages_call_kernels_and_samples_by_their_numbers_among_all(data):
    views, observed = data
    kernels = kernels_with_nan(views, observed)
    sample = int(np.flatnonzero(observed[:, 2])[-1])
    kernels[2, sample, observed[:, 2]] = kernels[2, observed[:, 2], sample] = 0.0
    with pytest.raises(ValueError, match=rf"kernel 2: sample {sample} has zero self-similarity"):
        SimpleMKKM(K, kernels="precomputed", center=False).fit(list(kernels))


def test_new_similarities_of_another_number_of_columns_are_refused(data):
    views, _ = data
    complete = kernels_with_nan(views, np.ones((N, 3), bool))
    model = AverageKKM(K, kernels="precomputed", random_state=0).fit(complete)
    seen = np.ones((6, 3), bool)
    seen[0, 0] = False
    with pytest.raises(ValueError, match=f"the {N} training samples"):
        model.predict([kernel[:6, :30] for kernel in complete], observed=seen)


def test_notes_say_which_samples_kernels_lack(data):
    views, observed = data
    kernels = kernels_with_nan(views, observed)
    assert "lacks" in SimpleMKKM(K, kernels="precomputed").fit(list(kernels)).summary()


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
