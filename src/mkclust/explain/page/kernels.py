"""What the kernels of a fit are: their diagnosis, and what each of them finds alone."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from mkclust.explain import Diagnosis, diagnose
from mkclust.explain.examined import examine
from mkclust.explain.page.budget import leave_one_out_is_cheap, n_examined, sample_by_cluster
from mkclust.explain.stability import Resampler
from mkclust.kernels import default_bank
from mkclust.methods import AverageKKM
from mkclust.methods.training import in_order_of_fit
from mkclust.metrics import adjusted_rand_index
from mkclust.samples.checks import is_dask
from mkclust.types import Float


@dataclass(frozen=True, eq=False)
class KernelFindings:
    """What was found out about the kernels, on all samples or on some.

    Attributes
    ----------
    n_samples : int
        On how many samples.
    refit_agreement : float or None
        Where not on all: the adjusted Rand index between the model's clusters and those of the
        same method fitted on these samples alone, which is what was examined.
    diagnosis : Diagnosis or None
        None for a single kernel, which cannot be compared.
    left_out : bool
        Whether the model was refitted without each kernel in turn.
    with_consensus, with_average : ndarray of shape (m,)
        Adjusted Rand index between the clusters of each kernel alone and those of the model, and
        those of the average kernel.
    average_with_consensus : float
        The same between the average kernel and the model.
    """

    n_samples: int
    refit_agreement: float | None
    diagnosis: Diagnosis | None
    left_out: bool
    with_consensus: Float
    with_average: Float
    average_with_consensus: float


def examine_kernels(
    model: Any, X: Any, labels: np.ndarray, seed: int, leave_one_out: bool | None = None
) -> KernelFindings:
    """Find out what each kernel of a model brings, on some samples where all would take long.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator.
    X : array, list, dict or source of rows
        What it was fitted on.
    labels : ndarray of int of shape (n,)
        Its clusters.
    seed : int
        Seed of k-means.
    leave_one_out : bool, default=None
        Whether to refit without each kernel in turn; None does so where it is cheap.

    Returns
    -------
    KernelFindings
    """
    n, refit_agreement = n_examined(model), None
    if n < len(labels) or is_dask(model.embedding_):
        samples = sample_by_cluster(labels, n)
        approximated = model.approximation is not None
        # Features are made of views, whatever these might be taken for otherwise.
        source = Resampler(X, default_bank(True) if approximated else model.kernels)
        X, model = source.take(samples), clone(model)
        if not approximated:
            model.set_params(kernels=source.kernels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what there is to warn of concerns the whole fit
            model.set_params(random_state=seed).fit(X)
        refit_agreement = adjusted_rand_index(labels[samples], model.labels_)
        n = len(samples)
    m = len(model.kernel_names_)
    left_out = m > 1 and (
        leave_one_out_is_cheap(model, n) if leave_one_out is None else leave_one_out
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        diagnosis = diagnose(model, X, leave_one_out=left_out) if m > 1 else None
        examined = examine(model, in_order_of_fit(model, X), seed)
        alone = [examined.labels(p) for p in range(m)]
        average = _average_labels(model, X, seed)
    return KernelFindings(
        n_samples=n,
        refit_agreement=refit_agreement,
        diagnosis=diagnosis,
        left_out=left_out,
        with_consensus=np.array([adjusted_rand_index(model.labels_, single) for single in alone]),
        with_average=np.array([adjusted_rand_index(average, single) for single in alone]),
        average_with_consensus=adjusted_rand_index(average, model.labels_),
    )


def _average_labels(model: Any, X: Any, seed: int) -> np.ndarray:
    """Return the clusters of the average kernel."""
    if hasattr(model, "baseline_labels_"):
        return model.baseline_labels_
    if isinstance(model, AverageKKM):
        return model.labels_
    shared = AverageKKM().get_params(deep=False).keys() & model.get_params(deep=False).keys()
    average = AverageKKM(**{name: getattr(model, name) for name in shared})
    return average.set_params(random_state=seed).fit(X).labels_
