"""What a fitted model hangs on: its kernels, each of them, and the draw of its features."""

from mkclust.explain.diagnose import diagnose
from mkclust.explain.diagnosis import Diagnosis
from mkclust.explain.landmarks import LandmarkStability, landmark_stability

__all__ = ["Diagnosis", "LandmarkStability", "diagnose", "landmark_stability"]
