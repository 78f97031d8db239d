"""Clusters of AnnData and MuData, in the habit of scanpy."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from helpers.kinds import counted
from mkclust import AgreementKKM
from mkclust.metrics import adjusted_rand_index
from mkclust.scverse import cluster, views_of

anndata = pytest.importorskip("anndata")
mudata = pytest.importorskip("mudata")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")

N = 180
TYPES = np.arange(N) % 3


def annotated(matrix, names=None, **var):
    names = [f"cell {i}" for i in range(len(TYPES))] if names is None else names
    columns = pd.DataFrame(var, index=[f"column {j}" for j in range(matrix.shape[1])])
    obs = pd.DataFrame(index=names[: matrix.shape[0]])
    return anndata.AnnData(matrix, obs=obs, var=columns)


@pytest.fixture
def counts():
    """Return counts of genes and proteins; types 1 and 2 have the same genes."""
    rng = np.random.default_rng(0)
    folds = np.ones((3, 150))
    folds[0, :50] = 10
    levels = np.ones((3, 15))
    levels[2, :8] = 25
    rna = counted(rng, rng.lognormal(-0.3, 1.5, 150), N, folds[TYPES])
    adt = counted(rng, rng.lognormal(3, 0.7, 15), N, levels[TYPES])
    return scipy.sparse.csr_matrix(rna), adt


@pytest.fixture
def modalities(counts):
    rna, adt = map(annotated, counts)
    return mudata.MuData({"rna": rna, "prot": adt})


def found(data, key="mkclust"):
    return data.obs[key].cat.codes.to_numpy()


def test_modalities_of_counts_are_clustered_and_all_is_written(modalities):
    model = cluster(modalities, 3)

    assert adjusted_rand_index(TYPES, found(modalities)) > 0.95
    assert model.bank_.rules_ == {"rna": "counts", "prot": "log-ratios"}
    for part in modalities.mod.values():
        assert (part.obs["mkclust"] == modalities.obs["mkclust"]).all()
    assert modalities.obsm["X_mkclust"].shape == (N, 3)
    assert modalities.obsp["mkclust_connectivities"].shape == (N, N)
    written = modalities.uns["mkclust"]
    assert written["agreement"]["p_values"].shape == (2, 2)
    assert "agree" in written["agreement"]["verdict"]
    assert written["parameters"]["random_state"] == "0"


def test_it_can_be_written_to_a_file(modalities, tmp_path):
    cluster(modalities, 3, key_added="types")
    modalities.write(tmp_path / "cells.h5mu")

    again = mudata.read_h5mu(tmp_path / "cells.h5mu")

    assert (found(again, "types") == found(modalities, "types")).all()
    assert again.uns["types"]["connectivities_key"] == "types_connectivities"


def test_cells_that_lack_a_modality_are_clustered_by_the_other(counts):
    rna, adt = map(annotated, counts)
    data = mudata.MuData({"rna": rna[:170].copy(), "prot": adt[30:].copy()})

    cluster(data, 3)

    cells = data.obs_names.str.removeprefix("cell ").astype(int)
    assert adjusted_rand_index(TYPES[cells], found(data)) > 0.75
    assert data.mod["prot"].obs["mkclust"].notna().all()
    assert len(data.mod["rna"].obs) == 170


def test_types_of_features_of_one_matrix_are_views(counts):
    both = scipy.sparse.hstack(counts, "csr")
    types = ["Gene Expression"] * 150 + ["Antibody Capture"] * 15
    data = annotated(both, feature_types=types)

    model = cluster(data, 3)

    assert model.bank_.rules_ == {
        "Gene Expression": "counts",
        "Antibody Capture": "log-ratios",
    }
    assert adjusted_rand_index(TYPES, found(data)) > 0.95


def test_representations_are_views_in_the_order_asked_for():
    rng = np.random.default_rng(0)
    place = 4 * rng.normal(size=(3, 12))[TYPES]
    data = annotated(rng.normal(size=(N, 4)))
    data.obsm["X_pca"] = place + rng.normal(size=(N, 12))
    data.obsm["signs"] = place[:, :6] + rng.normal(size=(N, 6))

    model = cluster(data, 3, use_rep=["X_pca", "signs"])
    assert model.bank_.rules_ == {"X_pca": "components", "signs": "table"}
    assert adjusted_rand_index(TYPES, found(data)) == 1

    named = cluster(data, 3, use_rep={"rna": "X_pca", "other": "signs"})
    assert named.view_names_in_ == ("rna", "other")
    assert (named.labels_ == model.labels_).all()

    by_default = cluster(data, 3)  # X holds no counts, and there are components
    alone = AgreementKKM(3, kernels={"X": "components"}, random_state=0)
    alone.fit({"X": data.obsm["X_pca"]})
    assert adjusted_rand_index(alone.labels_, by_default.labels_) == 1


def test_modalities_can_have_representations_and_layers(modalities):
    rna = modalities.mod["rna"]
    rna.obsm["X_own"] = np.random.default_rng(0).normal(size=(N, 4))
    rna.layers["counts"] = rna.X.copy()
    rna.X = np.log1p(rna.X)
    assert views_of(modalities, layer={"rna": "counts"})["rna"].X.max() > rna.X.max()

    views = views_of(modalities, use_rep={"rna": "X_own"})

    assert list(views) == ["rna", "prot"]
    assert list(views["rna"].columns) == [f"X_own {i}" for i in range(1, 5)]
    assert views["rna"].index.equals(rna.obs_names)


def test_new_cells_are_predicted_from_counts(modalities, counts):
    model = cluster(modalities, 3)
    new = mudata.MuData({"rna": annotated(counts[0]), "prot": annotated(counts[1])})

    labels = model.predict(views_of(new))

    assert adjusted_rand_index(labels, model.labels_) > 0.97


def test_all_cells_are_in_the_graph_if_only_some_are_anchors(modalities):
    cluster(modalities, 3, anchors=100, learn_from=120)
    links = modalities.obsp["mkclust_connectivities"]
    assert links.shape == (N, N)
    assert (links.sum(axis=1) > 0).all()


def test_scale_none_leaves_counts_as_they_are(modalities):
    model = cluster(modalities, 3, scale="none")
    assert "counts" not in model.bank_.rules_.values()


def test_logarithms_become_components_of_new_cells_too(modalities):
    rna = modalities.mod["rna"]
    totals = np.asarray(rna.X.sum(axis=1))
    rna.X = scipy.sparse.csr_matrix(np.log1p(rna.X.multiply(100 / totals)))

    model = cluster(modalities, 3)

    assert model.bank_.rules_["rna"] == "components"
    assert "PCA" in model.summary()
    assert adjusted_rand_index(TYPES, found(modalities)) > 0.95
    again = model.predict(views_of(modalities))
    assert adjusted_rand_index(again, model.labels_) > 0.97


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"use_rep": "X_umap"}, "X_umap.*'X'"),
        ({"use_rep": {"rn": "X"}}, "rn.*rna"),
        ({"layer": "raw"}, "layer='raw'.*no layers"),
        ({"layer": {"adt": "raw"}}, "adt.*'rna' and 'prot'"),
    ],
)
def test_what_is_not_there_is_named(modalities, options, match):
    with pytest.raises(ValueError, match=match):
        cluster(modalities, 3, **options)


def test_other_data_are_refused():
    with pytest.raises(TypeError, match="ndarray.*AnnData"):
        cluster(np.zeros((10, 3)), 3)
    with pytest.raises(TypeError, match="dict.*MuData"):
        cluster({"rna": annotated(np.ones((10, 3)))}, 3)


def test_parameters_of_other_functions_are_refused(modalities):
    with pytest.raises(TypeError, match="'copy'.*in place"):
        cluster(modalities, 3, copy=True)
    with pytest.raises(TypeError, match="did you mean 'key_added'"):
        cluster(modalities, 3, key_add="types")


@pytest.mark.slow
def test_scanpy_takes_the_graph_and_the_clusters(modalities):
    scanpy = pytest.importorskip("scanpy")
    cluster(modalities, 3)
    scanpy.tl.umap(modalities, neighbors_key="mkclust", maxiter=5)
    options = {"flavor": "igraph", "n_iterations": 2, "resolution": 1.0}
    scanpy.tl.leiden(modalities, neighbors_key="mkclust", **options)
    assert modalities.obsm["X_umap"].shape == (N, 2)
    assert adjusted_rand_index(TYPES, found(modalities, "leiden")) > 0.4

    rna = modalities.mod["rna"]
    scanpy.pp.normalize_total(rna)
    scanpy.pp.log1p(rna)
    scanpy.tl.rank_genes_groups(rna, "mkclust")
    first = found(modalities)[0]
    best = rna.uns["rank_genes_groups"]["names"][str(first)][:10]
    assert all(int(name.split()[1]) < 50 for name in best)


def test_a_resolution_finds_the_number_of_clusters(modalities):
    model = cluster(modalities, resolution=1.0)
    assert model.n_clusters_ == model.suggestion_.at_resolution(1.0) == 3
    assert modalities.uns["mkclust"]["parameters"]["resolution"] == "1.0"
    with pytest.raises(ValueError, match="n_clusters='auto'"):
        cluster(modalities, 3, resolution=1.0)


def test_the_number_of_clusters_is_found(modalities):
    model = cluster(modalities)
    assert model.n_clusters_ == modalities.obs["mkclust"].nunique()
    assert model.n_clusters_ in model.suggestion_.candidates
