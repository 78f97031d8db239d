"""Data sets are known by name: what is there is read, what is not there is asked for in words."""

from typing import Any

import numpy as np
import pytest
import scipy.io
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from conftest import reference_folder
from mkclust import AverageKKM, KernelBank, datasets
from mkclust.datasets import CATALOG, DatasetError
from mkclust.datasets.catalog import find_entry
from mkclust.metrics import scores
from mkclust.stack.discretize import normalize_rows
from paper.datasets import KNOWN

pytestmark = pytest.mark.slow

load: Any = datasets.load

AUTHORS = {
    "flo17": "flower17",
    "flo102": "flower102",
    "pfold": "proteinFold",
    "ccv": "CCV",
    "digit": "UCI_DIGIT",
    **{f"cal-{n}": f"caltech101_nTrain{n}_48" for n in (5, 10, 15, 20, 25, 30)},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of data sets."""
    monkeypatch.setenv("MKCLUST_DATA", str(tmp_path))
    return tmp_path


def cell_of(*arrays):
    """Return a MATLAB cell array."""
    cell = np.empty((len(arrays), 1), dtype=object)
    cell[:, 0] = arrays
    return cell


def write(path, **variables):
    """Write variables to a MATLAB file or an archive of NumPy."""
    save = np.savez if path.suffix == ".npz" else lambda path, **v: scipy.io.savemat(path, v)
    save(path, **variables)
    return path


def complaint(name, **options):
    """Return the one line that loading a data set raises."""
    with pytest.raises(DatasetError) as caught:
        load(name, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def stack_of(n, m):
    """Return m small kernels in MATLAB's order, in a type that takes little room."""
    kernels = np.zeros((n, n, m), dtype=np.uint8)
    for p in range(m):
        kernels[..., p] = np.eye(n, dtype=np.uint8) * (p + 1)
    return kernels


# --- names and files ---------------------------------------------------------------------------


def test_the_papers_eleven_are_known_by_name():
    eleven = {known.paper for known in KNOWN.values() if known.paper and not known.caveat}
    assert eleven == {
        *("Flo17", "Flo102", "PFold", "CCV", "Digit"),
        *(f"Cal-{n}" for n in (5, 10, 15, 20, 25, 30)),
    }
    assert KNOWN.keys() < CATALOG.keys()


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Flower 17", "flo17"),
        ("protein_fold", "pfold"),
        ("uci_digit", "digit"),
        ("CAL 15", "cal-15"),
    ],
)
def test_case_and_separators_do_not_matter(said, meant):
    assert find_entry(said).name == meant


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_not_there_is_asked_for_by_file_folder_and_origin(folder, name, monkeypatch):
    known = KNOWN[name]
    assert CATALOG[name].find() is None
    for fact in (*known.sources[0].files, str(folder), known.origin):
        assert fact in complaint(name)
    monkeypatch.delenv("MKCLUST_DATA")
    assert "MKCLUST_DATA" in complaint(name)


# --- the authors' kernels ----------------------------------------------------------------------


def test_the_authors_kernels_are_read_from_files_in_any_case(folder):
    variables = {"KH": stack_of(694, 12), "Y": np.arange(694) % 27 + 1}
    (folder / "protein").mkdir()
    write(folder / "protein" / "PROTEINFOLD_kmatrix.mat", **variables)
    assert KNOWN["pfold"].present()
    data = load("Protein-Fold")
    assert (data.name, data.paper, data.caveat, data.views) == ("pfold", "PFold", "", None)
    assert data.kernels.shape == (12, 694, 694)
    np.testing.assert_array_equal(data.kernels[:, 5, 5], np.arange(1, 13))
    np.testing.assert_array_equal(data.y, variables["Y"])
    assert load("pfold", kernels=True).precomputed


@pytest.mark.parametrize("name", AUTHORS)
def test_a_file_of_another_size_is_refused_with_both_sizes(folder, name):
    path = folder / f"{AUTHORS[name].swapcase()}_Kmatrix.mat"
    write(path, KH=stack_of(12, 3), Y=np.arange(12) % 4)
    message, entry = complaint(name), KNOWN[name]
    assert f"{path}: found 12 samples, 3 views or kernels and 4 classes" in message
    assert f"{name} has {entry.n_samples}, {entry.n_views}, {entry.n_clusters}" in message


def test_the_digits_may_bear_their_plain_name(folder):
    write(folder / "digit_kmatrix.mat", KH=stack_of(2000, 3), Y=np.repeat(np.arange(10), 200))
    assert repr(load("digit")) == "Dataset('digit': 3 kernels, 2000 samples, 10 classes)"


def test_caltech_files_are_taken_by_their_classes_not_by_the_papers_table(folder):
    path = folder / "caltech101_nTrain5_48_Kmatrix.mat"
    write(path, KH=stack_of(510, 2), Y=np.repeat(np.arange(102), 5))
    data = load("cal-5")
    assert (data.n_samples, len(data.X), data.n_classes) == (510, 2, 102)
    assert "102 classes with 5 samples each" in data.description
    write(path, KH=stack_of(75, 2), Y=np.repeat(np.arange(5), 15))
    assert load("cal-5").n_samples == 75
    uneven = np.repeat(np.arange(102), 5)
    uneven[0] = 1
    write(path, KH=stack_of(510, 2), Y=uneven)
    assert "found 510 samples" in complaint("cal-5")


def test_kernels_without_labels_or_of_no_square_shape_are_refused(folder):
    path = folder / "AR10P_Kmatrix.mat"
    write(path, KH=stack_of(130, 6))
    assert "holds no labels" in complaint("ar10p")
    write(path, KH=np.ones((130, 6)), Y=np.arange(130) % 10)
    assert "KH is not a stack of square kernels" in complaint("ar10p")
    write(path, K=stack_of(130, 6), Y=np.arange(130) % 10)
    assert "no KH" in complaint("ar10p")


def test_the_papers_kernels_go_before_what_stands_in_for_them(folder):
    rng, y = np.random.default_rng(0), np.arange(694) % 27
    factors = [rng.normal(size=(694, 27)) for _ in range(12)]
    write(folder / "ProteinFold.mat", X=cell_of(*factors), Y=y)
    data = load("pfold")
    assert repr(data) == (
        "Dataset('pfold-truncated': 12 kernels, 694 samples, 27 classes, truncated)"
    )
    assert (data.paper, data.views) == ("PFold", None)
    np.testing.assert_allclose(data.kernels[3], factors[3] @ factors[3].T)
    assert "Truncated" in data.description
    assert not KNOWN["pfold"].present()
    assert KNOWN["pfold-truncated"].present()
    write(folder / "proteinFold_Kmatrix.mat", KH=stack_of(694, 12), Y=y)
    assert load("pfold").name == "pfold"
    assert load("pfold-truncated").name == "pfold-truncated"


# --- recipes -----------------------------------------------------------------------------------


def test_the_makers_distances_become_kernels_and_the_order_gives_the_classes(folder):
    rng = np.random.default_rng(0)
    names = ("color", "shape", "texture"), ("hog", "hsv", "siftint", "siftbdy")
    distances = {}
    for file, parts in zip(("17gcfeat06", "17itfeat08"), names, strict=True):
        points = {f"D_{part}": rng.integers(0, 8, size=(1360, 1)) for part in parts}
        made = {name: np.abs(x - x.T).astype(np.uint8) for name, x in points.items()}
        distances.update(made)
        write(folder / f"DistanceMatrices{file}.mat", **made, other=np.ones((3, 3)), D=7)
    data = load("flo17")
    assert (data.name, data.caveat, data.kernel_names) == ("flo17", "", tuple(distances))
    np.testing.assert_array_equal(data.y, np.repeat(np.arange(17), 80))
    for kernel, D in zip(data.kernels, distances.values(), strict=True):
        np.testing.assert_allclose(kernel, np.exp(-(D / D.mean())))


def test_substitutes_keep_their_features_beside_their_kernels(folder):
    rng = np.random.default_rng(0)
    (folder / "flower17").mkdir()
    names = ["colour", "hog_fg", "hsv", "shape", "siftbdy", "siftint", "lbp"]
    features = {f"X_{name}": rng.random((1360, 2)).astype(np.float16) for name in names}
    y = np.repeat(np.arange(17), 80)
    write(folder / "flower17" / "features.npz", **features, names=names, y=y)
    data = load("flower17")
    assert (data.name, data.caveat, data.paper) == ("flo17-substitute", "substitute", "Flo17")
    assert "not the kernels of the paper" in data.description
    assert data.X is data.kernels
    assert data.kernel_names == tuple(data.views) == tuple(names)
    for kernel, (name, view) in zip(data.kernels, data.views.items(), strict=True):
        points = view if name == "hog_fg" else np.sqrt(view.astype(float))
        D = cdist(points, points, "sqeuclidean")
        np.testing.assert_allclose(kernel, np.exp(-D / D.mean()), rtol=1e-6)
        np.testing.assert_array_equal(kernel, kernel.T)


def test_of_each_category_the_first_images_are_taken(folder):
    rng = np.random.default_rng(0)
    (folder / "Caltech101").mkdir()
    names = ["gist", "pix16", *(f"h{i}" for i in range(20))]
    features = {f"X_{name}": rng.random((1020, 1)) for name in names}
    features = {name: np.hstack([view, view]) for name, view in features.items()}
    y = rng.permutation(np.repeat(np.arange(102), 10))
    write(folder / "Caltech101" / "features.npz", **features, names=names, y=y)
    five, ten = load("cal-5"), load("cal-10")
    assert (five.name, ten.name) == ("cal-5-substitute", "cal-10-substitute")
    assert (five.n_samples, ten.n_samples) == (510, 1020)
    np.testing.assert_array_equal(np.bincount(five.y), 5)
    rank = np.array([np.count_nonzero(y[:i] == c) for i, c in enumerate(y)])
    np.testing.assert_array_equal(five.views["gist"], ten.views["gist"][rank < 5])
    assert "cal-15: not found" in complaint("cal-15")


def test_the_uci_digits_name_their_views_and_their_bank(folder):
    rng, y = np.random.default_rng(0), np.repeat(np.arange(10), 200)
    tables = [rng.random((2000, columns)) for columns in (4, 3, 2)]
    write(folder / "uci.mat", X=cell_of(*tables), Y=y)
    data = load("digit")
    assert tuple(data.views) == ("pix", "fou", "mor")
    assert KernelBank(**data.bank).fit_transform(data.views).shape == (3, 2000, 2000)
    data.bank["widths"] = ()
    assert load("digit").bank["widths"] == (1.0,)
    assert "holds views, not kernels" in complaint("digit", kernels=True)
    write(folder / "uci.mat", X=cell_of(*tables[:2]), Y=y)
    assert "found 2 views; expected the 3 views pix, fou, mor" in complaint("digit")


# --- real data ---------------------------------------------------------------------------------

REAL = {
    "flo17": ("flo17-substitute", 7, 1360, 17),
    "pfold": ("pfold-truncated", 12, 694, 27),
    "digit": ("digit", 3, 2000, 10),
    "cal-5": ("cal-5-substitute", 22, 510, 102),
    "cal-10": ("cal-10-substitute", 22, 1020, 102),
    "handwritten": ("handwritten", 6, 2000, 10),
    "ar10p": ("ar10p", 6, 130, 10),
    "jaffe": ("jaffe", 12, 213, 10),
    "bbcsport": ("bbcsport", 2, 544, 5),
    "3sources": ("3sources", 3, 169, 6),
    "msrc-v5": ("msrc-v5", 5, 210, 7),
    "coil20": ("coil20", 1, 1440, 20),
    "hdigit": ("hdigit", 2, 10000, 10),
    "cora": ("cora", 4, 2708, 7),
}


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_public_data_load_by_name(name):
    reference_folder("MKCLUST_DATA")
    data = load(name)
    assert (data.name, len(data.X), data.n_samples, data.n_classes) == REAL[name]
    if not data.precomputed:
        KernelBank(**data.bank)._read_parameters()


@pytest.mark.data
def test_the_views_of_the_uci_digits_are_among_the_six_by_their_names():
    reference_folder("MKCLUST_DATA")
    three, six = load("digit"), load("handwritten")
    for name, view in three.views.items():
        np.testing.assert_array_equal(view, six.views[name])


@pytest.mark.data
def test_truncated_video_kernels_have_a_unit_diagonal_and_stay_positive():
    reference_folder("MKCLUST_DATA")
    data = load("ccv")
    assert repr(data) == "Dataset('ccv-truncated': 3 kernels, 6773 samples, 20 classes, truncated)"
    for kernel in data.kernels:
        np.testing.assert_array_equal(np.diagonal(kernel), 1)
        part = kernel[::20, ::20]
        np.testing.assert_array_equal(part, part.T)
        assert np.linalg.eigvalsh(part)[0] > -1e-9


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "accuracy", "information"),
    [
        ("pfold", 30.2, 39.8),
        ("flo17", 50.6, 51.8),
        ("cal-5", 35.8, 70.3),
        ("cal-10", 29.0, 60.5),
        ("digit", 88.9, 80.9),
    ],
)
def test_average_kernels_score_as_they_are_known_to(name, accuracy, information):
    reference_folder("MKCLUST_DATA")
    data = load(name)
    K = data.kernels if data.precomputed else KernelBank(**data.bank).fit_transform(data.views)
    model = AverageKKM(data.n_classes, kernels="precomputed", n_init=1, random_state=0).fit(K)
    rows, found = normalize_rows(model.embedding_), []
    for seed in range(5):
        # The known scores are those of random starts; k-means++ is better with 102 clusters.
        means = KMeans(data.n_classes, init="random", n_init=10, random_state=seed).fit(rows)
        found.append(scores(data.y, means.labels_))
    mean = {key: 100 * np.mean([one[key] for one in found]) for key in ("acc", "nmi")}
    assert mean["acc"] == pytest.approx(accuracy, abs=1.5)
    assert mean["nmi"] == pytest.approx(information, abs=1.5)
