"""Views that are plainly of a kind."""

import numpy as np

N = 60


def one_hot(rng, n_categories, n=N):
    return np.eye(n_categories)[rng.integers(n_categories, size=n)]


def symmetric(M):
    M = (M + M.T) / 2
    np.fill_diagonal(M, 0)
    return M


def unit_rows(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def component_scores(X):
    """Return the principal components of rows."""
    U, sizes, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return U * sizes


def counted(rng, means, n=N, folds=1.0):
    """Return negative binomial counts of columns with some means, times folds."""
    sizes = rng.lognormal(0, 0.4, size=(n, 1))
    rates = sizes * means * rng.gamma(1.5, 1 / 1.5, size=(n, len(means)))
    return rng.poisson(folds * rates).astype(float)


def example(kind, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 6))
    return {
        "categories": lambda: np.hstack(
            [one_hot(rng, 4), one_hot(rng, 2), one_hot(rng, 3)]
        ),
        "distances": lambda: np.linalg.norm(X[:, None] - X, axis=2),
        "graph": lambda: symmetric(rng.random((N, N)) * (rng.random((N, N)) < 0.04)),
        "counts": lambda: counted(rng, rng.lognormal(0, 1.5, 150)),
        "log-ratios": lambda: counted(rng, rng.lognormal(3.5, 1, 12)),
        "sparse": lambda: rng.poisson(0.05, size=(N, 90)).astype(float),
        "binary": lambda: rng.integers(2, size=(N, 8)).astype(float),
        "histogram": lambda: rng.dirichlet(np.ones(7), size=N),
        "directions": lambda: unit_rows(X),
        "components": lambda: component_scores(X * np.geomspace(4, 1, 6)),
        "table": lambda: X + 1,
        "dense": lambda: rng.normal(size=(N, 24)) + 1,
    }[kind]()
