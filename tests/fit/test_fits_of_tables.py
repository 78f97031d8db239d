"""From data frames to clusters: ids, columns and categories go through every fit and
predict."""

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mkclust import AverageKKM
from mkclust.kernels import Nystroem

pytestmark = pytest.mark.filterwarnings("ignore::mkclust.exceptions.WeightsWarning")
N = 45
# Of different sizes, by which clusters are numbered.
Y = np.array([0, 1, 2, 0, 1, 0, 1, 2, 0] * 5)


def frames(seed=0):
    """Return two tables of the same patients, one of them with categories."""
    rng = np.random.default_rng(seed)
    ids = [f"patient {i}" for i in range(N)]
    genes, marks = (
        3 * rng.normal(size=(3, d))[Y] + rng.normal(size=(N, d)) for d in (4, 3)
    )
    clinic = pandas.DataFrame(marks, index=ids, columns=["m0", "m1", "m2"])
    clinic["stage"] = pandas.Categorical(np.array(["I", "II", "III"])[Y])
    clinic["smoker"] = rng.random(N) < 0.5
    table = pandas.DataFrame(genes, index=ids, columns=["g0", "g1", "g2", "g3"])
    return {"genes": table, "clinic": clinic}


def wide():
    """Return both tables as one, the columns of one led by a prefix."""
    return frames()["genes"].join(
        frames()["clinic"][["m0", "m1", "m2"]].add_prefix("clinic_")
    )


VIEWS = {"genes": ["g0", "g1", "g2", "g3"], "clinic": "clinic_"}


@pytest.mark.parametrize(
    "options", [{}, {"approximation": Nystroem(20)}], ids=["exact", "features"]
)
def test_missing_cells_of_new_samples_are_filled_with_what_was_learned(options):
    views = frames()
    model = AverageKKM(3, impute="median", random_state=0, **options).fit(views)
    median = views["genes"]["g0"].median()
    views["genes"].iloc[2, 0] = np.nan
    filled = {**views, "genes": views["genes"].fillna(median)}
    np.testing.assert_allclose(model.transform(views), model.transform(filled))


@pytest.mark.parametrize(
    "options", [{}, {"approximation": Nystroem(20)}], ids=["exact", "features"]
)
def test_a_wide_table_taken_apart_is_what_its_views_are(options):
    table = wide()
    views = {"genes": table[VIEWS["genes"]], "clinic": table.filter(like="clinic_")}
    options |= {"random_state": 0}
    expected = AverageKKM(3, **options).fit(views)
    numbers = {"genes": [0, 1, 2, 3], "clinic": slice(4, None)}
    for X, choice in ((table, VIEWS), (table.to_numpy(), numbers), (table, numbers)):
        model = AverageKKM(3, views=choice, **options).fit(X)
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        assert model.view_names_in_ == ("genes", "clinic")
    polars = pytest.importorskip("polars")
    model = AverageKKM(3, views=VIEWS, **options).fit(polars.DataFrame(table))
    np.testing.assert_array_equal(model.labels_, expected.labels_)


def test_several_views_go_through_pipelines_and_searches():
    table = wide()
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, AverageKKM(3, views=VIEWS, random_state=0))
    labels = pipeline.fit_predict(table)
    assert adjusted_rand_score(Y, labels) > 0.9
    grid = {"averagekkm__n_clusters": [2, 3]}
    search = GridSearchCV(pipeline, grid, scoring="adjusted_rand_score", cv=3)
    assert search.fit(table, Y).best_params_ == {"averagekkm__n_clusters": 3}
    assert clone(pipeline).get_params()["averagekkm__views"] == VIEWS


def test_frames_of_the_embedding_have_the_ids_of_the_new_samples():
    views = frames()
    model = AverageKKM(3, random_state=0).set_output(transform="pandas").fit(views)
    turned = {name: frame.iloc[::-1] for name, frame in views.items()}
    rows = model.transform({**views, "genes": turned["genes"]})
    assert rows.index.tolist() == turned["genes"].index.tolist()
    pandas.testing.assert_frame_equal(
        rows.loc[views["genes"].index], model.transform(views)
    )
    assert rows.columns.tolist() == model.get_feature_names_out().tolist()
    single = (
        AverageKKM(3, views=VIEWS, random_state=0)
        .set_output(transform="pandas")
        .fit(wide())
    )
    assert (
        single.transform(wide().iloc[::-1]).index.tolist()
        == turned["genes"].index.tolist()
    )


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ({"a": ["g0", "g9"]}, "'g9'.*did you mean 'g"),
        ({"a": "clinc_"}, "'clinc_'"),
        ({"a": ["g0"], "b": "g"}, "'g0'"),
        ({"a": slice(9, 12)}, "no column .*'a'"),
    ],
)
def test_columns_that_are_not_there_are_named_with_near_ones(views, message):
    with pytest.raises(ValueError, match=message):
        AverageKKM(3, views=views).fit(wide())


def test_only_one_table_can_be_taken_apart():
    with pytest.raises(TypeError, match="one table"):
        AverageKKM(3, views=VIEWS).fit(frames())
    with pytest.raises(ValueError, match="kernels='precomputed'"):
        AverageKKM(3, views=VIEWS, kernels="precomputed").fit(wide())
