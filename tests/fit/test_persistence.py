"""Models survive a file, and a file cannot make the library run anything else."""

import io
import json
import os
import pickle
import warnings
import zipfile
from copy import copy
from functools import cache
from pathlib import Path

import numpy as np
import pandas
import pytest

pytest.importorskip("skops")

import skops.io
from scipy.sparse import csr_array
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mkclust
from helpers.kinds import N, example
from mkclust import METHODS, KernelBank, load_model, save_model, view
from mkclust.exceptions import ModelVersionWarning
from mkclust.fit.inductive import InductiveClusterer
from mkclust.fit.persistence import FORMAT
from mkclust.kernels import Nystroem
from mkclust.version import __version__, versions

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
RNG = np.random.default_rng(0)
Y = np.arange(N) % 3
X = 4 * RNG.normal(size=(3, 6))[Y] + RNG.normal(size=(N, 6))
VIEWS = {"left": X[:, :3], "right": X[:, 3:]}
KINDS = (
    "categories",
    "distances",
    "graph",
    "sparse",
    "binary",
    "histogram",
    "directions",
)
ALL_KINDS = VIEWS | {kind: example(kind) for kind in KINDS}
SPARSE = {"words": csr_array(ALL_KINDS["sparse"]), "left": VIEWS["left"]}
BY_NAME = {
    "left": view(make_pipeline(StandardScaler(), PCA(2)), "laplacian"),
    "right": "self-tuning",
    "sparse": "chi2",
    "categories": "overlap",
    "histogram": "hellinger",
    "directions": "polynomial",
    "binary": "jaccard",
    "distances": "from_distances",
}
GAPS = {
    name: np.where((np.arange(N) % 12 == i)[:, None], np.nan, rows)
    for i, (name, rows) in enumerate(VIEWS.items())
}
KERNELS = np.exp(
    -np.array([np.square(v[:, None] - v).sum(axis=2) / 20 for v in VIEWS.values()])
)
LACKING = np.arange(N) % 12 == 0
KERNELS_WITH_GAPS = np.where(LACKING[:, None] | LACKING, np.nan, KERNELS)
KERNELS_WITH_GAPS[1] = KERNELS[1]


def mixed_frames():
    """Return frames with ids, numbers, categories, truth values and missing cells."""
    ids = [f"patient {i}" for i in range(N)]
    left = pandas.DataFrame(
        VIEWS["left"].copy(), index=ids, columns=[("a", 1), ("a", 2), ("b", 1)]
    )
    left["sex"], left["treated"] = np.array(["f", "m", "x"])[Y], Y == 0
    left["year"] = pandas.Categorical(2000 + Y)
    left.iloc[3, 0], left.iloc[5, 3] = np.nan, None
    right = pandas.DataFrame(VIEWS["right"], index=ids, columns=[5, 6, 7])
    return {"left": left, "right": right.drop(ids[::12])}


INPUTS = {
    "views": (VIEWS, {}),
    "views of all kinds": (ALL_KINDS, {}),
    "a table": (X, {"random_state": np.random.RandomState(3)}),
    "kernels": (KERNELS, {}),
    "repaired kernels": (KERNELS - 0.3 * np.eye(N), {"psd": "shift"}),
    "kernels on the fly": (VIEWS, {"kernels": "on-the-fly"}),
    "a bank": (VIEWS, {"kernels": KernelBank(polynomials=((1, 2),), linear="cosine")}),
    "kernels by name": (
        {name: ALL_KINDS[name] for name in BY_NAME},
        {"kernels": BY_NAME, "psd": "shift"},
    ),
    "neighborhoods of views": (VIEWS, {"kernels": KernelBank(neighbors=10)}),
    "landmarks": (SPARSE, {"approximation": Nystroem(n_components=20)}),
    "a transformer": (
        VIEWS,
        {"approximation": RBFSampler(n_components=30, random_state=0)},
    ),
    "sparse views": (SPARSE, {}),
    "frames": (mixed_frames, {"join": "outer", "impute": "median"}),
    "missing views": (GAPS, {"missing_views": "rescale"}),
    "missing views that are learned": (GAPS, {"missing_views": "learn"}),
    "missing kernels that are learned": (KERNELS_WITH_GAPS, {"missing_views": "learn"}),
}


def method_for(kind):
    """Return a method that takes such input, the recommended one if it does."""
    _, options = INPUTS[kind]
    is_other = "approximation" in options or options.get("missing_views") == "learn"
    return "simplemkkm" if is_other else "agreement-kkm"


CASES = [(kind, method_for(kind)) for kind in INPUTS] + [
    ("views", name) for name in METHODS
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "method"), CASES)
def test_a_stored_model_is_the_one_that_was_fitted(kind, method, tmp_path):
    data, options = INPUTS[kind]
    data = data() if callable(data) else data
    model = METHODS[method](3, **({"random_state": 0} | options)).fit(data)
    assert_same(model, load_model(save_model(model, tmp_path / "model.skops")), data)


def assert_same(model, other, data):
    """Compare two models by their attributes and predictions."""
    np.testing.assert_array_equal(other.labels_, model.labels_)
    for name in ("weights_", "alignments_", "embedding_"):
        np.testing.assert_allclose(
            getattr(other, name), getattr(model, name), atol=1e-12
        )
    np.testing.assert_array_equal(
        getattr(other, "sample_ids_", None), getattr(model, "sample_ids_", None)
    )
    if isinstance(model, InductiveClusterer):
        np.testing.assert_array_equal(other.predict(data), model.labels_)
        np.testing.assert_allclose(
            other.transform(data), model.transform(data), atol=1e-12
        )


@cache
def small_model():
    """Return a model that tests only look at."""
    return mkclust.AverageKKM(3, random_state=0).fit(VIEWS)


def write(folder, content):
    """Return a file of skops."""
    path = folder / "model.skops"
    path.write_bytes(skops.io.dumps(content))
    return path


def holding(part, **note):
    """Return what a file holds, with something in the model that no fit leaves
    there."""
    model = copy(small_model())
    model.part_ = part
    return {"format": FORMAT, "versions": versions(), "model": model} | note


class Own:
    """A harmless class that is not the library's."""


class OwnMethod(mkclust.AverageKKM):
    """A method of a user."""


class Trap:
    """What leaves a file behind if it is unpickled."""

    def __reduce__(self):
        return (Path.touch, (Path("sprung"),))


@pytest.mark.parametrize(
    ("part", "name"),
    [(Own(), "Own"), (Trap(), "Trap"), (os.system, "system"), (Own, "Own")],
)
def test_a_file_that_names_another_type_is_refused_by_that_name(
    part, name, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=rf"model\.skops: .*\.{name}\b"):
        load_model(write(tmp_path, holding(part)))
    assert not Path("sprung").exists()


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "mkclust.kernels.bank.KernelBonk",
        # What a module of the library imports, and its functions, are not its classes.
        "mkclust.kernels.bank.os.system",
        "mkclust.kernels.bank.BaseEstimator",
        "mkclust.data.dask_arrays.as_dask",
        "mkclust.bench.rows.Journal",
    ],
)
def test_a_name_of_the_library_is_trusted_only_if_it_is_that_of_a_part_of_models(
    name, tmp_path
):
    path = write(tmp_path, holding(small_model()))
    module, _, class_name = name.rpartition(".")
    source = zipfile.ZipFile(io.BytesIO(path.read_bytes()))
    with zipfile.ZipFile(path, "w") as file:
        for member in source.namelist():
            data = source.read(member)
            if member == "schema.json":
                schema = json.loads(data)
                part = schema["content"]["model"]["content"]["content"]["part_"]
                part["__module__"], part["__class__"] = module, class_name
                data = json.dumps(schema).encode()
            file.writestr(member, data)
    with pytest.raises(ValueError, match=rf"model\.skops: .*{name}"):
        load_model(path)


def test_a_type_of_your_own_is_loaded_if_it_is_trusted(tmp_path):
    model = OwnMethod(3, random_state=0).fit(VIEWS)
    path, name = (
        save_model(model, tmp_path / "own.skops"),
        f"{OwnMethod.__module__}.OwnMethod",
    )
    with pytest.raises(ValueError, match=name):
        load_model(path)
    assert_same(model, load_model(path, trusted=[name]), VIEWS)


def test_a_function_without_a_name_is_not_saved(tmp_path):
    kernels = {"left": view(FunctionTransformer(lambda rows: rows**3))}
    model = mkclust.AgreementKKM(3, kernels=kernels, random_state=0).fit(VIEWS)
    with pytest.raises(ValueError, match="<lambda>"):
        save_model(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_model_is_refused_by_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = save_model(small_model(), tmp_path / "whole.skops").read_bytes()
    pickles = [
        pickle.dumps(Trap(), protocol) for protocol in (0, pickle.HIGHEST_PROTOCOL)
    ]
    indices = csr_array(np.eye(3))
    indices.indices[:] = 10**6  # compiled code would follow them
    others = [
        np.eye(3),
        {"model": small_model()},
        holding(0, model=np.eye(3)),
        holding(indices),
    ]
    others += [holding(0, model=mkclust.AgreementKKM()), holding(0, versions=3)]
    for data in (
        b"",
        b"text",
        whole[:500],
        whole[:-50],
        *pickles,
        *map(skops.io.dumps, others),
    ):
        Path("model.skops").write_bytes(data)
        with pytest.raises(ValueError, match=r"^model\.skops: "):
            load_model("model.skops")
    assert not Path("sprung").exists()
    with pytest.raises(FileNotFoundError, match="missing"):
        load_model("missing.skops")


@pytest.mark.parametrize("number", [FORMAT - 1, FORMAT + 1, str(FORMAT), None])
def test_a_model_of_another_format_is_refused_with_both_versions(number, tmp_path):
    path = write(tmp_path, holding(0, format=number, versions={"mkclust": "99.1.0"}))
    with pytest.raises(
        ValueError, match=rf"99\.1\.0 .*{number!r}.* mkclust {__version__} "
    ):
        load_model(path)


def test_other_versions_of_packages_are_named_in_one_warning(tmp_path):
    others = versions() | {"numpy": "1.0", "mkclust": "0.0.1"}
    with pytest.warns(
        ModelVersionWarning, match=r"mkclust 0\.0\.1.*numpy 1\.0"
    ) as caught:
        load_model(write(tmp_path, holding(0, versions=others)))
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_model(save_model(small_model(), tmp_path / "model.skops"))


SCALER = StandardScaler().fit(np.eye(3))
SCALER.mean_ = np.full(3, np.nan)
SPOILED = {
    "an array": np.array([1, np.nan]),
    "single precision": np.array([[np.nan]], np.float32),
    "a list": [0.5, float("nan")],
    "a sparse array": csr_array(np.array([[0, np.nan]])),
    "a scaler": SCALER,
}


@pytest.mark.parametrize("what", SPOILED)
def test_a_model_with_nan_is_neither_loaded_nor_saved(what, tmp_path):
    with pytest.raises(ValueError, match=r"model\.skops: .*holds NaN"):
        load_model(write(tmp_path, holding(SPOILED[what])))
    with pytest.raises(ValueError, match="holds NaN"):
        save_model(holding(SPOILED[what])["model"], tmp_path / "other.skops")
    assert not (tmp_path / "other.skops").exists()


@pytest.mark.parametrize("name", ["weights_", "_centers", "embedding_"])
def test_nan_in_what_was_learned_is_named(name, tmp_path):
    model = copy(small_model())
    setattr(model, name, np.full_like(getattr(model, name), np.nan))
    with pytest.raises(ValueError, match=rf"model\.skops: .*{name} holds NaN"):
        load_model(
            write(tmp_path, {"format": FORMAT, "versions": versions(), "model": model})
        )


@pytest.mark.parametrize(
    ("options", "data"),
    [
        ({"n_clusters": 1}, VIEWS),  # the gap between clusters is unknown
        ({"approximation": RBFSampler(n_components=30, random_state=0)}, VIEWS),
        ({"kernels": {"left": view(KNNImputer())}}, VIEWS),  # its parameter is NaN
    ],
)
def test_what_is_unknown_by_its_nature_does_not_keep_a_model_from_a_file(
    options, data, tmp_path
):
    model = mkclust.SimpleMKKM(**({"n_clusters": 3, "random_state": 0} | options)).fit(
        data
    )
    assert_same(model, load_model(save_model(model, tmp_path / "model.skops")), data)


def test_only_fitted_models_are_saved_and_under_their_suffix(tmp_path):
    with pytest.raises(TypeError, match="ndarray"):
        save_model(np.eye(3), tmp_path / "x.skops")
    with pytest.raises(ValueError, match="not fitted"):
        save_model(mkclust.AverageKKM(), tmp_path / "x.skops")
    with pytest.raises(ValueError, match=r"x\.skops"):
        save_model(small_model(), tmp_path / "x.pkl")
