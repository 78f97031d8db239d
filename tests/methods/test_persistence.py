"""Models survive a file, and a file cannot make the library run anything else."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("skops")

import skops.io
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mkclust
from mkclust import KernelBank, load_model, save_model, view
from mkclust.kernels import Linear, Nystroem, RandomFourier
from mkclust.kernels.kinds import RULES
from mkclust.methods.inductive import InductiveClusterer
from mkclust.version import versions

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
RNG = np.random.default_rng(0)
Y = np.arange(48) % 3
X = 4 * RNG.normal(size=(3, 6))[Y] + RNG.normal(size=(48, 6))
DISTANCES = np.sqrt(np.square(X[:, None] - X).sum(axis=2))
LINKS = (DISTANCES < 3) - np.eye(48)
VIEWS = {"left": X[:, :3], "right": X[:, 3:]}
ALL_KINDS = VIEWS | {
    "words": RNG.poisson(0.06, size=(48, 80)).astype(float),
    "levels": np.eye(3)[Y],
    "shares": np.abs(X) / np.abs(X).sum(axis=1, keepdims=True),
    "directions": X / np.linalg.norm(X, axis=1, keepdims=True),
    "signs": (X > 0).astype(float),
    "distances": DISTANCES,
    "links": LINKS,
}
SPARSE = {"words": csr_array(ALL_KINDS["words"]), "left": VIEWS["left"]}
THREE = {"a": X, "b": X[:, 3:], "c": np.abs(X)}
KERNELS = np.exp(-np.array([np.square(v[:, None] - v).sum(axis=2) / 20 for v in VIEWS.values()]))
INDEFINITE = KERNELS - 0.3 * np.eye(48)
INPUTS = {
    "views": (VIEWS, {}),
    "views of all kinds": (ALL_KINDS, {}),
    "a table": (X, {}),
    "kernels": (KERNELS, {}),
    "clipped kernels": (INDEFINITE, {"psd": "clip"}),
    "shifted kernels": (INDEFINITE, {"psd": "shift"}),
    "kernels on the fly": (VIEWS, {"kernels": "on-the-fly"}),
    "a bank": (VIEWS, {"kernels": KernelBank(polynomials=((1, 2),), linear="cosine")}),
    "neighborhoods of views": (VIEWS, {"neighbors": 10}),
    "neighborhoods of kernels": (KERNELS, {"neighbors": 10}),
    "a graph of neighbors": (
        VIEWS,
        {"kernels": KernelBank(neighbors=8, neighborhoods="graph")},
    ),
    "landmarks": (VIEWS, {"approximation": Nystroem(n_components=20)}),
    "random features": (VIEWS, {"approximation": RandomFourier(n_components=30)}),
    "linear features": (VIEWS, {"approximation": Linear()}),
    "sparse views": (SPARSE, {}),
    "landmarks of sparse views": (SPARSE, {"approximation": Nystroem(n_components=20)}),
    "kernels by name": (
        THREE,
        {
            "kernels": {
                "a": view(preprocess=StandardScaler(), kernel="laplacian"),
                "b": "self-tuning",
                "c": "chi2",
            }
        },
    ),
    "further kernels by name": (
        {"a": DISTANCES, "b": (X > 0).astype(float), "c": np.round(np.abs(X)) % 3, "d": np.abs(X)},
        {"kernels": {"a": "from_distances", "b": "jaccard", "c": "overlap", "d": "hellinger"}},
    ),
    "a pipeline before kernels": (
        THREE,
        {"kernels": {"a": view(make_pipeline(StandardScaler(), PCA(2))), "b": "polynomial"}},
    ),
    "landmarks of kernels by name": (
        THREE,
        {
            "kernels": {"a": view(StandardScaler(), "gaussian"), "b": "cosine", "c": "hellinger"},
            "approximation": Nystroem(n_components=20),
        },
    ),
    "views of a wide table": (X, {"views": {"left": slice(0, 3), "right": [3, 4, 5]}}),
    "a generator": (VIEWS, {"random_state": np.random.RandomState(3)}),
}
INDUCTIVE = [n for n, method in mkclust.METHODS.items() if issubclass(method, InductiveClusterer)]


def new_samples(data):
    """Return other samples in the form of those of a fit."""
    rng = np.random.default_rng(1)
    if isinstance(data, np.ndarray) and data.ndim == 3:
        return data[:, ::2, :]
    if isinstance(data, dict):
        return {name: view[::2] for name, view in data.items()}
    return data[::2] + 0.1 * rng.normal(size=data[::2].shape)


def round_trip(model, folder):
    return load_model(save_model(model, folder / "model.skops"))


def assert_same(model, other, data):
    new = new_samples(data)
    np.testing.assert_array_equal(other.labels_, model.labels_)
    np.testing.assert_array_equal(other.predict(new), model.predict(new))
    np.testing.assert_array_equal(other.transform(new), model.transform(new))


@pytest.mark.parametrize("kind", INPUTS)
def test_a_saved_model_predicts_as_before_whatever_it_was_fitted_on(kind, tmp_path):
    data, options = INPUTS[kind]
    model = mkclust.AgreementKKM(3, **({"random_state": 0} | options)).fit(data)
    assert_same(model, round_trip(model, tmp_path), data)


@pytest.mark.parametrize("kind", ["views", "kernels", "landmarks"])
@pytest.mark.parametrize("method", INDUCTIVE)
def test_a_saved_model_of_every_method_predicts_as_before(method, kind, tmp_path):
    data, options = INPUTS[kind]
    model = mkclust.METHODS[method](3, random_state=0, **options).fit(data)
    assert_same(model, round_trip(model, tmp_path), data)


@pytest.mark.parametrize("method", sorted(mkclust.METHODS.keys() - set(INDUCTIVE)))
def test_a_method_that_does_not_predict_is_saved_with_all_that_it_has_learned(method, tmp_path):
    model = mkclust.METHODS[method](3, random_state=0).fit(VIEWS)
    other = round_trip(model, tmp_path)
    np.testing.assert_array_equal(other.labels_, model.labels_)
    np.testing.assert_array_equal(other.mixed_kernel(VIEWS), model.mixed_kernel(VIEWS))


@pytest.mark.parametrize(
    "columns", [list("abcd"), [5, 6, 7, 8], [("a", 1), ("a", 2), ("b", 1), ("b", 2)]]
)
@pytest.mark.parametrize("impute", [None, "median"])
def test_what_was_learned_of_columns_survives_a_file(columns, impute, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.random.default_rng(0).normal(size=(30, 4)), columns=columns)
    frame["s"] = list("ab") * 15
    model = mkclust.AverageKKM(3, impute=impute, random_state=0).fit({"t": frame})
    loaded = mkclust.load_model(mkclust.save_model(model, tmp_path / "model.skops"))
    few = frame.iloc[:7, ::-1]
    np.testing.assert_array_equal(loaded.predict({"t": few}), model.labels_[:7])


@pytest.mark.parametrize(
    "kernel", [*(name for name, rule in RULES.items() if rule.by_name), "view"]
)
def test_a_model_of_every_kernel_by_name_survives_a_file(kernel, tmp_path):
    X = np.random.default_rng(0).gamma(2.0, size=(30, 4))
    X = {"overlap": np.floor(X), "from_distances": cdist(X, X)}.get(kernel, X)
    if kernel == "view":
        kernel = mkclust.view(preprocess=StandardScaler(), kernel="gaussian")
    model = mkclust.AverageKKM(3, kernels={"a": kernel}, psd="clip", random_state=0).fit({"a": X})
    loaded = mkclust.load_model(mkclust.save_model(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict({"a": X[:7]}), model.labels_[:7])


def test_ids_of_samples_survive_a_file(tmp_path):
    pandas = pytest.importorskip("pandas")
    ids = [f"patient {i}" for i in range(48)]
    frames = {name: pandas.DataFrame(view, index=ids) for name, view in VIEWS.items()}
    model = mkclust.AgreementKKM(3, random_state=0).fit(frames)
    other = round_trip(model, tmp_path)
    assert list(other.sample_ids_) == ids
    shuffled = {name: frame.sample(frac=1, random_state=0) for name, frame in frames.items()}
    np.testing.assert_array_equal(other.predict(shuffled), model.predict(shuffled))


def mixed_frames(pandas):
    """Return frames with numbers, categories, truth values and missing cells."""
    ids = [f"patient {i}" for i in range(48)]
    left = pandas.DataFrame(X[:, :3].copy(), index=ids, columns=["a", "b", "c"])
    left["sex"], left["treated"] = np.array(["f", "m", "x"])[Y], Y == 0
    left["year"] = pandas.Categorical(2000 + Y)
    left.iloc[3, 0], left.iloc[5, 3] = np.nan, None
    right = pandas.DataFrame(X[:, 3:], index=ids, columns=["d", "e", "f"])
    return {"left": left, "right": right}


def test_a_model_of_mixed_frames_with_filled_cells_survives_a_file(tmp_path):
    pandas = pytest.importorskip("pandas")
    frames = mixed_frames(pandas)
    model = mkclust.AgreementKKM(3, impute="median", random_state=0).fit(frames)
    other = round_trip(model, tmp_path)
    shuffled = {name: frame.sample(frac=0.5, random_state=0) for name, frame in frames.items()}
    np.testing.assert_array_equal(other.predict(shuffled), model.predict(shuffled))
    np.testing.assert_array_equal(other.transform(shuffled), model.transform(shuffled))
    assert other.view_names_in_ == model.view_names_in_


def test_a_model_of_a_wide_frame_survives_a_file(tmp_path):
    pandas = pytest.importorskip("pandas")
    wide = pandas.DataFrame(X, columns=["l_a", "l_b", "l_c", "r_a", "r_b", "r_c"])
    views = {"left": "l_", "right": ["r_a", "r_b", "r_c"]}
    model = mkclust.AgreementKKM(3, views=views, random_state=0).fit(wide)
    other = round_trip(model, tmp_path)
    np.testing.assert_array_equal(other.predict(wide[::2]), model.predict(wide[::2]))


def test_a_transformer_of_a_function_without_a_name_is_not_saved(tmp_path):
    kernels = {"left": view(FunctionTransformer(lambda rows: rows**3))}
    model = mkclust.AgreementKKM(3, kernels=kernels, random_state=0).fit(VIEWS)
    with pytest.raises(ValueError, match=r"<lambda>.*no file can bring back"):
        save_model(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_types_that_have_to_be_trusted_are_named_when_a_model_is_saved(tmp_path):
    with pytest.warns(UserWarning, match=r"trusted=\['.*OwnMethod'\]"):
        save_model(OwnMethod(3, random_state=0).fit(VIEWS), tmp_path / "own.skops")


class Trap:
    """What runs something where it is unpickled."""

    def __reduce__(self):
        return (Path.touch, (Path("sprung"),))


def saved(folder, **learned):
    """Return a file with a model that holds something besides."""
    model = mkclust.AgreementKKM(3, random_state=0).fit(VIEWS)
    path = save_model(model, folder / "model.skops")
    for name, value in learned.items():
        setattr(model, name, value)
    content = {"format": 1, "versions": versions(), "model": model}
    path.write_bytes(skops.io.dumps(content))
    return path


def rewrite(path, change):
    """Change the schema of a file, as whoever sends one could."""
    source, target = zipfile.ZipFile(io.BytesIO(path.read_bytes())), io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        for name in source.namelist():
            data = source.read(name)
            if name == "schema.json":
                data = json.dumps(change(json.loads(data))).encode()
            file.writestr(name, data)
    path.write_bytes(target.getvalue())


def replace_type(schema, class_name, module, new_name):
    """Return a schema in which one type stands for another."""
    if isinstance(schema, dict):
        if schema.get("__class__") == class_name:
            schema = schema | {"__class__": new_name, "__module__": module}
        return {k: replace_type(v, class_name, module, new_name) for k, v in schema.items()}
    if isinstance(schema, list):
        return [replace_type(item, class_name, module, new_name) for item in schema]
    return schema


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("posix", "system"),
        ("subprocess", "Popen"),
        ("builtins", "eval"),
        ("pathlib", "PosixPath"),
        # Names that a module of the library has imported are none of its own.
        ("mkclust.kernels.bank", "os.system"),
        ("mkclust.samples.dask", "connect"),
    ],
)
def test_a_file_that_names_another_type_is_refused_by_that_name(module, name, tmp_path):
    path = saved(tmp_path)
    rewrite(path, lambda schema: replace_type(schema, "Agreement", module, name))
    with pytest.raises(ValueError, match=f"names {module}.{name}") as caught:
        load_model(path)
    assert "nothing was loaded" in str(caught.value)


def test_a_function_in_a_model_is_refused_and_not_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    import os

    with pytest.raises(ValueError, match="system"):
        load_model(saved(tmp_path, agreement_=os.system))
    with pytest.raises(ValueError, match="Trap"):
        load_model(saved(tmp_path, agreement_=Trap()))
    assert not Path("sprung").exists()


def test_a_pickle_is_no_model_and_is_not_opened(tmp_path, monkeypatch):
    import pickle

    monkeypatch.chdir(tmp_path)
    Path("model.skops").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="is no model that mkclust has saved"):
        load_model("model.skops")
    assert not Path("sprung").exists()


def test_a_file_of_something_else_is_no_model(tmp_path):
    path = tmp_path / "array.skops"
    for content in (np.eye(3), {"model": np.eye(3)}, {"model": mkclust.AgreementKKM()}):
        path.write_bytes(skops.io.dumps(content))
        with pytest.raises(ValueError, match="is no model that mkclust has saved"):
            load_model(path)
    path.write_bytes(saved(tmp_path).read_bytes()[:500])
    with pytest.raises(ValueError, match="is no model that mkclust has saved"):
        load_model(path)
    whole = saved(tmp_path)
    rewrite(whole, lambda schema: {})
    with pytest.raises(ValueError, match="is no model that mkclust has saved"):
        load_model(whole)


def test_indices_out_of_range_in_a_file_are_refused(tmp_path):
    matrix = csr_array(np.eye(3))
    matrix.indices[:] = 10**6
    with pytest.raises(ValueError, match="indices"):
        load_model(saved(tmp_path, agreement_=matrix))


class OwnMethod(mkclust.AverageKKM):
    """A method of a user."""


def test_a_method_of_your_own_is_loaded_where_it_is_trusted(tmp_path):
    model = OwnMethod(3, random_state=0).fit(VIEWS)
    path = save_model(model, tmp_path / "own.skops")
    name = f"{OwnMethod.__module__}.OwnMethod"
    with pytest.raises(ValueError, match=name):
        load_model(path)
    assert_same(model, load_model(path, trusted=[name]), VIEWS)


def test_other_versions_are_named_in_a_warning(tmp_path):
    model = mkclust.AverageKKM(3, random_state=0).fit(VIEWS)
    path = tmp_path / "old.skops"
    content = {"format": 1, "versions": versions() | {"numpy": "1.0"}, "model": model}
    path.write_bytes(skops.io.dumps(content))
    with pytest.warns(UserWarning, match=r"saved with numpy 1.0 \(here "):
        load_model(path)
    path.write_bytes(skops.io.dumps(content | {"format": 9}))
    with pytest.raises(ValueError, match="format 9"):
        load_model(path)


def test_only_fitted_models_are_saved_and_under_their_suffix(tmp_path):
    with pytest.raises(TypeError, match="fitted estimator"):
        save_model(np.eye(3), tmp_path / "x.skops")
    with pytest.raises(ValueError, match="not fitted"):
        save_model(mkclust.AverageKKM(), tmp_path / "x.skops")
    with pytest.raises(ValueError, match="name the file x.skops"):
        save_model(mkclust.AverageKKM(3).fit(VIEWS), tmp_path / "x.pkl")
