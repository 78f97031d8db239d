"""From five files of different forms to the clusters of the clean arrays, by one command."""

import numpy as np
import pytest
import scipy.sparse

pytest.importorskip("pyarrow")

import pandas as pd
from sklearn.metrics import adjusted_rand_score

import mkclust
from command_line import succeed
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


def test_five_files_of_different_forms_give_the_clusters_of_the_clean_arrays(views):
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(7)
    gaps = pd.DataFrame(views["gradients"]).mask(rng.random(views["gradients"].shape) < 0.02)
    pixels = frame(views["pixels"], 0)
    matrix = scipy.sparse.csr_matrix(pixels.to_numpy())
    cells = anndata.AnnData(matrix, pd.DataFrame(index=pixels.index))
    cells.write_h5ad("pixels.h5ad")
    frame(views["fourier"], 10).T.to_csv("fourier.tsv", sep="\t")
    frame(gaps, 20).to_csv("gradients.csv", index_label="image")
    projections = frame(views["projections"], 30)
    projections.to_csv("projections.csv.gz", index_label="image")
    frame(views["traits"], 40).to_parquet("traits.parquet")
    files = [
        "projections.csv.gz",
        "pixels.h5ad",
        "fourier.tsv",
        "gradients.csv",
        "traits.parquet",
    ]
    options = ("--samples-in", "fourier.tsv=columns", "--impute", "median")
    succeed("cluster", *files, "-k", K, *options)
    names = ("projections", "pixels", "fourier")
    clean = {name: views[name] for name in names} | {
        "gradients": gaps.fillna(gaps.median()).to_numpy(),
        "traits": pd.get_dummies(views["traits"]).to_numpy(dtype=float),
    }
    model = Recommended(K, random_state=0).fit(clean)
    found = pd.read_csv("labels.csv", index_col="id")["cluster"].loc[IDS]
    # Clusters are drawn from starts that depend on the order of samples; the partition does not.
    assert adjusted_rand_score(found, model.labels_) == 1
