"""The paper's tables and figures from the rows of a benchmark, with its own numbers.

    # the committed rows, into paper-report
    python benchmarks/paper/compare.py
    # the rows of a run of plan.toml
    python benchmarks/paper/compare.py DIR --out FOLDER

Writes table 2 (all methods on all data sets, ours and the paper's), table 3 (SimpleMKKM
and its two ablations), what reproduces, and figures 1 to 3: kernel weights, run times,
objectives.
"""

import argparse
from pathlib import Path

import pandas as pd

from mkclust.bench.figures import draw_objectives, draw_times, draw_weights
from mkclust.bench.rows import read_rows, read_solves
from mkclust.bench.tables import SELECTIONS, TITLES, dataset_labels, outcomes

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
# The methods and data sets of the paper's tables, in their order there.
METHODS = ["avg-kkm", "mkkm", "lmkkm", "onkc", "mkkm-mir", "lkam", "lf-mvc", "mkkm-mm"]
METHODS += ["simplemkkm", "kamm-r", "kamm-a"]
DATASETS = [
    "Flo17",
    "Flo102",
    "PFold",
    "CCV",
    "Digit",
    *(f"Cal-{n}" for n in range(5, 31, 5)),
]
ABLATION = ["kamm-r", "kamm-a", "simplemkkm"]
# Points of percent within which two numbers count as close.
WITHIN = (0.5, 1.0, 2.0)
# The meaning of the caveats of data sets.
CAVEATS = {
    "substitute": (
        "other samples or kernels than the published ones, so that a difference from a "
        "published figure says nothing about the method"
    ),
    "truncated": (
        "kernels of reduced rank, so that methods that use the tail of a spectrum may "
        "differ from a published figure for that reason alone"
    ),
}


def caveat_notes(rows):
    """Return the caveats of data sets that are not the published ones."""
    labels = dataset_labels(rows)
    pairs = {
        (labels[row["dataset"]], row["caveat"]) for row in rows if row.get("caveat")
    }
    return [f"{label}: {CAVEATS[caveat]}." for label, caveat in sorted(pairs)]


def published():
    """Return the paper's numbers: data set, method, score, mean and deviation in
    percent."""
    return pd.read_csv(HERE / "published.csv").dropna(subset="mean")


def comparison(rows):
    """Return every number of the paper that rows have, with ours beside it, for each
    selection."""
    rows = [row for row in rows if row["resample"] == 1 and row.get("paper")]
    papers = {row["dataset"]: row["paper"] for row in rows}
    caveats = {row["dataset"]: row.get("caveat") or "" for row in rows}
    frames = []
    for selection in SELECTIONS:
        ours = (
            outcomes(rows, selection).dropna(subset="mean").assign(selection=selection)
        )
        ours["paper"], ours["caveat"] = (
            ours["dataset"].map(papers),
            ours["dataset"].map(caveats),
        )
        theirs = published().rename(columns={"dataset": "paper"})
        both = ours.merge(
            theirs, on=["paper", "method", "score"], suffixes=("", "_paper")
        )
        both["difference"] = (both["mean"].round(1) - both["mean_paper"]).round(1)
        frames.append(both)
    frame = pd.concat(frames, ignore_index=True)
    frame["place"] = frame["paper"].map(DATASETS.index)
    frame["column"] = frame["method"].map(METHODS.index)
    return frame.sort_values(
        ["selection", "score", "place", "column"], ignore_index=True
    )


def reproduction(frame):
    """Return how many of the paper's numbers are how close to ours, by data set."""
    lines = []
    for selection in SELECTIONS:
        part = frame[frame["selection"] == selection].sort_values("place")
        groups = list(part.groupby("label", sort=False))
        groups.append(("all data sets without caveat", part[part["caveat"] == ""]))
        for label, cells in groups:
            difference = cells["difference"]
            line = {"settings": selection, "data set": label, "numbers": len(cells)}
            line |= {f"within {w:g}": (difference.abs() <= w).sum() for w in WITHIN}
            line[f"over {WITHIN[-1]:g} above"] = (difference > WITHIN[-1]).sum()
            line[f"over {WITHIN[-1]:g} below"] = (difference < -WITHIN[-1]).sum()
            lines.append(line)
    return pd.DataFrame(lines)


def score_table(frame, selection, score, methods):
    """Return ours±deviation (paper's) as text, data sets by methods."""
    part = frame[(frame["selection"] == selection) & (frame["score"] == score)]
    part = part[part["method"].isin(methods)]
    text = [
        f"{r.mean:.1f}±{r.std:.1f} ({r.mean_paper:.1f})" if r.n > 1 else f"{r.mean:.1f}"
        for r in part.itertuples()
    ]
    table = part.assign(text=text).pivot(index="label", columns="method", values="text")
    labels = dict.fromkeys(part.sort_values("place")["label"])
    return table.loc[list(labels), [m for m in methods if m in table]].fillna("-")


def write(rows, solves, times, folder):
    """Write the tables and figures into a folder, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    frame = comparison(rows)
    text = ["# The paper's tables and figures", "In parentheses: the paper's number."]
    text += [
        f"- {note}" for note in caveat_notes([row for row in rows if row.get("paper")])
    ]
    text += ["## What reproduces", reproduction(frame).to_markdown(index=False)]
    for number, methods in ((2, METHODS[:9]), (3, ABLATION)):
        for selection, words in SELECTIONS.items():
            text += [f"## Table {number}, {selection} settings", words]
            for score, title in TITLES.items():
                table = score_table(frame, selection, score, methods)
                text += [f"### {title}", table.rename_axis(None, axis=1).to_markdown()]
    solves = [solve for solve in solves if solve.get("paper")]
    figures = {
        "figure1-weights.png": draw_weights(solves),
        "figure2-times.png": draw_times([row for row in times if row.get("paper")]),
        "figure3-objectives.png": draw_objectives(solves, "simplemkkm"),
    }
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=120)
        text.append(f"![{name}]({name})")
    frame.drop(columns=["place", "column"]).to_csv(
        folder / "comparison.csv", index=False
    )
    (folder / "README.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")
    return [folder / name for name in ("README.md", "comparison.csv", *figures)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=RESULTS / "paper")
    parser.add_argument(
        "--times", type=Path, default=RESULTS / "times", help="rows of times.toml"
    )
    parser.add_argument("--out", type=Path, default=Path("paper-report"))
    arguments = parser.parse_args()
    rows, solves = read_rows(arguments.folder), read_solves(arguments.folder)
    for path in write(rows, solves, read_rows(arguments.times), arguments.out):
        print(path)


if __name__ == "__main__":
    main()
