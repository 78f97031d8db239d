"""Every mistake of a first-time user ends in one line with the next thing to type."""

import os
import re
import sys

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import pandas as pd
from sklearn.metrics import adjusted_rand_score
from typer.testing import CliRunner

from mkclust import cli
from mkclust.cli.failures import CommandError, in_options
from mkclust.cli.inputs import read_inputs
from mkclust.cli.method import kernels_by_view, parse_kernels
from mkclust.cli.table_request import TableRequest

pytestmark = pytest.mark.slow

N = 60


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Run every test in a folder of its own, with two tables of the same samples in it."""
    monkeypatch.chdir(tmp_path)
    left, right = tables()
    left.to_csv("mrna.csv", index_label="patient")
    right.sample(frac=1, random_state=1).to_csv("mirna.tsv", sep="\t", index_label="patient")
    return tmp_path


def tables():
    rng, y = np.random.default_rng(0), np.repeat([0, 1, 2], [25, 20, 15])
    X = 4 * rng.normal(size=(3, 7))[y] + rng.normal(size=(N, 7))
    ids = [f"p{i:02d}" for i in range(N)]
    left = pd.DataFrame(X[:, :3], index=ids, columns=["a", "b", "c"])
    return left, pd.DataFrame(X[:, 3:], index=ids, columns=["d", "e", "f", "g"])


def distances(frame):
    values = frame.to_numpy()
    D = np.sqrt(np.square(values[:, None] - values).sum(axis=2))
    return pd.DataFrame(D, index=frame.index, columns=frame.index)


def invoke(*args):
    return CliRunner().invoke(cli.app, [str(arg) for arg in args])


def cluster(*args):
    result = invoke("cluster", *args, "-k", 3)
    assert result.exit_code == 0, result.stderr
    return result


def share_recovered():
    """Return how far the written clusters are those that the tables were made of, by id."""
    written = pd.read_csv("labels.csv").set_index("id")["cluster"]
    y = pd.Series(np.repeat([0, 1, 2], [25, 20, 15]), index=tables()[0].index)
    return adjusted_rand_score(y.loc[written.index], written)


def fail(*args, command="cluster", k=("-k", 3)):
    """Run a command that must fail in one line, without a new file."""
    before = sorted(os.listdir())
    result = invoke(command, *args, *k)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("mkclust: error: ")
    assert result.stderr.count("\n") == 1
    assert sorted(os.listdir()) == before
    return result.stderr.rstrip("\n")


def typed(message):
    """Return the options that a message says to add."""
    return re.search(r"add (--.*?)(?: to | -> |$)", message).group(1).split()


def labels():
    table = pd.read_csv("labels.csv")
    return table.iloc[:, 1].to_numpy()


def test_tables_in_different_orders_are_joined_by_id_and_the_join_is_printed():
    result = cluster("mrna.csv", "mirna.tsv")
    assert "mrna (mrna.csv): 60 samples x 3 columns, ids such as 'p00'" in result.stdout
    assert "Joined by id: all 60 samples." in result.stdout
    shuffled = labels()
    tables()[1].to_csv("mirna.tsv", sep="\t", index_label="patient")
    cluster("mrna.csv", "mirna.tsv")
    np.testing.assert_array_equal(labels(), shuffled)


def test_labels_of_a_file_in_another_order_are_scored_by_id():
    y = np.repeat([0, 1, 2], [25, 20, 15])
    right = tables()[1]
    right.assign(y=y).sample(frac=1, random_state=2).to_csv("mirna.tsv", sep="\t", index_label="id")
    assert re.search(r"AgreementKKM +100\.0", cluster("mrna.csv", "mirna.tsv").stdout)


def test_a_transposed_file_is_named_with_the_option_that_turns_it():
    cluster("mrna.csv", "mirna.tsv")
    expected = labels()
    tables()[1].T.to_csv("mirna.tsv", sep="\t", index_label="feature")
    message = fail("mrna.csv", "mirna.tsv")
    assert "mirna.tsv: its header holds 60 of the 60 ids of the rows of mrna.csv" in message
    assert typed(message) == ["--samples-in", "mirna.tsv=columns"]
    cluster("mrna.csv", "mirna.tsv", *typed(message))
    np.testing.assert_array_equal(labels(), expected)
    assert "add --samples-in mirna.tsv=columns" in fail("mirna.tsv", "mrna.csv")


def test_a_transposed_file_without_ids_is_told_by_its_size():
    left, right = tables()
    left.to_csv("left.csv", index=False)
    right.T.to_csv("right.csv", index=False)
    assert "add --samples-in right.csv=columns" in fail("left.csv", "right.csv")


def test_a_wrong_id_column_is_refused_with_a_better_one():
    left = tables()[0].rename_axis("patient").reset_index()
    left.insert(0, "sample", [1, 2] * 30)
    left.to_csv("mrna.csv", index=False)
    message = fail("mrna.csv", "mirna.tsv")
    assert "the column sample should hold ids and has 2 of them more than once" in message
    assert "--id patient" in message
    cluster("mrna.csv", "mirna.tsv", "--id", "patient")
    assert "'patient'" in fail("mrna.csv", "mirna.tsv", "--id", "Patients")
    left.drop(columns="sample").rename(columns={"patient": "code"}).to_csv("mrna.csv", index=False)
    assert "mrna.csv: no column patient" in fail("mrna.csv", "mirna.tsv", "--id", "patient")
    cluster("mrna.csv", "mirna.tsv", "--id", "patient", "--id", "mrna.csv=code")
    assert "one column holds the ids" in fail("mrna.csv", "--id", "code", "--id", "patient")


def test_a_column_of_text_among_numbers_is_named_with_the_option_that_drops_it():
    left = tables()[0]
    left["notes"] = [f"seen on day {i}" for i in range(N)]
    left.to_csv("mrna.csv", index_label="patient")
    message = fail("mrna.csv", "mirna.tsv")
    assert "mrna.csv: holds columns that are no numbers: notes (text, such as" in message
    assert typed(message) == ["--drop", "notes"]
    cluster("mrna.csv", "mirna.tsv", *typed(message))
    cluster("mrna.csv", "mirna.tsv", "--drop", "mrna.csv=notes")
    message = fail("mrna.csv", "mirna.tsv", "--drop", "note")
    assert "--drop note: no input has such a column; did you mean --drop notes?" in message


def test_a_column_of_numbers_with_a_word_in_it_is_named_with_the_word():
    left = tables()[0].astype(object)
    left.iloc[7, 1] = "n.d."
    left.to_csv("mrna.csv", index_label="patient")
    message = fail("mrna.csv", "mirna.tsv")
    assert "b (numbers, but for 1 cell such as 'n.d.'); add --drop b" in message


def test_dates_are_named_with_the_option_that_drops_them():
    left = tables()[0]
    left["born"] = pd.date_range("1950-01-01", periods=N)
    left.to_csv("mrna.csv", index_label="patient")
    assert "born (dates); add --drop born" in fail("mrna.csv", "mirna.tsv")


def test_files_with_no_common_id_show_an_id_of_each():
    right = tables()[1].rename(index=lambda name: name.replace("p", "TCGA-"))
    right.to_csv("mirna.tsv", sep="\t", index_label="patient")
    message = fail("mrna.csv", "mirna.tsv")
    assert "View 'mrna' and view 'mirna' have no ids in common, 60 and 60 of their own" in message
    assert "such as 'p00' and 'TCGA-00'" in message
    assert message.endswith("--id FILE=COLUMN")


def test_files_with_some_common_ids_are_joined_where_asked():
    tables()[1].iloc[5:].to_csv("mirna.tsv", sep="\t", index_label="patient")
    message = fail("mrna.csv", "mirna.tsv")
    assert "have 55 ids in common" in message
    assert "5 are only in view 'mrna', 0 only in view 'mirna'" in message
    assert "frame" not in message
    assert typed(message) == ["--join", "inner"]
    result = cluster("mrna.csv", "mirna.tsv", *typed(message))
    assert "Joined by id: 55 samples are in all files, of up to 60." in result.stdout
    assert len(labels()) == 55
    assert "did you mean --join inner?" in fail("mrna.csv", "mirna.tsv", "--join", "iner")


def test_a_missing_number_of_clusters_is_asked_for():
    message = fail("mrna.csv", "mirna.tsv", k=())
    assert "add -k N" in message
    assert "mkclust suggest mrna.csv mirna.tsv" in message


def test_a_file_of_distances_is_named_with_its_kernel():
    distances(tables()[0]).to_csv("d.csv", index_label="patient")
    message = fail("d.csv")
    assert "d.csv: holds the distances of 60 samples" in message
    assert typed(message) == ["--kernels", "from_distances"]
    assert "add --kernels d=from_distances" in fail("d.csv", "mirna.tsv")
    assert "--kernels from_distances" in fail("d.csv", "--kernels", "precomputed")


def test_the_kernel_of_distances_is_the_next_thing_to_type():
    distances(tables()[0]).sample(frac=1, random_state=0).to_csv("d.csv", index_label="patient")
    cluster("d.csv", "--kernels", "from_distances")
    assert share_recovered() > 0.9
    cluster("d.csv", "mirna.tsv", "--kernels", "d=from_distances")
    assert share_recovered() > 0.9


def test_a_file_of_similarities_is_not_taken_for_a_table():
    K = np.exp(-(distances(tables()[0]) ** 2) / 20)
    K.to_csv("k.csv", index_label="patient")
    message = fail("k.csv")
    assert "k.csv: holds the similarities of 60 samples" in message
    assert typed(message) == ["--kernels", "precomputed"]
    cluster("k.csv", *typed(message))


def test_a_kernel_among_views_is_named():
    np.exp(-(distances(tables()[0]) ** 2) / 20).to_csv("k.csv", index_label="patient")
    message = fail("mirna.tsv", "k.csv")
    assert "k.csv: holds a kernel, the similarities of 60 samples" in message
    assert "mkclust cluster k.csv --kernels precomputed -k N" in message


def test_a_sparse_file_is_clustered_beside_a_table():
    import scipy.sparse

    tables()[1].to_csv("mirna.tsv", sep="\t", index_label="patient")
    rng, y = np.random.default_rng(0), np.repeat([0, 1, 2], [25, 20, 15])
    words = rng.poisson(np.repeat(np.eye(3) * 3, 20, axis=1)[y])
    scipy.sparse.save_npz("text.npz", scipy.sparse.csr_array(words.astype(float)))
    cluster("mirna.tsv", "text.npz")
    assert share_recovered() > 0.9


def test_a_sparse_file_without_ids_is_not_paired_with_files_of_different_orders():
    import scipy.sparse

    scipy.sparse.save_npz("text.npz", scipy.sparse.csr_array(np.eye(N)))
    assert "view 'text' has no ids" in fail("mrna.csv", "mirna.tsv", "text.npz")


def test_missing_cells_of_all_files_are_named_in_one_line():
    left, right = tables()
    left.iloc[[1, 5], 0] = np.nan
    right.iloc[3, 1:3] = np.nan
    left.to_csv("mrna.csv", index_label="patient")
    right.to_csv("mirna.tsv", sep="\t", index_label="patient")
    message = fail("mrna.csv", "mirna.tsv")
    assert re.search(r"View 'mrna' has .*: 2 NaN .* in 1 of its 3 columns \('a': 2\)", message)
    assert re.search(r"View 'mirna' has .* in 2 of its 4 columns \('e': 1 and 'f': 1\)", message)
    assert typed(message) == ["--impute", "median"]
    assert "--impute mean: unknown" in fail("mrna.csv", "mirna.tsv", "--impute", "mean")


def test_missing_cells_are_filled_where_asked():
    left = tables()[0]
    left.iloc[[1, 5], 0] = np.nan
    left.to_csv("mrna.csv", index_label="patient")
    cluster("mrna.csv", "mirna.tsv", "--impute", "median")
    assert share_recovered() > 0.9


def test_missing_entries_of_an_array_come_with_the_option_that_fills_them():
    left, right = (frame.to_numpy(copy=True) for frame in tables())
    left[3, 1] = np.nan
    np.savez("d.npz", left=left, right=right)
    assert "--impute median" in fail("d.npz")


@pytest.mark.parametrize(
    ("name", "words"), [("a.xls", "save it as .xlsx"), ("a.doc", "give a file of .csv")]
)
def test_an_unknown_suffix_comes_with_those_that_are_known(folder, name, words):
    (folder / name).write_text("a")
    assert words in fail(name)


def test_excel_without_its_library_says_what_to_install(folder, monkeypatch):
    (folder / "book.xlsx").write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert 'pip install "mkclust[excel]"' in fail("book.xlsx")


def test_an_option_for_a_file_that_is_no_input_is_refused():
    message = fail("mrna.csv", "mirna.tsv", "--samples-in", "mirna.csv=columns")
    assert "--samples-in mirna.csv=columns: names no input" in message
    assert "did you mean --samples-in columns?" in fail("mrna.csv", "--samples-in", "column")


# --- kernels by name -----------------------------------------------------------------------------


def test_kernels_are_asked_for_by_name_of_the_view():
    assert parse_kernels([]) == "auto"
    assert parse_kernels(["text=cosine", "sex=categorical"]) == {
        "text": "cosine",
        "sex": "categorical",
    }
    assert kernels_by_view("cosine", ["a", "b"]) == {"a": "cosine", "b": "cosine"}
    assert kernels_by_view("auto", ["a", "b"]) == "auto"
    message = fail("mrna.csv", "mirna.tsv", "--kernels", "mrn=sparse")
    assert "did you mean --kernels mrna=sparse? (views: mrna, mirna)" in message
    assert "is for all views" in fail("mrna.csv", "--kernels", "cosine", "--kernels", "mrna=dense")
    result = cluster("mrna.csv", "mirna.tsv", "--kernels", "mrna=directions")
    assert "mrna: directions (asked for)" in result.stdout


# --- the language of the command line ------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "translation"),
    [
        ("pass psd='clip' to drop its part", "add --psd clip to drop its part"),
        ("pass join='inner' to keep", "add --join inner to keep"),
        ("pass impute='median'", "add --impute median"),
        ("or pass kernels='precomputed'", "or add --kernels precomputed"),
        ("kernels=KernelBank() for views", "--kernels on-the-fly for views"),
        ("pass from_distances=True", "add --kernels from_distances"),
        ("pass id='a b', or drop='c'", "add --id a b, or --drop c"),
        ("pass samples_in='columns'", "add --samples-in columns"),
        ("pass missing_views='zero'", "add --missing-views zero"),
        ("with center=True and normalize=True", "with --center and --normalize"),
        (
            "or approximation=Nystroem(n_components=200) to",
            "or --approximation nystroem --landmarks 200 to",
        ),
        ("pass kernels={'a': 'sparse'}, which counts", "add --kernels a=sparse, which counts"),
        ("down, or view(preprocess=StandardScaler()).", "down."),
        ("out, pass view(preprocess=PCA(20)), or this", "out, or this"),
        (
            "pass smaller widths, such as KernelBank(widths=(1.0,)), or another kernel, such as "
            "'self-tuning'.",
            "choose another kernel, such as --kernels self-tuning.",
        ),
        (
            "no ids in common: give the same samples the same ids (reset_index(drop=True) on every "
            "frame pairs by row)",
            "no ids in common: name the columns that hold the same ids: --id FILE=COLUMN",
        ),
        ("not enough: raise max_iter or tol", "not enough: raise --max-iter or --tol"),
        ("raise tol, or pass float64", "raise --tol, or pass float64"),
        ("a higher max_iter tells whether", "a higher --max-iter tells whether"),
        ("still falls: raise max_iter", "still falls: raise --max-iter"),
        ("x.csv: no such file", "x.csv: no such file"),
    ],
)
def test_advice_in_python_becomes_options(message, translation):
    assert in_options(message) == translation


def test_an_indefinite_kernel_is_repaired_by_an_option():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(3, 20, 20))
    np.save("K.npy", K + K.transpose(0, 2, 1))
    message = fail("K.npy")
    assert "--psd clip" in message
    assert "psd=" not in message
    assert invoke("cluster", "K.npy", "-k", 3, "--psd", "clip").exit_code == 0


# --- inspect -------------------------------------------------------------------------------------


def test_inspect_shows_what_was_understood_and_clusters_nothing(folder):
    import json

    before = sorted(os.listdir())
    result = invoke("inspect", "mrna.csv", "mirna.tsv")
    assert result.exit_code == 0, result.stderr
    for words in (
        "mrna (mrna.csv)",
        "60 samples x 3 columns (3 numbers), ids such as 'p00'",
        "missing: 0.00% of the cells",
        "kernel: dense (none of the other kinds)",
        "median distance",
        "Joined by id: all files hold the same 60 samples.",
    ):
        assert words in result.stdout
    record = json.loads(invoke("inspect", "mrna.csv", "mirna.tsv", "--json").stdout)
    assert [view["n_columns"] for view in record["views"]] == [3, 4]
    assert sorted(os.listdir()) == before


def test_inspect_names_all_problems_at_once():
    left, right = tables()
    left.iloc[20, 2] = np.nan
    left["notes"] = [f"seen on day {i}" for i in range(N)]
    left.to_csv("mrna.csv", index_label="patient")
    right.iloc[5:].to_csv("mirna.tsv", sep="\t", index_label="patient")
    result = invoke("inspect", "mrna.csv", "mirna.tsv")
    assert result.exit_code == 0, result.stderr
    for option in ("--join inner", "--drop notes", "--impute median"):
        assert option in result.stdout
    assert "3 numbers, 1 text" in result.stdout
    assert "55 of 60 samples are in all files" in result.stdout


def test_inspect_says_where_one_column_outweighs_the_others():
    left = tables()[0]
    left["income"] = 1e4 * np.arange(N)
    left.to_csv("mrna.csv", index_label="patient")
    result = invoke("inspect", "mrna.csv", "mirna.tsv")
    assert "1 column that varies much more than the others brought down" in result.stdout
    result = invoke("inspect", "mrna.csv", "mirna.tsv", "--kernels", "gaussian")
    assert "warning: column 'income' makes up 100% of the squared distance" in result.stdout
    assert "add --kernels auto, which scales such columns down." in result.stdout


def test_inspect_warns_of_a_kernel_that_tells_no_sample_apart():
    noise = np.random.default_rng(0).normal(size=(N, 5000))
    np.savez("two.npz", noise=noise, table=tables()[0])
    result = invoke("inspect", "two.npz", "--kernels", "gaussian")
    assert "came out nearly flat" in result.stdout
    assert "another kernel, such as --kernels cosine" in result.stdout
    assert "view(" not in result.stdout


def with_late_ids(frame, place=1):
    """Return a table whose ids are a column like any other, not the first."""
    table = frame.reset_index(drop=True)
    table.insert(place, "patient", frame.index)
    return table


@pytest.mark.parametrize("name", ["patient", "who"])
def test_a_column_of_ids_that_is_not_the_first_is_advised_as_ids_and_not_to_be_dropped(name):
    cluster("mrna.csv", "mirna.tsv")
    expected = labels()
    late = with_late_ids(tables()[1].sample(frac=1, random_state=3)).rename(
        columns={"patient": name}
    )
    late.to_csv("mirna.csv", index=False)
    message = fail("mrna.csv", "mirna.csv")
    assert typed(message) == ["--id", f"mirna.csv={name}"]
    cluster("mrna.csv", "mirna.csv", *typed(message))
    np.testing.assert_array_equal(labels(), expected)


def test_ids_are_advised_beside_columns_of_text_that_are_to_be_dropped():
    late = with_late_ids(tables()[1])
    late["notes"] = [f"seen on day {i}" for i in range(N)]
    late.to_csv("mirna.csv", index=False)
    message = fail("mrna.csv", "mirna.csv")
    assert typed(message) == ["--id", "mirna.csv=patient", "--drop", "notes"]
    cluster("mrna.csv", "mirna.csv", *typed(message))


def test_text_that_is_different_in_every_row_of_a_table_with_ids_is_not_advised_as_ids():
    left = tables()[0].assign(notes=[f"seen on day {i}" for i in range(N)])
    left.to_csv("mrna.csv", index_label="patient")
    assert typed(fail("mrna.csv", "mirna.tsv")) == ["--drop", "notes"]


@pytest.mark.parametrize("start", [0, 1])
def test_a_first_column_that_only_counts_rows_gives_way_to_ids_behind_it(start):
    cluster("mrna.csv", "mirna.tsv")
    expected = labels()
    for frame, name in zip(tables(), ("mrna.csv", "mirna.csv"), strict=True):
        table = with_late_ids(frame if name == "mrna.csv" else frame[::-1], place=0)
        table.index += start  # as pandas and R write the numbers of rows
        table.to_csv(name)
    result = cluster("mrna.csv", "mirna.csv")
    assert "Ids: the column patient; the first column counts rows." in result.stdout
    assert "ids such as 'p00'" in result.stdout
    np.testing.assert_array_equal(labels(), expected)


def test_ids_behind_a_column_that_counts_rows_keep_their_zeros():
    left = with_late_ids(tables()[0], place=0).assign(patient=[f"{i:03d}" for i in range(N)])
    left.to_csv("mrna.csv")
    assert "ids such as '000'" in cluster("mrna.csv").stdout


def test_a_column_that_counts_rows_before_features_is_taken_for_ids():
    tables()[0].reset_index(drop=True).to_csv("mrna.csv")
    result = cluster("mrna.csv")
    assert "60 samples x 3 columns" in result.stdout
    assert "counts rows" not in result.stdout


def test_a_table_without_ids_beside_ids_is_said_to_be_paired_by_row():
    tables()[1].to_csv("mirna.csv", index=False)
    result = cluster("mrna.csv", "mirna.csv")
    sentence = "mirna.csv has no ids: its rows are taken to be in the order of mrna.csv"
    assert f"warning: {sentence}; name its column of ids by --id mirna.csv=COLUMN" in result.stderr
    assert sentence in result.stdout
    assert "Joined by id" not in result.stdout
    inspected = invoke("inspect", "mrna.csv", "mirna.csv")
    assert sentence in inspected.stdout
    assert "Joined by id" not in inspected.stdout


def test_an_array_beside_ids_is_said_to_be_paired_by_row():
    np.save("mirna.npy", tables()[1].to_numpy())
    result = cluster("mirna.npy", "mrna.csv")
    sentence = "mirna.npy has no ids: its rows are taken to be in the order of mrna.csv"
    assert sentence in result.stderr
    assert "Joined by id" not in result.stdout


def test_one_file_with_ids_is_joined_with_nothing():
    stdout = cluster("mrna.csv").stdout
    assert "1 file, 60 samples." in stdout
    assert "Joined" not in stdout


def test_parquet_on_disk_beside_ids_is_not_paired_by_row():
    right = tables()[1]
    with_late_ids(right[::-1]).to_parquet("mirna.parquet")
    inputs = ["mrna.csv", "mirna.parquet"]
    with pytest.raises(CommandError, match=r"--id mirna\.parquet=patient"):
        read_inputs(inputs, precomputed=False, on_disk=True)
    request = TableRequest(ids=("mirna.parquet=patient",))
    data = read_inputs(inputs, precomputed=False, on_disk=True, tables=request)
    np.testing.assert_allclose(data.samples.views["mirna"], right.to_numpy())


@pytest.mark.parametrize("ids", ["index", "column"])
def test_parquet_files_on_disk_are_said_to_be_paired_by_row(ids):
    for frame, name in zip(tables(), ("mrna", "mirna"), strict=True):
        table = frame if ids == "index" else with_late_ids(frame)
        table.rename_axis("patient" if ids == "index" else None).to_parquet(f"{name}.parquet")
    with pytest.warns(UserWarning, match=r"mrna\.parquet stays on disk.*ids \(patient\)"):
        read_inputs(["mrna.parquet", "mirna.parquet"], precomputed=False, on_disk=True)


def test_numbers_that_are_ids_of_parquet_on_disk_are_no_feature():
    tables()[0].reset_index(drop=True).rename_axis("id").reset_index().to_parquet("mrna.parquet")
    data = read_inputs(["mrna.parquet"], precomputed=False, on_disk=True)
    assert data.samples.parts[0].shape == (N, 3)


def test_variables_of_other_ids_are_said_not_to_be_tested_in_the_place_of_the_table():
    ids = tables()[0].index.str.upper()
    pd.DataFrame({"age": np.arange(N) % 7}, index=ids).to_csv("clinic.csv", index_label="id")
    result = cluster("mrna.csv", "mirna.tsv", "--annotate", "clinic.csv")
    reason = "no variable was tested: table 'clinic' and the samples that the model was fitted on"
    table = result.stdout.partition("Clusters against the variables of clinic.csv:\n")[2]
    assert table.startswith(reason)
    assert "'P00' and 'p00'" in table


def test_names_that_are_nearly_right_are_answered_by_the_right_ones():
    message = fail("mrna.csv", "mirna.tsv", "--kernels", "mrna=gausian")
    assert "--kernels mrna=gausian: unknown; did you mean --kernels mrna=gaussian?" in message
    assert "'mrna.csv'" in fail("mrnaa.csv")
    assert "elsewhere.csv: no such file" in fail("elsewhere.csv")


def test_a_column_without_any_value_is_to_be_dropped():
    left = tables()[0].assign(**{"nothing": np.nan, "no thing": np.nan})
    left.to_csv("mrna.csv", index_label="patient")
    for options in ((), ("--impute", "median")):
        message = fail("mrna.csv", "mirna.tsv", *options)
        assert message.endswith("by --drop nothing --drop 'no thing'.")
    cluster("mrna.csv", "mirna.tsv", "--drop", "nothing", "--drop", "no thing")
    left.iloc[3, 0] = np.nan
    left.to_csv("mrna.csv", index_label="patient")
    message = fail("mrna.csv", "mirna.tsv")
    assert "--drop nothing --drop 'no thing', and add --impute median to fill" in message


def test_infinity_is_named_with_its_column_and_how_to_leave_it_out():
    left = tables()[0]
    left.iloc[3, 1] = np.inf
    left.to_csv("mrna.csv", index_label="patient")
    message = fail("mrna.csv", "mirna.tsv")
    assert "('b': 1); impute infinity yourself, or leave its columns out by --drop b" in message


@pytest.mark.parametrize("name", ["label", "Class", "cluster"])
def test_a_column_called_like_an_answer_is_not_clustered_on_without_a_word(name):
    tables()[0].assign(**{name: np.arange(N) % 4}).to_csv("mrna.csv", index_label="patient")
    sentence = f"mrna.csv: the column {name} is called like an answer and is clustered on"
    result = cluster("mrna.csv", "mirna.tsv")
    assert f"warning: {sentence}" in result.stderr
    assert f"add --drop {name} to leave it out" in result.stderr
    assert sentence in invoke("inspect", "mrna.csv", "mirna.tsv").stdout
    assert cluster("mrna.csv", "mirna.tsv", "--drop", name).stderr == ""


def test_numbers_called_like_ids_are_not_clustered_on_without_a_word():
    table = with_late_ids(tables()[0]).assign(patient=np.arange(N) + 1000)
    table.to_csv("mrna.csv", index=False)
    assert "clustered on as any other; add --id mrna.csv=patient" in cluster("mrna.csv").stderr
    assert cluster("mrna.csv", "--id", "patient").stderr == ""


def test_an_id_that_is_there_twice_is_not_advised_to_be_dropped():
    left = tables()[0]
    pd.concat([left, left[:2]]).to_csv("mrna.csv", index_label="patient")
    message = fail("mrna.csv", "mirna.tsv")
    assert "'p00'" in message
    assert "--drop" not in message


def test_clusters_are_described_by_the_names_of_features_of_any_file():
    anndata = pytest.importorskip("anndata")
    left, right = tables()
    left.T.to_csv("mrna.tsv", sep="\t", index_label="gene")
    anndata.AnnData(right).write_h5ad("mirna.h5ad")
    for arguments, names in (
        (["mrna.tsv", "--samples-in", "columns"], "abc"),
        (["mirna.h5ad"], "defg"),
    ):
        lines = cluster(*arguments).stdout.partition("Clusters by what sets them apart")[2]
        assert re.search(rf"(high|low) [{names}] \(", lines)
        assert "column" not in lines
