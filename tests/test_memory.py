"""Asking for memory before taking it."""

import os

import pytest

from mkclust import memory
from mkclust.memory import available_bytes, require_memory


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a function that writes what an operating system would tell about itself."""
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")

    def tell(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return tell


def test_this_machine_has_some_memory():
    there = available_bytes()
    assert there is None or there > 2**20


def test_free_memory_is_what_the_system_says(machine):
    machine(meminfo="MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    4000 kB\n")
    assert available_bytes() == 4000 * 1024


def test_the_limit_of_a_control_group_counts(machine):
    machine(
        meminfo="MemAvailable: 4000 kB\n",
        own="0::/mine\n",
        groups__mine__memory_dot_max="1000000\n",
        groups__mine__memory_dot_current="700000\n",
        groups__mine__memory_dot_stat="anon 600000\ninactive_file 100000\n",
    )
    assert available_bytes() == 400_000


def test_limits_around_a_control_group_count_too(machine):
    machine(
        meminfo="MemAvailable: 4000 kB\n",
        own="0::/outer/inner\n",
        groups__outer__inner__memory_dot_max="max\n",
        groups__outer__inner__memory_dot_current="700000\n",
        groups__outer__memory_dot_max="2000000\n",
        groups__outer__memory_dot_current="700000\n",
    )
    assert available_bytes() == 1_300_000


def test_control_groups_of_the_first_version_are_read(machine):
    machine(
        meminfo="MemAvailable: 4000 kB\n",
        own="5:cpu,cpuacct:/else\n4:memory:/on/the/host\n",
        groups__memory__memory_dot_limit_in_bytes="1000000\n",
        groups__memory__memory_dot_usage_in_bytes="300000\n",
        groups__memory__memory_dot_stat="inactive_file 1\ntotal_inactive_file 50000\n",
    )
    assert available_bytes() == 750_000


def test_a_group_over_its_limit_has_nothing_left(machine):
    machine(own="0::/\n", groups__memory_dot_max="10\n", groups__memory_dot_current="20\n")
    assert available_bytes() == 0


def test_without_word_of_free_memory_all_of_it_counts(machine, monkeypatch):
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 100}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__, raising=False)
    assert available_bytes() == 409_600


def test_where_nothing_is_known_nothing_is_refused(machine, monkeypatch):
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert available_bytes() is None
    require_memory(2**60, "the impossible", "stop")


def test_a_refusal_says_what_for_how_much_and_what_to_do(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 3 * 2**30)
    require_memory(3 * 2**30, "a fitting plan", "go on")
    message = r"a large plan takes 4\.5 GiB of memory, and 3\.0 GiB are there: use a smaller one"
    with pytest.raises(MemoryError, match=message):
        require_memory(int(4.5 * 2**30), "a large plan", "use a smaller one")
