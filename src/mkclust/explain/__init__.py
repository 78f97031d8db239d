"""What a fitted model depends on, and what its clusters are."""

from mkclust.agreements import Agreement
from mkclust.explain.annotate import Annotation
from mkclust.explain.describe import Description
from mkclust.explain.diagnose import Diagnosis, diagnose
from mkclust.explain.evidence import EvidenceOfClusters
from mkclust.explain.number_of_clusters import NumberOfClusters
from mkclust.explain.sample_scores import SampleScores
from mkclust.explain.stability import Stability
from mkclust.explain.view_separation import ViewSeparation
from mkclust.fit.missingness import Missingness

__all__ = [
    "Agreement",
    "Annotation",
    "Description",
    "Diagnosis",
    "EvidenceOfClusters",
    "Missingness",
    "NumberOfClusters",
    "SampleScores",
    "Stability",
    "ViewSeparation",
    "diagnose",
]
