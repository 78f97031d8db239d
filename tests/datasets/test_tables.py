"""Tables in text, sheets and Arrow's files become data frames whose index are the
ids."""

import bz2
import gzip
import lzma
import pickle
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
import scipy.sparse

from mkclust.datasets import DatasetError, load


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
    return path


def complaint(path, **options):
    with pytest.raises(DatasetError) as caught:
        load(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def view(path, **options):
    (frame,) = load(path, **options).views.values()
    return frame


TABLE = "id,a,b\ns1,1,2.5\ns2,3,\ns3,5,-1e3\n"


@pytest.fixture
def frame():
    values = {"a": [1.0, 3.0, 5.0], "b": [2.5, np.nan, -1000.0]}
    return pd.DataFrame(values, index=["s1", "s2", "s3"])


def same(actual, expected):
    pd.testing.assert_frame_equal(
        actual, expected, check_index_type=False, check_dtype=False
    )


@pytest.mark.parametrize(
    ("suffix", "library"), [("gz", gzip), ("bz2", bz2), ("xz", lzma)]
)
def test_a_packed_table_is_read_as_a_plain_one(tmp_path, frame, suffix, library):
    data = load(write(tmp_path / f"x.csv.{suffix}", library.compress(TABLE.encode())))
    assert (list(data.views), data.name) == (["x"], "x")
    same(data.views["x"], frame)
    assert "Ids: the column id." in data.description


@pytest.mark.parametrize(
    ("name", "text", "encoding"),
    [
        ("x.tsv", TABLE.replace(",", "\t"), "utf-8"),
        ("x.csv", TABLE.replace(",", ";"), "utf-8"),
        ("x.csv", TABLE.replace(",", ";").replace(".", ","), "utf-8"),
        ("x.csv", TABLE, "utf-8-sig"),
        ("x.txt", TABLE.replace(",", "\t"), "utf-16"),
        ("x.csv", TABLE.replace("\n", "\r\n"), "utf-8"),
        ("x.csv", TABLE.replace("s1", '"s1"').replace("a", '"a"'), "utf-8"),
        ("x.csv", TABLE.replace("id", ""), "utf-8"),
        ("x.csv", TABLE.replace("id", "anything"), "utf-8"),
        ("x.txt", '"a" "b"\n"s1" 1 2.5\n"s2" 3 NA\n"s3" 5 -1e3\n', "utf-8"),
        ("x.csv", TABLE + "\n\n", "utf-8"),
        ("x.csv", "\n\n" + TABLE, "utf-8"),
        ("x.csv", TABLE.replace("2.5", " 2.5 "), "utf-8"),
    ],
)
def test_dialects_of_text_are_told_from_the_text(tmp_path, frame, name, text, encoding):
    same(view(write(tmp_path / name, text, encoding)), frame)


def test_ids_are_text_as_they_are_written(tmp_path):
    assert list(view(write(tmp_path / "x.csv", "id,a\n007,1\n8,2\n")).index) == [
        "007",
        "8",
    ]
    frame = pd.DataFrame({"id": [7, 8], "a": [1.0, 2.0]})
    frame.to_parquet(tmp_path / "x.parquet")
    frame.to_feather(tmp_path / "x.feather")
    for suffix in ("parquet", "feather"):
        assert list(view(tmp_path / f"x.{suffix}").index) == ["7", "8"]


def test_ids_that_are_there_twice_or_missing_are_refused_with_the_next_step(tmp_path):
    path = write(tmp_path / "x.csv", "patient,code,b\np1,x,2\np1,y,4\np2,z,5\n")
    message = complaint(path)
    assert "column patient" in message
    assert "'p1'; pass id='code'" in message
    assert list(view(path, id="code").index) == ["x", "y", "z"]
    assert "'code'" in complaint(path, id="Codes")
    assert "row 2" in complaint(write(path, "id,b\ns1,1\n,2\n"))


@pytest.mark.parametrize("header", ["id", "country", ""])
def test_an_id_that_spells_a_missing_value_is_an_id(tmp_path, header):
    table = view(write(tmp_path / "x.csv", f"{header},a,b\nUS,1,2\nNA,NA,4\nFR,5,6\n"))
    assert table["a"].isna().tolist() == [False, True, False]
    frame = pd.DataFrame(
        {header: ["US", "NA", "FR"], "a": [1.0, np.nan, 5.0], "b": [2, 4, 6]}
    )
    frame.to_excel(tmp_path / "x.xlsx", index=False)
    assert (
        list(table.index) == list(view(tmp_path / "x.xlsx").index) == ["US", "NA", "FR"]
    )


def test_a_table_that_is_larger_than_memory_is_refused_by_its_first_lines(
    tmp_path, monkeypatch
):
    path = write(tmp_path / "x.csv", "id,a,b,c\n" + "s,1,2,3\n" * 1_000_000)
    monkeypatch.setattr("mkclust.linalg.memory.MEMINFO", tmp_path / "meminfo")
    (tmp_path / "meminfo").write_text("MemAvailable: 1024 kB\n")
    assert "of memory" in complaint(path)


def test_samples_in_columns_are_turned(tmp_path, frame):
    text = "gene,s1,s2,s3\na,1,3,5\nb,2.5,,-1e3\n"
    same(view(write(tmp_path / "x.csv", text), samples_in="columns"), frame)
    data = load(write(tmp_path / "x.csv", text + "y,0,1,1\n"), samples_in="columns")
    assert data.y.tolist() == [0, 1, 1]
    assert list(data.views["x"].columns) == ["a", "b"]
    repeated = "gene,s1,s2\nTP53,1,3\nTP53,2,4\n"
    table = view(write(tmp_path / "x.csv", repeated), samples_in="columns")
    assert list(table.columns) == ["TP53", "TP53 (2)"]
    assert table.to_numpy().tolist() == [[1, 2], [3, 4]]
    assert "pass 'rows'" in complaint(tmp_path / "x.csv", samples_in="depth")


def coordinates(**more):
    """Return a table of three coordinates of each sample, and more columns."""
    xyz = pd.DataFrame(
        np.random.default_rng(0).normal(size=(60, 3)), columns=["x", "y", "z"]
    )
    return xyz.assign(**more).set_axis([f"s{i}" for i in range(60)])


def write_frame(frame, path):
    """Write a table in the format that the name of the file tells."""
    kind = path.suffix.removeprefix(".")
    if kind in ("csv", "xlsx"):
        getattr(frame, {"csv": "to_csv", "xlsx": "to_excel"}[kind])(
            path, index_label="id"
        )
    else:
        getattr(frame, f"to_{kind}")(path)
    return path


@pytest.mark.parametrize(
    "name", ["a.csv", "a.xlsx", "a.parquet", "a.feather", "large.parquet"]
)
def test_a_column_y_of_many_values_is_a_feature_and_labels_are_asked_for_by_name(
    tmp_path, name
):
    path = write_frame(coordinates(place=np.arange(60) % 3), tmp_path / name)
    options = {"on_disk": name.startswith("large") or None}
    with pytest.warns(UserWarning, match=r"y \(60\).*feature.*--drop y.*labels='y'"):
        data = load(path, **options)
    (table,) = data.views.values()
    assert data.y is None
    assert table.shape == (60, 4)
    np.testing.assert_allclose(np.asarray(table)[:, :3], coordinates())

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = load(path, labels="y", **options)
        other = load(path, labels="place", **options)
        none = load(path, labels="", **options)
    np.testing.assert_allclose(asked.y, coordinates()["y"])
    assert other.y.tolist() == [0, 1, 2] * 20
    assert (asked.label_name, other.label_name, none.label_name) == ("y", "place", "")
    assert [next(iter(d.views.values())).shape[1] for d in (asked, other, none)] == [
        3,
        3,
        4,
    ]
    if path.suffix != ".xlsx":  # whose parts are sheets
        assert next(iter(load(f"{path}::x,y", **options).views.values())).shape == (
            60,
            2,
        )
    assert "no column kind for the labels" in complaint(path, labels="kind", **options)


@pytest.mark.parametrize(
    ("y", "is_label"),
    [
        (np.arange(60) // 2, True),
        (np.arange(60) // 20 + 0.5, True),
        ([f"type {i % 30}" for i in range(60)], True),
        (np.repeat(np.random.default_rng(0).normal(size=30), 2), False),
        (np.arange(60), False),
        ([f"sample {i}" for i in range(60)], False),
    ],
)
def test_labels_repeat_and_fractions_do_so_often(tmp_path, y, is_label):
    path = write_frame(coordinates(y=y), tmp_path / "a.csv")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = load(path)
    assert (data.y is not None) == is_label == (not caught)
    assert ("y" in data.views["a"].columns) != is_label


def test_observations_of_many_values_are_no_labels(tmp_path):
    anndata = pytest.importorskip("anndata")
    frame = coordinates(kind=["a", "b"] * 30)
    content = anndata.AnnData(frame[["x", "z"]].to_numpy(), obs=frame[["y", "kind"]])
    content.write_h5ad(tmp_path / "cells.h5ad")
    assert load(tmp_path / "cells.h5ad").y is None
    assert load(tmp_path / "cells.h5ad", labels="kind").y.tolist() == ["a", "b"] * 30


def test_values_that_stand_for_missing_cells_become_nan(tmp_path):
    table = pd.DataFrame(
        {"id": ["-9999", "b", "c"], "a": [1, -9999.0, 3], "b": [1, 2, "<0.5"]}
    )
    table.to_csv(tmp_path / "x.csv", index=False)
    table.to_excel(tmp_path / "x.xlsx", index=False)
    table.drop(columns="b").to_parquet(tmp_path / "x.parquet")
    for suffix in ("csv", "xlsx", "parquet"):
        found = view(tmp_path / f"x.{suffix}", missing=[-9999, "<0.5"])
        assert found.index.tolist() == ["-9999", "b", "c"]
        assert found.dtypes.eq(float).all()
        assert found.isna().sum().tolist() == [1, 1][: found.shape[1]]
    np.save(tmp_path / "x.npy", np.ones((3, 3)))
    assert "missing=-9999" in complaint(tmp_path / "x.npy", missing=-9999)


def test_a_first_column_of_numbers_with_missing_values_in_words_is_a_feature(tmp_path):
    path = write(tmp_path / "x.csv", "a,b\n1.5,1\n<0.5,2\n2.5,4\n")
    values = view(path, missing="<0.5")["a"]
    assert values.dtype == float
    np.testing.assert_array_equal(values, [1.5, np.nan, 2.5])
    # Without it, the column holds text that is different in every row.
    assert view(path).index.tolist() == ["1.5", "<0.5", "2.5"]


def test_columns_are_dropped_and_selected_by_name(tmp_path):
    path = write(
        tmp_path / "x.csv", "id,a,notes,b\ns1,1,some words,2\ns2,3,other words,4\n"
    )
    assert list(view(path, drop=["notes"]).columns) == ["a", "b"]
    assert list(view(path, drop="notes").columns) == ["a", "b"]
    assert list(view(f"{path}::b,a").columns) == ["a", "b"]
    assert "'notes'" in complaint(path, drop=["note"])
    assert "no column c" in complaint(f"{path}::c")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("id,a,b\n", "no rows"),
        ("id,a,a\ns1,1,2\n", "two columns are called a"),
        ("id,a,b\n" + "s,1,2\n" * 300 + "t,1,2,3\n", "line 302"),
        ("id\ns1\ns2\n", "no features other"),
        (b"\x89PNG\0\0\0\n\0\n", "is not a text file"),
    ],
)
def test_what_is_no_table_is_refused_with_the_reason(tmp_path, text, words):
    assert words in complaint(write(tmp_path / "x.csv", text))


@pytest.mark.parametrize("suffix", ["csv", "tsv", "feather", "parquet", "xlsx"])
def test_a_table_with_a_header_only_is_refused_by_its_file(tmp_path, frame, suffix):
    path, empty = tmp_path / f"x.{suffix}", frame.iloc[:0].rename_axis("id")
    if suffix in ("csv", "tsv"):
        empty.to_csv(path, sep="," if suffix == "csv" else "\t")
    else:
        getattr(empty, f"to_{'excel' if suffix == 'xlsx' else suffix}")(path)
    assert f"x.{suffix}: has a header and no rows" in complaint(path)


def test_cells_without_observations_are_refused_by_their_file(tmp_path):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(np.zeros((0, 3), np.float32)).write_h5ad(tmp_path / "x.h5ad")
    assert "x.h5ad: has no observations" in complaint(tmp_path / "x.h5ad")


def test_a_square_table_can_be_a_kernel(tmp_path):
    path = write(tmp_path / "k.csv", "id,a,b\na,1,0.5\nb,0.5,1\n")
    (kernel,) = load(path, kernels=True).kernels
    assert list(kernel.columns) == list(kernel.index) == ["a", "b"]
    assert "x is 3 x 2" in complaint(write(tmp_path / "x.csv", TABLE), kernels=True)


def test_a_sheet_is_a_table_and_others_are_named(tmp_path, frame):
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        frame.rename_axis("id").to_excel(book, sheet_name="first")
        frame[["b"]].rename_axis("id").to_excel(book, sheet_name="second")
    data = load(path)
    same(data.views["book"], frame)
    assert "sheets second" in data.description
    assert list(load(f"{path}::first,second").views) == ["first", "second"]
    assert "no sheet third" in complaint(f"{path}::third")


@pytest.mark.parametrize("suffix", ["feather", "parquet"])
def test_the_index_of_a_frame_on_disk_are_the_ids(tmp_path, frame, suffix):
    frame["site"] = pd.Categorical(["A", "B", "A"])
    path = tmp_path / f"x.{suffix}"
    getattr(frame, f"to_{suffix}")(path)
    table = view(path)
    same(table, frame)
    assert str(table["site"].dtype) == "category"
    same(view(path, drop=["site"]), frame[["a", "b"]])


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("x.xlsx", "openpyxl", "excel"),
        ("x.feather", "pyarrow", "parquet"),
        ("x.parquet", "pyarrow.parquet", "parquet"),
        ("x.h5", "h5py", "hdf5"),
        ("x.h5ad", "anndata", "anndata"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_its_extra(
    tmp_path, monkeypatch, name, module, extra
):
    monkeypatch.setitem(sys.modules, module, None)
    assert f'pip install "mkclust[{extra}]"' in complaint(write(tmp_path / name, "x"))


def test_anndata_is_a_view_with_its_names(tmp_path):
    anndata = pytest.importorskip("anndata")
    matrix = scipy.sparse.random_array(
        (4, 6), density=0.5, random_state=0, format="csr"
    )
    names = pd.Index([f"c{i}" for i in range(4)])
    obs = pd.DataFrame({"labels": ["a", "b", "a", "b"]}, index=names)
    content = anndata.AnnData(X=matrix, obs=obs, obsm={"X_pca": np.ones((4, 2))})
    content.write_h5ad(tmp_path / "cells.h5ad")
    data = load(tmp_path / "cells.h5ad")
    assert data.views["cells"].obs_names.tolist() == names.tolist()
    assert scipy.sparse.issparse(data.views["cells"].X)
    assert data.y.tolist() == ["a", "b", "a", "b"]
    pca = view(f"{tmp_path / 'cells.h5ad'}::X_pca")
    assert pca.index.tolist() == names.tolist()
    assert pca.shape == (4, 2)
    assert "select among X, X_pca" in complaint(f"{tmp_path / 'cells.h5ad'}::umap")


def test_modalities_of_mudata_are_views(tmp_path):
    mudata = pytest.importorskip("mudata")
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame(index=["c1", "c2", "c3"])
    shapes = {"rna": (3, 4), "atac": (3, 2)}
    parts = {
        name: anndata.AnnData(np.ones(shape), obs=obs) for name, shape in shapes.items()
    }
    mudata.MuData(parts).write(tmp_path / "cells.h5mu")
    data = load(tmp_path / "cells.h5mu")
    assert {name: part.shape for name, part in data.views.items()} == shapes
    assert list(load(f"{tmp_path / 'cells.h5mu'}::atac").views) == ["atac"]
    assert "no adt in it" in complaint(f"{tmp_path / 'cells.h5mu'}::adt")


def test_a_first_line_of_an_id_and_numbers_is_no_header(tmp_path):
    bare = view(write(tmp_path / "x.csv", "p1,0.5,1.5\np2,2.5,3.5\n"))
    assert bare.index.tolist() == ["p1", "p2"]
    assert bare.to_numpy().tolist() == [[0.5, 1.5], [2.5, 3.5]]
    for header in ("gene,7157,1956", "id,400.5,401.5"):
        table = view(write(tmp_path / "x.csv", f"{header}\np1,0.5,1.5\np2,2.5,3.5\n"))
        assert table.columns.tolist() == header.split(",")[1:]


def test_a_column_that_counts_rows_before_the_ids_is_ignored(tmp_path):
    path = write(tmp_path / "x.csv", ",code,a\n0,x,5\n1,y,7\n")
    for options in ({}, {"id": "code"}):
        same(view(path, **options), pd.DataFrame({"a": [5, 7]}, ["x", "y"]))


N = 240
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 7))


def write_parquet(path, columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=50)
    return path


def columns_of(X, **more):
    return {f"c{i}": column for i, column in enumerate(X.T)} | more


def test_the_view_of_a_parquet_file_is_indexed_as_an_array_is(tmp_path):
    view = load(
        write_parquet(tmp_path / "x.parquet", columns_of(X)), on_disk=True
    ).views["x"]
    assert (view.shape, view.ndim, view.dtype, len(view)) == (X.shape, 2, np.float64, N)
    keys = [
        slice(40, 130),
        slice(-30, None),
        slice(200, 100),
        slice(10, 220, 7),
        [],
        3,
        -1,
    ]
    keys += [
        RNG.integers(-N, N, size=50),
        RNG.random(N) < 0.3,
        (slice(5, 60), slice(1, 3)),
    ]
    for key in keys:
        np.testing.assert_array_equal(view[key], X[key])
    assert np.asarray(view, dtype=np.float32).dtype == np.float32
    for wrong in (N, [0, -N - 1], [0.5], np.ones((2, 2), int), np.ones(N - 1, bool)):
        with pytest.raises(IndexError):
            view[wrong]


def test_a_pickled_view_is_its_path_and_several_threads_may_read_it(tmp_path):
    wide = np.tile(X, 100)
    view = load(
        write_parquet(tmp_path / "x.parquet", columns_of(wide)), on_disk=True
    ).views["x"]
    content = pickle.dumps(view)
    assert len(content) < 20_000 < wide.nbytes
    again, starts = (
        pickle.loads(content),
        [s for n in range(4) for s in range(n, N, 37)],
    )
    with ThreadPoolExecutor(4) as pool:
        for start, rows in zip(
            starts, pool.map(lambda s: again[s : s + 30], starts), strict=True
        ):
            np.testing.assert_array_equal(rows, wide[start : start + 30])


def test_numbers_of_every_type_become_floats_and_what_is_missing_becomes_nan(tmp_path):
    columns = {
        "whole": pyarrow.array([1, None, 3]),
        "truth": pyarrow.array([True, False, None]),
        "money": pyarrow.array([1, 2, 3]).cast(pyarrow.decimal128(24, 2)),
        "single": pyarrow.array([1, 2, 3], pyarrow.float32()),
    }
    view = load(write_parquet(tmp_path / "x.parquet", columns), on_disk=True).views["x"]
    expected = [[1, 1, 1, 1], [np.nan, 0, 2, 2], [3, np.nan, 3, 3]]
    np.testing.assert_array_equal(view[:], expected)


@pytest.mark.parametrize("on_disk", [None, True])
def test_columns_of_a_parquet_file_can_be_selected(tmp_path, on_disk):
    y = np.arange(N) % 3
    path = write_parquet(tmp_path / "x.parquet", columns_of(X, y=y, place=["here"] * N))
    data = load(f"{path}::c5,c2", on_disk=on_disk)
    np.testing.assert_array_equal(np.asarray(data.views["x"]), X[:, [2, 5]])
    np.testing.assert_array_equal(data.y, y)
    for wrong in ("c9", "place")[: 2 if on_disk else 1]:
        assert wrong in complaint(f"{path}::c1,{wrong}", on_disk=on_disk)


@pytest.mark.parametrize(
    "form",
    ["%Y-%m-%d", "%d/%m/%Y", "%d.%m.%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y %H:%M"],
)
def test_dates_of_every_spelling_are_dates(tmp_path, form):
    dates = pd.Series(pd.date_range("2019-01-01", periods=40, freq="11D"))
    text = dates.dt.strftime(form).where(dates.index != 3)
    frame = pd.DataFrame({"x": range(40), "seen": text})
    frame.to_csv(tmp_path / "a.csv", index=False)
    found = load(tmp_path / "a.csv").views["a"]["seen"]
    pd.testing.assert_series_equal(
        found, dates.where(dates.index != 3), check_names=False, check_dtype=False
    )


@pytest.mark.parametrize("cell", ["31/31/2019", "1.2.3.4", "3/4", "2019.5"])
def test_what_only_looks_like_a_date_is_none(tmp_path, cell):
    cells = ["1/2/2019", "3/2/2019", cell]
    pd.DataFrame({"x": [1, 2, 4], "seen": cells}).to_csv(
        tmp_path / "a.csv", index=False
    )
    assert load(tmp_path / "a.csv").views["a"]["seen"].tolist() == cells
