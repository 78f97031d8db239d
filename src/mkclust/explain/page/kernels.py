"""What the kernels of a fit are: their diagnosis, and what each of them finds alone."""

from dataclasses import dataclass, replace

import numpy as np

from mkclust.data import Samples
from mkclust.explain.diagnose import diagnose_examined, examine
from mkclust.explain.diagnosis import Diagnosis
from mkclust.explain.examined import Examined
from mkclust.explain.fitted import integer_seed, is_approximated, unfitted_copy
from mkclust.explain.page.budget import Budget, sample_by_cluster
from mkclust.explain.stability import Resampler
from mkclust.explain.steps import StepCallback
from mkclust.methods import AgreementKKM, MultipleKernelClusterer
from mkclust.methods.training import in_order_of_fit
from mkclust.methods.uncovered import only_covered
from mkclust.metrics import agreement_of_labels
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
        None for a single kernel, which cannot be compared. What kernels share is in any case that
        of all samples.
    left_out : bool
        Whether the model was refitted without each kernel in turn.
    with_consensus, with_compromise : ndarray of shape (m,)
        Adjusted Rand index between the clusters of each kernel alone and those of the model, and
        those of the compromise of the views.
    compromise_with_consensus : float
        The same between the compromise and the model.
    """

    n_samples: int
    refit_agreement: float | None
    diagnosis: Diagnosis | None
    left_out: bool
    with_consensus: Float
    with_compromise: Float
    compromise_with_consensus: float


@dataclass(frozen=True, eq=False)
class Examination:
    """The kernels of a fit, or of one on some of its samples, made once for all that is asked.

    Attributes
    ----------
    model : MultipleKernelClusterer
        The model whose kernels they are: that of the page, or its refit on some samples.
    examined : Examined
        Its kernels.
    n_samples : int
        On how many samples.
    refit_agreement : float or None
        Where not on all: the adjusted Rand index of the refit's clusters with those of the model.
    """

    model: MultipleKernelClusterer
    examined: Examined
    n_samples: int
    refit_agreement: float | None = None


def open_kernels(
    model: MultipleKernelClusterer, samples: Samples, labels: np.ndarray, budget: Budget
) -> Examination:
    """Return the kernels of a model, on some samples where all would take long.

    Samples and labels are those of the fit, in one order.
    """
    n = budget.n_examined(model)
    if n >= len(labels):
        return Examination(model, examine(model, samples), n)
    part = sample_by_cluster(labels + 1, n)  # with some that have no cluster, if there are any
    refitted, some, part = _refit(model, samples, part)
    same = agreement_of_labels(labels[part], refitted.labels_)
    return Examination(refitted, examine(refitted, some), len(part), same)


def examine_kernels(
    examination: Examination,
    whole: MultipleKernelClusterer,
    leave_one_out: bool,
    progress: StepCallback = None,
) -> KernelFindings:
    """Find out what each kernel of a model brings; whole is the model of all samples."""
    model, examined = examination.model, examination.examined
    several, diagnosis = len(model.kernel_names_) > 1, None
    if several:
        diagnosis = diagnose_examined(
            model, examined, leave_one_out=leave_one_out, progress=progress
        )
        diagnosis = replace(
            diagnosis,
            view_agreement=whole.agreement_,
            missingness=getattr(whole, "missingness_", None),
        )
    compromise = _compromise_labels(model, examined)
    return KernelFindings(
        n_samples=examination.n_samples,
        refit_agreement=examination.refit_agreement,
        diagnosis=diagnosis,
        left_out=several and leave_one_out,
        with_consensus=_agreements(model.labels_, examined, model.n_clusters),
        with_compromise=_agreements(compromise, examined, model.n_clusters),
        compromise_with_consensus=agreement_of_labels(compromise, model.labels_),
    )


def _refit(
    model: MultipleKernelClusterer, samples: Samples, part: np.ndarray
) -> tuple[MultipleKernelClusterer, Samples, np.ndarray]:
    """Fit the same method on some of the samples; return it, these samples, and their numbers."""
    source = Resampler.of_fit(model, samples)
    refitted = unfitted_copy(model).set_params(random_state=integer_seed(model))
    if not is_approximated(model):
        refitted.set_params(kernels=source.kernels)
    X = source.take(part)
    covered = refitted.fit(X)._covered
    fitted = in_order_of_fit(refitted, X)
    return only_covered(refitted), fitted, part if covered is None else part[covered]


def _agreements(labels: np.ndarray, examined: Examined, n_clusters: int) -> Float:
    """Return the adjusted Rand index of clusters with those of each kernel alone, (m,)."""
    return np.array(
        [
            agreement_of_labels(examined.of_kernel(p, labels), alone)
            for p, alone in enumerate(examined.labels)
        ]
    )


def _compromise_labels(model: MultipleKernelClusterer, examined: Examined) -> np.ndarray:
    """Return the clusters of the views' compromise, which the fit may have found already."""
    if hasattr(model, "baseline_labels_"):
        return model.baseline_labels_
    if isinstance(model, AgreementKKM):
        return model.labels_  # which are those of the compromise
    if not hasattr(model, "agreement_"):
        return examined.labels[0]  # of a single kernel
    return examined.labels_of_mix(model.agreement_.coefficients())
