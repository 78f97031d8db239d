"""The words for how clear and how stable clusters are: one limit each, and no
contradiction."""

import numpy as np
import pytest

from mkclust.cli.printing import how_clear
from mkclust.explain.clarity import separation, stability_level
from mkclust.explain.stability import Stability


def refits(mean, vary="samples"):
    """Return the stability of ten samples whose refits agree to the same number."""
    ones = np.ones(10)
    return Stability("AverageKKM", vary, ones, ones[:2], np.full(3, mean), 8)


@pytest.mark.parametrize("vary", ["samples", "landmarks"])
@pytest.mark.parametrize("mean", [0.3, 0.91, 0.99])
def test_only_low_stability_casts_doubt_on_the_clusters(mean, vary):
    said = refits(mean, vary).verdict()
    doubt = (
        "there may be no clusters"
        if vary == "samples"
        else "the clusters are not clear"
    )
    assert said.lower().startswith(stability_level(mean))
    assert (doubt in said) == (stability_level(mean) == "low")
    assert ("another number of clusters" in said or "raise n_components" in said) == (
        mean < 0.95
    )


@pytest.mark.parametrize("silhouette", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("mean", [0.3, 0.85, 0.99])
@pytest.mark.parametrize("evidence", [None, "none", "weak", "strong"])
def test_clusters_that_may_not_exist_are_not_called_well_separated(
    silhouette, mean, evidence
):
    said = " ".join(how_clear(silhouette, refits(mean), evidence))
    if "there may be no clusters" in said or evidence in ("none", "weak"):
        assert "well separated" not in said.replace("not well separated", "")
    elif silhouette > 0.5:
        assert "well separated" in said
    assert f"mean silhouette {silhouette:.2f}" in said


def test_what_is_unknown_is_not_said():
    assert how_clear(float("nan"), None, None) == []
    assert separation(0.25) == "weakly separated"
    assert separation(0.2) == "not well separated"
