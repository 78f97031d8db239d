"""Models survive a file, and a file cannot make the library run anything else."""

import inspect
import io
import json
import os
import pickle
import warnings
import zipfile
from functools import cache
from pathlib import Path

import joblib
import numpy as np
import pytest

pytest.importorskip("skops")

import skops.io
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mkclust
from mkclust import KernelBank, load_model, save_model, view
from mkclust.kernels import Linear, Nystroem, RandomFourier
from mkclust.kernels.kinds import RULES
from mkclust.methods.inductive import InductiveClusterer
from mkclust.methods.saved_versions import ModelVersionWarning
from mkclust.version import __version__, versions

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


def mixed_frames():
    """Return frames with numbers, categories, truth values and missing cells."""
    pandas = pytest.importorskip("pandas")
    ids = [f"patient {i}" for i in range(48)]
    left = pandas.DataFrame(X[:, :3].copy(), index=ids, columns=["a", "b", "c"])
    left["sex"], left["treated"] = np.array(["f", "m", "x"])[Y], Y == 0
    left["year"] = pandas.Categorical(2000 + Y)
    left.iloc[3, 0], left.iloc[5, 3] = np.nan, None
    right = pandas.DataFrame(X[:, 3:], index=ids, columns=["d", "e", "f"])
    return {"left": left, "right": right}


def wide_frame():
    """Return one frame of two views."""
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(X, columns=["l_a", "l_b", "l_c", "r_a", "r_b", "r_c"])


def outer_frames():
    """Return frames that have some samples in common, and each some of its own."""
    pandas = pytest.importorskip("pandas")
    ids = [f"patient {i}" for i in range(48)]
    frames = {name: pandas.DataFrame(view, index=ids) for name, view in THREE.items()}
    return {name: frame.drop(ids[i::12]) for i, (name, frame) in enumerate(frames.items())}


def with_gaps():
    """Return views that lack some samples, whose rows are NaN."""
    views = {name: view.copy() for name, view in THREE.items()}
    for i, rows in enumerate(views.values()):
        rows[i::12] = np.nan
    return views


def kernels_with_gaps():
    """Return kernels that lack some samples."""
    kernels = KERNELS.copy()
    kernels[0, ::12], kernels[0, :, ::12] = np.nan, np.nan
    return kernels


def in_a_file(folder, array):
    """Return an array as a memory map."""
    path = folder / "array.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def dask_views():
    """Return views in chunks."""
    dask = pytest.importorskip("dask.array")
    return {name: dask.from_array(view, chunks=(16, 3)) for name, view in VIEWS.items()}


# What needs a folder, or a library that may not be there.
FURTHER_INPUTS = {
    "mixed frames": (lambda _: mixed_frames(), {"impute": "median"}),
    "a wide frame": (lambda _: wide_frame(), {"views": {"left": "l_", "right": ["r_a", "r_c"]}}),
    "an outer join": (lambda _: outer_frames(), {"join": "outer"}),
    "an outer join that is learned": (
        lambda _: outer_frames(),
        {"join": "outer", "impute": ("median", "learn")},
    ),
    "gaps of zeros": (lambda _: with_gaps(), {"impute": "zero"}),
    "gaps made up for": (lambda _: with_gaps(), {"impute": "rescale"}),
    "gaps that are learned": (lambda _: with_gaps(), {"impute": "learn"}),
    "gaps of kernels": (lambda _: kernels_with_gaps(), {}),
    "gaps of kernels that are learned": (lambda _: kernels_with_gaps(), {"impute": "learn"}),
    "gaps of landmarks": (lambda _: with_gaps(), {"approximation": Nystroem(n_components=20)}),
    "kernels in a file": (lambda folder: in_a_file(folder, KERNELS), {}),
    "a table in a file": (lambda folder: in_a_file(folder, X), {}),
    "features of a table in a file": (
        lambda folder: in_a_file(folder, X),
        {"approximation": Nystroem(n_components=20)},
    ),
    "a transformer of scikit-learn": (
        lambda _: VIEWS,
        {"approximation": RBFSampler(n_components=30, random_state=0)},
    ),
    "landmarks of chunks": (lambda _: dask_views(), {"approximation": Nystroem(n_components=20)}),
}
KINDS = [*INPUTS, *FURTHER_INPUTS]
METHODS_A_KIND = 2


def takes(method, options):
    """Return whether a method has the parameters, and can learn what is missing if asked to."""
    learns = "learn" in str(options.get("impute"))
    return set(options) <= set(inspect.signature(method).parameters) and (
        method.LEARNS_MISSING or not learns
    )


def cases():
    """Return kinds of input with methods that take them, every method about as often."""
    times, found = dict.fromkeys(mkclust.METHODS, 0), []
    for kind in KINDS:
        options = (INPUTS | FURTHER_INPUTS)[kind][1]
        able = [name for name in times if takes(mkclust.METHODS[name], options)]
        for name in sorted(able, key=times.get)[:METHODS_A_KIND]:
            times[name] += 1
            found.append((kind, name))
    return found


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


def by_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return load_model(folder / "model.joblib", unsafe_pickle=True)


ROADS = {
    "skops": round_trip,
    "joblib": by_joblib,
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
}


def assert_same(model, other, data):
    for name in ("labels_", "weights_", "alignments_", "embedding_"):
        np.testing.assert_array_equal(getattr(other, name), getattr(model, name), err_msg=name)
    if isinstance(model, InductiveClusterer):
        new = new_samples(data)
        np.testing.assert_array_equal(other.predict(new), model.predict(new))
        np.testing.assert_allclose(
            other.transform(new), model.transform(new), rtol=1e-12, atol=1e-12
        )
    else:
        np.testing.assert_allclose(
            other.mixed_kernel(data), model.mixed_kernel(data), rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize(("kind", "method"), cases())
def test_a_stored_model_is_the_one_that_was_fitted(kind, method, tmp_path):
    data, options = (INPUTS | FURTHER_INPUTS)[kind]
    data = data(tmp_path) if kind in FURTHER_INPUTS else data
    model = mkclust.METHODS[method](3, **({"random_state": 0} | options)).fit(data)
    for store in ROADS.values():
        assert_same(model, store(model, tmp_path), data)


def test_every_method_is_stored_with_several_kinds_of_input():
    counts = {name: sum(name == method for _, method in cases()) for name in mkclust.METHODS}
    assert min(counts.values()) >= 4, counts


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


def rewrite(path, change, members=()):
    """Change the schema and other members of a file, as whoever sends one could."""
    source, target = zipfile.ZipFile(io.BytesIO(path.read_bytes())), io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        for name in source.namelist():
            data = members[name] if name in members else source.read(name)
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
    with pytest.raises(ValueError, match="system"):
        load_model(saved(tmp_path, agreement_=os.system))
    with pytest.raises(ValueError, match="Trap"):
        load_model(saved(tmp_path, agreement_=Trap()))
    assert not Path("sprung").exists()


@pytest.mark.parametrize("compress", [0, "zlib", "gzip", "bz2", "xz", "lzma"])
def test_a_pickle_is_not_opened_unless_that_is_asked_for(compress, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    joblib.dump(Trap(), "model.skops", compress=(compress, 3) if compress else 0)
    with pytest.raises(ValueError, match="is no model .*looks like a pickle.*unsafe_pickle=True"):
        load_model("model.skops")
    with pytest.raises(ValueError, match="is no model"):
        load_model("model.skops", trusted=["pathlib.Path.touch"])
    assert not Path("sprung").exists()
    with pytest.raises(ValueError, match="is no model"):
        load_model("model.skops", unsafe_pickle=True)
    assert Path("sprung").exists()  # as the name of the argument says


def test_a_pickle_of_any_protocol_is_not_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        Path("model.skops").write_bytes(pickle.dumps(Trap(), protocol))
        with pytest.raises(ValueError, match="is no model"):
            load_model("model.skops")
    assert not Path("sprung").exists()


def nodes(command):
    """Return schemas that would run a command, if types were checked by what they call themselves.

    Every loader of skops is given what another one names: an honest class and a hostile content.
    """
    text = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
    argument = text | {"content": json.dumps(command), "is_json": True, "__id__": 10}
    arguments = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode"}
    arguments |= {"content": [argument], "__id__": 11}
    nothing = {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode"}
    keys = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": []}
    nothing |= {"content": {}, "key_types": keys | {"__id__": 13}, "__id__": 12}
    system = {"__class__": "function", "__module__": "builtins", "__loader__": "FunctionNode"}
    system |= {"content": {"module_path": "os", "function": "system"}, "__id__": 14}
    honest = {"__class__": "AverageKKM", "__module__": "mkclust.methods.average", "__id__": 15}
    return {
        "a function": system,
        "a function by its class": {
            "__class__": "system",
            "__module__": "os",
            "__loader__": "FunctionNode",
            "content": "system",
            "__id__": 15,
        },
        "a partial function": honest
        | {
            "__loader__": "PartialNode",
            "content": {
                "func": system,
                "args": arguments,
                "kwds": nothing,
                "namespace": nothing | {"__id__": 16},
            },
        },
        "a method": honest
        | {"__loader__": "MethodNode", "content": {"func": "system", "obj": system}},
        "an operator": {
            "__class__": "methodcaller",
            "__module__": "operator",
            "__loader__": "OperatorFuncNode",
            "attrs": arguments,
            "__id__": 15,
        },
        "an operator of another module": {
            "__class__": "system",
            "__module__": "os",
            "__loader__": "OperatorFuncNode",
            "attrs": arguments,
            "__id__": 15,
        },
        "an object that is made of arguments": {
            "__class__": "system",
            "__module__": "os",
            "__loader__": "ObjectNode",
            "content": arguments,
            "__id__": 15,
        },
        "what reduces to a call": honest
        | {
            "__loader__": "TreeNode",
            "reduce": {"args": arguments},
            "content": {},
            "constructor": {"__class__": "system", "__module__": "os"},
        },
        "a type": honest
        | {
            "__loader__": "TypeNode",
            "content": {"__class__": "Popen", "__module__": "subprocess"},
        },
        "an unknown loader": honest | {"__loader__": "os.system", "content": argument},
        "nothing": {},
        "a list in place of a node": [1, 2],
    }


@pytest.mark.parametrize("kind", nodes(""))
@pytest.mark.parametrize("whole", [True, False])
def test_a_crafted_schema_runs_nothing(kind, whole, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = save_model(small_model(), tmp_path / "model.skops")
    node = nodes("touch sprung")[kind]

    def craft(schema):
        envelope = {"protocol": schema["protocol"], "_skops_version": schema["_skops_version"]}
        if whole:
            return (node if isinstance(node, dict) else {"content": node}) | envelope
        schema["content"]["model"] = node
        return schema

    rewrite(path, craft)
    with pytest.raises(ValueError, match="model.skops: (is no model|names )"):
        load_model(path)
    assert not Path("sprung").exists()


def test_a_file_that_unpacks_to_more_than_itself_is_refused(tmp_path):
    path = save_model(small_model(), tmp_path / "model.skops")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large.npy", bytes(10**7))
    with pytest.raises(ValueError, match="it is packed, which models never are"):
        load_model(path)


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


@cache
def small_model():
    """Return a model that tests only look at."""
    return mkclust.AverageKKM(3, random_state=0).fit(VIEWS)


def written_by(folder, road, **note):
    """Return a function that loads a model which says that other versions have written it."""
    content = {"format": 1, "versions": versions()} | note
    if road == "skops":
        path = save_model(small_model(), folder / "model.skops")
        rewrite(path, lambda schema: schema, {"mkclust.json": json.dumps(content).encode()})
        return lambda: load_model(path)
    if road == "content of skops":  # as files without a note are
        path = folder / "model.skops"
        path.write_bytes(skops.io.dumps(content | {"model": small_model()}))
        return lambda: load_model(path)
    state = small_model().__getstate__() | {"_saved_with": content}
    stored = Stored(type(small_model()), state)
    if road == "pickle":
        data = pickle.dumps(stored)
        return lambda: pickle.loads(data)
    joblib.dump(stored, folder / "model.joblib")
    return lambda: load_model(folder / "model.joblib", unsafe_pickle=True)


class Stored:
    """What is pickled as a model of a given state."""

    def __init__(self, kind, state):
        self.kind, self.state = kind, state

    def __reduce__(self):
        return self.kind, (), self.state


EVERY_ROAD = pytest.mark.parametrize("road", ["skops", "content of skops", "joblib", "pickle"])


@EVERY_ROAD
def test_a_model_of_the_same_versions_is_loaded_without_a_word(road, tmp_path):
    load = written_by(tmp_path, road)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(small_model(), load(), VIEWS)


@EVERY_ROAD
def test_a_model_of_a_newer_release_is_refused(road, tmp_path):
    load = written_by(tmp_path, road, versions=versions() | {"mkclust": "99.1.0"})
    with pytest.raises(ValueError, match=r"written by mkclust 99\.1\.0.*upgrade mkclust, or fit"):
        load()


@EVERY_ROAD
@pytest.mark.parametrize("number", [2, 0, "1", None])
def test_a_model_of_another_format_is_refused(road, number, tmp_path):
    load = written_by(tmp_path, road, format=number)
    with pytest.raises(ValueError, match=f"format {number!r}; this is mkclust {__version__}"):
        load()


@EVERY_ROAD
def test_other_versions_are_named_in_one_warning(road, tmp_path):
    others = versions() | {"numpy": "1.0", "mkclust": "0.0.1"}
    load = written_by(tmp_path, road, versions=others)
    with pytest.warns(ModelVersionWarning, match=r"0.0.1 \(here .*numpy 1.0 \(here ") as caught:
        model = load()
    assert len(caught) == 1
    assert_same(small_model(), model, VIEWS)


def test_a_pickle_without_a_note_is_loaded_with_a_warning():
    state = small_model().__getstate__()
    del state["_saved_with"]
    with pytest.warns(ModelVersionWarning, match="mkclust unknown"):
        assert_same(
            small_model(), pickle.loads(pickle.dumps(Stored(mkclust.AverageKKM, state))), VIEWS
        )


def test_a_file_notes_what_it_was_written_by(tmp_path):
    with zipfile.ZipFile(save_model(small_model(), tmp_path / "model.skops")) as archive:
        note = json.loads(archive.read("mkclust.json"))
    assert note["format"] == 1
    assert note["versions"] == versions() | {"skops": skops.__version__}
    assert small_model().__getstate__()["_saved_with"]["versions"] == versions()
    assert not hasattr(pickle.loads(pickle.dumps(small_model())), "_saved_with")


@pytest.mark.parametrize("moment", ["write_bytes", "replace"])
def test_a_save_that_fails_leaves_the_file_as_it_was(moment, tmp_path, monkeypatch):
    path = save_model(small_model(), tmp_path / "model.skops")
    before = path.read_bytes()

    def fail(*arguments):
        if moment == "write_bytes":
            with open(arguments[0], "wb") as file:
                file.write(arguments[1][:100])
        raise OSError("no space left")

    monkeypatch.setattr(
        *{"write_bytes": (Path, "write_bytes"), "replace": (os, "replace")}[moment], fail
    )
    with pytest.raises(OSError, match="no space left"):
        save_model(small_model(), path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_a_process_that_is_killed_while_it_saves_leaves_the_file_as_it_was(tmp_path):
    import signal

    path = save_model(small_model(), tmp_path / "model.skops")
    before, model = path.read_bytes(), small_model()
    child = os.fork()
    if child == 0:
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        save_model(model, path)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert path.read_bytes() == before


def test_only_fitted_models_are_saved_and_under_their_suffix(tmp_path):
    with pytest.raises(TypeError, match="fitted estimator"):
        save_model(np.eye(3), tmp_path / "x.skops")
    with pytest.raises(ValueError, match="not fitted"):
        save_model(mkclust.AverageKKM(), tmp_path / "x.skops")
    with pytest.raises(ValueError, match="name the file x.skops"):
        save_model(mkclust.AverageKKM(3).fit(VIEWS), tmp_path / "x.pkl")
