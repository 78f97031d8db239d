"""Which kernels share more than chance, without labels: products, tests, the result."""

from mkclust.agreements.alignments import p_text, p_value_limit
from mkclust.agreements.measure import (
    Compromise,
    activate,
    find_compromise,
    measure_agreement,
)
from mkclust.agreements.result import Agreement, Evidence

__all__ = [
    "Agreement",
    "Compromise",
    "Evidence",
    "activate",
    "find_compromise",
    "measure_agreement",
    "p_text",
    "p_value_limit",
]
