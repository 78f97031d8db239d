"""Samples that were not there at the fit: where they belong, and how well the clusters fit them."""

from mkclust.generalize.error import (
    alignment_error,
    alignment_errors,
    generalization_bound,
    informative_sample_size,
)
from mkclust.generalize.extension import Extension, inverse

__all__ = [
    "Extension",
    "alignment_error",
    "alignment_errors",
    "generalization_bound",
    "informative_sample_size",
    "inverse",
]
