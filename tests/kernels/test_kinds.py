import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

from helpers.arrays import LIBRARIES, as_library
from helpers.kinds import N, example
from mkclust import AverageKKM, SimpleMKKM
from mkclust.kernels import KernelBank, Nystroem
from mkclust.kernels.kinds import RULES, kind_of, learn_preparations
from mkclust.kernels.preparations import LogTfIdf
from mkclust.kernels.profile import ViewProfile
from mkclust.linalg import to_host

pytestmark = pytest.mark.slow

ONE = {"widths": (1.0,), "polynomials": (), "linear": None}


def tell_kind(view, n_samples):
    return kind_of(ViewProfile(view, n_samples)).kind


KINDS = [kind for kind, rule in RULES.items() if not rule.by_name]


def dense(kernels):
    return np.stack(
        [each.toarray() if hasattr(each, "toarray") else each for each in kernels]
    )


def neighborhoods_of(rows, linear=None):
    bank = KernelBank(
        widths=() if linear else (1.0,), polynomials=(), linear=linear, neighbors=20
    )
    return bank.fit_transform([rows])[0].toarray()


def with_neighborhoods(formula, rows, linear=None):
    """Return what kernels are that a third of shared neighborhoods is mixed into."""
    return 2 / 3 * formula + 1 / 3 * neighborhoods_of(rows, linear)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_kind_of_a_view_is_told_from_its_numbers(library):
    for kind in KINDS:
        assert (
            tell_kind(as_library(library, example(kind).astype(np.float32)), N) == kind
        )


@given(st.sampled_from(KINDS), st.integers(0, 50), st.floats(1e-3, 1e3))
def test_neither_the_unit_nor_the_order_of_samples_changes_the_kind(kind, seed, factor):
    view, order = example(kind, seed), np.random.default_rng(seed).permutation(N)
    if not RULES[kind].of_counts:  # which have no unit
        assert tell_kind(factor * view, N) == kind
    of_pairs = RULES[kind].of_pairs
    assert tell_kind(view[np.ix_(order, order)] if of_pairs else view[order], N) == kind


BORDERLINE = {
    # A missing mark, or a second one, is no category.
    "a row without a mark": (
        lambda X: X * (np.arange(N) > 0)[:, None],
        "categories",
        "binary",
    ),
    "not symmetric": (lambda D: np.triu(D) + 2 * np.tril(D), "distances", "dense"),
    "a negative distance": (lambda D: D - 2 * (D.max() == D) * D, "distances", "dense"),
    "links one way only": (np.triu, "graph", "sparse"),
    "a negative count": (lambda X: X - 9 * (X.max() == X), "sparse", "dense"),
    "a third value": (
        lambda X: np.vstack([np.full((1, 8), 0.5), X[1:]]),
        "binary",
        "table",
    ),
    "sums of many sizes": (
        lambda X: X * np.arange(1, N + 1)[:, None],
        "histogram",
        "table",
    ),
    "no negative entry": (np.abs, "directions", "table"),
}


@pytest.mark.parametrize("case", BORDERLINE)
def test_what_only_resembles_a_kind_is_another(case):
    change, kind, expected = BORDERLINE[case]
    assert tell_kind(change(example(kind)), N) == expected


def test_the_bank_makes_the_kernel_that_suits_each_view():
    views = {kind: example(kind) for kind in KINDS}
    bank = KernelBank(**ONE, rules="kind")
    kernels = dict(zip(KINDS, dense(bank.fit_transform(views)), strict=True))
    assert bank.rules_ == {kind: kind for kind in KINDS}
    assert bank.kernel_names_ == tuple(KINDS)
    codes = views["categories"]
    equal = (codes @ codes.T) / 3  # three categories each
    np.testing.assert_allclose(kernels["categories"], equal, atol=1e-12)
    links = views["graph"] + np.diag(views["graph"].max(axis=1))
    # Without any link, one to itself.
    links[np.diag_indices(N)] += links.sum(axis=1) == 0
    np.testing.assert_allclose(kernels["graph"], cosine_similarity(links), atol=1e-12)
    new = bank.of_view("graph").transform({"graph": views["graph"][:4]})[0]
    np.testing.assert_allclose(
        new, cosine_similarity(views["graph"][:4], links), atol=1e-12
    )
    X = views["directions"]
    directions = with_neighborhoods(cosine_similarity(X), X, "cosine")
    np.testing.assert_allclose(kernels["directions"], directions, atol=1e-12)
    words = neighborhoods_of(
        LogTfIdf.learn(views["sparse"]).apply(views["sparse"]), "cosine"
    )
    np.testing.assert_allclose(kernels["sparse"], words, atol=1e-12)
    # The nearest by the distances that a view consists of are the nearest of the
    # points.
    points = np.random.default_rng(0).normal(size=(N, 6))
    np.testing.assert_allclose(
        kernels["distances"], neighborhoods_of(points), atol=1e-12
    )
    binary = KernelBank(**ONE).fit_transform(views["binary"])[0]
    np.testing.assert_allclose(kernels["binary"], binary, atol=1e-12)
    for kind, rows in (
        ("histogram", np.sqrt(views["histogram"])),
        ("dense", views["dense"]),
    ):
        mixed = with_neighborhoods(KernelBank(**ONE).fit_transform(rows)[0], rows)
        np.testing.assert_allclose(kernels[kind], mixed, atol=1e-12)


def test_rules_by_name_go_before_kinds():
    views = {
        "words": example("sparse"),
        "pixels": example("histogram"),
        "more": example("dense"),
    }
    bank = KernelBank(**ONE, rules={"words": "gaussian", "pixels": "dense"}).fit(views)
    assert bank.rules_ == {"words": "gaussian", "pixels": "dense", "more": "dense"}
    plain = KernelBank(**ONE).fit_transform(views)
    np.testing.assert_allclose(
        bank.transform(views)[0], plain[0], rtol=1e-12, atol=1e-12
    )
    model = AverageKKM(3, kernels={"words": "gaussian"}, random_state=0).fit(views)
    assert model.bank_.rules_ == {
        "words": "gaussian",
        "pixels": "histogram",
        "more": "dense",
    }


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"text": "sparse"},
            "rule for the view 'text', and the views are 'words', 'pixels'",
        ),
        (
            {"words": "graph"},
            "'graph', which has one column per sample: found 90 columns, 60 samp",
        ),
        ("kinds", "kernel 'kinds'"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rules, message):
    views = {"words": example("sparse"), "pixels": example("dense")}
    with pytest.raises(ValueError, match=message):
        KernelBank(**ONE, rules=rules).fit(views)


def test_a_table_has_the_kernels_of_its_kind():
    assert len(AverageKKM(3).fit(example("histogram")).kernel_names_) == 12
    words = example("sparse")
    words[:, 0] += 1  # samples without a word in common with others are refused
    assert AverageKKM(3).fit(words).kernel_names_ == ("table",)
    assert len(AverageKKM(3, kernels="gaussian").fit(words).kernel_names_) == 12
    roots = KernelBank().fit_transform(np.sqrt(example("histogram")))
    table = KernelBank(rules="kind").fit_transform(example("histogram"))
    # Twelve kernels have no neighborhoods.
    np.testing.assert_allclose(table, roots, atol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_features_are_learned_of_prepared_rows(library):
    views = {kind: example(kind) for kind in ("sparse", "histogram", "dense")}
    views["dense"][:, 4] *= 30
    nystroem, learned = (
        Nystroem(N, random_state=0),
        learn_preparations("kind", "auto", views),
    )
    prepared = {name: learned[name].apply(view) for name, view in views.items()}
    expected = SimpleMKKM(3, approximation=nystroem, kernels="gaussian", random_state=0)
    expected.fit(prepared)
    X = as_library(library, views)
    model = SimpleMKKM(3, approximation=nystroem, random_state=0).fit(X)
    np.testing.assert_allclose(model.weights_, expected.weights_, atol=1e-6)
    np.testing.assert_array_equal(to_host(model.labels_), to_host(expected.labels_))
    np.testing.assert_array_equal(to_host(model.predict(X)), to_host(model.labels_))
