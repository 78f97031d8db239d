"""The paper's data sets are known by name; what is not there is asked for in words."""

from typing import Any

import numpy as np
import pytest
import scipy.io
from scipy.spatial.distance import cdist

from helpers.reference import reference_folder
from mkclust import datasets
from mkclust.datasets import CATALOG, DatasetError
from mkclust.datasets.read import find_entry
from paper.datasets import KNOWN

pytestmark = pytest.mark.slow

load: Any = datasets.load


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of data sets."""
    monkeypatch.setenv("MKCLUST_DATA", str(tmp_path))
    return tmp_path


def write(path, **variables):
    """Write variables to a MATLAB file or an archive of NumPy."""
    path.parent.mkdir(exist_ok=True)
    save = (
        np.savez
        if path.suffix == ".npz"
        else lambda path, **v: scipy.io.savemat(path, v)
    )
    save(path, **variables)


def cell_of(*arrays):
    """Return a MATLAB cell array."""
    cell = np.empty((len(arrays), 1), dtype=object)
    cell[:, 0] = arrays
    return cell


def stack_of(n, m):
    """Return multiples of the identity in MATLAB's order, in a type that takes little
    memory."""
    return np.eye(n, dtype=np.uint8)[..., None] * np.arange(1, m + 1, dtype=np.uint8)


def test_the_papers_eleven_are_known_in_any_case():
    eleven = {
        known.paper for known in KNOWN.values() if known.paper and not known.caveat
    }
    caltech = {f"Cal-{n}" for n in (5, 10, 15, 20, 25, 30)}
    assert eleven == {"Flo17", "Flo102", "PFold", "CCV", "Digit"} | caltech
    assert KNOWN.keys() < CATALOG.keys()
    assert find_entry("CAL 15").name == "cal-15"


@pytest.mark.parametrize("name", ["flo17", "cal-30"])
def test_what_is_not_there_is_asked_for_by_file_folder_and_origin(folder, name):
    known = KNOWN[name]
    assert CATALOG[name].find() is None
    with pytest.raises(DatasetError) as caught:
        load(name)
    for fact in (*known.sources[0].files, str(folder), known.origin):
        assert fact in str(caught.value)


def test_the_authors_kernels_go_before_what_stands_in_for_them(folder):
    rng, y = np.random.default_rng(0), np.arange(694) % 27 + 1
    factors = [rng.normal(size=(694, 27)) for _ in range(12)]
    write(folder / "ProteinFold.mat", X=cell_of(*factors), Y=y)
    data = load("pfold")
    assert (data.name, data.paper, data.caveat) == (
        "pfold-truncated",
        "PFold",
        "truncated",
    )
    np.testing.assert_allclose(data.kernels[3], factors[3] @ factors[3].T)
    write(folder / "protein" / "PROTEINFOLD_kmatrix.mat", KH=stack_of(694, 12), Y=y)
    data = load("PFold")
    assert (data.name, data.caveat, data.views) == ("pfold", "", None)
    np.testing.assert_array_equal(data.kernels[:, 5, 5], np.arange(1, 13))
    np.testing.assert_array_equal(data.y, y)
    assert load("pfold-truncated").name == "pfold-truncated"


@pytest.mark.parametrize(
    ("variables", "mistake"),
    [
        (
            {"KH": stack_of(12, 3), "Y": np.arange(12) % 4},
            "12 samples, 3 views or kernels",
        ),
        ({"KH": stack_of(130, 6)}, "labels"),
    ],
)
def test_files_of_other_sizes_or_contents_are_refused(folder, variables, mistake):
    write(folder / "AR10P_Kmatrix.mat", **variables)
    with pytest.raises(DatasetError, match=mistake):
        load("ar10p")


def test_substitutes_are_kernels_of_the_first_images_of_each_category(folder):
    rng = np.random.default_rng(0)
    names = ["gist", "pix16", *(f"h{i}" for i in range(20))]
    features = {f"X_{name}": rng.random((1020, 2)) for name in names}
    y = rng.permutation(np.repeat(np.arange(102), 10))
    write(folder / "Caltech101" / "features.npz", **features, names=names, y=y)
    five, ten = load("cal-5"), load("cal-10")
    assert (five.name, five.caveat, ten.n_samples) == (
        "cal-5-substitute",
        "substitute",
        1020,
    )
    rank = np.array([np.count_nonzero(y[:i] == c) for i, c in enumerate(y)])
    np.testing.assert_array_equal(five.views["gist"], ten.views["gist"][rank < 5])
    for kernel, (name, view) in list(
        zip(five.kernels, five.views.items(), strict=True)
    )[1:4]:
        points = view if name == "pix16" else np.sqrt(view)
        D = cdist(points, points, "sqeuclidean")
        np.testing.assert_allclose(kernel, np.exp(-D / D.mean()), rtol=1e-6)


STAND_INS = {"flo17": "substitute", "cal-5": "substitute", "pfold": "truncated"}
AVAILABLE = [
    "flo17",
    "pfold",
    "digit",
    "cal-5",
    "handwritten",
    "ar10p",
    "jaffe",
    "bbcsport",
]
AVAILABLE += ["3sources", "msrc-v5", "coil20", "hdigit", "cora"]


@pytest.mark.data
@pytest.mark.parametrize("name", AVAILABLE)
def test_public_data_load_by_name(name):
    reference_folder("MKCLUST_DATA")
    data = load(name)
    assert data.caveat == STAND_INS.get(name, "")
    assert data.name == name + f"-{data.caveat}" * bool(data.caveat)
    assert data.n_samples == len(data.y) == KNOWN[data.name].n_samples
