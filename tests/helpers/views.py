"""Views of clusters, of noise, and of several structures."""

import numpy as np


def blob_views(rng, n=240, k=4, strengths=(2.0, 2.0, 2.0), n_features=10):
    """Return views of k Gaussian blobs, one a strength; strength zero is pure noise."""
    y = np.arange(n) % k
    views = [
        strength * rng.normal(size=(k, n_features))[y]
        + rng.normal(size=(n, n_features))
        for strength in strengths
    ]
    return views, y


def one_hot(rng, n, levels):
    return np.eye(levels)[rng.integers(levels, size=n)]


def strangers(rng, n):
    """Return views that share nothing with anything: noise, and columns of 2 to 10
    levels."""
    noise = {"noise": rng.normal(size=(n, 8))}
    return noise | {
        f"{levels} levels": one_hot(rng, n, levels) for levels in (2, 3, 5, 10)
    }


def two_camps(rng, n=120, sizes=(2, 2)):
    """Return views of two structures that have nothing to do with each other."""
    camps = [rng.integers(3, size=n) for _ in sizes]
    views = {}
    for name, y, size in zip("ab", camps, sizes, strict=True):
        for i in range(size):
            views[f"{name}{i}"] = 3 * rng.normal(size=(3, 6))[y] + rng.normal(
                size=(n, 6)
            )
    return views, camps


def named_blobs(rng, n=60, k=3, strengths=(2, 2, 1.5)):
    """Return views of the same clusters in a dict, and the clusters."""
    views, y = blob_views(rng, n=n, k=k, strengths=strengths)
    return {f"real {i}": view for i, view in enumerate(views)}, y


def inserted(rng, views, others):
    """Return views with others at random places among them, the order of neither
    changed."""
    names = list(views)
    for name in others:
        names.insert(int(rng.integers(len(names) + 1)), name)
    return {name: (views | others)[name] for name in names}
