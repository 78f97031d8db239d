"""Figures 1 to 3 of the paper: kernel weights, run times, objectives."""

import matplotlib.pyplot as plt

from mkclust import METHODS
from mkclust.bench.tables import dataset_labels, time_table, weight_table
from mkclust.plots import ConvergenceDisplay

# More kernels than this are not named below their bars.
FEW_KERNELS = 8


def panels(titles, height):
    """Return a figure with a panel for each title, three in a row, and the panels."""
    rows = -(-len(titles) // 3)
    size = {"figsize": (11, height * rows), "layout": "constrained"}
    figure, axes = plt.subplots(rows, 3, **size, squeeze=False)
    found = dict(zip(titles, axes.flat, strict=False))
    for title, ax in found.items():
        ax.set_title(title, fontsize=10, loc="left")
        ax.tick_params(labelsize=8)
    for ax in axes.flat[len(titles) :]:
        ax.remove()
    return figure, found


def paper_solves(solves):
    """Return the solves with default settings on the paper's data sets, and their
    labels."""
    solves = [
        s for s in solves if s.get("paper") and s["default"] and not s.get("oracle")
    ]
    return solves, dataset_labels(solves)


def draw_weights(solves):
    """Draw how each method weighs the kernels; rows are scaled by their largest
    weight."""
    solves, labels = paper_solves(solves)
    frame = weight_table(solves)
    figure, axes = panels([labels[name] for name in frame["data set"].unique()], 3.0)
    for name, part in frame.groupby("data set", sort=False):
        ax, kernels = axes[labels[name]], list(dict.fromkeys(part["kernel"]))
        table = part.pivot_table("weight", "method", "kernel", sort=False)[kernels]
        table = table.reindex(sorted(table.index, key=[*METHODS, *table.index].index))
        shares = table.div(table.max(axis=1), axis=0)
        ax.imshow(shares, cmap="Blues", vmin=0, vmax=1.3, aspect="auto")
        ax.set_yticks(range(len(table)), table.index, fontsize=7)
        few = len(kernels) <= FEW_KERNELS
        ax.set_xticks(
            range(len(kernels)) if few else [], kernels if few else [], rotation=30
        )
        ax.set_xlabel("kernel" if few else f"{len(kernels)} kernels", fontsize=8)
    figure.suptitle(
        "Kernel weights, each relative to the largest of its method", fontsize=11
    )
    return figure


def draw_times(rows):
    """Draw the seconds of a solve by method, a panel for each of the paper's data
    sets."""
    table = time_table([row for row in rows if row.get("paper")])
    figure, axes = panels(list(table.index), 2.8)
    for label, seconds in table.iterrows():
        ax, known = axes[label], seconds.dropna()
        ax.barh(range(len(known)), known)
        ax.set_yticks(range(len(known)), known.index, fontsize=7)
        ax.set_xscale("log")
        ax.invert_yaxis()
        ax.set_xlabel("seconds of a solve", fontsize=8)
    return figure


def draw_objectives(solves):
    """Draw SimpleMKKM's objective by iteration, with the certified lower bound."""
    solves, labels = paper_solves(solves)
    solves = [solve for solve in solves if solve["method"] == "simplemkkm"]
    figure, axes = panels([labels[solve["dataset"]] for solve in solves], 2.4)
    for label, solve in zip(axes, solves, strict=True):
        bounds = solve["lower_bounds"]
        ConvergenceDisplay(history=solve["history"], lower_bounds=bounds).plot(
            axes[label]
        )
        axes[label].set_title(label, fontsize=10, loc="left", pad=24)
    return figure
