"""The library in several threads of one program."""

import ast
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import mkclust
from mkclust import AverageKKM, diagnose, stability, suggest_n_clusters
from mkclust.exceptions import silence, warn

SOURCES = Path(mkclust.__file__).parent
# A command has a process of its own, and prints the warnings of the whole of it.
COMMANDS = SOURCES / "cli"


def uses_catch_warnings(path):
    names = ast.walk(ast.parse(path.read_text()))
    return any(getattr(node, "attr", "") == "catch_warnings" for node in names)


def test_the_filters_of_a_program_are_as_before_after_two_threads():
    rng = np.random.default_rng(0)
    places = 4 * rng.normal(size=(3, 4))[np.arange(40) % 3]
    views = [places + rng.normal(size=(40, 4)) for _ in range(2)]
    model = AverageKKM(3, random_state=0).fit(views)

    def explain(turn):
        diagnose(model, views)
        stability(model, views, n_resamples=2 + turn)
        suggest_n_clusters(views, [2, 3 + turn], evidence=True, level=0.1)

    before = list(warnings.filters)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(explain, range(3)))
    assert warnings.filters == before


def test_library_code_leaves_the_filters_of_the_process_alone():
    files = [path for path in SOURCES.rglob("*.py") if COMMANDS not in path.parents]
    assert len(files) > 50
    assert [path.name for path in files if uses_catch_warnings(path)] == []


def test_a_thread_that_is_silent_does_not_silence_another():
    with (
        silence(),
        ThreadPoolExecutor(1) as pool,
        pytest.warns(UserWarning, match="heard"),
    ):
        pool.submit(warn, "heard", UserWarning).result()


def test_a_block_without_warnings_ends_with_an_error_in_it():
    with pytest.raises(ZeroDivisionError), silence():
        raise ZeroDivisionError
    with pytest.warns(UserWarning, match="again"):
        warn("again", UserWarning)
