import errno
import os
import signal
import stat
import sys
from pathlib import Path

import pytest

from mkclust.files import write_atomically

pytestmark = pytest.mark.usefixtures("folder")
posix = pytest.mark.skipif(
    sys.platform == "win32", reason="needs POSIX permissions and limits"
)


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


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


def write_as_function(path):
    path.write_bytes(b"new")


@posix
@pytest.mark.parametrize("content", [b"new", write_as_function])
@pytest.mark.parametrize("before", [0o600, 0o640, 0o444, 0o664])
def test_a_file_that_is_replaced_keeps_who_may_read_it(content, before):
    Path("target").write_bytes(b"old")
    Path("target").chmod(before)
    Path("a.skops").symlink_to("target")
    write_atomically({Path("a.skops"): content})
    assert Path("target").read_bytes() == b"new"
    assert mode("target") == before


@posix
@pytest.mark.parametrize("content", [b"new", write_as_function])
def test_a_new_file_is_no_wider_than_the_umask_asks(content):
    for mask, expected in ((0o077, 0o600), (0o027, 0o640), (0o022, 0o644)):
        before = os.umask(mask)
        try:
            [path] = write_atomically({Path(f"{mask}.csv"): content})
        finally:
            os.umask(before)
        assert mode(path) == expected


@posix
def test_nobody_else_reads_a_private_file_while_it_is_written():
    Path("a.csv").write_bytes(b"old")
    Path("a.csv").chmod(0o600)
    seen = []

    def write(path):
        path.write_bytes(b"new")
        seen.append(mode(path))

    write_atomically({Path("a.csv"): write})
    assert seen == [0o600]


@posix
@pytest.mark.parametrize("as_function", [False, True])
def test_an_error_of_the_disk_names_the_file_and_leaves_nothing(as_function):
    import resource

    def write(path):
        path.write_bytes(bytes(10**5))

    content = write if as_function else bytes(10**5)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    Path("a.csv").write_bytes(b"old")
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**4, limits[1]))
    try:
        with pytest.raises(OSError, match=r"a\.csv") as caught:
            write_atomically({Path("new.csv"): b"whole", Path("a.csv"): content})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, "a.csv")
    assert os.listdir() == ["a.csv"]
    assert Path("a.csv").read_bytes() == b"old"


def test_a_folder_in_place_of_the_file_is_named():
    Path("a.csv").mkdir()
    with pytest.raises(OSError, match=r"'a\.csv'"):
        write_atomically({Path("a.csv"): b""})
    assert os.listdir() == ["a.csv"]


def test_an_error_about_another_file_names_that():
    def copy(path):
        path.write_bytes(Path("font").read_bytes())

    with pytest.raises(FileNotFoundError) as caught:
        write_atomically({Path("a.csv"): copy})
    assert caught.value.filename == "font"


@posix
@pytest.mark.skipif(
    os.name == "posix" and os.geteuid() == 0, reason="the superuser may write"
)
def test_a_folder_without_permission_is_told_with_the_file():
    Path("closed").mkdir(mode=0o500)
    with pytest.raises(PermissionError) as caught:
        write_atomically({Path("closed", "a.csv"): b""})
    assert caught.value.filename == str(Path("closed", "a.csv"))


@posix
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
