"""Clusters of an earlier run, whose numbers ``--align-with`` keeps."""

from pathlib import Path

import numpy as np
import pandas as pd

from mkclust.cli.errors import CommandError
from mkclust.files import errors_of
from mkclust.fit.persistence import load_model
from mkclust.fit.training_input import training_index
from mkclust.text import from_spreadsheet


def read_earlier(text: str | None) -> pd.Series | None:
    """Return the clusters of an earlier run by the ids of its samples, if any."""
    if text is None:
        return None
    if text.lower().endswith(".skops"):
        model = load_model(text)
        index = training_index(model)
        if index is None:
            index = pd.RangeIndex(len(model.labels_))
        return pd.Series(np.asarray(model.labels_), index)

    path = Path(text)
    try:
        with errors_of(path):
            table = pd.read_csv(path, dtype={"id": str})
        ids = pd.Index([from_spreadsheet(each) for each in table["id"]])
        clusters = pd.Series(table["cluster"].to_numpy(int), ids)
    except (KeyError, ValueError, TypeError) as error:
        found = f"{type(error).__name__}: {error}"
        raise CommandError(
            f"--align-with {text}: is no table with the columns id and cluster "
            f"({found}); give the labels or the model that mkclust cluster wrote"
        ) from None
    if clusters.index.tolist() == list(map(str, range(len(clusters)))):
        return clusters.reset_index(drop=True)  # of samples without ids
    return clusters
