"""The command ``mkclust demo``: clusters digits from files, one of them useless."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from mkclust import metrics
from mkclust.cli.errors import echo
from mkclust.cli.inputs import read_inputs
from mkclust.cli.models import fit
from mkclust.cli.options import Request
from mkclust.cli.outputs import check_outputs, fitted_labels, save_figure
from mkclust.cli.printing import score_table, views_used
from mkclust.cli.progress import session
from mkclust.datasets.digits import digit_images, digit_tables
from mkclust.explain.describe import describe
from mkclust.files import write_atomically
from mkclust.methods import METHODS, AgreementKKM
from mkclust.plots.embedding import EmbeddingDisplay
from mkclust.plots.style import BLUE, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The file that is useless: a copy of the first one, its rows under the wrong ids.
USELESS = "shuffled"
N_CLUSTERS = 10
TITLE: Any = {
    "loc": "left",
    "fontsize": 12,
    "fontweight": "bold",
    "color": INK,
    "pad": 12,
}


def run(out: Path = Path("demo")) -> None:
    """Cluster handwritten digits from several files, and explain the result."""
    start = time.perf_counter()
    picture = out / "digits.png"
    labels = out / "labels.csv"
    tables, digits = digit_tables()
    first = next(iter(tables.values()))
    wrong = np.random.default_rng(0).permutation(len(first))
    tables = {**tables, USELESS: first.iloc[wrong].set_axis(first.index)}

    # The suffixes of the files, which may differ.
    suffixes = (".csv", ".tsv", ".csv.gz", ".csv", ".csv")
    files = {}
    for (name, table), suffix in zip(tables.items(), suffixes, strict=True):
        separator = "\t" if suffix == ".tsv" else ","
        options = {"sep": separator, "index_label": "id", "float_format": "%.6g"}
        files[out / f"{name}{suffix}"] = partial(table.to_csv, **options)
    request = Request(inputs=[*map(str, files)], n_clusters=N_CLUSTERS)
    with session() as progress:
        named = {str(path): path for path in files}
        check_outputs({"plot": picture, "labels": labels, **named})
        progress.phase("writing and reading files")
        write_atomically(files)
        data = read_inputs(request, progress)
        model = fit(request, data, progress).model
        y = digits[model.sample_ids_].to_numpy()
        description = describe(model, data.views, n_features=3)
        progress.phase("the same without mkclust, to compare")
        average = METHODS["avg-kkm"](N_CLUSTERS, random_state=0).fit(data.views)
        views = [view.loc[model.sample_ids_] for view in data.views.values()]
        columns = StandardScaler().fit_transform(np.hstack(views))
        k_means = KMeans(N_CLUSTERS, n_init=10, random_state=0).fit(columns)
        fits = {"mkclust": model, "plain average": average, "k-means": k_means}
        scores = {name: metrics.scores(y, each.labels_) for name, each in fits.items()}
        progress.phase("drawing")
        images = digit_images().loc[model.sample_ids_]
        save_figure(draw_demo(model, np.stack(images.to_list()), scores), picture)
        write_atomically({labels: fitted_labels(model)})
    lines = [
        "Handwritten digits in five files. "
        f"In {USELESS}, rows are under the wrong ids.",
        *data.lines,
        *views_used(model),
        "",
        description.summary(),
        "",
        score_table(scores),
        "Scores compare clusters with the true digits, which were not used in any fit: "
        "clusters by mkclust, by a plain average of all kernels, and by k-means on all "
        "columns.",
        "",
        f"Wrote {picture}",
        f"Wrote {labels}",
        f"Seconds: {time.perf_counter() - start:.1f}",
        "",
        "The same by hand:",
        f"  mkclust cluster {' '.join(request.inputs)} -k {N_CLUSTERS}",
        "With files of your own, each with a column of ids, and a page to read:",
        "  mkclust cluster FIRST.csv SECOND.tsv -k 4 --report clusters.html",
    ]
    echo("\n".join(lines))


def draw_demo(
    model: AgreementKKM, images: np.ndarray, scores: Mapping[str, Mapping[str, float]]
) -> Figure:
    """Draw the tables that agree, a map with an image of every cluster, and scores.

    Images are in the order of the samples; scores are by method and name.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.6, 5.2), layout="constrained", facecolor="white")
    left, middle, right = figure.subplots(1, 3, width_ratios=(4.6, 5.4, 3.2))
    _draw_agreement(left, model)
    _draw_map(middle, model, images)
    _draw_scores(right, {name: each["acc"] for name, each in scores.items()})
    return figure


def _draw_agreement(ax: Axes, model: AgreementKKM) -> None:
    """Draw what every two tables share, and say which one is set aside."""
    model.agreement_.plot(ax)
    used = len(model.agreement_.names) - len(model.set_aside_)
    aside = ", ".join(model.set_aside_)
    ax.set_title(f"{used} tables agree, “{aside}” does not", **TITLE)
    ax.set_anchor("N")
    ax.set_xlabel("what every two tables share", color=INK)


def _draw_map(ax: Axes, model: AgreementKKM, images: np.ndarray) -> None:
    """Draw the samples by cluster, with an image of each at its center."""
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    display = EmbeddingDisplay(
        embedding=model._rows_of(model.embedding_), labels=model.labels_
    )
    display.plot(ax)
    for label in list(ax.texts):
        label.remove()

    # An image takes a quarter of an inch.
    zoom = 0.25 * ax.figure.dpi / images.shape[1]
    for cluster in np.unique(display.labels).tolist():
        central = display.central(cluster)
        image = images[display.samples[central]]
        picture = OffsetImage(image, zoom=zoom, cmap="gray_r", interpolation="nearest")
        ax.add_artist(
            AnnotationBbox(
                picture,
                display.points[central],
                pad=0.15,
                bboxprops={"edgecolor": INK, "linewidth": 0.8},
            )
        )

    ax.set_title(
        f"{len(display.sizes)} clusters of {len(images):,} images, without labels",
        **TITLE,
    )
    ax.set_anchor("N")
    ax.set_xlabel("a map of neighbors, colored by cluster", color=INK)


def _draw_scores(ax: Axes, accuracies: Mapping[str, float]) -> None:
    """Draw how many images are in the right cluster, by method."""
    names = list(accuracies)[::-1]
    shares = np.array([accuracies[name] for name in names])
    colors = [BLUE if share == shares.max() else FAINT for share in shares]
    ax.barh(names, shares, height=0.55, color=colors)
    for place, share in enumerate(shares):
        ax.text(
            share - 0.02,
            place,
            f"{share:.0%}",
            va="center",
            ha="right",
            color="white",
            fontsize=13,
            fontweight="bold",
        )
    ax.set_title("Images in the right cluster", **TITLE)
    ax.set_xlim(0, 1)
    ax.set_xticks([])
    ax.tick_params(axis="y", length=0, labelsize=11)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("by the true digits, which no fit has used", color=INK)
