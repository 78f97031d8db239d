"""Samples that were not there at the fit: how well the clusters fit them."""

from mkclust.explain.held_out import (
    alignment_error,
    alignment_errors,
    generalization_bound,
    informative_sample_size,
)

__all__ = [
    "alignment_error",
    "alignment_errors",
    "generalization_bound",
    "informative_sample_size",
]
