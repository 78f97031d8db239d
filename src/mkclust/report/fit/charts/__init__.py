"""The plots of a fit's page, as plain data that the page's script draws."""

from mkclust.report.fit.charts.clusters import classes, stability
from mkclust.report.fit.charts.kernels import convergence, weights
from mkclust.report.fit.charts.samples import embedding, silhouettes, similarities

__all__ = [
    "classes",
    "convergence",
    "embedding",
    "silhouettes",
    "similarities",
    "stability",
    "weights",
]
