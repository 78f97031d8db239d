"""Which views agree, before anything is clustered."""

from typing import Any

from mkclust.methods import AgreementKKM
from mkclust.methods.agreement import Agreement, measure_agreement
from mkclust.methods.training import open_training, read_training


def agreement(X: Any, **options: Any) -> Agreement:
    """Say which views share something beyond chance, with which others, and which share nothing.

    No labels are used, and nothing is clustered: every two views are compared by a debiased
    alignment of their kernels, and that with what chance makes of it when the samples of one of
    them change places. The cost is one pass over the kernels.

    Parameters
    ----------
    X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
        What an estimator's ``fit`` takes.
    **options
        How X is read and what kernels are made of it, as the parameters of `AgreementKKM`:
        ``kernels``, ``center``, ``normalize``, ``psd``, ``approximation`` and ``random_state``.

    Returns
    -------
    Agreement
        Of one kernel alone too, which has nothing to agree with.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import agreement
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> views["dice"] = np.random.default_rng(0).normal(size=(300, 20))
    >>> print(agreement(views).verdict())  # doctest: +NORMALIZE_WHITESPACE
    4 of 5 views agree beyond chance: pixels, fourier, gradients and projections. Set aside, sharing
    nothing with any other view: dice.
    """
    model = AgreementKKM(1, **options)
    model.check_parameters()
    training = open_training(model, read_training(model, X))
    return measure_agreement(training.source.stack(model, training.kernels))
