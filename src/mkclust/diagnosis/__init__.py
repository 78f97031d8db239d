"""What a fitted model hangs on: its kernels, each of them, and the draw of its features."""

from mkclust.diagnosis.examine import diagnose
from mkclust.diagnosis.landmarks import LandmarkStability, landmark_stability
from mkclust.diagnosis.reading import Diagnosis

__all__ = ["Diagnosis", "LandmarkStability", "diagnose", "landmark_stability"]
