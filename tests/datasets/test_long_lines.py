"""Lines and cells that are too long for a table end early, by file, row and column."""

import gzip
import subprocess
import sys

import pytest

from mkclust.datasets import DatasetError, load

NEWLINE = b"\n"
# Rows of a table of the columns id, a and b: more than are read to find the separator.
ROWS = b"".join(b"s%d,%d,%d\n" % (i, i, i % 7) for i in range(50_000))


def _packed(path, mode):
    return gzip.open(path, mode, compresslevel=1)


def write(path, *parts):
    """Write a table, packed if its name says so."""
    opener = _packed if path.suffix == ".gz" else open
    with opener(path, "wb") as file:
        file.write(b"id,a,b\n")
        for part in parts:
            file.write(part)
    return path


def complaint(path, **options):
    with pytest.raises(DatasetError) as caught:
        load(path, **options)
    message = str(caught.value)
    assert str(path) in message
    assert len(message) < 500
    return message


@pytest.mark.parametrize("head", [b"", ROWS])
@pytest.mark.parametrize("cell", [b"x", b"1,"])
def test_a_line_that_is_too_long_is_refused_by_its_number(tmp_path, head, cell):
    line = b"t," + cell * (70_000_000 // len(cell))
    path = write(tmp_path / "x.csv.gz", head, line, b"\nu,1,2\n")

    assert f"line {head.count(NEWLINE) + 2:,} " in complaint(path)


@pytest.mark.slow
def test_a_packed_line_of_a_gigabyte_ends_before_it_is_in_memory(tmp_path):
    path = tmp_path / "x.csv.gz"
    # Packed files one after the other are one packed file.
    megabyte = gzip.compress(b"x" * (1 << 20), 1)
    path.write_bytes(gzip.compress(b"id,a,b\n" + ROWS + b"t,1,") + megabyte * 1024)
    code = """
import resource, sys
from mkclust.datasets import DatasetError, load

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

before = peak()
try:
    load(sys.argv[1])
except DatasetError as error:
    print(peak() - before)
"""
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert int(done.stdout) < 500_000_000


@pytest.mark.parametrize("head", [b"", ROWS])
@pytest.mark.parametrize(
    "cell",
    [
        b"x" * 3_000_000,
        b'"' + b'a ""note"", ' * 300_000 + b'"',
        b'"' + b"a\n" * 1_500_000 + b'"',
    ],
)
def test_a_cell_of_megabytes_is_named_by_row_and_column_or_dropped(
    tmp_path, head, cell
):
    path = write(tmp_path / "x.csv", head, b"t,1," + cell + b"\nu,2,3\n")
    message = complaint(path)

    assert f"row {head.count(NEWLINE) + 1:,} below the header, the column b" in message
    (table,) = load(path, drop=["b"]).views.values()
    assert list(table.columns) == ["a"]
    assert list(table.index[-2:]) == ["t", "u"]


@pytest.mark.parametrize("head", [b"", ROWS])
def test_an_id_of_megabytes_is_named(tmp_path, head):
    path = write(tmp_path / "x.csv", head, b"t" * 3_000_000 + b",1,2\nu,2,3\n")

    assert "the column id, has 3,000,000 characters" in complaint(path)


def test_a_name_of_a_column_of_megabytes_is_told_by_its_place(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,a," + b"b" * 3_000_000 + b"\n" + ROWS)

    assert "in the header, column 3" in complaint(path)


def test_lines_of_a_megabyte_are_rows_as_others(tmp_path):
    width = 30_000
    names = ",".join(f"gene{i}" for i in range(width))
    rows = "\n".join(f"s{i}," + ",".join(["0.12345"] * width) for i in range(3))
    path = tmp_path / "x.csv"
    path.write_text(f"id,{names}\n{rows}\n")
    (table,) = load(path).views.values()

    assert table.shape == (3, width)
    assert (table == 0.12345).all(axis=None)
