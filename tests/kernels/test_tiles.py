"""Views on a device give the kernels that NumPy views give, computed and kept on the device."""

import pickle

import numpy as np
import pytest
from mkclust.stack.row_checks import check_rows
from mkclust.stack.row_matrix import RowMatrix
from mkclust.stack.rows import row_ranges

from conftest import blob_views
from libraries import FOREIGN, LIBRARIES, as_library
from mkclust.kernels import KernelBank
from mkclust.kernels.rows import CrossRows, KernelRows
from mkclust.linalg import is_foreign, place, precision_of, to_host
from mkclust.samples.distances import median_distance
from mkclust.samples.forms import looks_like_kernel
from mkclust.samples.samples import as_views, read_samples
from mkclust.stack import MatrixRows, StreamedStack, as_stack

pytestmark = pytest.mark.slow

N, N_NEW = 130, 40
BANKS = {
    "one Gaussian a view": {"widths": (1.0,), "polynomials": (), "linear": None},
    "twelve": {},
    "no Gaussians, cosine": {"widths": (), "linear": "cosine"},
    "narrow and wide": {"widths": (1 / 8, 100.0), "polynomials": ((2.5, 3),), "linear": None},
}
TOLERANCES = {"float64": 1e-12, "float32": 1e-5}


def views_of(dtype="float64", seed=0, n=N):
    """Return two views, one of them with a row of zeros, duplicates and an outlier."""
    views, _ = blob_views(np.random.default_rng(seed), n=n, k=4, strengths=(2, 2))
    views[1] = views[1][:, :3] + 0.5
    views[1][[5, 17]] = views[1][30]
    views[1][9], views[0][3] = 0, 12
    return {"a": views[0].astype(dtype), "b": views[1].astype(dtype)}


def new_views(dtype="float64"):
    """Return views of other samples, of which one is known."""
    views = views_of(dtype, seed=1, n=N_NEW)
    views["a"][0], views["b"][0] = views_of(dtype)["a"][0], views_of(dtype)["b"][0]
    return views


def agree(actual, expected, dtype="float64"):
    """Compare kernels with each one's largest entry as the measure."""
    actual = to_host(actual, None)
    assert (actual.shape, actual.dtype) == (expected.shape, dtype)
    largest = np.abs(expected).max(axis=tuple(range(1, expected.ndim)), keepdims=True)
    error = np.abs(actual / largest - expected / largest).max()
    assert error <= TOLERANCES[dtype]


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("settings", BANKS.values(), ids=BANKS)
def test_a_bank_gives_the_kernels_of_numpy_views(library, dtype, settings):
    expected = KernelBank(**settings).fit(views_of(dtype))
    bank = KernelBank(**settings)
    views = as_library(library, views_of(dtype))
    K = bank.fit_transform(views)
    assert place(K) == place(views["a"]) == place(bank.views_["b"])
    agree(K, expected.transform(views_of(dtype)), dtype)
    agree(bank.transform(views), expected.transform(views_of(dtype)), dtype)
    assert bank.kernel_names_ == expected.kernel_names_
    assert bank.announce(views) == expected.announce(views_of(dtype))
    for learned in ("medians_", "scales_"):
        actual = getattr(bank, learned)
        assert all(type(number) is float for number in actual.values())
        assert actual == pytest.approx(getattr(expected, learned), rel=1e-12)
    for place_of_new in ("numpy", library):
        new = as_library(place_of_new, new_views(dtype))
        cross = bank.transform(new)
        assert place(cross) == place(K)
        agree(cross, expected.transform(new_views(dtype)), dtype)
        similarities = bank.self_similarity(new)
        assert place(similarities) == place(K)
        agree(similarities, expected.self_similarity(new_views(dtype)), dtype)


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_kernels_are_exactly_symmetric_and_their_diagonals_exact(library, dtype):
    views = as_library(library, views_of(dtype))
    bank = KernelBank(linear="cosine").fit(views)
    # In several blocks, the last of them not as high as the others.
    several = KernelRows(bank, bank.views_, tile_limits=(37, 37 * N)).whole()
    similarities = to_host(bank.self_similarity(views), None)
    for kernels in (several, bank.transform(views)):
        K = to_host(kernels, None)
        np.testing.assert_array_equal(K, K.transpose(0, 2, 1))
        np.testing.assert_array_equal(np.einsum("pii->pi", K), similarities)
        agree(K, KernelBank(linear="cosine").fit_transform(views_of(dtype)), dtype)


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("d", [1, 30, 900])
def test_identical_rows_have_a_similarity_of_one(library, dtype, d):
    rng = np.random.default_rng(0)
    rounding = 0 if dtype == "float64" else 1e-5
    for view in (100 + rng.normal(size=(40, d)), rng.random((40, d)) < 0.4):
        twice = as_library(library, np.concatenate([view, view]).astype(dtype))
        for widths in ((0.1, 1.0), (1.0,)):
            bank = KernelBank(widths=widths, polynomials=(), linear=None)
            K = to_host(bank.fit_transform(twice))
            same = np.einsum("pii->pi", K[:, :40, 40:])
            np.testing.assert_allclose(same, 1, rtol=0, atol=rounding)
            assert K.max() <= 1 + rounding


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("width", [1.0, 1 / 8])
@pytest.mark.parametrize("d", [2, 30, 400])
def test_rows_far_from_the_rest_are_seen_to_be_identical(library, width, d):
    view = np.random.default_rng(0).normal(size=(100, d)).astype("float32")
    view[:3] = 40 * np.sign(view[:3])
    views = np.concatenate([view, view])
    settings = {"widths": (width,), "polynomials": (), "linear": None}
    bank = KernelBank(**settings).fit(as_library(library, views))
    rows = KernelRows(bank, bank.views_, tile_limits=(10, 10 * 200))
    is_far = rows._views[0].samples.is_far
    assert is_far[:3].all()
    assert is_far[100:103].all()
    if width == 1:
        assert is_far.sum() == 6
    expected = KernelBank(**settings).fit_transform(views)
    agree(rows.rows(0, 200), expected, "float32")
    some = np.array([101, 7, 1])
    agree(rows.among(some).rows(0, 3), expected[:, some][:, :, some], "float32")


@pytest.mark.parametrize("library", FOREIGN)
def test_a_table_is_a_bank_of_its_own(library):
    table = views_of("float32")["a"]
    bank = KernelBank()
    agree(
        bank.fit_transform(as_library(library, table)), KernelBank().fit_transform(table), "float32"
    )
    assert list(bank.views_) == ["table"]


@pytest.mark.parametrize("library", FOREIGN)
def test_a_bank_fitted_on_numpy_takes_rows_from_elsewhere(library):
    bank = KernelBank().fit(views_of())
    cross = bank.transform(as_library(library, new_views()))
    assert isinstance(cross, np.ndarray)
    np.testing.assert_allclose(cross, bank.transform(new_views()), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("library", FOREIGN)
def test_single_and_double_precision_together_give_double(library):
    views = views_of()
    views["a"] = views["a"].astype("float32")
    K = KernelBank().fit_transform(as_library(library, views))
    agree(K, KernelBank().fit_transform(views))


@pytest.mark.parametrize("far", [True, False])
@pytest.mark.parametrize("library", FOREIGN)
def test_the_median_distance_is_that_of_all_pairs(library, far, monkeypatch):
    monkeypatch.setattr("mkclust.samples.distances.free_bytes", lambda like: 2**30 if far else None)
    monkeypatch.setattr("mkclust.samples.distances.MEDIAN_ROWS", 100)
    rng = np.random.default_rng(0)
    for rows in (
        rng.normal(size=(30, 2)),
        rng.normal(size=(31, 2)),
        rng.normal(size=(2, 2)),
        np.repeat([[1.0], [2.0], [7.0]], [30, 1, 1], axis=0),  # more than half are identical
        rng.normal(size=(150, 1)),  # of which some are drawn
    ):
        actual = median_distance("x", as_library(library, rows))
        assert actual == pytest.approx(median_distance("x", rows), rel=1e-12)
    with pytest.raises(ValueError, match="All 9 rows looked at in view 'x' are identical"):
        median_distance("x", as_library(library, np.ones((9, 2))))


@pytest.mark.parametrize("library", FOREIGN)
def test_a_pickled_bank_holds_its_views_on_the_host(library):
    bank = KernelBank().fit(as_library(library, views_of()))
    K = bank.transform(new_views())
    loaded = pickle.loads(pickle.dumps(bank))
    assert is_foreign(bank.views_["a"])
    assert all(isinstance(view, np.ndarray) for view in loaded.views_.values())
    actual = loaded.transform(new_views())
    assert isinstance(actual, np.ndarray)
    agree(actual, to_host(K))


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_pickled_rows_are_computed_on_the_host(library, dtype):
    bank = KernelBank(linear="cosine", on_the_fly=True)
    known = bank.fit_transform(as_library(library, views_of(dtype)))
    for rows in (
        known,
        known.only([23, 0]),
        known.among(np.arange(50)),
        bank.transform(new_views(dtype)),
    ):
        loaded = pickle.loads(pickle.dumps(rows))
        assert is_foreign(rows.like)
        assert isinstance(loaded.like, np.ndarray)
        assert (type(loaded), loaded.shape, loaded.dtype) == (type(rows), rows.shape, dtype)
        height = rows.shape[1]
        agree(loaded.rows(0, height), to_host(rows.rows(0, height), None), dtype)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("settings", BANKS.values(), ids=BANKS)
def test_rows_on_the_fly_are_those_of_the_bank(library, dtype, settings):
    views = as_library(library, views_of(dtype))
    K = to_host(KernelBank(**settings).fit_transform(views), None)
    bank = KernelBank(**settings, on_the_fly=True)
    rows = bank.fit_transform(views)
    assert isinstance(rows, KernelRows)
    assert precision_of(rows) == dtype
    assert place(rows.rows(3, 9)) == place(views["a"])
    agree(rows.rows(33, 94), K[:, 33:94], dtype)
    agree(rows.rows(100, 10**6), K[:, 100:], dtype)
    agree(rows.entries("somebody"), K, dtype)
    diagonal = np.einsum("pii->pi", K)
    np.testing.assert_array_equal(to_host(rows.diagonal(), None), diagonal)
    np.testing.assert_array_equal(np.einsum("pii->pi", to_host(rows.rows(0, N), None)), diagonal)
    some, last = np.array([9, 80, 3, 5, 30]), rows.n_kernels - 1
    agree(rows.among(some).rows(0, 5), K[:, some][:, :, some], dtype)
    agree(rows.only([last, 0]).rows(2, 50), K[[last, 0], 2:50], dtype)
    agree(rows.only([last, 0]).diagonal(), diagonal[[last, 0]], dtype)
    cross = bank.transform(new_views(dtype))
    assert type(cross) is CrossRows
    expected = to_host(KernelBank(**settings).fit(views).transform(new_views(dtype)), None)
    agree(cross.rows(0, N_NEW), expected, dtype)
    covered = []
    for here, blocks in cross.blocks():
        for p, block in enumerate(blocks):
            agree(block[None, :, :], expected[p : p + 1, here], dtype)
        covered += range(here.start, here.stop)
    assert covered == list(range(N_NEW))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalize", [True, False])
def test_a_streamed_stack_answers_where_the_views_live(
    library, dtype, center, normalize, monkeypatch
):
    # Several blocks, not all of the same height.
    monkeypatch.setattr("mkclust.stack.rows.SMALL_BYTES", 37 * 4 * N * np.dtype(dtype).itemsize)
    monkeypatch.setattr("mkclust.stack.rows.ENTRIES_ON_DEVICE", 37 * N)
    settings = {"widths": (1.0, 0.5), "polynomials": (), "linear": None}
    K = KernelBank(**settings).fit_transform(views_of(dtype))
    dense = as_stack(K.astype(np.float64), center=center, normalize=normalize)
    views = as_library(library, views_of(dtype))
    rows = KernelBank(**settings, on_the_fly=True).fit_transform(views)
    assert len(row_ranges(rows)) > 2
    stack = StreamedStack(rows, dense.names, dense.standardizations)
    assert place(stack.like) == place(views["a"])
    assert stack.precision == np.finfo(dtype).eps
    rng = np.random.default_rng(2)
    V, c, some = rng.normal(size=(N, 5)), rng.random(4), np.array([4, 90, 17, 4])
    c[1] = 0
    vectors, combined = as_library(library, V), stack.combine(c)
    assert place(combined.like) == place(vectors)
    assert place(stack.kernel(2).like) == place(vectors)
    for actual, expected in (
        (stack.apply(vectors), dense.apply(V)),
        (combined @ vectors, dense.combine(c) @ V),
        (combined.dense(), dense.combine(c).dense()),
        (stack.entries(), dense.entries()),
        (stack.entries(some), dense.entries(some)),
    ):
        assert place(actual) == place(vectors)
        tolerance = (1e-11 if dtype == "float64" else 1e-5) * np.abs(expected).max()
        np.testing.assert_allclose(to_host(actual), expected, rtol=0, atol=tolerance)
    for small, expected in ((stack.gram(), dense.gram()), (stack.traces(), dense.traces())):
        assert type(small) is np.ndarray
        np.testing.assert_allclose(small, expected, rtol=1e-11 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("library", LIBRARIES)
def test_checking_rows_finds_sums_and_diagonals(library):
    K = KernelBank().fit_transform(views_of())
    views = as_library(library, views_of())
    rows = KernelBank(on_the_fly=True).fit_transform(views)
    matrices, largest = check_rows(rows, ["some kernel"] * len(K), symmetry=True)
    np.testing.assert_allclose(largest, np.abs(K).max(axis=(1, 2)), rtol=1e-12)
    for matrix, expected in zip(matrices, K, strict=True):
        for actual, vector in (
            (matrix.sum(), expected.sum(axis=1)),
            (matrix.diagonal(), np.diag(expected)),
            (RowMatrix(matrix.source, matrix.diagonal()).sum(), expected.sum(axis=1)),
        ):
            assert place(actual) == place(views["a"])
            np.testing.assert_allclose(to_host(actual), vector, rtol=0, atol=1e-11 * vector.max())


@pytest.mark.parametrize("library", FOREIGN)
@pytest.mark.parametrize("columns", [1, 16, 65, 4096])
def test_row_sums_of_single_precision_are_those_of_double(library, columns):
    K = KernelBank().fit_transform(views_of("float32"))
    source = MatrixRows(as_library(library, list(K)))
    labels = ["some kernel"] * len(K)
    looked, _ = check_rows(source, labels, symmetry=False, summed_columns=columns)
    for matrix, kernel in zip(looked, K.astype(np.float64), strict=True):
        rounding = 1e-6 * np.abs(kernel).sum(axis=1).max()
        assert matrix.sum().dtype == as_library(library, np.ones(1)).dtype
        np.testing.assert_allclose(to_host(matrix.sum()), kernel.sum(axis=1), rtol=0, atol=rounding)


@pytest.mark.parametrize("library", LIBRARIES)
def test_of_no_samples_there_are_no_rows(library):
    rows = KernelBank(on_the_fly=True).fit_transform(as_library(library, views_of()))
    nobody = np.zeros(0, dtype=int)
    assert row_ranges(rows.among(nobody)) == []
    assert tuple(rows.among(nobody).rows(0, 0).shape) == (24, 0, 0)
    stack = StreamedStack(rows, ("kernel",) * 24, as_stack(rows).standardizations)
    assert tuple(stack.entries(nobody).shape) == (24, 0, 0)


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_of_one_kernel_come_in_the_order_asked_for(library):
    K = KernelBank().fit_transform(views_of())[3:4]
    source = MatrixRows([as_library(library, K[0])])
    matrix = RowMatrix(source, as_library(library, np.diag(K[0])))
    for wanted in ([4, 90, 17, 4], [2, 3, 3, 100], slice(5, 99), slice(None)):
        actual = matrix[np.array(wanted) if isinstance(wanted, list) else wanted]
        np.testing.assert_array_equal(to_host(actual), K[0][wanted])
    some = np.array([99, 4, 4, 60])
    stack = StreamedStack(source, ("kernel 0",), as_stack(K).standardizations)
    np.testing.assert_allclose(
        to_host(stack.entries(some)), as_stack(K).entries(some), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("library", FOREIGN)
def test_checking_rows_names_what_is_wrong(library):
    X = views_of()["a"]
    kernel = X @ X.T
    broken, lopsided = kernel.copy(), kernel.copy()
    broken[7, 3], broken[7, 5], lopsided[2, 5] = np.nan, np.inf, 1e3
    for matrix, said in (
        (broken, "kernel 0 contains NaN or infinity: in row 7, the first such, 1 entries are NaN"),
        (lopsided, "kernel 0 is not symmetric: its product with a random vector"),
    ):
        with pytest.raises(ValueError, match=said):
            check_rows(MatrixRows([as_library(library, matrix)]), ["kernel 0"], symmetry=True)


@pytest.mark.parametrize("library", FOREIGN)
def test_views_are_not_copied_and_keep_their_precision(library):
    for given, expected in (
        ("float64", "float64"),
        ("float32", "float32"),
        ("int16", "float64"),
        ("bool", "float64"),
    ):
        view = as_library(library, np.eye(3).astype(given))
        actual = as_views([view])["view 0"]
        assert precision_of(actual) == expected
        assert place(actual) == place(view)
        if given == expected:
            view[0, 0] = 5.0
            assert float(actual[0, 0]) == 5
    with pytest.raises(ValueError, match="View 'x' has the type .*complex"):
        as_views({"x": as_library(library, np.eye(3).astype(complex))})


def test_sparse_tensors_are_refused_by_name():
    torch = pytest.importorskip("torch")
    for view in (torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr()):
        with pytest.raises(TypeError, match=r"View 'x' is a sparse tensor.*\.to_dense\(\)"):
            KernelBank().fit({"x": view})
        with pytest.raises(TypeError, match="X is a sparse tensor"):
            as_views(view)


def test_half_precision_becomes_single_and_gradients_are_left_behind():
    torch = pytest.importorskip("torch")
    for half in (torch.float16, torch.bfloat16):
        view = torch.ones((3, 2), dtype=half)
        assert as_views(view)["table"].dtype == torch.float32
        assert KernelBank().announce(view)[2] == np.float32
    actual = as_views([torch.ones((3, 2), requires_grad=True)])["view 0"]
    assert not actual.requires_grad


@pytest.mark.parametrize("library", FOREIGN)
def test_what_is_wrong_with_a_view_is_said_in_the_words_for_numpy(library):
    bad = np.ones((5, 4))
    bad[2, 1] = bad[3, 3] = np.nan
    bad[0, 0] = -np.inf
    for view in (bad, np.ones((0, 3)), np.ones(4), np.ones((2, 2, 2))):
        messages = []
        for form in (view, as_library(library, view)):
            with pytest.raises(ValueError, match="View 'x'") as error:
                as_views({"x": form})
            messages.append(str(error.value))
        # Only what is in the memory of the host can be filled.
        finding, advice = (message.partition("; ")[0] for message in messages), messages[1]
        assert len(set(finding)) == 1
        assert "impute='median'" not in advice
    with pytest.raises(ValueError, match="X has entries that are not finite: 2 NaN and 1 infinity"):
        as_views(as_library(library, bad))
    with pytest.raises(ValueError, match="View 'y' has 4 rows but view 'x' has 5"):
        as_views(as_library(library, {"y": np.ones((4, 2)), "x": np.ones((5, 2))}))


@pytest.mark.parametrize("library", FOREIGN)
def test_views_of_different_places_are_refused_by_name(library):
    views = {"a": np.ones((5, 2)), "b": as_library(library, np.ones((5, 2)))}
    with pytest.raises(ValueError, match="View 'a' is an array of NumPy and view 'b' one of"):
        KernelBank().fit(views)


@pytest.mark.parametrize("library", FOREIGN)
def test_inputs_are_told_apart_wherever_they_live(library):
    X = views_of()["a"]
    kernel = X @ X.T

    def here(array):
        return as_library(library, array)

    assert looks_like_kernel(here(kernel))
    assert not looks_like_kernel(here(kernel + np.arange(N)))
    assert not looks_like_kernel(here(X))
    assert read_samples(here(np.stack([kernel] * 2))).kind == "kernels"
    assert read_samples(here([X, X])).kind == "views"
    assert read_samples(here(X)).kind == "table"
    assert read_samples(here([kernel, kernel]), expected="precomputed").kind == "kernels"
    with pytest.raises(ValueError, match=f"X is one symmetric {N} x {N} matrix"):
        read_samples(here(kernel))
    with pytest.raises(ValueError, match="X holds square matrices only"):
        read_samples(here([kernel, kernel]))


@pytest.mark.parametrize("library", FOREIGN)
def test_kernels_too_large_for_the_device_are_refused(library, monkeypatch):
    views = as_library(library, views_of())
    monkeypatch.setattr("mkclust.kernels.bank.free_bytes", lambda like: 24 * N * N * 8 - 1)
    with pytest.raises(MemoryError, match=r"holding 24 kernels .* of the device's memory"):
        KernelBank().fit_transform(views)
    monkeypatch.setattr("mkclust.kernels.rows.free_bytes", lambda like: 24 * N * N * 8 - 1)
    with pytest.raises(MemoryError, match=r"somebody needs the entries .* the device's memory"):
        KernelBank(on_the_fly=True).fit_transform(views).entries("somebody")


@pytest.mark.parametrize("library", FOREIGN)
def test_blocks_on_a_device_leave_its_memory_free(library, monkeypatch):
    rows = KernelBank(on_the_fly=True).fit_transform(as_library(library, views_of()))
    one = 24 * N * 8
    for free in (10**12, 20 * 40 * one, 1):
        monkeypatch.setattr("mkclust.stack.rows.free_bytes", lambda like, free=free: free)
        ranges = row_ranges(rows)
        assert [start for start, _ in ranges[1:]] == [stop for _, stop in ranges[:-1]]
        assert (ranges[0][0], ranges[-1][1]) == (0, N)
        height = max(stop - start for start, stop in ranges)
        assert height == 1 or height * one <= 0.05 * free
    assert len(ranges) == N
