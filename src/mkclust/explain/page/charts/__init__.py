"""The plots of a fit's page, as plain data that the page's script draws."""

from mkclust.explain.page.charts.clusters import classes, stability
from mkclust.explain.page.charts.kernels import convergence, weights
from mkclust.explain.page.charts.samples import embedding, silhouettes, similarities

__all__ = [
    "classes",
    "convergence",
    "embedding",
    "silhouettes",
    "similarities",
    "stability",
    "weights",
]
