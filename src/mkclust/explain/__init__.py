"""What a fitted model depends on, what its clusters are, and what these questions return."""

from mkclust.explain.annotation import Annotation
from mkclust.explain.choosing import NumberOfClusters
from mkclust.explain.description import Description
from mkclust.explain.diagnose import diagnose
from mkclust.explain.diagnosis import Diagnosis
from mkclust.explain.landmarks import LandmarkStability, landmark_stability
from mkclust.explain.sample_scores import SampleScores
from mkclust.methods.agreement import Agreement
from mkclust.methods.missingness import Missingness

__all__ = [
    "Agreement",
    "Annotation",
    "Description",
    "Diagnosis",
    "LandmarkStability",
    "Missingness",
    "NumberOfClusters",
    "SampleScores",
    "diagnose",
    "landmark_stability",
]
