import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from helpers.arrays import LIBRARIES, as_library
from mkclust import AverageKKM, KernelBank, view
from mkclust.kernels import Nystroem
from mkclust.linalg import to_host

pytestmark = pytest.mark.filterwarnings("ignore::mkclust.exceptions.NoAgreementWarning")
ONE = {"widths": (1.0,), "polynomials": (), "linear": None}
N = 50


def lab(seed=0, n=N):
    return np.random.default_rng(seed).normal(size=(n, 5)) * [1, 10, 100, 1e3, 1e4] + 7


def words(seed=0, n=N):
    counts = np.random.default_rng(seed).poisson(0.4, size=(n, 30)).astype(float)
    counts[:, 0] += 1
    return counts


def of_bank(rules, views):
    return KernelBank(**ONE, rules=rules).fit(views)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_transformer_before_the_kernel_is_the_same_as_transformed_views(library):
    wishes = {
        "lab": view(StandardScaler(), "gaussian"),
        "words": view(PCA(4), "laplacian"),
    }
    views, new = (
        {"lab": lab(), "words": words()},
        {"lab": lab(1)[:6], "words": words(1)[:6]},
    )
    steps = {
        name: clone(wish.preprocess).fit(views[name]) for name, wish in wishes.items()
    }
    by_hand = {name: step.transform(views[name]) for name, step in steps.items()}
    new_by_hand = {name: step.transform(new[name]) for name, step in steps.items()}
    plain = of_bank({name: wish.kernel for name, wish in wishes.items()}, by_hand)
    bank = of_bank(wishes, as_library(library, views))
    for given, expected in ((views, by_hand), (new, new_by_hand)):
        found = to_host(bank.transform(as_library(library, given)))
        np.testing.assert_allclose(found, plain.transform(expected), atol=1e-11)
    own = bank.self_similarity(as_library(library, new))
    np.testing.assert_allclose(
        to_host(own), plain.self_similarity(new_by_hand), atol=1e-11
    )


def test_the_kind_is_told_from_rows_that_were_transformed():
    shares = FunctionTransformer(lambda rows: rows / rows.sum(axis=1, keepdims=True))
    assert of_bank({"a": view()}, {"a": words()}).rules_ == {"a": "dense"}
    bank = of_bank({"a": view(shares)}, {"a": words()})
    assert bank.rules_ == {"a": "histogram"}
    assert "rows by FunctionTransformer(" in bank.explain()


@pytest.mark.parametrize("kernel", ["gaussian", "auto"])
def test_features_are_made_of_rows_that_were_transformed(kernel):
    views, scaled = {"lab": lab()}, {"lab": StandardScaler().fit_transform(lab())}
    wishes = {"lab": view(StandardScaler(), kernel)}
    options = {"approximation": Nystroem(N, random_state=0), "random_state": 0}
    model = AverageKKM(3, kernels=wishes, **options).fit(views)
    plain = AverageKKM(3, kernels={"lab": "gaussian"}, **options).fit(scaled)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.predict(views), model.labels_)


class Sums(TransformerMixin, BaseEstimator):
    """A transformer that returns a number a row, and no row."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return X.sum(axis=1)


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (view(StandardScaler, "cosine"), "preprocess=.*StandardScaler"),
        (view(TSNE(), "cosine"), "View 'a', preprocess=TSNE"),
        (
            view(StandardScaler(), "from_distances"),
            "columns of the kernel 'from_distances'",
        ),
        (
            view(Sums(), "cosine"),
            r"View 'a', preprocess=Sums\(\): one row becomes .*\(1,\)",
        ),
        (
            view(PCA(90), "cosine"),
            r"View 'a', preprocess=PCA\(n_components=90\): n_components",
        ),
        (
            view(FunctionTransformer(np.log), "cosine"),
            "View 'a', .*NaN or infinite entries",
        ),
    ],
)
def test_views_that_make_no_sense_are_refused(wish, message):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
        AverageKKM(2, kernels={"a": wish}).fit({"a": -lab(), "b": words()})
