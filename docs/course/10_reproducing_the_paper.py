"""
10. Comparing methods, and reproducing the paper
================================================

A benchmark is a plan: data sets, methods, settings, repetitions. This small one has the
protocol of the paper, on the bundled digits.
"""

# %%
# A plan is a TOML file. Every setting is solved once, and k-means is repeated on the
# result.

import tempfile
from pathlib import Path

plan_text = """
repetitions = 5
grid_repetitions = 2
n_init = 3
datasets = ["digits"]
methods = [
  "agreement-kkm",
  "avg-kkm",
  "simplemkkm",
  { method = "mkkm-mir", grid = { reg = [0.25, 4.0] } },
]
"""
folder = tempfile.TemporaryDirectory()
_ = (Path(folder.name) / "plan.toml").write_text(plan_text)

# %%
# ``mkclust bench plan.toml --out DIR`` runs it. Here the command is called from Python.
# (``mkclust.bench.run_plan`` does the same within a program; it starts processes, so a
# script has to call it under ``if __name__ == "__main__"``.)

import subprocess
import sys

done = subprocess.run(
    [
        sys.executable,
        "-m",
        "mkclust.cli",
        "bench",
        "plan.toml",
        "--out",
        "results",
        "--jobs",
        "1",
    ],
    cwd=folder.name,
    check=True,
    capture_output=True,
    text=True,
)
print(done.stdout)

# %%
# Every repetition is one row, on disk before the next task begins. A run that was
# killed continues where it stopped.

from mkclust.bench.rows import read_rows
from mkclust.bench.tables import outcomes, score_table

rows = read_rows(Path(folder.name) / "results")
row = next(row for row in rows if row["method"] == "simplemkkm")
print(
    {
        key: row[key]
        for key in ("method", "seed", "acc", "nmi", "ari", "n_iter", "gap", "status")
    }
)

# %%
# The tables keep two things apart. *Default settings* were chosen without looking at
# the true classes.

default = outcomes(rows, "default")
print(score_table(default, "acc").T.to_string())

# %%
# With settings chosen by the *true classes*, as in the paper, a method with a grid has
# more tries than one without. No user without labels gets these figures.

oracle = outcomes(rows, "oracle")
print(default[default["score"] == "acc"].set_index("method")["mean"].round(1).to_dict())
print(oracle[oracle["score"] == "acc"].set_index("method")["mean"].round(1).to_dict())

# %%
# The repetitions, as a picture. Their spread comes from the starts of k-means, and says
# nothing about other samples. MKKM-MiR is ahead here, but one data set does not rank
# methods.

import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7, 2.5), layout="constrained")
names = ["agreement-kkm", "avg-kkm", "simplemkkm", "mkkm-mir"]
for height, name in enumerate(names):
    values = [
        100 * row["acc"] for row in rows if row["method"] == name and row["default"]
    ]
    ax.plot(values, [height] * len(values), "o", alpha=0.6)
ax.set_yticks(range(len(names)), names)
ax.set(xlabel="accuracy in percent, default settings")
plt.show()
folder.cleanup()

# %%
# ``mkclust report DIR`` writes all tables. :doc:`/guides/benchmark` explains plans,
# rows and tables, and says which data the paper's own experiments need.
