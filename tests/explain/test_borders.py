"""Samples between clusters are counted and judged as written out here."""

from math import comb

import numpy as np
import pytest

from mkclust.explain.evidence import BORDER, CORE, Borders, count_at_borders


@pytest.mark.parametrize("n_between", [0, 3, 12])
def test_the_p_value_is_a_sum_of_binomial_probabilities(n_between):
    borders = Borders(n_between=n_between, n_within=10, sparse=0.5)
    odds = 0.5 * (0.5 - BORDER) / CORE
    share = odds / (1 + odds)
    n = n_between + 10
    expected = sum(
        comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(n_between + 1)
    )
    assert borders.p_value == pytest.approx(expected, rel=1e-9)


def test_samples_of_two_clusters_are_counted_by_their_positions_between_the_centers():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200, 2))
    labels = (points[:, 0] > 0.1).astype(int)
    centers = [points[labels == c].mean(axis=0) for c in range(2)]
    cores = [0, 0]
    n_between = 0
    for point, own in zip(points, labels, strict=True):
        way = centers[1 - own] - centers[own]
        position = (point - centers[own]) @ way / (way @ way)
        n_between += position >= BORDER
        cores[own] += 0 <= position < CORE
    borders = count_at_borders(points, labels)
    assert borders.n_between == n_between
    assert borders.n_within == 2 * min(cores)
