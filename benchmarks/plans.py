"""The paper's experiments: a plan is run, and its rows are kept with a stamp.

    export MKCLUST_DATA=DATA
    OMP_NUM_THREADS=1 python benchmarks/plans.py --plan paper --jobs 16
    python benchmarks/plans.py --plan times --jobs 1      # with nothing else to do

writes ``rows.jsonl.gz``, ``solves.jsonl.gz`` and ``run.json`` into ``results/PLAN``.
This is what ``mkclust bench`` does with the file of the plan, without the command line.
A run that was stopped goes on in the folder ``bench``.

paper      every method on every data set that can be had; settings chosen from grids
resample   refits on 80 % of the samples, the same for all methods
times      run times, one process with two threads
released   what released codes do differently, on UCI Digit
"""

from pathlib import Path

from mkclust import bench
from mkclust.bench.rows import as_lines, read_rows, read_solves
from records import JOBS, ROOT, compress, parse, write_run

HERE = Path(__file__).resolve().parent
PLANS = {
    "paper": HERE / "paper" / "plan.toml",
    "resample": HERE / "paper" / "resample.toml",
    "times": HERE / "paper" / "times.toml",
    "released": HERE / "released" / "plan.toml",
}


def report(n_done, n_left, running):
    """Print how far a run is, when a job has ended."""
    if report.n_done != n_done:
        report.n_done = n_done
        print(f"{n_done} done, {n_left} left: {running}", flush=True)


report.n_done = -1


def keep(run, folder):
    """Write the rows and solves of a run, compressed, and its stamp."""
    rows = read_rows(run)
    versions = {row["versions"].partition(",")[0] for row in rows}
    if len(versions) > 1:
        raise SystemExit(
            f"{run}: holds rows of several versions ({'; '.join(sorted(versions))}); "
            "remove the folder and run the plan again"
        )
    folder.mkdir(parents=True, exist_ok=True)
    compress(folder / "rows.jsonl.gz", as_lines(rows))
    compress(folder / "solves.jsonl.gz", as_lines(read_solves(run)))
    write_run(folder / "rows.jsonl.gz")


def main():
    """Run a plan, say what failed, and keep the rows."""
    plan = {"choices": PLANS, "required": True}
    options = parse(__doc__, "", jobs=JOBS, plan=plan)
    run = ROOT / "bench" / options.plan
    contents = bench.read_plan(PLANS[options.plan])
    found = bench.run_plan(contents, run, n_processes=options.jobs, watcher=report)
    for row in found.failures:
        print(row["dataset"], row["method"], row["status"], row["message"])
    print(f"{found.n_rows:,} rows; not available: {', '.join(found.missing) or 'none'}")
    keep(run, options.out / options.plan)


if __name__ == "__main__":
    main()
