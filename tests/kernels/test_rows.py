"""Kernels computed on the fly are those of the dense bank, in memory as long as the views."""

import pickle
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from conftest import blob_views
from mkclust import METHODS, KernelBank, SimpleMKKM
from mkclust.explain.held_out import alignment_error
from mkclust.kernels.rows import CrossRows, KernelRows
from mkclust.methods import solve_anchored_mkkm, solve_simple_mkkm
from mkclust.stack import RowSource, StreamedStack, as_stack

pytestmark = pytest.mark.slow

N, N_NEW = 230, 90
ONE_GAUSSIAN = {"widths": (1.0,), "polynomials": (), "linear": None}
BANKS = {
    "one Gaussian a view": ONE_GAUSSIAN,
    "twelve": {},
    "twelve with cosine": {"linear": "cosine"},
    "no Gaussians": {"widths": ()},
    "cosine alone": {"widths": (), "polynomials": (), "linear": "cosine"},
    "narrow and wide": {"widths": (1 / 20, 100.0), "polynomials": ((2.5, 3),), "linear": None},
}
INDUCTIVE = {name: method for name, method in METHODS.items() if hasattr(method, "predict")}
TRANSDUCTIVE = {name: method for name, method in METHODS.items() if name not in INDUCTIVE}


def views_of(dtype=np.float64, n=N):
    """Return two views, one of them with a row of zeros, duplicates and an outlier."""
    views, _ = blob_views(np.random.default_rng(0), n=n, k=4, strengths=(2, 2))
    views[1] = views[1][:, :3] + 0.5
    views[1][[5, 77]] = views[1][40]
    views[1][9], views[0][3] = 0, 12
    return [view.astype(dtype) for view in views]


def new_views(dtype=np.float64):
    """Return other samples of the same views, a known one among them."""
    rng = np.random.default_rng(1)
    views = [view[:N_NEW] + 0.3 * rng.normal(size=view[:N_NEW].shape) for view in views_of()]
    views[1][0] = views_of()[1][40]
    return [view.astype(dtype) for view in views]


def both(settings, views):
    """Return the fitted dense bank, the one on the fly, and what they make of the views."""
    dense, lazy = KernelBank(**settings), KernelBank(**settings, on_the_fly=True)
    return dense, lazy, dense.fit_transform(views), lazy.fit_transform(views)


def agree(actual, expected):
    """Compare kernels with each one's largest entry as the measure."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    largest = np.abs(expected).max(axis=(1, 2), keepdims=True)
    tolerance = 1e-12 if expected.dtype == np.float64 else 1e-6
    np.testing.assert_allclose(actual / largest, expected / largest, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("settings", BANKS.values(), ids=BANKS)
@pytest.mark.parametrize("table", [False, True])
def test_rows_are_those_of_the_dense_bank(settings, dtype, table):
    views = views_of(dtype)[1] if table else views_of(dtype)
    dense, lazy, K, rows = both(settings, views)
    assert isinstance(rows, RowSource)
    assert lazy.kernel_names_ == dense.kernel_names_
    assert (rows.n_kernels, rows.n_samples, rows.dtype) == (*K.shape[:2], K.dtype)
    agree(rows.rows(0, N), K)
    agree(rows.rows(33, 134), K[:, 33:134])
    np.testing.assert_array_equal(rows.diagonal(), np.einsum("pii->pi", K))
    np.testing.assert_array_equal(np.einsum("pii->pi", rows.rows(0, N)), rows.diagonal())
    agree(rows.rows(0, N).transpose(0, 2, 1), K)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("settings", BANKS.values(), ids=BANKS)
def test_new_rows_are_those_of_the_dense_bank(settings, dtype):
    dense, lazy, _, _ = both(settings, views_of(dtype))
    expected, actual = dense.transform(new_views(dtype)), lazy.transform(new_views(dtype))
    assert not isinstance(actual, RowSource)  # not square, and no set of kernels
    assert actual.shape == expected.shape
    agree(actual.rows(0, N_NEW), expected)
    agree(actual.rows(50, 10**6), expected[:, 50:])
    agree(np.concatenate([block.copy() for _, block in actual.blocks()], axis=1), expected)


@pytest.mark.parametrize("limits", [(1, 1), (50, 50), (7, 100), (100, 2**20)])
def test_the_size_of_tiles_does_not_matter(limits):
    views = [view[:40] for view in views_of()]
    _, lazy, K, _ = both({"linear": "cosine"}, views)
    rows = KernelRows(lazy, lazy.views_, tile_limits=limits)
    agree(rows.rows(3, 38), K[:, 3:38])
    agree(rows.whole(), K)
    np.testing.assert_array_equal(rows.whole(), rows.whole().transpose(0, 2, 1))


def test_blocks_cover_all_new_rows_whatever_their_height():
    dense, lazy, K, _ = both({}, views_of())
    expected = dense.transform(new_views())
    for n_rows in (1, 7, N_NEW, 10**6):
        places = []
        for place, block in lazy.transform(new_views()).blocks(n_bytes=n_rows * K[:, 0].nbytes):
            agree(block, expected[:, place])
            places += range(place.start, place.stop)
            assert block.shape[1] <= n_rows
        assert places == list(range(N_NEW))


def test_the_training_views_are_recognized():
    _, lazy, K, _ = both({}, views_of())
    actual = lazy.transform([view.copy() for view in views_of()])
    assert isinstance(actual, KernelRows)
    agree(actual.rows(0, N), K)
    assert type(lazy.transform(new_views())) is CrossRows


@dataclass
class TileRecorder:
    """A formula that records the tiles that it is asked for."""

    steepness: float
    tiles: list = field(default_factory=list)

    def entries(self, tile):
        self.tiles.append(tile)
        return tile.inner if self.steepness == 0 else tile.exponents


def test_some_kernels_are_computed_without_the_others():
    _, _, K, rows = both({}, views_of())
    for indices in ([3], [20, 0, 11, 12], [7, 7], range(24)):
        agree(rows.only(indices).rows(2, 99), K[list(indices), 2:99])
        agree(rows.only(indices).diagonal()[:, None], rows.diagonal()[list(indices), None])
    agree(rows.only([20, 0, 11]).only([2, 0]).rows(2, 9), K[[11, 20], 2:9])
    for steepness, absent in ((1.0, "inner"), (0.0, "exponents")):
        formula = TileRecorder(steepness)
        view = replace(rows._views[0], formulas=[(3, formula), (5, TileRecorder(1 - steepness))])
        (selected,) = [*view.only([3]).tiles(slice(0, 9), [slice(0, N)])]
        assert selected[0] == 0
        (tile,) = formula.tiles
        assert getattr(tile, absent) is None


def test_distances_and_inner_products_are_shared_within_a_view():
    _, _, _, rows = both({}, views_of())
    formulas = [TileRecorder(steepness) for steepness in (1.0, 0.0, 2.0, 0.0)]
    view = replace(rows._views[0], formulas=list(enumerate(formulas)))
    list(view.tiles(slice(0, N), [slice(0, 100), slice(100, N)]))
    for formula in formulas:
        assert len(formula.tiles) == 2
        assert all(a is b for a, b in zip(formula.tiles, formulas[0].tiles, strict=True))


def test_identical_samples_have_a_similarity_of_exactly_one():
    views = views_of()
    rows = KernelBank(**ONE_GAUSSIAN, on_the_fly=True).fit_transform(1e3 + views[1])
    for i, j in ((5, 40), (77, 5), (40, 77)):
        assert rows.rows(i, i + 1)[0, 0, j] == 1


def test_a_bank_may_change_after_its_rows_were_made():
    bank = KernelBank(**ONE_GAUSSIAN, on_the_fly=True)
    rows = bank.fit_transform(views_of())
    before = rows.rows(0, 9)
    bank.set_params(widths=(3.0, 4.0), linear="linear").fit([view[:50] for view in views_of()])
    np.testing.assert_allclose(rows.rows(0, 9), before, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        pickle.loads(pickle.dumps(rows)).rows(0, 9), before, rtol=1e-12, atol=1e-12
    )


def test_blocks_stay_as_they_were_when_more_are_asked_for():
    rows = KernelBank(on_the_fly=True).fit_transform(views_of())
    first, before = rows.rows(0, 20), rows.rows(0, 20).copy()
    for start in range(20, 100, 20):
        rows.rows(start, start + 20)
    np.testing.assert_allclose(first, before, rtol=1e-12, atol=1e-12)


def test_only_true_and_false_say_whether():
    with pytest.raises(ValueError, match="on_the_fly must be True or False; found 'yes'"):
        KernelBank(on_the_fly="yes").fit(views_of())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("settings", [ONE_GAUSSIAN, {}], ids=["one Gaussian a view", "twelve"])
def test_the_stack_answers_as_that_of_the_dense_bank(settings, dtype):
    _, _, K, rows = both(settings, views_of(dtype))
    # In single precision the orders of summation differ by more than the kernels do.
    stack, dense = as_stack(rows), as_stack(K, streamed=None if dtype == np.float64 else True)
    assert isinstance(stack, StreamedStack)
    m = len(K)
    rng = np.random.default_rng(2)
    V, c, some = rng.normal(size=(N, 5)), rng.random(m), np.array([4, 90, 17, 4])
    tolerance = 1e-10 if dtype == np.float64 else 1e-6
    for actual, expected in (
        (stack.apply(V), dense.apply(V)),
        (stack.combine(c) @ V, dense.combine(c) @ V),
        (stack.kernel(m - 1) @ V, dense.kernel(m - 1) @ V),
        (stack.gram(), dense.gram()),
        (stack.traces(), dense.traces()),
        (stack.entries(some), dense.entries(some)),
    ):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


class Counting(KernelRows):
    """Rows that count how often each was computed."""

    def __init__(self, bank, views, **options):
        super().__init__(bank, views, **options)
        self.counts = np.zeros(self.n_samples, dtype=int)

    def write(self, start, stop, out):
        self.counts[start:stop] += 1
        super().write(start, stop, out)

    def passes(self):
        """Return how often the rows were computed, and forget it."""
        passes = set(self.counts.tolist())
        self.counts[:] = 0
        return passes


def test_every_row_is_computed_once_a_pass():
    bank = KernelBank(on_the_fly=True).fit(views_of())
    rows = Counting(bank, bank.views_)
    stack = as_stack(rows)
    assert rows.passes() == {1}
    m = stack.n_kernels
    combined = stack.combine(np.full(m, 1 / m))
    for question in (
        lambda: stack.apply(np.ones((N, 2))),
        lambda: combined @ np.ones((N, 2)),
        stack.gram,
        stack.entries,
    ):
        question()
        assert rows.passes() == {1}


def test_labels_take_as_many_passes_however_many_kernels_there_are(monkeypatch):
    made = []

    def counting(bank, views, **options):
        made.append(Counting(bank, views, **options))
        return made[-1]

    monkeypatch.setattr("mkclust.kernels.bank.KernelRows", counting)
    monkeypatch.setattr(SimpleMKKM, "_alignments", lambda self, stack, solution: None)
    monkeypatch.setattr(SimpleMKKM, "_compromise", lambda self, stack, solution: None)
    bank = KernelBank(widths=(1.0, 2.0), polynomials=(), on_the_fly=True)
    model = SimpleMKKM(4, kernels=bank, random_state=0).fit(views_of())
    # One to check, one for the alignment of the training samples with the clusters, and one for
    # what the views agree on; the entries of some samples that stand for all, and of neighboring
    # ones, are computed once to three times more. The embedding is known from the solve.
    assert made[0].passes() == {model.n_passes_ + more for more in (4, 5, 6)}


@pytest.mark.parametrize(
    ("settings", "anchor"), [(ONE_GAUSSIAN, 0.0), (ONE_GAUSSIAN, 1.0), ({}, 0.0)]
)
def test_weights_are_those_of_the_dense_bank(settings, anchor):
    views, _ = blob_views(np.random.default_rng(0), n=300, k=4, strengths=(1, 1, 0.5))
    views = views if settings else views[0]
    _, _, K, rows = both(settings, views)
    solve = partial(solve_anchored_mkkm, anchor=anchor) if anchor else solve_simple_mkkm
    # Streamed alike, so that only the kernels differ and not the road of the solver.
    one, other = (
        solve(stack, 4, tol=1e-10) for stack in (as_stack(rows), as_stack(K, streamed=True))
    )
    dense = solve(as_stack(K), 4, tol=1e-10)
    np.testing.assert_allclose(one.weights, other.weights, rtol=0, atol=1e-6)
    np.testing.assert_allclose(one.weights, dense.weights, rtol=0, atol=1e-4)
    assert one.objective == pytest.approx(dense.objective, rel=1e-6 if anchor else 1e-9)


@pytest.mark.parametrize("method", INDUCTIVE.values(), ids=INDUCTIVE)
def test_every_inductive_method_clusters_and_predicts_as_with_the_dense_bank(method):
    views, new = views_of(), new_views()
    dense, lazy = (
        method(4, kernels=KernelBank(**ONE_GAUSSIAN, on_the_fly=lazy), random_state=0).fit(views)
        for lazy in (False, True)
    )
    np.testing.assert_array_equal(lazy.labels_, dense.labels_)
    np.testing.assert_array_equal(lazy.predict(views), lazy.labels_)
    np.testing.assert_array_equal(lazy.predict(new), dense.predict(new))
    np.testing.assert_allclose(lazy.weights_, dense.weights_, atol=2e-3)
    assert lazy.transform(new).shape == (N_NEW, 4)


def test_a_table_of_single_precision_clusters_as_with_the_dense_bank():
    view, new = views_of(np.float32)[0], new_views(np.float32)[0]
    dense, lazy = (
        SimpleMKKM(4, kernels=KernelBank(on_the_fly=lazy), tol=1e-4, random_state=0).fit(view)
        for lazy in (False, True)
    )
    np.testing.assert_array_equal(lazy.labels_, dense.labels_)
    np.testing.assert_array_equal(lazy.predict(view), lazy.labels_)
    np.testing.assert_array_equal(lazy.predict(new), dense.predict(new))
    assert alignment_error(lazy, new) == pytest.approx(alignment_error(dense, new), abs=1e-3)
    assert alignment_error(lazy, view) == pytest.approx(lazy.alignment_error_, abs=1e-5)


@pytest.mark.parametrize("method", TRANSDUCTIVE.values(), ids=TRANSDUCTIVE)
def test_methods_that_need_entries_write_them_out_or_refuse(method, monkeypatch):
    views = [view[:80] for view in views_of()]
    dense, lazy = (
        method(4, kernels=KernelBank(**ONE_GAUSSIAN, on_the_fly=lazy), random_state=0)
        for lazy in (False, True)
    )
    np.testing.assert_array_equal(lazy.fit(views).labels_, dense.fit(views).labels_)
    monkeypatch.setattr("mkclust.linalg.memory.available_bytes", lambda: 2 * 80 * 80 * 8 - 1)
    with pytest.raises(MemoryError, match=f"{method.__name__} needs the entries of the kernels"):
        lazy.fit(views)


def test_estimators_take_sources_of_rows_as_kernels():
    _, _, K, rows = both(ONE_GAUSSIAN, views_of())
    expected = SimpleMKKM(4, random_state=0).fit(K).labels_
    for kernels in ("auto", "precomputed"):
        model = SimpleMKKM(4, kernels=kernels, random_state=0).fit(rows)
        np.testing.assert_array_equal(model.labels_, expected)
        np.testing.assert_array_equal(model.predict(K), expected)
    with pytest.raises(ValueError, match="X is a source of rows of kernels, a KernelRows"):
        SimpleMKKM(4, kernels=KernelBank()).fit(rows)


MEASURE = """
import numpy as np
from mkclust import KernelBank, SimpleMKKM
from mkclust.kernels.rows import CrossRows

def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

most = 0
write = CrossRows.write

def measured(self, start, stop, out):
    global most
    write(self, start, stop, out)
    most = max(most, anonymous())

CrossRows.write = measured
n, rng = 5000, np.random.default_rng(0)
views = [4 * rng.normal(size=(3, 5))[np.arange(n) % 3] + rng.normal(size=(n, 5)) for _ in range(2)]
SimpleMKKM(3, n_init=1, random_state=0).fit([view[:300] for view in views])  # loads all it needs
bank = KernelBank(widths=(1.0,), polynomials=(), linear=None, on_the_fly=True)
model = SimpleMKKM(3, kernels=bank, tol=1e-2, n_init=1, random_state=0)
before = anonymous()
model.fit(views)
print(most - before)
most = 0
model.predict([view + 0.1 for view in views])
print(most - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the memory")
def test_passes_of_a_fit_and_of_a_prediction_take_far_less_memory_than_one_kernel():
    run = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    fitted, predicted = map(int, run.stdout.split())
    assert fitted < 5000**2 * 8 / 4
    assert predicted < 5000**2 * 8 / 4


def test_the_default_kernels_can_be_had_on_the_fly_by_name():
    views, _ = blob_views(np.random.default_rng(0), n=90, k=3, strengths=(2.0, 2.0))
    for X in (views, views[0]):
        dense = SimpleMKKM(3, random_state=0).fit(X)
        lazy = SimpleMKKM(3, kernels="on-the-fly", random_state=0).fit(X)
        assert lazy.kernel_names_ == dense.kernel_names_
        assert lazy.bank_.on_the_fly
        assert np.array_equal(lazy.labels_, dense.labels_)
        assert np.array_equal(lazy.predict(X), lazy.labels_)
    with pytest.raises(ValueError, match="KernelBank makes kernels from views"):
        SimpleMKKM(3, kernels="on-the-fly").fit(np.array([np.eye(9)] * 2))
