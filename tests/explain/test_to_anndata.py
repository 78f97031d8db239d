"""Clusters, silhouettes and embedding, written back into annotated data."""

import numpy as np
import pandas as pd
import pytest

from helpers.views import blob_views
from mkclust import AgreementKKM, AverageKKM, sample_scores, to_anndata

anndata = pytest.importorskip("anndata")


@pytest.fixture(scope="module")
def frames():
    views, _ = blob_views(np.random.default_rng(0), n=60, k=3)
    ids = [f"cell {i}" for i in range(60)]
    return {f"v{i}": pd.DataFrame(view, index=ids) for i, view in enumerate(views)}


@pytest.fixture(scope="module")
def model(frames):
    return AverageKKM(3, random_state=0).fit(frames)


def annotated(frame):
    frame = frame.rename(columns=str)
    names = pd.DataFrame(index=frame.columns)
    return anndata.AnnData(
        frame.to_numpy(), obs=pd.DataFrame(index=frame.index), var=names
    )


def test_observations_are_matched_by_name_and_further_ones_have_nothing(
    frames, model, tmp_path
):
    rng = np.random.default_rng(1)
    more = pd.concat([frames["v0"], frames["v0"].rename(index=lambda name: f"{name}!")])
    data = annotated(more.iloc[rng.permutation(120)])
    to_anndata(model, data)
    assert list(data.obs["mkclust"].cat.categories) == ["0", "1", "2"]
    found = pd.DataFrame(data.obsm["X_mkclust"], data.obs_names).assign(
        label=data.obs["mkclust"].cat.codes, silhouette=data.obs["mkclust_silhouette"]
    )
    expected = pd.DataFrame(model.embedding_, model.sample_ids_).assign(
        label=model.labels_, silhouette=sample_scores(model).silhouette
    )
    pd.testing.assert_frame_equal(
        found.loc[model.sample_ids_], expected, check_dtype=False
    )
    others = found.drop(model.sample_ids_)
    assert (others.pop("label") == -1).all()
    assert others.isna().all(axis=None)
    path = tmp_path / "data.h5ad"
    data.write_h5ad(path)
    again = anndata.read_h5ad(path)
    assert again.uns["mkclust"]["method"] == "AverageKKM"
    assert list(again.uns["mkclust"]["kernel_names"]) == ["v0", "v1", "v2"]
    assert again.uns["mkclust"]["weights"] == pytest.approx(model.weights_)
    assert again.uns["mkclust"]["parameters"]["n_clusters"] == "3"
    pd.testing.assert_series_equal(again.obs["mkclust"], data.obs["mkclust"])


def test_several_modalities_get_them_at_the_top(frames, model):
    mudata = pytest.importorskip("mudata")
    data = mudata.MuData({name: annotated(frame) for name, frame in frames.items()})
    to_anndata(model, data, key="found")
    assert data.obs["found"].astype(int).tolist() == model.labels_.tolist()
    assert data.obsm["X_found"].shape == (60, 3)
    assert "found" not in data.mod["v0"].obs


def test_without_ids_rows_are_matched_by_their_order_and_must_be_as_many(frames):
    arrays = [frame.to_numpy() for frame in frames.values()]
    model = AverageKKM(3, random_state=0).fit(arrays)
    data = annotated(frames["v0"])
    to_anndata(model, data)
    assert data.obs["mkclust"].astype(int).tolist() == model.labels_.tolist()
    with pytest.raises(ValueError, match="50 rows.*60"):
        to_anndata(model, data[:50].copy())
    with pytest.raises(TypeError, match="data"):
        to_anndata(model, frames["v0"])


@pytest.fixture(scope="module")
def graph(frames):
    return AgreementKKM(3, random_state=0).fit(frames)


def test_the_graph_and_its_embedding_are_written_as_scanpy_reads_them(
    frames, graph, tmp_path
):
    rng = np.random.default_rng(1)
    more = pd.concat([frames["v0"], frames["v0"].rename(index=lambda name: f"{name}!")])
    data = annotated(more.iloc[rng.permutation(120)])
    to_anndata(graph, data)
    path = tmp_path / "data.h5ad"
    data.write_h5ad(path)
    again = anndata.read_h5ad(path)

    found = again.uns["mkclust"]
    assert found["connectivities_key"] == "mkclust_connectivities"
    assert found["distances_key"] not in again.obsp
    assert found["params"]["method"] == "umap"
    assert found["params"]["n_neighbors"] == max(graph.neighbors_)
    assert again.obsm[found["params"]["use_rep"]].shape == (120, 3)

    links = pd.DataFrame(
        again.obsp["mkclust_connectivities"].toarray(), again.obs_names, again.obs_names
    )
    ids = graph.sample_ids_
    np.testing.assert_allclose(
        links.loc[ids, ids], graph.connectivities(frames).toarray()
    )
    assert not links.drop(ids).to_numpy().any()
    assert not links.drop(columns=ids).to_numpy().any()


def test_the_graph_of_kernels_and_of_anchors_is_written_if_their_input_is_passed(
    frames,
):
    K = np.array([frame @ frame.T for frame in frames.values()])
    of_kernels = AgreementKKM(3, kernels="precomputed", random_state=0).fit(K)
    of_anchors = AgreementKKM(3, anchors=40, learn_from=50, random_state=0).fit(frames)
    for model, X in (of_kernels, K), (of_anchors, frames):
        data = annotated(frames["v0"])
        to_anndata(model, data)
        assert not len(data.obsp)
        assert "params" not in data.uns["mkclust"]
        to_anndata(model, data, X=X)
        links = data.obsp["mkclust_connectivities"]
        np.testing.assert_allclose(links.toarray(), model.connectivities(X).toarray())


def test_other_methods_have_no_graph(frames, model):
    data = annotated(frames["v0"])
    to_anndata(model, data, X=frames)
    assert not len(data.obsp)
    assert "connectivities_key" not in data.uns["mkclust"]
