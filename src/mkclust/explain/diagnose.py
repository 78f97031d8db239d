"""Examine the kernels of a fitted model."""

import warnings
from typing import Any

import numpy as np

from mkclust.data import Samples
from mkclust.explain.diagnosis import Diagnosis
from mkclust.explain.examined import Examined, ExaminedKernels
from mkclust.explain.examined_features import ExaminedFeatures
from mkclust.explain.fitted import check_fitted, integer_seed, is_approximated
from mkclust.explain.steps import StepCallback, counted
from mkclust.linalg import select
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.training import in_order_of_fit
from mkclust.methods.uncovered import only_covered
from mkclust.metrics import agreement_of_labels

# Alignments, of which eigenvalue sums are known to a thousandth, differ by less than this.
SAME_ALIGNMENT = 0.01


def diagnose(
    model: Any, X: Any, *, leave_one_out: bool = True, progress: StepCallback = None
) -> Diagnosis:
    r"""Say what each kernel of a fitted model brings: structure, agreement, a copy, or noise.

    **When a kernel looks like noise.** If it shares nothing with any other kernel beyond chance, as
    `mkclust.agreement` measures it: the debiased alignment of the two is no larger than it would be
    if the samples of one of them changed places. ``chance`` says how likely that is, corrected for
    the number of pairs; less than 1e-5 is beyond chance. Copies of a kernel (a redundancy above
    0.99), and kernels that a bank made of one view, prove nothing about each other. Labels and
    weights play no part in that, nor does the consensus, which noise may have ruined.

    Whether a kernel has clusters of its own plays no part either: a random category, one-hot coded,
    has perfect ones. So what shares nothing is noise, or structure that no other kernel has, and
    nothing in the kernels can tell which of the two.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    X : array of shape (m, n, n), list or dict of kernels or views, or table of shape (n, d)
        What the model was fitted on, with two kernels or more: files and dask arrays, too.
    leave_one_out : bool, default=True
        Fit the model again without each kernel in turn, which takes most of the time.
    progress : callable, default=None
        Called as ``progress(done, total, text)`` while it works: steps done, their number, and
        what they are.

    Returns
    -------
    Diagnosis

    Notes
    -----
    Everything is deterministic: where ``random_state`` is no integer, k-means starts from the
    seed zero.

    Of kernels that are read from files or made on the fly nothing is written down; but each takes
    many passes of its own, and a refit takes as many as a fit. With an approximation the kernels
    are those of the features that the model learned, in refits too; whether other landmarks would
    give other clusters, `landmark_stability` tells. Every question is then answered by sums over
    the samples.

    Limits of the rule. Whatever two kernels share counts, be it a batch effect, and the more
    samples the less of it is needed. Two unlike kernels that were precomputed from one noise view
    share that view's features, so that neither is called noise. Where there are too few samples to
    tell kernels from chance, or all kernels are of one view or copies of one, no kernel is called
    noise. If no two kernels share anything, all are named.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import AverageKKM, diagnose
    >>> from mkclust.datasets import load
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> views["dice"] = np.random.default_rng(0).normal(size=(300, 20))
    >>> model = AverageKKM(n_clusters=10, random_state=0).fit(views)
    >>> diagnosis = diagnose(model, views)
    >>> diagnosis.noise
    ('dice',)
    >>> print(diagnosis)  # doctest: +ELLIPSIS
    AverageKKM, 10 clusters, 5 kernels
    ...
    Kernel 'dice' looks like noise: it shares nothing with the other kernels beyond chance ...
    """
    check_fitted(model)
    if len(model.kernel_names_) < 2:
        raise ValueError(
            "the model was fitted on one kernel: there is nothing to compare it with; a diagnosis "
            "takes two kernels or more"
        )
    with warnings.catch_warnings():
        # The model itself has warned when it was fitted.
        warnings.simplefilter("ignore")
        samples, model = in_order_of_fit(model, X), only_covered(model)
        examined = examine(model, samples)
        return diagnose_examined(model, examined, leave_one_out=leave_one_out, progress=progress)


def examine(model: MultipleKernelClusterer, samples: Samples) -> Examined:
    """Return the kernels of a fitted model, by samples in the order of its labels."""
    kind = ExaminedFeatures if is_approximated(model) else ExaminedKernels
    return kind(model, samples, integer_seed(model))


def diagnose_examined(
    model: MultipleKernelClusterer,
    examined: Examined,
    *,
    leave_one_out: bool,
    progress: StepCallback = None,
) -> Diagnosis:
    """Say what each of two kernels or more brings, as `diagnose` does, once they are examined."""
    _check_same(model, examined)
    structure, traces = examined.structure()
    values, has_trace = np.array([relaxation.value for relaxation in structure]), traces > 0
    return Diagnosis(
        method=type(model).__name__,
        n_clusters=model.n_clusters,
        names=model.kernel_names_,
        weights=model.weights_.copy(),
        alignments=model.alignments_.copy(),
        top_share=np.where(has_trace, values / np.where(has_trace, traces, 1), np.nan),
        cluster_gap=np.array([relaxation.cluster_gap for relaxation in structure]),
        agreement=np.array(
            [
                _agreement(model, examined.of_kernel(p, model.labels_), labels)
                for p, labels in enumerate(examined.labels)
            ]
        ),
        leave_one_out=_agreements_without_each(model, examined, leave_one_out, progress),
        view_agreement=model.agreement_,
        missingness=getattr(model, "missingness_", None),
    )


def _agreements_without_each(
    model: MultipleKernelClusterer,
    examined: Examined,
    leave_one_out: bool,
    progress: StepCallback,
) -> np.ndarray:
    """Return how far the clusters stay the same without each kernel, NaN where not known, (m,)."""
    m = len(examined.labels)
    if not leave_one_out:
        return np.full(m, np.nan)
    kernels = counted(range(m), progress, "kernels left out in turn")
    agreements = np.full(m, np.nan)
    for p in kernels:
        if (refit := examined.refit_without(p)) is not None:
            labels, samples = model.labels_, refit.samples
            labels = labels if samples is None else select(labels, samples)
            agreements[p] = _agreement(model, labels, refit.labels)
    return agreements


def _agreement(model: MultipleKernelClusterer, labels: Any, others: Any) -> float:
    """Return the adjusted Rand index between clusters of the model and others."""
    return agreement_of_labels(labels, others)


def _check_same(model: MultipleKernelClusterer, examined: Examined) -> None:
    """Refuse kernels that the model's partition does not fit as it fitted those of the fit."""
    alignments = examined.captured() / np.array(
        [relaxation.value for relaxation in examined.relaxations]
    )
    for name, now, then in zip(model.kernel_names_, alignments, model.alignments_, strict=True):
        if abs(now - then) > SAME_ALIGNMENT:
            raise ValueError(
                f"X is not what the model was fitted on: kernel {name!r} is aligned with the "
                f"consensus to {now:.2f}, and was to {then:.2f}; pass the same kernels and samples "
                "in the same order"
            )
