"""What the certified methods share: what they learn of their certificate and of the compromise."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

from mkclust.engine.certificate import rounding_of_entries
from mkclust.engine.eigen import Relaxation, relax
from mkclust.linalg import astype, precision_of, to_device
from mkclust.methods.base import MultipleKernelClusterer
from mkclust.methods.fields import learned
from mkclust.methods.out_of_sample import inverse
from mkclust.methods.solution import Solution
from mkclust.metrics import agreement_of_labels
from mkclust.parameters import Allowed, Choice
from mkclust.stack import Stack
from mkclust.stack.observed import with_active
from mkclust.types import Array, Float

# Relative error of the compromise's eigenvalue sum: its clusters are compared, not computed on.
COMPARED_TOLERANCE = 1e-5


class CertifiedClusterer(MultipleKernelClusterer):
    """Base of the methods that minimize over the weights what the partition maximizes."""

    prove: bool | Literal["auto"] = "auto"
    tol: float = 1e-6
    max_iter: int = 200

    duality_gap_: float = learned()
    certificate_: str = learned()
    lower_bounds_: Float = learned()
    cluster_gap_: float = learned()
    eigengap_: float = learned()
    n_passes_: int = learned()

    ALLOWED: ClassVar[dict[str, Allowed]] = {"prove": Choice((True, False, "auto"))}

    def _compromise(self, stack: Stack, solution: Solution) -> Relaxation | None:
        """Return the partition of the views' compromise, None if there is one kernel only."""
        agreement, start = solution.agreement, solution.relaxation
        if agreement is None or start is None:
            return None
        kernels = with_active(stack.kernels, agreement.chosen)
        is_same = all(new is old for new, old in zip(kernels, stack.kernels, strict=True))
        included = stack if is_same else replace(stack, kernels=kernels)
        held = included.held()
        mixed = (held or included).mix(agreement.coefficients())
        dtype = "float64" if held is None else precision_of(held.entries)
        options: Any = {"start": start.vectors, "dtype": dtype}
        return relax(mixed, self.n_clusters, tol=COMPARED_TOLERANCE, **options)

    def _explain_stop(self, solution: Solution) -> str:
        """Say why the solver stopped before its rule was met, and what to do about it."""
        advice = "raise max_iter or tol"
        if solution.n_iter < self.max_iter:
            advice = (
                "no further progress: eigenvalues around the last one that counts lie too close "
                "together, or rounding sets a limit; raise tol, pass kernels in float64 if they "
                "are float32, or solver='subspace' if it is another"
            )
        return (
            f"stopped after {solution.n_iter} iterations at a certified relative gap of "
            f"{solution.gap:.2g} (tol={self.tol:g}): {advice}"
        )

    def _further_rows(self, stack: Stack, solution: Solution) -> list[Array]:
        """Return the rows of the compromise's partition."""
        baseline, k = self._compromise(stack, solution), self.n_clusters
        if baseline is None:
            return []
        precision = rounding_of_entries(stack)
        scale = inverse(baseline.eigenvalues[:k], stack.n_samples, precision)
        products = astype(baseline.products[:, :k], "float64")
        return [products * to_device(scale, products)]

    def _learned(
        self, stack: Stack, solution: Solution, labels: Array, *further: Array
    ) -> dict[str, Any]:
        """Return the certificate, and what the compromise of the views finds."""
        relaxation = solution.relaxation
        assert relaxation is not None
        baseline_labels = further[0] if further else labels
        return {
            "duality_gap_": solution.gap,
            "certificate_": str(solution.certificate),
            "lower_bounds_": solution.lower_bounds,
            "eigengap_": relaxation.eigengap,
            "cluster_gap_": relaxation.cluster_gap,
            "n_passes_": solution.n_passes,
            "baseline_labels_": baseline_labels,
            "baseline_agreement_": agreement_of_labels(baseline_labels, labels),
        }
