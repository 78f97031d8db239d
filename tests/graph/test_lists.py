"""Lists of neighbors are those written out, for samples of a fit as for new ones."""

import numpy as np
import pytest

from helpers.arrays import LIBRARIES, as_library
from helpers.graph import lists_of
from helpers.views import named_blobs
from mkclust import AgreementKKM
from mkclust.fit.neighborhoods import find_memberships
from mkclust.graph import Lists, find_lists
from mkclust.stack import as_stack

SIZES = (3, 6)
TIE = 1e-9


def cosines(seed, n=40):
    """Return a kernel of samples that are about as similar as can be told apart."""
    X = np.random.default_rng(seed).normal(size=(n, 4)) + 0.5
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X @ X.T


def found_of(kernels, library="numpy"):
    """Return the lists by a mix and by views, found in two blocks, and the members."""
    n = len(kernels[0])

    def compare(samples):
        return [as_library(library, K[samples]) for K in kernels]

    parts = [slice(0, n // 3), slice(n // 3, n)]
    like = as_library(library, kernels[0])
    return find_lists(compare, n, parts, SIZES, [TIE] * len(kernels), like)


def test_the_neighborhoods_of_a_fit_are_those_written_out():
    stack = as_stack([cosines(0), cosines(1), cosines(2)])
    shares = np.array([0.5, 0.0, 0.3])
    compared, _, members_of = find_memberships(stack, shares, SIZES)

    first, second = (stack.kernels[p].rows(slice(None)) for p in (0, 2))
    mix = (0.5 * first + 0.3 * second) / 0.8
    assert compared.included == [0, 2]
    for K, members in zip((mix, first, second), members_of, strict=True):
        for size, found in zip(SIZES, members, strict=True):
            np.testing.assert_array_equal(found.toarray(), lists_of(K, size))


@pytest.mark.parametrize("library", LIBRARIES)
def test_samples_of_a_fit_are_in_the_same_lists_as_new_ones(library):
    kernels = [cosines(0), cosines(1)]
    kernels[1][:20, :20] = 1.0  # copies of one sample
    lists, members = found_of(kernels, library)
    for K, own, expected in zip(kernels, lists, members, strict=True):
        again = own.memberships(as_library(library, K))
        for found, each in zip(again, expected, strict=True):
            np.testing.assert_array_equal(found.toarray(), each.toarray())


def test_of_lists_that_are_as_near_a_sample_joins_the_first_whatever_rounding_says():
    # Nobody is as near as the lists reach; the first anchor has none.
    lists = Lists(np.array([[np.inf, 5.0, 5.0, 5.0]]), TIE, of_mix=True)
    rounding = 1e-3 * TIE
    near = np.array(
        [
            [3.0, 1.0, 1.0 + rounding, 0.0],
            [3.0, 1.0 + rounding, 1.0, 0.0],
            [3.0, 1.0, 1.0 + 2 * TIE, 0.0],
            [3.0, -np.inf, -np.inf, -np.inf],
        ]
    )
    expected = np.zeros((4, 4), bool)
    expected[[0, 1, 2], [1, 1, 2]] = True
    found = lists.memberships(near)[0]
    np.testing.assert_array_equal(found.toarray(), expected)


def test_a_sample_to_which_a_view_finds_nobody_near_has_no_list_in_it():
    # All others are as far away: a list of all of them would say nothing.
    lists, members = found_of([cosines(0), np.eye(40)])
    assert np.isfinite(lists[0].limits).all()
    assert not np.isfinite(lists[1].limits).any()
    assert [each.nnz for each in members[1]] == [0, 0]


@pytest.mark.parametrize("case", ["copies", "rounded", "equal rows"])
def test_samples_with_ties_have_their_labels_as_new_ones(case):
    views, _ = named_blobs(np.random.default_rng(0), n=90)
    for name, view in views.items():
        if case == "copies":
            views[name] = np.vstack([view, view])
        elif case == "rounded":
            views[name] = view.round()
        else:
            view[:20] = view[0]
    model = AgreementKKM(3, random_state=0).fit(views)
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    np.testing.assert_allclose(model.transform(views), model.embedding_, atol=1e-9)
