"""Every committed result says which version, machine, day and command made it."""

import argparse
import runpy
import shlex
import sys
from pathlib import Path

import pytest

import records
import stamps

ROOT = Path(__file__).parents[2]
FILES = {
    path.relative_to(ROOT / "benchmarks").as_posix(): path
    for path in stamps.result_files()
}
NOW = records.minor_version(records.stamp())
COMMANDS = sorted({records.read_stamp(path)["command"] for path in FILES.values()})


def is_current(path):
    """Return whether a result is of this minor version, and says everything."""
    stamp = records.read_stamp(path)
    return all(stamp.values()) and records.minor_version(stamp) == NOW


@pytest.mark.parametrize("name", FILES)
def test_results_are_of_this_version(name):
    assert is_current(FILES[name])


class ParsedError(Exception):
    """The options of a script were read."""


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_of_a_result_is_a_script_that_takes_its_options(
    command, monkeypatch
):
    words = [word for word in shlex.split(command) if "=" not in word]
    script = ROOT / words[1]
    assert words[0] == "python"
    assert script.is_file()
    if "import torch" in script.read_text():
        pytest.importorskip("torch")

    def parse_only(*arguments, **options):
        parse_known(*arguments, **options)
        raise ParsedError

    parse_known = argparse.ArgumentParser.parse_args
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_only)
    monkeypatch.setattr(sys, "argv", [str(script), *words[2:]])
    with pytest.raises(ParsedError):
        runpy.run_path(str(script), run_name="__main__")


@pytest.mark.parametrize("name", FILES)
def test_results_are_in_the_table_of_results(name):
    path = FILES[name]
    table = stamps.PAGE.read_text(encoding="utf-8").partition("<!--")[0]
    folder = stamps.PAGE.parent
    links = [path, path.parent]
    targets = {
        (folder / part.partition(")")[0]).resolve() for part in table.split("](")[1:]
    }
    assert targets & set(links)


def test_the_list_of_stamps_is_of_these_results():
    text = stamps.PAGE.read_text(encoding="utf-8")
    assert stamps.page(text) == text, "run python benchmarks/stamps.py"


def test_a_command_is_written_as_it_is_repeated(monkeypatch):
    script = ROOT / "benchmarks" / "scale.py"
    words = ["--only", "wide", "million", "--share", "0.1", "--out", "there"]
    monkeypatch.setattr(sys, "argv", [str(script), *words, "--jobs", "2"])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MKCLUST_DATA", "a folder")
    expected = "MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/scale.py "
    assert records.command_line() == expected + "--share 0.1 --jobs 2"


def test_records_of_other_versions_and_machines_are_not_added_to(tmp_path):
    path = tmp_path / "record.json"
    records.write_record(path, {"rows": [{"a": 1}]})
    assert records.read_record(path)["rows"] == [{"a": 1}]
    assert is_current(path)
    for field, other in (
        ("versions", {"mkclust": "0.1.0"}),
        ("machine", "another"),
    ):
        records.write_record(path, {"rows": [{"a": 1}]})
        changed = records.read_record(path) | {field: other}
        path.write_text(records.as_json(changed))
        assert records.read_record(path) == {}


def test_the_stamp_of_rows_is_in_their_folder(tmp_path):
    rows = tmp_path / "rows.jsonl.gz"
    records.compress(rows, b'{"a": 1}\n')
    assert not is_current(rows)
    records.write_run(rows)
    assert is_current(rows)
    assert len(records.read_rows(rows)) == 1
