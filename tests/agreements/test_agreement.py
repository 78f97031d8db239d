"""What views share: which are included, which are set aside, and what is said about
it."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.signal
from hypothesis import given
from hypothesis import strategies as st

from helpers.agreement import written_out_agreement
from helpers.kernels import ONE_GAUSSIAN, gaussian_kernels
from helpers.views import inserted, named_blobs, one_hot, strangers, two_camps
from mkclust import AgreementKKM, AnchoredMKKM, KernelBank, agreement
from mkclust.agreements import (
    measure_agreement,
    p_text,
    p_value_limit,
)
from mkclust.agreements.alignments import ORDERS
from mkclust.exceptions import GroupsWarning, NoAgreementWarning, OrderWarning
from mkclust.metrics import adjusted_rand_index
from mkclust.stack import as_stack

BANK = KernelBank(**ONE_GAUSSIAN)
# The p-value below which two views agree, in the words of the documentation.
LIMIT_RULE = (
    "1.5 / n^2 for n samples, but at most 1e-3 (up to 38 samples) and at least 1e-5 "
    "(from 388 on)"
)


def stack_of(views, **options):
    """Return one Gaussian kernel per view, with its name."""
    kernels = BANK.fit_transform(list(views.values()))
    return as_stack(dict(zip(views, kernels, strict=True)), **options)


@pytest.mark.parametrize(
    ("center", "normalize"), [(True, True), (True, False), (False, False)]
)
def test_alignments_and_norms_are_those_of_the_formula(center, normalize):
    views, _ = named_blobs(np.random.default_rng(0))
    stack = stack_of(views, center=center, normalize=normalize)
    found = measure_agreement(stack)
    alignments, norms = written_out_agreement(stack.among().entries)
    np.testing.assert_allclose(found.alignments, alignments, atol=1e-10)
    np.testing.assert_allclose(found.norms, norms, rtol=1e-10)
    np.testing.assert_allclose(
        found.scores, alignments * np.sqrt(60 * 57 / 2), rtol=1e-9
    )


@pytest.mark.slow
def test_noise_and_random_categories_are_set_aside_in_a_hundred_of_a_hundred_seeds():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(40, 70))
        others = strangers(rng, n)
        views = inserted(rng, named_blobs(rng, n)[0], others)
        found = measure_agreement(stack_of(views, validate=False))
        assert set(found.set_aside) == set(others), seed
        assert found.n_independent_views == 8


def test_a_multiple_of_the_identity_shares_nothing():
    kernels, _ = gaussian_kernels(np.random.default_rng(0), n=60, k=3, strengths=(2, 2))
    for flat in (np.eye(60), np.eye(60) + 1):
        found = measure_agreement(as_stack([*kernels, flat]))
        assert found.set_aside == ("kernel 2",)
        assert found.norms[2] == 0
        assert found.alignments[2].tolist() == [0, 0, 0]


def marks(n, marked):
    """Return a view of one column that marks some samples."""
    return np.isin(np.arange(n), marked)[:, None].astype(float)


def test_two_of_three_marked_samples_in_common_are_no_agreement():
    found = measure_agreement(
        stack_of({"a": marks(60, [0, 1, 2]), "b": marks(60, [1, 2, 3])})
    )
    assert not found.any_share
    # The probability that three of sixty have two or more in common with three others.
    assert found.p_values[0, 1] == pytest.approx(0.005, rel=0.5)


@pytest.mark.filterwarnings("ignore::mkclust.exceptions.KernelWarning")
def test_the_least_p_value_of_shuffled_samples_is_shown_as_a_bound():
    rng = np.random.default_rng(0)
    views = {name: rng.normal(size=(200, 3)) / 20 for name in "ab"}
    for view in views.values():
        view[:8, 0] += 8 + rng.normal(size=8)
    found = agreement(views, kernels="linear")

    least = 1 / ORDERS**2
    assert found.p_values[0, 1] == pytest.approx(least, rel=1e-12)
    assert found.verdict() == f"Both views agree (p <= {least:.1g})."
    assert f"<= {least:.1g}  " in found.summary()
    assert p_text(2 * least) == f"<= {2 * least:.1g}"
    assert p_text(3 * least) == f"{3 * least:.1g}"


@pytest.mark.filterwarnings("ignore::mkclust.exceptions.KernelWarning")
@pytest.mark.parametrize("size", [2, 4])
def test_views_that_mark_the_same_samples_within_groups_agree(size):
    rng = np.random.default_rng(0)
    groups = np.arange(400) // size
    X = {name: rng.normal(size=(400, 3)) / 20 for name in "ab"}
    for view in X.values():
        view[: 8 * size : size] += 8

    assert agreement(X, kernels="linear", groups=groups).any_share


def series(rng, n, rho, n_columns=5):
    """Return an autoregressive series."""
    steps = rng.normal(size=(n, n_columns))
    return scipy.signal.lfilter(
        [np.sqrt(max(1 - rho**2, 0.01))], [1, -rho], steps, axis=0
    )


@pytest.mark.parametrize("rho", [0.8, 0.95, 1.0])
def test_independent_series_may_agree_by_the_order_of_their_rows(rho):
    rng = np.random.default_rng(0)
    views = {name: series(rng, 300, rho) for name in ("north", "east", "south", "west")}
    found = agreement(views, kernels="gaussian")
    linked = found.p_values < found.limits
    assert linked.sum() > 6
    assert not found.by_order[~linked].any()
    # One pair in ten or so is most alike as it is, by accident: more than half of six
    # are not.
    assert found.by_order.sum() > 0.5 * linked.sum()
    with pytest.warns(OrderWarning, match="north") as caught:
        AgreementKKM(2, kernels="gaussian", random_state=0).fit(views)
    assert caught[0].filename == __file__
    order = rng.permutation(300)
    shuffled = agreement(
        {name: X[order] for name, X in views.items()}, kernels="gaussian"
    )
    assert not shuffled.by_order.any()


def trend(rng, n):
    """Return columns that rise or fall along the rows."""
    t = np.linspace(-2, 2, n)[:, None]
    return t * rng.normal(size=5) + rng.normal(size=(n, 5))


def period(rng, n):
    """Return columns that go up and down along the rows, four times."""
    t = np.linspace(0, 4, n)[:, None] + rng.random(5)
    return 1.5 * np.sin(2 * np.pi * t) + rng.normal(size=(n, 5))


@pytest.mark.parametrize("make", [trend, period])
@pytest.mark.parametrize("n", [150, 300, pytest.param(1000, marks=pytest.mark.slow)])
def test_independent_trends_and_periods_may_agree_by_the_order_of_their_rows(make, n):
    n_linked, n_flagged = 0, 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        views = {name: make(rng, n) for name in ("north", "east", "south")}
        found = agreement(views, kernels="gaussian")
        linked = found.p_values < found.limits
        n_linked += linked.sum()
        n_flagged += found.by_order.sum()
        assert not found.by_order[~linked].any()
        order = rng.permutation(n)
        shuffled = agreement(
            {name: X[order] for name, X in views.items()}, kernels="gaussian"
        )
        assert not shuffled.by_order.any()
    assert n_linked >= 12
    assert n_flagged > 0.7 * n_linked
    with pytest.warns(OrderWarning, match="order of the rows, such as time"):
        AgreementKKM(2, kernels="gaussian", random_state=0).fit(views)


@pytest.mark.parametrize("order", ["sorted", "in turns", "random"])
@pytest.mark.parametrize("n_clusters", [2, 3])
def test_clusters_are_not_taken_for_an_order_of_the_rows(order, n_clusters):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y = rng.integers(n_clusters, size=300)
        y = {
            "sorted": np.sort(y),
            "in turns": np.arange(300) % n_clusters,
            "random": y,
        }[order]
        views = [2 * rng.normal(size=(n_clusters, 5))[y] for _ in range(3)]
        found = agreement(
            [X + rng.normal(size=X.shape) for X in views], kernels="gaussian"
        )
        assert found.any_share
        assert not found.by_order.any()


@pytest.mark.parametrize("times", [2, 3, 5])
def test_a_view_given_several_times_has_the_weight_that_it_has_once(times):
    views, _ = named_blobs(np.random.default_rng(4))
    once = agreement(views)
    copies = {f"copy {i}": views["real 1"] for i in range(times - 1)}
    found = agreement(views | copies)
    assert found.copies == (("real 1", *copies),)
    weights = dict(zip(found.names, found.weights(), strict=True))
    together = sum(weights[name] for name in ("real 1", *copies))
    assert together == pytest.approx(once.weights()[1], abs=1e-12)
    assert weights["real 0"] == pytest.approx(once.weights()[0], abs=1e-12)
    assert len({weights[name].round(12) for name in copies}) == 1
    compromises = [
        np.tensordot(a.coefficients(), a.alignments, 1)[:3] for a in (once, found)
    ]
    np.testing.assert_allclose(*compromises, rtol=1e-9)


def test_kernels_of_one_view_are_one_independent_view():
    rng = np.random.default_rng(7)
    views, _ = named_blobs(rng, n=80)
    bank = KernelBank(widths=(0.5, 1.0, 2.0), polynomials=(), linear="cosine")
    found = agreement(views | {"dice": one_hot(rng, 80, 3)}, kernels=bank)
    assert len(found.names) == 16
    assert found.views == tuple(np.repeat(range(4), 4))
    assert found.n_independent_views == 4
    assert found.groups == (tuple(range(12)),)
    assert found.set_aside == found.names[12:]
    assert found.copies == ()
    weights = found.weights()
    assert weights[12:].tolist() == [0] * 4
    once = agreement(views, kernels=bank)
    np.testing.assert_allclose(weights[:12], once.weights(), rtol=1e-12, atol=1e-12)


@given(st.integers(0, 10_000))
def test_neither_the_order_of_views_nor_that_of_samples_matters(seed):
    rng = np.random.default_rng(seed)
    views = inserted(rng, named_blobs(rng)[0], {"dice": one_hot(rng, 60, 3)})
    first = measure_agreement(stack_of(views))
    names, samples = rng.permutation(list(views)), rng.permutation(60)
    second = measure_agreement(stack_of({name: views[name][samples] for name in names}))
    assert set(first.set_aside) == set(second.set_aside)
    weights = dict(zip(second.names, second.weights(), strict=True))
    assert [weights[name] for name in first.names] == pytest.approx(
        first.weights(), abs=1e-9
    )


@given(st.integers(0, 10_000), st.floats(1e-6, 1e6))
def test_scaling_a_kernel_scales_its_coefficient_back(seed, factor):
    rng = np.random.default_rng(seed)
    kernels = stack_of(named_blobs(rng)[0]).among().entries
    first = measure_agreement(as_stack(kernels, normalize=False))
    kernels[0] *= factor
    second = measure_agreement(as_stack(kernels, normalize=False))
    np.testing.assert_allclose(first.weights(), second.weights(), rtol=1e-9)
    ratios = second.coefficients() / first.coefficients()
    assert ratios[0] * factor == pytest.approx(ratios[1], rel=1e-9)


def test_agreement_does_not_depend_on_the_number_of_views():
    rng = np.random.default_rng(10)
    views = named_blobs(rng)[0] | {"dice": one_hot(rng, 60, 3)}
    many = measure_agreement(stack_of(views))
    few = measure_agreement(
        stack_of({name: views[name] for name in ("real 0", "real 1")})
    )
    assert many.p_values[0, 1] == pytest.approx(few.p_values[0, 1], rel=1e-9)
    assert many.limits[0, 1] == few.limits[0, 1] == pytest.approx(1.5 / 60**2)
    assert p_value_limit(np.array([300, 5000])) == pytest.approx([1.5 / 300**2, 1e-5])
    assert np.diag(many.p_values).tolist() == [1] * 4


@pytest.mark.parametrize("kind", ["noise", "3 levels"])
def test_copies_prove_nothing_about_each_other(kind):
    rng = np.random.default_rng(5)
    copies = dict.fromkeys(["copy 0", "copy 1", "copy 2"], strangers(rng, 60)[kind])
    assert agreement(named_blobs(rng)[0] | copies).set_aside == tuple(copies)
    alone = agreement(copies)
    assert not alone.any_share
    assert not alone.is_testable
    assert alone.n_independent_views == 1


@pytest.mark.parametrize("n_levels", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_one_column_does_not_outvote_a_table(seed, n_levels):
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=300)
    table = 0.35 * rng.normal(size=(4, 200))[y] + rng.normal(size=(300, 200))
    column = np.where(
        rng.random(300) < 0.8, y % n_levels, rng.integers(n_levels, size=300)
    )
    views = {"table": table, "column": np.eye(n_levels)[column]}
    found = agreement(views)
    assert found.any_share
    assert found.directions[1] == pytest.approx(n_levels - 1, rel=0.3)
    assert found.weights()[1] < 0.45
    assert "few effective directions: column" in found.summary()
    model = AgreementKKM(4, random_state=0)
    assert adjusted_rand_index(y, model.fit(views).labels_) > 0.9


def test_two_camps_are_two_groups_and_the_larger_is_included():
    views, camps = two_camps(np.random.default_rng(0), sizes=(2, 3))
    found = agreement(views | {f"copy {i}": views["a0"] for i in range(3)})
    assert found.chosen == [2, 3, 4]  # copies make a group no larger
    with pytest.warns(GroupsWarning, match="b0, b1 and b2; a0 and a1"):
        model = AgreementKKM(3, random_state=0).fit(views)
    assert model.agreement_.groups == ((2, 3, 4), (0, 1))
    assert model.set_aside_ == ("a0", "a1")
    assert adjusted_rand_index(camps[1], model.labels_) > 0.95


def mixed_clinic(n, rng):
    """Return one table whose numbers and categories agree with each other."""
    is_male = rng.random(n) < 0.5
    height = 165 + 12 * is_male + rng.normal(scale=4, size=n)
    return pd.DataFrame({"sex": np.where(is_male, "m", "f"), "height": height})


@pytest.mark.parametrize("method", [AgreementKKM, AnchoredMKKM])
def test_a_table_of_numbers_and_categories_does_not_set_another_one_aside(method):
    rng, y = np.random.default_rng(0), np.arange(150) % 3
    omics = pd.DataFrame(3 * rng.normal(size=(3, 20))[y] + rng.normal(size=(150, 20)))
    tables = {"omics": omics, "clinical": mixed_clinic(150, rng)}
    with pytest.warns(NoAgreementWarning, match="The two views do not agree clearly"):
        model = method(3, random_state=0).fit(tables)
    assert model.set_aside_ == ()
    assert adjusted_rand_index(y, model.labels_) > 0.9
    assert agreement(tables).n_independent_views == 2


def test_the_numbers_and_the_categories_of_a_table_are_counted_as_one_view():
    rng, y = np.random.default_rng(1), np.arange(150) % 3
    omics = 3 * rng.normal(size=(3, 20))[y] + rng.normal(size=(150, 20))
    proteins = 3 * rng.normal(size=(3, 20))[y] + rng.normal(size=(150, 20))
    clinical = pd.DataFrame(3 * rng.normal(size=(3, 4))[y] + rng.normal(size=(150, 4)))
    related = clinical.add_prefix("x").assign(stage=np.array(["I", "II", "III"])[y])
    both = agreement({"omics": pd.DataFrame(omics), "clinical": related})
    assert both.verdict() == "Both views agree (p < 1e-16)."

    views = {"omics": pd.DataFrame(omics), "proteins": pd.DataFrame(proteins)}
    assert (
        agreement(views | {"clinical": related}).verdict()
        == "All 3 views agree (p < 1e-16)."
    )
    stranger = agreement(views | {"clinical": mixed_clinic(150, rng)})
    assert stranger.verdict().startswith(
        "2 of 3 views agree (p < 1e-16): omics and proteins."
    )
    assert stranger.set_aside == ("clinical", "clinical (categories)")

    # A part that is set aside alone is named.
    related["stage"] = rng.choice(["I", "II", "III"], size=150)
    partly = agreement(views | {"clinical": related})
    assert partly.verdict().startswith(
        "All 3 views agree (p < 1e-16): omics, proteins and clinical. "
        "Set aside without clear agreement: clinical (categories)"
    )


def test_the_documented_limits_are_those_of_the_code():
    assert LIMIT_RULE in " ".join(agreement.__doc__.split())
    assert p_value_limit(np.array([38, 387])) == pytest.approx(
        [1e-3, 1.5 / 387**2], abs=0
    )
    assert p_value_limit(np.array([39, 388])) == pytest.approx(
        [1.5 / 39**2, 1e-5], abs=0
    )
    assert p_value_limit(39) < 1e-3
    assert p_value_limit(387) > 1e-5


@pytest.mark.parametrize(
    "page", ["guides/agreement.md", "glossary.md", "methods/agreement-kkm.md"]
)
def test_the_limits_of_the_pages_are_those_of_the_code(page):
    path = Path(__file__).parents[2] / "docs" / page
    if not path.exists():
        pytest.skip("the pages are in the repository only")
    text = re.sub(r"\s+", " ", path.read_text().replace("$", "").replace("²", "^2"))
    start = LIMIT_RULE.split(" for ")[0]
    bounds = re.findall(r"at (?:most|least) \S+", LIMIT_RULE)
    # Some pages name the samples first.
    said = rf"{re.escape(start)}(?: for n samples)?, but {bounds[0]} and {bounds[1]}"
    assert re.search(said, text)


def test_a_view_of_another_group_is_not_used_for_its_lack_of_agreement():
    views, _ = two_camps(np.random.default_rng(0), sizes=(2, 3))
    found = agreement(views)
    assert found.chosen == [2, 3, 4]
    about = found.evidence(0)
    assert about.partner in ("b0", "b1", "b2")
    assert about.p_value == found.p_values[0, 2:].min() > about.limit
    assert found.evidence(2).p_value < found.evidence(2).limit


def test_two_pairs_with_different_numbers_of_common_samples_have_their_own_limits():
    rng = np.random.default_rng(0)
    views, _ = named_blobs(rng, n=120)
    frames = {name: pd.DataFrame(view) for name, view in views.items()}
    frames["few"] = pd.DataFrame(rng.normal(size=(40, 4)))
    frames["many"] = pd.DataFrame(rng.normal(size=(80, 4)), index=range(40, 120))
    for frame in frames.values():
        frame.index = [f"sample {i}" for i in frame.index]
    found = agreement(frames, join="outer")
    limits = {f"{found.evidence(p).limit:.1g}" for p in (3, 4)}
    assert len(limits) == 2
    for p in (3, 4):
        about = found.evidence(p)
        said = f"(p = {about.p_value:.1g}; the limit is {about.limit:.1g})"
        assert f"{found.names[p]} {said}" in found.verdict()
    assert found.limits_in_words() == "0.0001 to 0.001"
