"""Precomputed kernels beside tables in one fit."""

import numpy as np
import pandas as pd
import pytest

from mkclust import AgreementKKM, AverageKKM, SimpleMKKM
from mkclust.kernels import KernelBank

N, NEW = 60, 6
IDS = np.array([f"P{i:02}" for i in range(N + NEW)])
GIVEN = {"K": "precomputed"}


@pytest.fixture(scope="module")
def data():
    """Return a kernel and a table of the samples of the fit, and of new ones."""
    rng, y = np.random.default_rng(0), np.arange(N + NEW) % 3
    points = rng.normal(size=(N + NEW, 5)) + 3 * np.eye(3, 5)[y]
    blood = rng.normal(size=(N + NEW, 4)) + 4 * np.eye(3, 4)[y]
    K = pd.DataFrame(points @ points.T, IDS, IDS)
    table = pd.DataFrame(blood, IDS, list("abcd"))
    return K.iloc[:N, :N], table[:N], K.iloc[N:, :N], table[N:], np.diag(K)[N:]


def fit(method, X, **settings):
    return method(3, kernels=GIVEN, random_state=0, **settings).fit(X)


@pytest.mark.parametrize("method", [SimpleMKKM, AverageKKM, AgreementKKM])
def test_a_kernel_counts_as_if_all_kernels_were_precomputed(method, data):
    K, table, *_ = data
    bank = KernelBank(widths=(1.0,), polynomials=(), linear=None, rules="kind")
    made = bank.fit_transform({"blood": table.to_numpy()})[0]
    model = fit(method, {"K": K, "blood": table})
    both = {"K": K.to_numpy(), "blood": np.asarray(made)}
    other = method(3, kernels="precomputed", random_state=0).fit(both)
    np.testing.assert_allclose(model.weights_, other.weights_, atol=1e-9)
    np.testing.assert_array_equal(model.labels_, other.labels_)


def test_both_axes_of_a_frame_are_matched_by_id(data):
    K, table, cross, new, own = data
    expected = fit(SimpleMKKM, {"K": K, "blood": table})
    rows, columns = (K.sample(frac=1, random_state=seed).index for seed in (1, 2))
    model = fit(SimpleMKKM, {"blood": table, "K": K.loc[rows, columns]})
    np.testing.assert_allclose(model.weights_[::-1], expected.weights_, atol=1e-9)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    similar = np.array([np.full(NEW, np.nan), own])
    found = model.predict({"K": cross[columns], "blood": new}, similar)
    np.testing.assert_array_equal(found, model.labels_[:NEW])


def test_new_samples_need_their_self_similarity_unless_it_is_known(data):
    K, table, cross, new, own = data
    model = fit(AverageKKM, {"K": K, "blood": table})
    np.testing.assert_array_equal(
        model.predict({"K": K, "blood": table}), model.labels_
    )
    with pytest.raises(ValueError, match="self_similarity"):
        model.predict({"K": cross, "blood": new})
    lengths, new_lengths = np.sqrt(np.diag(K)), np.sqrt(own)
    cosine, new_cosine = (
        K / np.outer(lengths, lengths),
        cross / np.outer(new_lengths, lengths),
    )
    model = fit(AverageKKM, {"K": cosine, "blood": table})
    found = model.predict({"K": new_cosine, "blood": new})
    np.testing.assert_array_equal(found, model.labels_[:NEW])


@pytest.mark.parametrize("how", ["outer", "observed", "empty"])
def test_a_kernel_may_lack_samples(how, data):
    K, table, *_ = data
    has, K_with_gaps = np.arange(N) != 7, K.copy()
    K_with_gaps.iloc[7] = K_with_gaps.iloc[:, 7] = np.nan
    given = {"outer": K.loc[has, has], "observed": K, "empty": K_with_gaps}[how]
    options = {"observed": {"K": has}} if how == "observed" else {}
    model = AverageKKM(3, kernels=GIVEN, join="outer", random_state=0)
    model.fit({"blood": table, "K": given}, **options)
    np.testing.assert_array_equal(model.observed_[:, 1], has)
    assert len(set(model.labels_[np.arange(N) % 3 == 1])) == 1


def test_what_is_not_a_kernel_is_refused(data):
    K, table, *_ = data
    for wrong in (K + np.triu(np.ones((N, N))), K - 100 * np.eye(N), K.iloc[:, :40]):
        with pytest.raises(ValueError, match="'K'"):
            fit(AverageKKM, {"K": wrong, "blood": table})
