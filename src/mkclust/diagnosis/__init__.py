"""What each kernel brings to a fitted model: structure, agreement, copies of others, or noise."""

from mkclust.diagnosis.examine import diagnose
from mkclust.diagnosis.reading import Diagnosis

__all__ = ["Diagnosis", "diagnose"]
