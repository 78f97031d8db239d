"""The command ``mkclust demo``: handwritten digits, clustered and explained."""

import time
from pathlib import Path

from mkclust import datasets, plots
from mkclust.cli.failures import (
    expected_failures,
    recorded_warnings,
    say,
    say_last,
    show_warnings,
)
from mkclust.cli.options import Folder, Seed
from mkclust.cli.outputs import all_scores, check_outputs, check_plot, labels_csv, write_files
from mkclust.cli.printing import Progress, fit_summary, score_table
from mkclust.methods import METHODS, RECOMMENDED


def run(out: Folder = Path("demo"), seed: Seed = 0) -> None:
    """Cluster handwritten digits from several views, and explain the result."""
    start = time.perf_counter()
    picture, labels = out / "digits.png", out / "labels.csv"
    check_plot(picture)
    check_outputs([picture, labels], new_folder=True)
    data = datasets.load("digits")
    method = METHODS[RECOMMENDED]
    say(
        f"{method.__name__} clusters {data.n_samples} handwritten digits from {len(data.X)} views "
        "of each image into 10 clusters."
    )
    with Progress() as progress, recorded_warnings() as log, expected_failures():
        progress.phase(f"clustering {data.n_samples} samples, {len(data.X)} kernels")
        model = method(10, random_state=seed).fit(data.X)
        progress.phase("drawing")
        write_files(
            {
                picture: lambda path: plots.save(plots.plot_fit(model, data.y), path),
                labels: lambda path: path.write_bytes(labels_csv(model)),
            }
        )
    show_warnings(log)
    seconds = (
        f"Seconds: {model.solve_seconds_:.2f} to solve, {model.check_seconds_:.2f} to check the "
        f"kernels, {time.perf_counter() - start:.2f} in all."
    )
    scores = score_table(all_scores(model, data.y))
    lines = ["", fit_summary(model), seconds, "", scores]
    lines += ["", f"Picture: {picture}", f"Labels: {labels}"]
    say_last("\n".join(lines), files=(picture, labels))
