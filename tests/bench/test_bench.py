"""A plan is checked key by key, its rows survive anything, and every failure is a
row."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.model_selection import ParameterGrid

from helpers.cli import invoke
from helpers.processes import FORKS, get_forks, run_with_forks
from helpers.views import blob_views
from mkclust import METHODS
from mkclust.bench import PlanError, read_plan, run_plan
from mkclust.bench.data import Prepared
from mkclust.bench.execute import subsample
from mkclust.bench.plan import shorten_grid
from mkclust.bench.rows import Journal, best_settings, read_rows, read_solves
from mkclust.bench.run import locked, row_key
from mkclust.datasets import DatasetError
from mkclust.metrics import scores
from mkclust.stack.discretize import discretize


@pytest.fixture(autouse=True)
def forks(request, monkeypatch):
    """Fork the processes of benchmarks; a test that asks for `spawned` has them started
    anew."""
    if "spawned" not in request.fixturenames:
        monkeypatch.setattr(multiprocessing, "get_context", get_forks)


@pytest.fixture
def spawned():
    """Let a benchmark start its processes as it does outside of tests."""


@pytest.fixture
def folder(tmp_path):
    """Return a folder with two small data sets."""
    for name, seed in (("one", 0), ("two", 1)):
        views, y = blob_views(
            np.random.default_rng(seed), n=60, k=3, strengths=(1.0, 0.7)
        )
        np.savez(tmp_path / f"{name}.npz", a=views[0], b=views[1], y=y)
    return tmp_path


def write_plan(folder, methods, *, datasets='{ path = "one.npz" }', **settings):
    """Write a plan of a few repetitions."""
    settings = {"repetitions": 4, "grid_repetitions": 2, "n_init": 2} | settings
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    lines += [f"datasets = [{datasets}]", f"methods = [{methods}]"]
    path = folder / "plan.toml"
    path.write_text("\n".join(lines))
    return path


def run(path, out, **options):
    return run_plan(read_plan(path), out, **{"n_processes": 1} | options)


def labels_of(model, seed):
    """Return the clusters of a fitted model as a benchmark with ``n_init = 2`` finds
    them."""
    return discretize(model.embedding_, 3, n_init=2, init="random", random_state=seed)[
        0
    ]


def without_times(rows):
    """Return rows in an order of their own, without what differs between two runs."""
    kept = [{k: v for k, v in row.items() if k != "solve_seconds"} for row in rows]
    return sorted(kept, key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.slow
def test_rows_are_flat_and_hold_what_they_promise(folder, spawned):
    summary = run(write_plan(folder, '"simplemkkm", "avg-kkm"'), folder / "out")
    rows = read_rows(folder / "out")
    assert summary.n_rows == summary.n_new == len(rows) == 8
    promised = {
        "dataset",
        "method",
        "parameters",
        "repetition",
        "seed",
        "acc",
        "nmi",
        "purity",
    }
    promised |= {
        "ari",
        "solve_seconds",
        "n_iter",
        "gap",
        "status",
        "versions",
        "machine",
    }
    for row in rows:
        assert promised <= row.keys()
        assert not any(isinstance(value, dict | list) for value in row.values())
        assert row["status"] == "ok"
        assert (row["n_samples"], row["n_kernels"], row["n_clusters"]) == (60, 2, 3)
    gaps = {row["method"]: row["gap"] for row in rows}
    assert 0 <= gaps["simplemkkm"] <= 1e-6
    assert gaps["avg-kkm"] is None


def test_parts_of_the_samples_are_drawn_anew_for_every_repetition():
    plan = SimpleNamespace(seed=3, resample=0.8)
    parts = [subsample(60, plan, repetition) for repetition in range(200)]
    assert all(len(np.unique(part)) == 48 for part in parts)
    assert len({tuple(part) for part in parts}) == 200
    np.testing.assert_array_equal(subsample(60, plan, 7), parts[7])
    # Every sample has the same chance.
    shares = np.bincount(np.concatenate(parts), minlength=60) / 200
    assert np.abs(shares - 0.8).max() < 5 * np.sqrt(0.8 * 0.2 / 200)


@pytest.mark.slow
def test_refits_on_a_part_of_the_samples_use_the_same_part_for_every_method(folder):
    path = write_plan(folder, '"avg-kkm", "mkkm"', resample=0.8)
    run(path, folder / "out")
    plan, rows = read_plan(path), read_rows(folder / "out")
    prepared = Prepared.read(plan.datasets[0], plan.folder)
    parts = [subsample(60, plan, repetition) for repetition in range(4)]
    assert [len(np.unique(part)) for part in parts] == [48] * 4
    assert len({tuple(part) for part in parts}) == 4
    for row in rows:
        part = prepared.part(parts[row["repetition"]])
        model = METHODS[row["method"]](3, kernels="precomputed").fit(part.kernels)
        expected = scores(part.y, labels_of(model, row["seed"]))["acc"]
        assert (row["resample"], row["acc"]) == pytest.approx(
            (0.8, expected), abs=1e-12
        )
    # The weights of one refit stand for all.
    assert [s["repetition"] for s in read_solves(folder / "out")] == [0, 0]


@pytest.mark.slow
def test_any_clusterer_of_scikit_learn_can_be_an_entry(folder):
    methods = (
        '{ method = "sklearn.cluster:KMeans", name = "plain",'
        "  parameters = { n_init = 2 } },"
        '{ method = "sklearn.cluster:SpectralClustering", input = "average-kernel",'
        '  parameters = { affinity = "precomputed" } },'
        '{ method = "sklearn.cluster:AgglomerativeClustering" }'
    )
    run(write_plan(folder, methods), folder / "out")
    by_method = {}
    for row in read_rows(folder / "out"):
        by_method.setdefault(row["method"], []).append(row)
    # Without a seed every repetition would be the same.
    assert {name: len(rows) for name, rows in by_method.items()} == {
        "plain": 4,
        "spectralclustering": 4,
        "agglomerativeclustering": 1,
    }
    prepared = Prepared.read(read_plan(folder / "plan.toml").datasets[0], folder)
    table = prepared.input("concatenated")
    assert np.allclose(table.std(axis=0), 1)
    for row in by_method["plain"]:
        labels = KMeans(3, n_init=2, random_state=row["seed"]).fit_predict(table)
        assert row["acc"] == pytest.approx(scores(prepared.y, labels)["acc"])
    assert all(row["status"] == "ok" for rows in by_method.values() for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("rounding", ["unit", "components", "best"])
def test_a_plan_says_which_rows_are_clustered(tmp_path, rounding):
    rng, y = np.random.default_rng(0), np.repeat([0, 1], [90, 10])
    views = [
        12 * np.eye(1, 30) * y[:, None] + rng.normal(size=(100, 30)) for _ in range(2)
    ]
    np.savez(tmp_path / "one.npz", a=views[0], b=views[1], y=y)
    entries = (
        '"simplemkkm"',
        '"best-single-kernel"',
        '{ method = "avg-kkm", name = "fit", input = "views" }',
    )
    path = write_plan(tmp_path, ", ".join(entries), rounding=rounding, repetitions=1)
    run(path, tmp_path / "out")
    found = {row["method"]: row["ari"] for row in read_rows(tmp_path / "out")}
    assert found.keys() == {"simplemkkm", "best-single-kernel", "fit"}
    for index in found.values():
        assert index < 0.5 if rounding == "unit" else index == 1


def test_rows_of_versions_without_the_choice_go_on_by_unit_length(folder):
    path, out = write_plan(folder, '"avg-kkm"'), folder / "out"
    run(path, out)
    protocol = json.loads((out / "protocol.json").read_text())
    assert protocol.pop("rounding") == "unit"
    (out / "protocol.json").write_text(json.dumps(protocol))
    assert run(path, out).n_new == 0
    write_plan(folder, '"avg-kkm"', rounding="best")
    with pytest.raises(ValueError, match="holds rows with rounding = 'unit'"):
        run(path, out)


def test_the_best_single_kernel_is_an_oracle(folder):
    run(write_plan(folder, '"best-single-kernel"'), folder / "out")
    single = read_rows(folder / "out")
    assert {row["parameters"] for row in single} == {'{"kernel": 0}', '{"kernel": 1}'}
    assert all(row["oracle"] and not row["default"] for row in single)
    assert "default" not in best_settings(single)
    prepared = Prepared.read(read_plan(folder / "plan.toml").datasets[0], folder)
    model = METHODS["avg-kkm"](3, kernels="precomputed").fit([prepared.kernels[1]])
    labels = labels_of(model, 0)
    [row] = [
        r for r in single if r["parameters"] == '{"kernel": 1}' and r["repetition"] == 0
    ]
    assert row["acc"] == pytest.approx(scores(prepared.y, labels)["acc"])


@pytest.fixture
def troublesome(folder, monkeypatch):
    """Put clusterers that fail, each in its own way, where the processes find them."""
    (folder / "troublesome.py").write_text(
        "import os, signal, time\n"
        "import numpy as np\n"
        "from sklearn.cluster import KMeans\n"
        "class Raises(KMeans):\n"
        "    def fit_predict(self, X): raise ZeroDivisionError('by zero')\n"
        "class Sleeps(KMeans):\n"
        "    def fit_predict(self, X): time.sleep(100)\n"
        "class Dies(KMeans):\n"
        "    def fit_predict(self, X): os.kill(os.getpid(), signal.SIGKILL)\n"
        "class Leaves(KMeans):\n"
        "    def fit_predict(self, X): os._exit(3)\n"
        "class Eats(KMeans):\n"
        "    def fit_predict(self, X): return np.ones(10**9).sum()\n"
    )
    monkeypatch.delitem(sys.modules, "troublesome", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.mark.slow
def test_whatever_a_method_does_becomes_a_row_and_the_run_goes_on(troublesome):
    names = ("Raises", "Sleeps", "Dies", "Leaves", "Eats")
    methods = ", ".join(f'"troublesome:{name}"' for name in names) + ', "avg-kkm"'
    path = write_plan(troublesome, methods, time_limit=1.0, memory_limit=4.0)
    summary = run(path, troublesome / "out")
    rows = {row["method"]: row for row in read_rows(troublesome / "out")}
    assert {name: row["status"] for name, row in rows.items()} == {
        "raises": "failed",
        "sleeps": "time",
        "dies": "memory",
        "leaves": "failed",
        "eats": "memory",
        "avg-kkm": "ok",
    }
    assert rows["raises"]["message"] == "ZeroDivisionError: by zero"
    assert "limit of 1 s" in rows["sleeps"]["message"]
    assert "exit code 3" in rows["leaves"]["message"]
    assert {row["acc"] for row in summary.failures} == {None}
    assert summary.n_rows == 5 + 4
    # What has failed is not tried again, unless that is asked for.
    assert run(path, troublesome / "out").n_new == 0
    text = (troublesome / "troublesome.py").read_text()
    fixed = text.replace(
        "raise ZeroDivisionError('by zero')", "return super().fit_predict(X)"
    )
    (troublesome / "troublesome.py").write_text(fixed)
    again = run(path, troublesome / "out", retry=True)
    assert {row["method"] for row in again.failures} == {
        "sleeps",
        "dies",
        "leaves",
        "eats",
    }
    assert again.n_rows == 4 + 4 + 4


@pytest.mark.slow
@pytest.mark.parametrize(("n_kills", "repetitions"), [(2, 3), (6, 12)])
def test_a_run_killed_at_random_moments_ends_with_the_rows_of_an_undisturbed_one(
    folder, n_kills, repetitions
):
    grid = "{ reg = [0.25, 0.5, 4.0, 8.0] }"
    methods = f'"avg-kkm", {{ method = "lf-mvc", grid = {grid} }}, "kamm-a"'
    datasets = '{ path = "one.npz" }, { path = "two.npz" }'
    path = write_plan(
        folder, methods, datasets=datasets, repetitions=repetitions, n_init=20
    )
    run(path, folder / "calm", n_processes=2)
    rng = random.Random(0)
    kills = 0
    for _ in range(n_kills):
        process = FORKS.Process(target=run_with_forks, args=(path, folder / "out"))
        process.start()
        # Data are read first; then tasks end every few milliseconds.
        deadline = time.monotonic() + 30
        start = size(folder / "out" / "rows.jsonl")
        while (
            size(folder / "out" / "rows.jsonl") == start and time.monotonic() < deadline
        ):
            if not process.is_alive():
                break
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.15))
        process.kill()
        process.join()
        kills += process.exitcode == -signal.SIGKILL
    assert kills >= n_kills / 2
    run(path, folder / "out", n_processes=2)
    for name in ("rows.jsonl", "solves.jsonl"):
        lines = (folder / "out" / name).read_text().splitlines()
        keys = [row_key(json.loads(line)) for line in lines]
        assert len(keys) == len(set(keys))
    calm, killed = (without_times(read_rows(folder / name)) for name in ("calm", "out"))
    assert killed == calm


def size(path):
    return path.stat().st_size if path.exists() else 0


@pytest.mark.slow
def test_processes_of_a_killed_run_end_by_themselves(troublesome):
    path = write_plan(troublesome, '"troublesome:Sleeps"')
    command = [sys.executable, "-m", "mkclust.cli", "bench", str(path)]
    process = subprocess.Popen(
        [*command, "--out", str(troublesome / "out"), "--jobs", "1"]
    )
    deadline = time.monotonic() + 60
    while not (children := children_of(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(3)
    children |= children_of(process.pid)
    process.kill()
    process.wait()
    assert children
    deadline = time.monotonic() + 60
    while any(map(alive, children)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(alive, children))


def children_of(pid):
    """Return the children of a process."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return set(map(int, path.read_text().split())) if path.exists() else set()


def alive(pid):
    """Return whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.slow
def test_a_torn_line_is_removed_and_a_damaged_one_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    journal = Journal(path, lambda row: row["n"])
    journal.append([{"n": 1}, {"n": 2}, {"n": 1}])
    whole = path.read_bytes()
    for cut in range(1, 9):
        path.write_bytes(whole + b'{"n": 3}\n'[:cut])
        assert list(Journal(path, lambda row: row["n"]).objects) == [1, 2]
        assert path.read_bytes() == whole
    path.write_bytes(whole + b"{{\n")
    with pytest.raises(ValueError, match="line 3: is not a row"):
        Journal(path, lambda row: row["n"])


@pytest.mark.slow
def test_a_full_disk_leaves_no_half_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    journal = Journal(path, lambda row: row["n"])
    journal.append([{"n": 1}])
    before = path.read_bytes()
    resource = pytest.importorskip("resource", reason="limits files on POSIX only")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 1000, hard))
    try:
        with pytest.raises(OSError, match="File too large.*rows.jsonl"):
            journal.append([{"n": n, "text": "x" * 100} for n in range(2, 200)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before


@pytest.mark.slow
def test_one_run_at_a_time_writes_into_a_folder(tmp_path):
    with (
        locked(tmp_path),
        pytest.raises(ValueError, match="another run"),
        locked(tmp_path),
    ):
        pass
    with locked(tmp_path):
        pass


MISTAKES = [
    ("seed = 4294967290", "seed"),
    ("n_inti = 3", "n_inti: .*'n_init'"),
    ('datasets = ["digitz"]', "datasets: .*'digits'"),
    (
        'datasets = [{ name = "digits", max_setings = 3 }]',
        "max_setings: .*'max_settings'",
    ),
    ('datasets = [{ path = "none.npz" }]', "path"),
    ('datasets = ["one.npz"]', r'datasets: .*write \{ path = "one.npz" \}'),
    ('datasets = ["digits", "digits"]', "datasets: .*twice"),
    ("methods = []", "methods"),
    ('methods = ["simplemkm"]', "methods: .*'simplemkkm'"),
    ('methods = [{ name = "x" }]', "methods"),
    (
        'methods = [{ method = "lkam", parameters = { n_clusters = 3 } }]',
        "lkam: n_clusters",
    ),
    ('methods = [{ method = "lkam", grid = { rge = [1.0] } }]', "lkam: .*'rge'"),
    (
        'methods = [{ method = "lkam", parameters = { neighbor = 0.1 } }]',
        "lkam: 'neighbor': unknown parameter; .*'neighbors'",
    ),
    ('methods = [{ method = "lkam", grid = { reg = [-1.0] } }]', "lkam: reg=-1.0"),
    ('methods = [{ method = "best-single-kernel", grid = { a = [1] } }]', "grid"),
    (
        'methods = [{ method = "sklearn.cluster:KMeans", grid = "authors" }]',
        "grid: .*KMeans",
    ),
    ('methods = [{ method = "sklearn.decomposition:PCA" }]', "methods: .*PCA"),
    ('methods = [{ method = "nowhere:X" }]', "methods: 'nowhere:X'"),
    ('methods = [{ method = ".x:X" }]', "methods: .*package.module:Class"),
    ("methods = [", "line"),
]


@pytest.mark.parametrize(("line", "message"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_a_plan_with_a_mistake_names_the_key(folder, line, message):
    standard = {"datasets": 'datasets = ["digits"]', "methods": 'methods = ["avg-kkm"]'}
    lines = [v for k, v in standard.items() if k != line.split(" = ")[0]]
    (folder / "plan.toml").write_text("\n".join([line, *lines]))
    with pytest.raises(PlanError, match=message):
        read_plan(folder / "plan.toml")


def test_classes_may_have_any_name_and_what_lacks_them_is_said_once(
    folder, monkeypatch
):
    data = dict(np.load(folder / "one.npz"))
    np.savez(folder / "one.npz", a=data["a"], b=data["b"], truth=data["y"])
    path = write_plan(folder, '"avg-kkm", "mkkm"')
    monkeypatch.chdir(folder)
    said = invoke("bench", path, "--jobs", 1).stdout.splitlines()
    assert len(said) == 1
    assert said[0].startswith("No result (2 settings): one avg-kkm and mkkm: failed")
    assert "Skipped: truth" in said[0]
    path = write_plan(
        folder, '"avg-kkm"', datasets='{ path = "one.npz", labels = "truth" }'
    )
    assert run(path, folder / "out").failures == []


@pytest.mark.slow
def test_a_missing_data_set_is_reported_before_the_first_solve(folder, monkeypatch):
    monkeypatch.setenv("MKCLUST_DATA", str(folder))
    some = {"datasets": '"flo102", { path = "one.npz" }'}
    with pytest.raises(DatasetError, match=r"flo102.*flower102_Kmatrix\.mat"):
        run(write_plan(folder, '"avg-kkm"', **some), folder / "out")
    assert not (folder / "out").exists()
    path = write_plan(folder, '"avg-kkm"', **some, missing="skip")
    assert run(path, folder / "out").missing == ["flo102"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("methods", "options", "message"),
    [
        ('"avg-kkm"', {"n_init": 3}, "n_init = 2"),
        (
            '"avg-kkm"',
            {"datasets": '{ path = "one.npz", n_clusters = 4 }'},
            "fingerprint",
        ),
        (
            '"avg-kkm"',
            {"datasets": '{ path = "two.npz", name = "one" }'},
            "fingerprint",
        ),
        ('{ method = "mkkm", name = "avg-kkm" }', {}, "entry"),
    ],
)
def test_rows_of_another_plan_are_not_mixed_in(folder, methods, options, message):
    run(write_plan(folder, '"avg-kkm"'), folder / "out")
    with pytest.raises(ValueError, match=message):
        run(write_plan(folder, methods, **options), folder / "out")


@pytest.mark.parametrize("most", [1, 12, 10_000])
def test_a_shorter_grid_spans_the_whole_of_it(most):
    grid = METHODS["lkam"].GRID
    shorter = shorten_grid(grid, most)
    n_points = len(ParameterGrid(shorter))
    assert min(len(ParameterGrid(grid)), 0.6 * most) <= n_points <= most
    for axis, values in shorter.items():
        assert values == sorted(set(values) & set(grid[axis]), key=grid[axis].index)
        if len(values) > 1:
            assert (values[0], values[-1]) == (grid[axis][0], grid[axis][-1])


PLANS = ["quick", "paper/plan", "paper/resample", "released/plan", "paper/times"]


@pytest.mark.parametrize("name", PLANS)
def test_the_plans_that_come_with_the_library_can_be_read(name):
    plan = read_plan(Path(__file__).parents[2] / "benchmarks" / f"{name}.toml")
    assert plan.datasets
    assert "simplemkkm" in [m.method for m in plan.methods] or name == "released/plan"
