"""What a model holds of the arrays that it was fitted on."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from helpers.arrays import TORCH, as_library
from helpers.kernels import gaussian_kernels
from helpers.views import blob_views
from mkclust import METHODS, KernelBank, SimpleMKKM
from mkclust.kernels import Linear, Nystroem

pytestmark = pytest.mark.slow

needs_torch = pytest.mark.skipif(not TORCH, reason="torch is not installed")


def test_nothing_of_the_kernels_stays_in_a_model():
    kernels, _ = gaussian_kernels(np.random.default_rng(0), n=240)
    model = SimpleMKKM(4, random_state=0).fit(kernels)
    extension = model._source.extension
    held = [model.embedding_, *extension.projections]
    held += [standard.diagonal for standard in extension.standardizations]
    for array in held:
        base = array if array.base is None else array.base
        assert base.nbytes <= 2 * array.nbytes


OTHERS = KernelBank(widths=(), polynomials=((1, 2),), linear="cosine", on_the_fly=True)
KEPT = {
    "table": lambda views: (views[0], {}),
    "views": lambda views: (views, {}),
    "views on the fly": lambda views: (views, {"kernels": "on-the-fly"}),
    "other kernels of views": lambda views: (views, {"kernels": OTHERS}),
    "kernels": lambda views: (
        clone(OTHERS).set_params(on_the_fly=False).fit_transform(views),
        {},
    ),
    "landmarks": lambda views: (views, {"approximation": Nystroem(20)}),
    "landmarks that are all samples": lambda views: (
        views,
        {"approximation": Nystroem(40)},
    ),
    "features that are rows": lambda views: (views, {"approximation": Remembering()}),
}


class Remembering(Linear):
    """A feature map that keeps the very rows it was fitted on."""

    def fit(self, X, y=None):
        self.rows_ = X
        return super().fit(X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", KEPT)
@pytest.mark.parametrize(
    ("name", "library"),
    [
        *(
            (name, "numpy")
            for name in ("simplemkkm", "lmkkm", "lf-mvc", "agreement-kkm")
        ),
        pytest.param("simplemkkm", "torch", marks=needs_torch),
        ("simplemkkm", "pandas"),
    ],
)
def test_a_model_keeps_nothing_that_changes_with_the_arrays_of_its_fit(
    name, case, library
):
    method = METHODS[name]
    rng = np.random.default_rng(0)
    views = [
        4 * rng.normal(size=(3, d))[np.arange(40) % 3] + rng.normal(size=(40, d))
        for d in (3, 4)
    ]
    X, options = KEPT[case](views)
    parts = [part.copy() for part in (X if isinstance(X, list) else [X])]
    if library == "torch":
        parts = [as_library("torch", part) for part in parts]
    elif library == "pandas" and parts[0].ndim == 2:
        parts = list(map(pytest.importorskip("pandas").DataFrame, parts))
    if not options.keys() <= method().get_params().keys():
        pytest.skip("the method takes no features")
    model = method(3, n_init=1, random_state=0, **options)
    model.fit(parts if isinstance(X, list) else parts[0])
    stored = pickle.dumps(model)
    for part in parts:
        part[:] = -2 * part
    assert pickle.dumps(model) == stored
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("on_the_fly", [False, True])
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_training_views_in_a_file_that_has_changed_are_refused(
    tmp_path, mode, on_the_fly
):
    views, _ = blob_views(np.random.default_rng(0))
    np.save(tmp_path / "view.npy", views[0])
    mapped = np.load(tmp_path / "view.npy", mmap_mode=mode)
    bank = KernelBank(widths=(1.0,), polynomials=(), linear=None, on_the_fly=on_the_fly)
    model = SimpleMKKM(4, kernels=bank, random_state=0).fit(
        {"a": mapped, "b": views[1]}
    )
    new = {"a": views[0].copy(), "b": views[1].copy()}
    np.testing.assert_array_equal(model.predict(new), model.labels_)
    stored = pickle.dumps(model)
    if mode == "r":
        other = np.load(tmp_path / "view.npy", mmap_mode="r+")
        other[3, 1] += 1
        other.flush()
    else:
        mapped[3, 1] += 1
    with pytest.raises(
        ValueError, match=r"View 'a' is in a file that has changed.*fit again"
    ):
        model.predict(new)
    # What was stored before holds the numbers themselves.
    np.testing.assert_array_equal(pickle.loads(stored).predict(new), model.labels_)
