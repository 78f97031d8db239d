"""Rows are paired by the ids of data frames, and never by their order against them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkclust import AverageKKM, KernelBank, SimpleMKKM, diagnose
from mkclust.data.samples import read_views
from mkclust.explain.stability import stability
from mkclust.kernels import Nystroem
from mkclust.stack import as_stack

pytestmark = pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning")

N = 45
TEXT = [f"sample {i}" for i in range(N)]
BANK = {"widths": (1.0,), "polynomials": (), "linear": None}


def clustered():
    rng = np.random.default_rng(0)
    y = np.arange(N) % 3
    return [4 * rng.normal(size=(3, d))[y] + rng.normal(size=(N, d)) for d in (3, 4, 5)]


def frames():
    return [pd.DataFrame(view, index=TEXT) for view in clustered()]


def kernel_frames():
    """Return a kernel of each view as a data frame with ids as rows and columns."""
    kernels = KernelBank(**BANK).fit_transform(clustered())
    return [pd.DataFrame(K, index=TEXT, columns=TEXT) for K in kernels]


def shuffled(frame, seed=0):
    return frame.iloc[np.random.default_rng(seed).permutation(len(frame))]


MODELS = {
    "exact": lambda: SimpleMKKM(3, random_state=0, n_init=3),
    "on the fly": lambda: SimpleMKKM(3, kernels="on-the-fly", random_state=0, n_init=3),
    "features": lambda: AverageKKM(
        3, approximation=Nystroem(20), random_state=0, n_init=3
    ),
}
IDS = {
    "text": TEXT,
    "numbers from 0": list(range(N)),
    "other numbers": list(range(1000, 1000 + N)),
    "dates": list(pd.date_range("2020-01-01", periods=N)),
    "pairs": [(f"plate {i // 9}", i % 9) for i in range(N)],
}


@pytest.mark.parametrize("name", MODELS)
@given(
    seeds=st.lists(st.integers(0, 99), min_size=3, max_size=3),
    kind=st.sampled_from(sorted(IDS)),
)
def test_the_order_of_the_rows_of_any_frame_changes_nothing(name, seeds, kind):
    ids = IDS[kind]
    index = pd.MultiIndex.from_tuples(ids) if kind == "pairs" else pd.Index(ids)
    views = [frame.set_axis(index) for frame in frames()]
    # A landmark is drawn by its place, so the first frame says the order where there
    # are some.
    mixed = [shuffled(f, s) for f, s in zip(views, seeds, strict=True)]
    if name == "features":
        mixed[0] = views[0]
    model, other = MODELS[name]().fit(views), MODELS[name]().fit(mixed)
    for fitted, index_of_first in ((model, index), (other, mixed[0].index)):
        found = getattr(fitted, "sample_ids_", np.arange(N))
        assert found.tolist() == index_of_first.tolist()
    order = mixed[0].index.get_indexer(index)
    same = model.labels_[:, None] == model.labels_
    found = other.labels_[order]
    np.testing.assert_array_equal(found[:, None] == found, same)
    np.testing.assert_array_equal(
        model.predict(mixed), model.labels_[np.argsort(order)]
    )


@pytest.mark.parametrize("place", [0, 1])
def test_the_default_index_is_an_id_beside_the_same_numbers(place):
    views = [frame.reset_index(drop=True) for frame in frames()]
    expected = read_views(views).views
    views[place] = shuffled(views[place])
    order = views[0].index.to_numpy()
    for name, view in read_views(views).views.items():
        np.testing.assert_array_equal(view, expected[name][order])


@pytest.mark.parametrize("beside", ["array", "polars"])
def test_what_has_no_ids_is_refused_beside_frames_of_different_orders(beside):
    a, b, c = frames()
    other = c.to_numpy()
    if beside == "polars":
        other = pytest.importorskip("polars").DataFrame(c.to_numpy())
    with pytest.raises(ValueError, match="'c' has no ids"):
        SimpleMKKM(3).fit({"a": a, "b": shuffled(b), "c": other})
    model = SimpleMKKM(3, random_state=0).fit({"a": a, "b": b, "c": other})
    plain = SimpleMKKM(3, random_state=0).fit(
        dict(zip("abc", clustered(), strict=True))
    )
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    with pytest.raises(ValueError, match="'c' has no ids"):
        model.mixed_kernel({"a": shuffled(a, 1), "b": shuffled(b, 1), "c": other})


@pytest.mark.parametrize("kind", ["text", "dates", "pairs"])
def test_the_default_index_is_refused_beside_ids_that_it_cannot_count(kind):
    index = pd.Index(IDS[kind])
    a, b, _ = (frame.set_axis(index) for frame in frames())
    plain = b.reset_index(drop=True)
    for views in ({"a": a, "b": plain}, {"b": plain, "a": a}):
        with pytest.raises(
            ValueError, match=r"'a' has ids such as .*'b' .*default index.*set_index"
        ):
            AverageKKM(3).fit(views)
    model = AverageKKM(3, random_state=0).fit({"a": a, "b": b})
    with pytest.raises(ValueError, match="'b' .*default index"):
        model.predict({"a": a, "b": plain})
    again = AverageKKM(3, random_state=0).fit({"a": a, "b": plain.set_axis(a.index)})
    np.testing.assert_array_equal(again.labels_, model.labels_)


def test_the_column_of_a_frame_that_holds_the_ids_of_another_is_named():
    a, b, _ = frames()
    lost = shuffled(b).rename_axis("patient").reset_index()
    with pytest.raises(ValueError, match=r"column 'patient' .*set_index\('patient'\)"):
        AverageKKM(3).fit({"a": a, "b": lost})
    found = read_views({"a": a, "b": lost.set_index("patient")}).views["b"]
    np.testing.assert_array_equal(found, b)


def test_kernels_with_names_of_columns_alone_keep_the_order_of_their_rows():
    kernels = kernel_frames()
    expected = as_stack(kernels).among().entries
    bare = [K.reset_index(drop=True) for K in kernels]
    np.testing.assert_allclose(as_stack(bare).among().entries, expected, atol=1e-12)


def test_ids_that_are_there_twice_pair_nothing():
    a, b, _ = frames()
    ids = [f"sample {i // 2}" for i in range(N)]
    with pytest.raises(ValueError, match="'b': 22 .*'sample 0'"):
        SimpleMKKM(3).fit({"a": a, "b": b.set_axis(ids)})
    with pytest.raises(
        ValueError, match=r"'a' has 22 ids more than once.*duplicated\(\)"
    ):
        SimpleMKKM(3).fit({"a": a.set_axis(ids), "b": b.set_axis(ids)})
    K = kernel_frames()[0].set_axis(ids).set_axis(ids, axis=1)
    with pytest.raises(ValueError, match="'sample 0'"):
        as_stack([K])


@given(seeds=st.lists(st.integers(0, 99), min_size=6, max_size=6))
def test_the_order_of_rows_and_columns_of_kernels_changes_nothing(seeds):
    kernels = kernel_frames()
    orders = [np.random.default_rng(seed).permutation(N) for seed in seeds]
    mixed = [K.iloc[orders[2 * p], orders[2 * p + 1]] for p, K in enumerate(kernels)]
    order = mixed[0].index.get_indexer(kernels[0].index)
    expected = as_stack(kernels).among().entries
    found = as_stack(mixed).among().entries[:, order][:, :, order]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_kernels_from_text_files_have_text_as_columns():
    numbers = list(range(1000, 1000 + N))
    kernels = [
        K.set_axis(numbers).set_axis(map(str, numbers), axis=1) for K in kernel_frames()
    ]
    expected = as_stack(kernel_frames()).among().entries
    mixed = [kernels[0], shuffled(kernels[1]), shuffled(kernels[2].T).T]
    # Frames may lie in memory by columns, whose sums round otherwise.
    np.testing.assert_allclose(
        as_stack(mixed).among().entries, expected, rtol=1e-9, atol=1e-13
    )


def test_similarities_to_training_samples_are_paired_by_their_columns():
    kernels = kernel_frames()
    model = AverageKKM(3, kernels="precomputed", random_state=0).fit(kernels)
    new = [K.iloc[:7] for K in kernels]
    mixed = [new[0], shuffled(new[1]), shuffled(new[2].T).T]
    np.testing.assert_array_equal(model.predict(mixed), model.labels_[:7])
    with pytest.raises(ValueError, match="model was fitted on"):
        model.predict([new[0], new[1], new[2].rename(columns={"sample 3": "x"})])
    plain = AverageKKM(3, kernels="precomputed", random_state=0).fit(
        [K.to_numpy() for K in kernels]
    )
    np.testing.assert_array_equal(plain.predict(new), model.labels_[:7])
    with pytest.raises(ValueError, match="columns of .*kernel 2.*without ids"):
        plain.predict(mixed)
    with pytest.raises(TypeError, match="self_similarity is a data frame"):
        model.predict(new, self_similarity=pd.DataFrame(np.ones((3, 7))))


@pytest.mark.parametrize("name", ["exact", "on the fly", "features"])
def test_what_a_model_was_fitted_on_may_be_passed_again_in_any_order(name):
    views = dict(zip("abc", frames(), strict=True))
    mixed = {
        name: shuffled(view, seed) for seed, (name, view) in enumerate(views.items())
    }
    model = MODELS[name]().fit(views)
    np.testing.assert_allclose(
        model.mixed_kernel(mixed), model.mixed_kernel(views), rtol=1e-12, atol=1e-12
    )
    found, expected = (diagnose(model, X, leave_one_out=False) for X in (mixed, views))
    np.testing.assert_allclose(found.redundancy, expected.redundancy, atol=1e-12)
    found, expected = (
        stability(model, X, n_resamples=2).samples for X in (mixed, views)
    )
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="samples that the model was fitted on"):
        model.mixed_kernel(
            {name: v.rename({"sample 7": "x"}) for name, v in views.items()}
        )
