"""The words for how clear and how stable clusters are: one limit each, and no
contradiction, wherever they are said."""

from itertools import product

import numpy as np
import pytest

from mkclust.cli.printing import how_clear
from mkclust.explain.clarity import Clarity
from mkclust.explain.stability import Stability

SILHOUETTES = [0.1, 0.3, 0.6]
STABILITIES = [None, 0.3, 0.85, 0.99]
EVIDENCE = [None, "none", "weak", "strong"]
SITUATIONS = [
    Clarity(*each)
    for each in product(SILHOUETTES, STABILITIES, EVIDENCE, [None, True, False])
]
# Words of which at most one may be said of the same clusters.
NONE = "there may be no clusters"
WELL = " well separated"


def refits(mean, vary="samples"):
    """Return the stability of ten samples whose refits agree to the same number."""
    ones = np.ones(10)
    return Stability("AverageKKM", vary, ones, ones[:2], np.full(3, mean), 8)


def said_of(clarity):
    """Return all that the command line and the report say of how clear clusters are."""
    stability = None
    if clarity.stability is not None:
        stability = refits(clarity.stability)
    text = " ".join(how_clear(clarity, stability))
    return text.replace("not well separated", "not apart")


@pytest.mark.parametrize("clarity", SITUATIONS, ids=repr)
def test_no_two_statements_about_the_same_clusters_contradict_each_other(clarity):
    said = said_of(clarity)
    assert not (NONE in said and WELL in said)
    assert not (NONE in said and clarity.evidence in ("weak", "strong"))
    assert not (WELL in said and clarity.evidence in ("none", "weak"))
    assert not (WELL in said and "Low:" in said)
    assert not (clarity.fits_best and "another number of clusters" in said)
    assert not ("High:" in said and "another number of clusters" in said)
    if clarity.stability is not None:
        assert (NONE in said) == clarity.may_not_exist


@pytest.mark.parametrize("clarity", SITUATIONS, ids=repr)
def test_one_more_good_sign_never_makes_clusters_sound_worse(clarity):
    assert clarity.separation is not None
    better = Clarity(clarity.silhouette, 0.99, "strong", True)
    order = ["not well separated", "weakly separated"]
    order += ["far apart in the embedding only", "well separated"]
    assert order.index(better.separation) >= order.index(clarity.separation)
    assert not better.may_not_exist


@pytest.mark.parametrize("vary", ["samples", "landmarks"])
@pytest.mark.parametrize("mean", [0.3, 0.91, 0.99])
def test_stability_alone_says_what_it_says_in_a_report(mean, vary):
    said = refits(mean, vary).verdict()
    alone = Clarity(stability=mean, vary=vary)
    assert said == alone.about_stability()
    assert said in refits(mean, vary).summary()
    assert said.lower().startswith(alone.stability_level)

    doubt = {"samples": NONE, "landmarks": "the clusters are not clear"}[vary]
    advice = {"samples": "another number of", "landmarks": "raise n_components"}[vary]
    assert (doubt in said) == (mean < 0.8)
    assert (advice in said) == (mean < 0.95)


def test_what_is_unknown_is_not_said():
    assert how_clear(Clarity(float("nan")), None) == []
    assert Clarity(0.25).separation == "weakly separated"
    assert Clarity(0.2).separation == "not well separated"
    assert Clarity(0.7).stability_level is None
