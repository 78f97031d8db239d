"""Names and numbers that people give to clusters, kept in the model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pandas as pd

from mkclust.explain.fitted import check_fitted, fitted_index
from mkclust.fit import MultipleKernelClusterer
from mkclust.metrics import align_labels
from mkclust.text import join_words, printable

Model = TypeVar("Model", bound=MultipleKernelClusterer)


def name_clusters(model: Model, names: Mapping[int, str] | Sequence[str]) -> Model:
    """Give the clusters of a fitted model names, which appear wherever they are shown.

    Displays, summaries and reports take them, ``mkclust cluster`` and ``mkclust
    predict`` write them next to the numbers, and they are saved with the model. A new
    fit forgets them: its clusters are others.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator; it gets the attribute ``cluster_names_``.
    names : mapping of int to str, or sequence of str
        Names by the numbers of clusters, the others keep their numbers; or one name per
        cluster.

    Returns
    -------
    MultipleKernelClusterer
        The same model.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import AverageKKM, describe, name_clusters
    >>> table = {"size": np.repeat([[0.0], [9.0]], [25, 15], axis=0)}
    >>> table["size"] += np.random.default_rng(0).normal(size=(40, 1))
    >>> model = AverageKKM(n_clusters=2, random_state=0).fit(table)
    >>> model = name_clusters(model, {0: "small", 1: "large"})
    >>> model.cluster_names_
    ('small', 'large')
    >>> print(describe(model, table))
    Clusters by what sets them apart (in standard deviations from the rest):
    small  25  low size column 0 (-11.2)
    large  15  high size column 0 (+11.2)
    """
    check_fitted(model)
    k = int(model.n_clusters_)
    if not isinstance(names, Mapping):
        names = dict(enumerate(names))
        if len(names) != k:
            raise ValueError(
                f"names: {len(names)} names, and the model has {k} clusters: pass one "
                "name per cluster, or a mapping such as {0: 'basal'}"
            )
    others = [each for each in names if each not in range(k)]
    if others:
        raise ValueError(
            f"names: there is no cluster {join_words(others)}; clusters have the "
            f"numbers 0 to {k - 1}"
        )
    found = [printable(names.get(each, each)).strip() for each in range(k)]
    if "" in found:
        raise ValueError(f"names: that of cluster {found.index('')} is empty")
    repeated = {name for name in found if found.count(name) > 1}
    if repeated:
        raise ValueError(
            f"names: {join_words(sorted(repeated))} is the name, or the number, of "
            "several clusters: give each its own"
        )
    model.cluster_names_ = tuple(found)
    model._learned_names = (*{*model._learned_names, "cluster_names_"},)
    return model


def align_clusters(model: Model, earlier: pd.Series) -> Model:
    """Give the clusters of a fitted model the numbers of earlier ones.

    Clusters are paired as by `mkclust.align_labels`; those without a partner, or of one
    whose number there is not, get the numbers that are left, larger ones first.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, which is changed.
    earlier : Series of int
        Earlier clusters by the ids of the samples, or by their numbers from 0.

    Returns
    -------
    MultipleKernelClusterer
        The same model.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from mkclust import AverageKKM
    >>> from mkclust.explain.cluster_names import align_clusters
    >>> table = np.repeat([[0.0], [9.0]], [25, 15], axis=0)
    >>> table += np.random.default_rng(0).normal(size=(40, 1))
    >>> model = AverageKKM(n_clusters=2, random_state=0).fit(table)
    >>> earlier = pd.Series([1, 0], index=[3, 39])
    >>> align_clusters(model, earlier).labels_[[3, 39]].tolist()
    [1, 0]
    """
    check_fitted(model)
    labels = np.asarray(model.labels_)
    k = int(model.n_clusters_)
    index = fitted_index(model)
    if isinstance(index, int):
        index = pd.RangeIndex(index)
    now = pd.Series(labels, index)[labels >= 0]
    before = earlier[earlier >= 0]
    if not len(before):
        raise ValueError("the earlier clusters have no samples: pass others")

    pairs = pd.DataFrame({"now": now, "then": align_labels(now, before)})
    wanted = pairs.drop_duplicates("now").set_index("now")["then"]
    numbers = wanted[wanted < k].reindex(range(k))
    is_free = numbers.isna()
    numbers[is_free] = np.setdiff1d(np.arange(k), numbers)
    places = numbers.to_numpy(int)

    model.labels_ = np.where(
        labels >= 0,
        places[labels],
        labels,
    )
    model._centers = model._centers[np.argsort(places)]
    if hasattr(model, "missingness_"):
        found = model.missingness_
        old = np.argsort(places)  # columns are clusters
        model.missingness_ = replace(
            found,
            counts=found.counts[:, old],
            view_counts=found.view_counts[:, old],
        )
    return model
