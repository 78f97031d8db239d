"""Clusters, silhouettes and embedding, written back into annotated data."""

import numpy as np
import pandas as pd
import pytest

from conftest import blob_views
from mkclust import AverageKKM, sample_scores, to_anndata

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
    return anndata.AnnData(frame.to_numpy(), obs=pd.DataFrame(index=frame.index), var=names)


def test_observations_are_matched_by_name_and_further_ones_have_nothing(frames, model, tmp_path):
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
    pd.testing.assert_frame_equal(found.loc[model.sample_ids_], expected, check_dtype=False)
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
