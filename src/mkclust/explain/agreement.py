"""Which views agree, before anything is clustered."""

from typing import Any

from mkclust.agreements import Agreement, measure_agreement
from mkclust.fit.steps import open_training, read_training
from mkclust.methods import AverageKKM
from mkclust.methods.anchors import drawn_part, needs_anchors


def agreement(
    X: Any, *, groups: Any = None, adjust: Any = None, **options: Any
) -> Agreement:
    """Test which views agree with another one, without labels.

    Every two views are compared by a debiased alignment of their kernels. Its p-value
    is the probability of such an alignment if the samples of one view are shuffled. Two
    views agree if it is below 1.5 / n^2 for n samples, but at most 1e-3 (up to 38
    samples) and at least 1e-5 (from 388 on). It takes one pass over the kernels.

    Parameters
    ----------
    X : array of shape (m, n, n) or (n, d), or list or dict of kernels or views
        What an estimator's ``fit`` takes.
    groups : Series, frame of one column, array-like of shape (n_samples,) or None
        The family, patient, batch or plate of every sample, if samples of one are
        alike: by id, or in the order of the samples. Samples are then shuffled within
        their groups, and groups as a whole, and the smaller of the two p-values counts
        twice.
    adjust : frame, Series, array-like of shape (n_samples, q) or None
        Covariates, of which views are adjusted as by ``fit``: whether views agree in
        what they do not explain. Residuals are compared in coordinates in which they
        can be shuffled.
    **options
        How X is read and which kernels are made of it, parameters of `AverageKKM`:
        ``kernels``, ``center``, ``normalize``, ``psd``, ``approximation`` and
        ``random_state``.

    Returns
    -------
    Agreement
        Its ``summary()`` has the p-values, weights and copies.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import agreement
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> views["dice"] = np.random.default_rng(0).normal(size=(300, 20))
    >>> print(agreement(views).verdict())  # doctest: +NORMALIZE_WHITESPACE
    4 of 5 views agree (p < 1e-16): pixels, fourier, gradients and projections.
    Set aside without clear agreement: dice (p = 0.3); the limit is 2e-05.
    """
    model = AverageKKM(1, **options)
    model.check_parameters()
    samples = read_training(model, X, groups=groups, adjust=adjust)
    # If samples are more than this, kernels are made of so many that are drawn.
    all_samples = 2048
    if model.approximation is None and needs_anchors(samples, all_samples):
        samples = drawn_part(samples, all_samples)
    training = open_training(model, samples)
    return measure_agreement(training.make_stack())
