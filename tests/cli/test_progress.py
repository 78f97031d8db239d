"""Long work says how far it is on a terminal, and help comes without what computes."""

import io
import subprocess
import sys
import time

import numpy as np
import pytest
from rich.console import Console

from helpers.cli import three_clusters
from mkclust import AverageKKM, stability, suggest_n_clusters
from mkclust.cli.progress import Progress, session
from mkclust.watch import steps, tell, watched_by

# What takes longer to import than half a second allows.
HEAVY = {"numpy", "scipy", "pandas", "sklearn"}
LOADED = """
import sys
from mkclust.cli import main
try:
    main()
except SystemExit as stop:
    print(stop.code, sorted({heavy} & sys.modules.keys()))
"""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], 0),
        (["cluster", "--help"], 0),
        (["clustr"], 2),
        (["cluster", "x.csv"], 2),
        (["cluster", "x.csv", "-k", "0"], 2),
        (["--version"], 0),
    ],
)
def test_help_and_mistakes_import_nothing_that_computes(words, code):
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(heavy=HEAVY), *words],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == f"{code} []"


def test_fractions_of_long_work_are_told_and_work_within_it_is_silent():
    views, _ = three_clusters()
    model = AverageKKM(3, random_state=0).fit(views)
    told = []
    with watched_by(lambda done, total: told.append((done, total))):
        stability(model, views, n_resamples=4)
        assert told == [(done, 4) for done in range(5)]
        for _ in steps("ab"):
            stability(model, views, n_resamples=3)
        assert told[5:] == [(0, 2), (1, 2), (2, 2)]
        suggest_n_clusters(views, evidence=True)
    assert len(told) > 10
    tell(1, 2)  # to nobody
    assert len(list(steps("abc"))) == 3


def test_the_time_that_is_left_is_that_of_the_steps_so_far(monkeypatch):
    clock = iter(np.arange(0.0, 1000.0, 30.0))
    progress = Progress([], quiet=True)
    shown = []
    monkeypatch.setattr(progress.live, "update", lambda text: shown.append(str(text)))
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    progress.phase("measuring")
    for done in (0, 1, 2):
        progress.watch(done, 10)
    assert shown == [
        "measuring",
        "measuring 0/10",
        "measuring 1/10, about 4 min left",
        "measuring 2/10, about 4 min left",
    ]


def test_only_a_terminal_is_told(monkeypatch):
    def written(is_terminal):
        screen = io.StringIO()
        monkeypatch.setattr(
            "mkclust.cli.progress.Console",
            lambda **_: Console(file=screen, force_terminal=is_terminal),
        )
        with session() as progress:
            progress.phase("working")
            for _ in steps("abc"):
                time.sleep(0.2)
        return screen.getvalue()

    assert "working 2/3" in written(is_terminal=True)
    assert written(is_terminal=False) == ""
