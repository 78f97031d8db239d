import os
import signal
import sys
from pathlib import Path

import pytest

from mkclust.files import write_atomically

pytestmark = pytest.mark.usefixtures("folder")


def test_if_a_file_cannot_be_written_none_is():
    Path("a.md").write_text("before")

    def fail(path):
        path.write_text("half")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        write_atomically({Path("a.md"): b"after", Path("b.md"): fail})
    assert os.listdir() == ["a.md"]
    assert Path("a.md").read_text() == "before"


def test_a_file_in_place_of_the_folder_is_refused():
    Path("taken").write_text("")
    with pytest.raises(ValueError, match="taken: is a file"):
        write_atomically({Path("taken", "a.md"): b""})


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("place", ["while writing", "between two files"])
def test_control_c_leaves_all_files_or_none(place, monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    replace = os.replace

    def interrupted(source, target):
        os.kill(os.getpid(), signal.SIGINT)
        replace(source, target)

    def write(path):
        path.write_text("half")
        os.kill(os.getpid(), signal.SIGINT)

    last, expected = write, []
    if place == "between two files":
        last, expected = b"whole", ["a.csv", "b.json"]
        monkeypatch.setattr(os, "replace", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            write_atomically({Path("a.csv"): b"whole", Path("b.json"): last})
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert sorted(os.listdir()) == expected
