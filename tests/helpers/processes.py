"""Processes of a benchmark without the seconds of imports that each of them begins
with."""

import multiprocessing

from mkclust.bench import read_plan, run_plan

# What a process of a benchmark has imported by the end of a small plan.
IMPORTS = ["mkclust.bench.run", "pandas", "sklearn.cluster", "threadpoolctl"]

# One process does the imports, and the others are its forks. It holds nothing of a
# test, so that they start as empty as those that a benchmark spawns.
CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()
FORKS = multiprocessing.get_context("forkserver" if CAN_FORK else "spawn")
FORKS.set_forkserver_preload(IMPORTS)

_get_context = multiprocessing.get_context


def get_forks(method=None):
    """Return the context of forks where spawned processes are asked for."""
    return FORKS if method == "spawn" else _get_context(method)


def run_with_forks(path, out):
    """Run a plan by two forks, in a process that may be killed meanwhile."""
    multiprocessing.get_context = get_forks
    run_plan(read_plan(path), out, n_processes=2)
