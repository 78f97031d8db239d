"""From five files of different forms to the clusters of the clean arrays, by one command."""

import numpy as np
import pytest
import scipy.sparse

pytest.importorskip("typer")
pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import pandas as pd
from sklearn.metrics import adjusted_rand_score
from typer.testing import CliRunner

import mkclust
from mkclust import cli
from mkclust.datasets import load

N, K = 300, 10
IDS = np.array([f"image-{i:03d}" for i in range(N)])
Recommended = mkclust.METHODS[mkclust.RECOMMENDED]


@pytest.fixture(scope="module")
def views():
    """The views of some handwritten digits, and two traits of each with a few levels."""
    data = load("digits")
    views = {name: np.round(view[:N], 6) for name, view in data.views.items()}
    ink, width = views["pixels"].sum(axis=1), views["projections"][:, :8].max(axis=1)
    levels = [np.digitize(each, np.quantile(each, [0.25, 0.5, 0.75])) for each in (ink, width)]
    words = np.array(["light", "medium", "dark", "black"])
    traits = pd.DataFrame({"ink": words[levels[0]], "width": words[levels[1]]})
    return views | {"traits": traits}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def frame(values, seed):
    """Return a view as a data frame with ids, its rows shuffled."""
    values = pd.DataFrame(values).set_axis(IDS, axis=0)
    values.columns = [f"c{c}" if isinstance(c, int) else c for c in values.columns]
    return values.sample(frac=1, random_state=seed)


def cluster(*args):
    result = CliRunner().invoke(cli.app, ["cluster", *map(str, args), "-k", str(K)])
    assert result.exit_code == 0, result.stderr
    return result


def labels_by_id(first_ids):
    """Return the labels in the order of IDS; without ids they are in that of the first file."""
    table = pd.read_csv("labels.csv")
    ids = table["id"] if "id" in table.columns else first_ids
    return pd.Series(table.iloc[:, 1].to_numpy(), index=ids).loc[IDS].to_numpy()


@pytest.mark.parametrize("seed", [0, 1])
def test_shuffled_and_transposed_files_give_the_clusters_of_the_arrays(views, seed):
    pixels = frame(views["pixels"], seed)
    pixels.to_csv("pixels.csv.gz", index_label="image")
    frame(views["fourier"], seed + 10).T.to_csv("fourier.tsv", sep="\t")
    frame(views["projections"], seed + 20).to_parquet("projections.parquet")
    files = ["pixels.csv.gz", "fourier.tsv", "projections.parquet"]
    cluster(*files, "--samples-in", "fourier.tsv=columns")
    names = ("pixels", "fourier", "projections")
    model = Recommended(K, random_state=0).fit({name: views[name] for name in names})
    # Clusters are drawn from starts that depend on the order of samples; the partition does not.
    assert adjusted_rand_score(labels_by_id(pixels.index), model.labels_) == 1


@pytest.mark.parametrize("seed", [0, 1])
def test_five_files_of_different_forms_give_the_clusters_of_the_clean_arrays(views, seed):
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(7)
    gaps = pd.DataFrame(views["gradients"]).mask(rng.random(views["gradients"].shape) < 0.02)
    pixels = frame(views["pixels"], seed)
    matrix = scipy.sparse.csr_matrix(pixels.to_numpy())
    cells = anndata.AnnData(matrix, pd.DataFrame(index=pixels.index))
    cells.write_h5ad("pixels.h5ad")
    frame(views["fourier"], seed + 10).T.to_csv("fourier.tsv", sep="\t")
    frame(gaps, seed + 20).to_csv("gradients.csv", index_label="image")
    projections = frame(views["projections"], seed + 30)
    projections.to_csv("projections.csv.gz", index_label="image")
    frame(views["traits"], seed + 40).to_parquet("traits.parquet")
    files = [
        "projections.csv.gz",
        "pixels.h5ad",
        "fourier.tsv",
        "gradients.csv",
        "traits.parquet",
    ]
    cluster(*files, "--samples-in", "fourier.tsv=columns", "--impute", "median")
    names = ("projections", "pixels", "fourier")
    clean = {name: views[name] for name in names} | {
        "gradients": gaps.fillna(gaps.median()).to_numpy(),
        "traits": pd.get_dummies(views["traits"]).to_numpy(dtype=float),
    }
    model = Recommended(K, random_state=0).fit(clean)
    assert adjusted_rand_score(labels_by_id(projections.index), model.labels_) == 1
