"""What methods with a certificate have in common: what they learn and warn of."""

from typing import Any, ClassVar, Literal

from mkclust.agreements import activate
from mkclust.engine.eigen import Relaxation, relax
from mkclust.exceptions import WeightsWarning, warn
from mkclust.fit.base import LARGE_WEIGHT, RelaxedClusterer
from mkclust.fit.embedding import observed_of
from mkclust.fit.solution import Solution
from mkclust.linalg import namespace, precision_of, to_device
from mkclust.metrics import agreement_of_labels
from mkclust.parameters import Allowed, Choice, learned
from mkclust.stack import Stack
from mkclust.text import join_words
from mkclust.types import Array, Float

# Adjusted Rand index of labels_ and baseline_labels_ below which a warning is given.
OTHER_CLUSTERS = 0.8


class CertifiedClusterer(RelaxedClusterer):
    """Base of the methods whose weights minimize the maximum over partitions."""

    prove: bool | Literal["auto"] = "auto"
    tol: float = 1e-6
    max_iter: int = 200

    duality_gap_: float = learned()
    certificate_: str = learned()
    lower_bounds_: Float = learned()
    cluster_gap_: float = learned()
    eigengap_: float = learned()
    n_passes_: int = learned()

    # Whether to warn of clusters that are not those that the views agree on.
    WARNS: ClassVar[Literal["always", "if views are set aside", "never"]] = "always"
    WEIGHT_MEANING = LARGE_WEIGHT
    ALLOWED: ClassVar[dict[str, Allowed]] = {"prove": Choice((True, False, "auto"))}

    def _explain_stop(self, solution: Solution) -> str:
        advice = "raise max_iter or tol"
        if solution.n_iter < self.max_iter:
            advice = (
                "raise tol, or pass kernels in float64 (rounding, or a tie of "
                "eigenvalues)"
            )
            advice += "; solver='subspace' may get further" * hasattr(self, "solver")
        return (
            f"stopped after {solution.n_iter} iterations at a certified relative gap "
            f"of {solution.gap:.2g} (tol={self.tol:g}): {advice}"
        )

    def _further(self, stack: Stack, solution: Solution) -> list[Relaxation]:
        """Return the partition of the views' compromise, if there are several views."""
        agreement = solution.agreement
        baseline = solution.baseline
        if agreement is None or solution.relaxation is None:
            return []
        # Relative error of the compromise's eigenvalue sum: its clusters are only used
        # for comparison.
        compared_tolerance = 1e-5
        if baseline is None:
            # Features have other coordinates for some of the views.
            is_whole = observed_of(stack) is None or stack.features is not None
            kernels = stack if is_whole else activate(stack, agreement.chosen)
            held = kernels.held()  # in single precision, which is enough here
            options: Any = {"start": solution.basis}
            if held is not None:
                options["dtype"] = precision_of(held.entries)
            coefficients = agreement.coefficients()
            mix = (held or kernels).mix(coefficients)
            products = solution.products
            if kernels is stack and products is not None:
                c = to_device(coefficients, products, precision_of(products))
                options["products"] = namespace(products).tensordot(c, products, axes=1)
            baseline = relax(mix, self.n_clusters, tol=compared_tolerance, **options)
        return [baseline]

    def _learned(
        self, stack: Stack, solution: Solution, labels: Array, *further: Array
    ) -> dict[str, Any]:
        relaxation = solution.relaxation
        assert relaxation is not None
        baseline_labels = further[0] if further else labels
        rand_index = agreement_of_labels(baseline_labels, labels)
        if rand_index < OTHER_CLUSTERS:
            self._warn_of_other_clusters(solution, rand_index)
        return super()._learned(stack, solution, labels, *further) | {
            "duality_gap_": solution.gap,
            "certificate_": str(solution.certificate),
            "lower_bounds_": solution.lower_bounds,
            "eigengap_": relaxation.eigengap,
            "cluster_gap_": relaxation.cluster_gap,
            "n_passes_": solution.n_passes,
            "baseline_labels_": baseline_labels,
            "baseline_agreement_": rand_index,
        }

    def _warn_of_other_clusters(self, solution: Solution, rand_index: float) -> None:
        agreement = solution.agreement
        if agreement is None or not agreement.any_share or self.WARNS == "never":
            return
        if self.WARNS == "if views are set aside" and not agreement.set_aside:
            return
        reason = (
            "The views agree to different degrees, or another n_clusters may fit better"
        )
        aside = agreement.set_aside
        if aside:
            places = [agreement.names.index(name) for name in aside]
            share = solution.weights[places].sum()
            reason = (
                f"{share:.0%} of the weight is on views without clear agreement with "
                f"the others ({join_words(aside)})"
            )
        warn(
            "the learned weights find other clusters than those that the views agree "
            "on: the adjusted Rand index between labels_ and baseline_labels_ is "
            f"{rand_index:.2f}. {reason}; use AgreementKKM, or AnchoredMKKM, which "
            "stays near them",
            WeightsWarning,
        )
