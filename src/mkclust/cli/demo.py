"""The command ``mkclust demo``: clusters digits from files, one of them useless."""

import gzip
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from mkclust import metrics
from mkclust.cli.demo_picture import draw_demo
from mkclust.cli.errors import echo
from mkclust.cli.inputs import read_inputs
from mkclust.cli.models import fit
from mkclust.cli.options import Request
from mkclust.cli.outputs import check_output, check_outputs, fitted_labels
from mkclust.cli.printing import score_table, views_used
from mkclust.cli.progress import session
from mkclust.datasets.digits import digit_images, digit_tables
from mkclust.explain.describe import describe
from mkclust.files import write_atomically
from mkclust.methods import METHODS

# The file that is useless: a copy of the first one, its rows under the wrong ids.
USELESS = "shuffled"
N_CLUSTERS = 10


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
    files = {
        out / f"{name}{suffix}": table
        for (name, table), suffix in zip(tables.items(), suffixes, strict=True)
    }
    request = Request(inputs=[*map(str, files)], n_clusters=N_CLUSTERS)
    with session() as progress:
        check_output("plot", picture)
        check_outputs([*files, picture, labels])
        progress.phase("writing and reading files")
        contents = {path: _content(path, table) for path, table in files.items()}
        write_atomically(contents)
        data = read_inputs(request, progress)
        model = fit(request, data, progress).model
        y = digits[model.sample_ids_].to_numpy()
        description = describe(model, data.views, n_features=3)
        progress.phase("the same without mkclust, to compare")
        average = METHODS["avg-kkm"](N_CLUSTERS, random_state=0).fit(data.views)
        views = [data.views[name].loc[model.sample_ids_] for name in data.views]
        scaled = [StandardScaler().fit_transform(view) for view in views]
        columns = np.hstack(scaled)
        by_k_means = KMeans(N_CLUSTERS, n_init=10, random_state=0).fit_predict(columns)
        scores = {
            "mkclust": metrics.scores(y, model.labels_),
            "plain average": metrics.scores(y, average.labels_),
            "k-means": metrics.scores(y, by_k_means),
        }
        progress.phase("drawing")
        images = digit_images().loc[model.sample_ids_]
        figure = draw_demo(model, np.stack(images.to_list()), scores)
        table = fitted_labels(model)
        write_atomically(
            {picture: lambda path: figure.savefig(path, dpi=150), labels: table}
        )
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


def _content(path: Path, frame: pd.DataFrame) -> bytes:
    """Return a table as the bytes of a file of its suffix."""
    separator = ","
    if path.suffix == ".tsv":
        separator = "\t"

    text = frame.to_csv(sep=separator, index_label="id", float_format="%.6g").encode()
    if path.suffix == ".gz":
        return gzip.compress(text, mtime=0)
    return text
