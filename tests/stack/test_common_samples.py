"""Kernels of different samples are compared on those that both have."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from agreeing import named_blobs, written_out_agreement
from libraries import FOREIGN, as_library
from mkclust.engine.agreement import chances, leading_shares
from mkclust.kernels import Linear
from mkclust.methods.agreement import COPIES_SEEN, measure_agreement
from mkclust.samples.samples import as_blocks
from mkclust.stack import MatrixRows, as_stack
from mkclust.stack.common_samples import compare_parts
from mkclust.stack.low_rank import compress
from mkclust.stack.mapped import draw
from mkclust.stack.off_diagonal import ALL_COMPARED, SOME_COMPARED

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Parts:
    """Kernels of different samples, and what measuring their agreement asks of them."""

    stacks: list
    samples: list
    kernels: list
    names: tuple

    @property
    def n_kernels(self):
        return len(self.names)

    @property
    def views(self):
        return range(self.n_kernels)

    def comparisons(self):
        return compare_parts(self.stacks, self.samples, self.kernels)


def gaussian(X):
    """Return a Gaussian kernel of median width."""
    squares = np.square(X[:, None] - X).sum(axis=2)
    return np.exp(-squares / np.median(squares[squares > 0]))


def parts_of(kernels, seen, make=as_stack):
    """Return one part for every set of samples that some kernels are seen on."""
    patterns = np.unique(seen, axis=0)
    numbers = [np.flatnonzero((seen == pattern).all(axis=1)) for pattern in patterns]
    samples = [np.flatnonzero(pattern) for pattern in patterns]
    stacks = [
        make([kernels[p][np.ix_(some, some)] for p in group])
        for some, group in zip(samples, numbers, strict=True)
    ]
    names = tuple(f"kernel {p}" for p in range(len(kernels)))
    return Parts(stacks, samples, numbers, names)


def kernels_and_mask(seed, n=70, m=4, missing=0.3):
    """Return kernels of the same clusters, and which samples each of them has."""
    rng = np.random.default_rng(seed)
    views, _ = named_blobs(rng, n, strengths=(2, 2, 1.5, 1)[:m])
    return [gaussian(X) for X in views.values()], rng.random((m, n)) >= missing


def written_out(parts, p, q):
    """Return the alignment of two kernels by the formula, on the entries that both have."""
    entries, sets = [], []
    for kernel in (p, q):
        (a,) = [i for i, group in enumerate(parts.kernels) if kernel in group]
        place = list(parts.kernels[a]).index(kernel)
        entries.append(np.asarray(parts.stacks[a].entries())[place])
        sets.append(parts.samples[a])
    common = np.intersect1d(*sets)
    blocks = [
        K[np.ix_(np.searchsorted(some, common), np.searchsorted(some, common))]
        for K, some in zip(entries, sets, strict=True)
    ]
    return blocks, common


MAKERS = {
    "dense": as_stack,
    "not scaled": lambda kernels: as_stack(kernels, normalize=False),
    "sparse": lambda kernels: as_stack([scipy.sparse.csr_array(K) for K in kernels]),
    "streamed": lambda kernels: as_stack(MatrixRows(list(kernels))),
    "shifted": lambda kernels: as_stack([K - 0.2 * np.eye(len(K)) for K in kernels], psd="shift"),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("missing", [0.1, 0.5])
def test_alignments_are_those_of_the_entries_that_both_kernels_have(kind, missing):
    kernels, seen = kernels_and_mask(0, missing=missing)
    seen[2] = seen[1]  # two kernels of one part
    parts = parts_of(kernels, seen, MAKERS[kind])
    found = measure_agreement(parts)
    for p, q in np.ndindex(4, 4):
        blocks, common = written_out(parts, p, q)
        assert found.pair_samples[p, q] == len(common)
        alignments, norms = written_out_agreement(blocks)
        assert found.alignments[p, q] == pytest.approx(alignments[0, 1], abs=1e-10)
        n = len(common)
        score = alignments[0, 1] * np.sqrt(n * (n - 3) / 2)
        assert found.scores[p, q] == pytest.approx(score, abs=1e-8)
        if p == q:
            assert found.norms[p] == pytest.approx(norms[0], rel=1e-10)
        else:
            shares = leading_shares(np.array(blocks))
            scores = np.array([[0, score], [score, 0]])
            assert found.pair_chances[p, q] == pytest.approx(
                chances(scores, shares)[0, 1], rel=1e-6, abs=1e-300
            )


@pytest.mark.parametrize("kind", FOREIGN)
def test_parts_of_other_libraries_are_compared_where_they_live(kind):
    kernels, seen = kernels_and_mask(1)
    expected = measure_agreement(parts_of(kernels, seen))
    there = parts_of(
        kernels,
        seen,
        lambda part: as_stack([as_library(kind, np.ascontiguousarray(K)) for K in part]),
    )
    found = measure_agreement(there)
    np.testing.assert_allclose(found.alignments, expected.alignments, atol=1e-10)
    np.testing.assert_allclose(found.pair_chances, expected.pair_chances, rtol=1e-5, atol=1e-30)


def test_one_part_of_all_samples_is_what_a_complete_stack_is():
    kernels, _ = kernels_and_mask(2)
    parts = parts_of(kernels, np.ones((4, 70), dtype=bool))
    found, expected = measure_agreement(parts), measure_agreement(as_stack(kernels))
    for field in ("alignments", "norms", "scores", "pair_chances", "lowest_chances"):
        np.testing.assert_allclose(
            getattr(found, field), getattr(expected, field), rtol=1e-12, atol=1e-12
        )
    assert found.n_samples == expected.n_samples == 70
    assert (expected.pair_samples == 70).all()
    assert not expected.is_incomplete
    assert found.summary() == expected.summary()


@given(st.integers(0, 10_000), st.sampled_from([0.2, 0.5, 0.7]))
def test_neither_the_order_of_views_nor_that_of_samples_matters(seed, missing):
    kernels, seen = kernels_and_mask(seed, missing=missing)
    rng = np.random.default_rng(seed)
    first = measure_agreement(parts_of(kernels, seen))
    views, order = rng.permutation(4), rng.permutation(70)
    second = measure_agreement(
        parts_of([kernels[p][np.ix_(order, order)] for p in views], seen[views][:, order])
    )
    both = np.ix_(views, views)
    assert np.array_equal(first.pair_samples[both], second.pair_samples)
    np.testing.assert_allclose(first.alignments[both], second.alignments, atol=1e-9)
    np.testing.assert_allclose(first.norms[views], second.norms, rtol=1e-9)
    np.testing.assert_allclose(first.pair_chances[both], second.pair_chances, rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(first.weights()[views], second.weights(), atol=1e-6)


def test_of_many_common_samples_some_stand_for_all():
    n = ALL_COMPARED + 300
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, n, 3))
    seen = np.ones((2, n), dtype=bool)
    seen[0, :100] = seen[1, -100:] = False
    K = X @ X.transpose(0, 2, 1)
    parts = parts_of(K, seen, lambda part: as_stack(part, validate=False))
    comparison = compare_parts(parts.stacks, parts.samples, parts.kernels)[-1]
    assert comparison.n_samples == SOME_COMPARED
    blocks, common = written_out(parts, comparison.first[0], comparison.second[0])
    some = draw(len(common), SOME_COMPARED)
    expected = written_out_agreement([B[np.ix_(some, some)] for B in blocks])[0][0, 1]
    assert measure_agreement(parts).alignments[0, 1] == pytest.approx(expected, abs=1e-10)
    entries = comparison.entries(np.array([0, 5, 9]))
    few = some[[0, 5, 9]]
    np.testing.assert_allclose(entries[0], blocks[0][np.ix_(few, few)])


@pytest.mark.parametrize("n_common", [0, 1, 3])
def test_kernels_with_fewer_than_four_common_samples_share_nothing_that_could_be_told(n_common):
    kernels, _ = kernels_and_mask(3, n=80, m=2)
    seen = np.zeros((2, 80), dtype=bool)
    seen[0, : 40 + n_common] = seen[1, 40:] = True
    found = measure_agreement(parts_of([kernels[0]] * 2, seen))
    assert found.pair_samples[0, 1] == n_common
    assert found.alignments[0, 1] == found.scores[0, 1] == 0
    assert found.pair_chances[0, 1] == found.lowest_chances[0, 1] == 1
    assert found.n_voices == 2
    assert not found.is_testable
    assert found.verdict() == (
        f"{n_common} samples in common, at most, are too few to tell what 2 views share from "
        "chance: all views count equally."
    )


def test_copies_are_one_voice_where_enough_samples_are_common_and_not_where_few_are():
    kernels, _ = kernels_and_mask(4, n=100, m=2)
    for n_common, n_voices in ((COPIES_SEEN, 1), (COPIES_SEEN - 1, 2)):
        seen = np.zeros((2, 100), dtype=bool)
        seen[0, : 60 + n_common] = seen[1, 60:] = True
        found = measure_agreement(
            parts_of([kernels[0] - 0.1, kernels[0]], seen, MAKERS["not scaled"])
        )
        assert found.alignments[0, 1] == pytest.approx(1)
        assert found.n_voices == n_voices


def test_few_common_samples_make_no_copies_of_views_that_share_nothing():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        kernels = [gaussian(rng.normal(size=(60, 2))) for _ in range(3)]
        seen = np.ones((3, 60), dtype=bool)
        seen[0, 4:] = False  # a kernel that sees four samples only
        found = measure_agreement(parts_of(kernels, seen))
        assert found.n_voices == 3
        assert not found.any_share


def test_a_view_compared_with_one_other_only_has_its_full_voice():
    # The first and the last have no sample in common; the middle one has half of both.
    kernels, _ = kernels_and_mask(5, n=120, m=3)
    seen = np.ones((3, 120), dtype=bool)
    seen[0, 60:] = seen[2, :60] = False
    found = measure_agreement(parts_of([kernels[0], kernels[1], kernels[0]], seen))
    assert found.chosen == [0, 1, 2]
    assert found.weights() == pytest.approx([1 / 3] * 3)


def test_a_verdict_names_the_pairs_that_have_too_few_samples_in_common():
    kernels, _ = kernels_and_mask(6, n=120, m=3)
    seen = np.ones((3, 120), dtype=bool)
    seen[0, 62:] = seen[2, :60] = False
    found = measure_agreement(parts_of(kernels, seen))
    assert found.n_samples == 120
    assert found.verdict() == (
        "All 3 views agree beyond chance. Too few samples in common to tell what they share: "
        "kernel 0 and kernel 2 (2)."
    )
    _, header, *lines = found.summary().splitlines()
    assert header.endswith("samples in common")
    pairs = [(name, line.split()[-1]) for name, line in zip(found.names, lines, strict=True)]
    assert pairs[0] == ("kernel 0", "62")
    assert pairs[2] == ("kernel 2", "60")


@pytest.mark.parametrize("fill", ["zero", "rescale"])
@pytest.mark.parametrize("n", [90, ALL_COMPARED + 200])
def test_kernels_of_features_are_compared_on_the_samples_that_both_have(n, fill):
    rng = np.random.default_rng(0)
    views = {f"view {p}": X for p, X in enumerate(rng.normal(size=(3, n, 4)))}
    views["view 1"] += 2 * views["view 0"]
    observed = rng.random((n, 3)) >= 0.4
    observed[~observed.any(axis=1), 0] = True
    observed[:, 2] &= np.arange(n) < 60  # few that both of two views have
    observed[~observed.any(axis=1), 0] = True
    for X, seen in zip(views.values(), observed.T, strict=True):
        X[~seen] = np.nan
    stack = compress(
        as_blocks(views), Linear(), center=True, normalize=True, fill=fill, random_state=0
    )
    found = measure_agreement(stack)
    features = stack.features.of(views)
    scales = np.sqrt(3 / observed.sum(axis=1)) if fill == "rescale" else np.ones(n)
    for p, q in ((0, 1), (0, 2), (1, 2)):
        common = np.flatnonzero(observed[:, p] & observed[:, q])
        if n < ALL_COMPARED or q == 2:
            assert found.pair_samples[p, q] == len(common)
            rows = [features[each][common] / scales[common, None] for each in (p, q)]
            expected = written_out_agreement([F @ F.T for F in rows])[0][0, 1]
            assert found.alignments[p, q] == pytest.approx(expected, abs=1e-9)
    assert found.pair_chances[0, 1] < 1e-5
    assert found.pair_chances[0, 2] > 1e-3
