"""Are certificates true? Random problems made to deceive them, each checked by a dense
eigensolver.

    OMP_NUM_THREADS=1 python benchmarks/certificates.py [--first-seed 0]

writes the counts of false certificates by family to ``results/certificates.json``
beside itself, and a row per problem to ``results/certificates.jsonl.gz``.

A certificate is false if a dense eigensolver finds the objective further above the
certified lower bound than the reported gap, or below the bound. It is open if it is
neither a proof nor states the probability of an error. The tests draw a smaller sample
from `FAMILIES`.
"""

import json
import time
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.linalg
import scipy.sparse
from sklearn.metrics.pairwise import euclidean_distances

from mkclust.methods import solve_simple_mkkm
from mkclust.stack import as_stack
from mkclust.version import versions
from records import JOBS, parse, read_rows, write_record, write_rows

# What rounding in the dense eigensolver may add to a relative gap.
ROUNDING = 1e-10
RAW = {"center": False, "normalize": False}


class Problem(NamedTuple):
    """Kernels, how many clusters are asked for, and how the kernels are stacked."""

    kernels: Any
    n_clusters: int
    options: dict[str, Any]

    def stack(self):
        return as_stack(self.kernels, validate=False, **self.options)


def _size(rng, low=50, high=1500):
    """Draw a number of samples, small ones more often, so that most problems are solved
    soon."""
    return int(np.exp(rng.uniform(np.log(low), np.log(high))))


def _symmetric(kernels):
    """Return kernels as one array, symmetric to the last bit."""
    K = np.stack(kernels)
    return (K + K.transpose(0, 2, 1)) / 2


def _orthogonal(rng, n):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def _gaussian(X):
    """Return the Gaussian kernel of mean width."""
    distances = euclidean_distances(X, squared=True)
    return np.exp(-distances / distances.mean())


def disconnected_groups(rng):
    """Two groups that no kernel connects; one kernel is a multiple of the identity on
    each."""
    scale = rng.uniform(0.1, 1.0)
    small, large = int(150 * scale) + 2, int(850 * scale) + 2
    first = np.diag(np.repeat([rng.choice([8000.0, 800.0]), 40.0], [small, large]))
    blocks = []
    for n, tops in ((small, [40, 400]), (large, [2000, 8000])):
        top, Q = rng.choice(tops), _orthogonal(rng, n)
        blocks.append((Q * rng.uniform(0, top, size=n)) @ Q.T)
    second = scipy.linalg.block_diag(*blocks)
    return Problem(_symmetric([first, second]), int(rng.integers(1, 5)), RAW)


def hidden_groups(rng):
    """Families of samples that one kernel sees beside samples that are noise in the
    other."""
    n = int(rng.integers(300, 800))
    families, size = int(rng.integers(3, 12)), int(rng.integers(5, 30))
    a = families * size
    n = max(n, a + 10)  # some samples belong to no family
    similar = rng.uniform(0.2, 0.95)
    first, second = np.eye(n), np.eye(n)
    members = np.repeat(np.arange(families), size)
    first[:a, :a] += similar * (members[:, None] == members) - similar * np.eye(a)
    W = rng.normal(size=(n - a, n - a))
    W = (W + W.T) / 2
    W *= rng.uniform(0.5, 0.999) / np.abs(np.linalg.eigvalsh(W)).max()
    np.fill_diagonal(W, 0)
    W *= 0.999 / max(np.abs(np.linalg.eigvalsh(W)).max(), 0.999)
    second[a:, a:] += W
    if rng.random() < 0.5:
        # A strong direction in the complement of what the families span.
        u = np.append(np.zeros(a), rng.normal(size=n - a))
        u /= np.linalg.norm(u)
        second += rng.uniform(1, 20) * np.outer(u, u)
        scale = 1 / np.sqrt(np.diag(second))
        second = second * scale * scale[:, None]
    return Problem(_symmetric([first, second]), int(rng.integers(2, families + 2)), {})


def diagonal(rng):
    """Diagonal kernels: eigenvectors cross and tie exactly, and no product leads to
    another."""
    n, m = _size(rng, 50, 1200), int(rng.integers(2, 9))
    power = rng.choice([1, 3, 6])
    kernels = [np.diag(v) for v in rng.random((m, n)) ** power + 1e-3]
    if rng.random() < 0.3:
        kernels = [scipy.sparse.csr_array(K) for K in kernels]
    return Problem(kernels, int(rng.integers(1, 9)), RAW)


def diagonal_groups(rng):
    """Diagonal kernels of few different values: large exact ties."""
    n, m = _size(rng, 50, 1200), int(rng.integers(2, 5))
    values = rng.choice([0.1, 1.0, 2.0, 5.0, 40.0], size=(m, 6))[
        :, rng.integers(6, size=n)
    ]
    kernels = [scipy.sparse.diags_array(v).tocsr() for v in values]
    if rng.random() < 0.5:
        kernels = [K.toarray() for K in kernels]
    return Problem(kernels, int(rng.integers(1, 9)), RAW)


def exact_ties(rng):
    """Ideal kernels of equal clusters: eigenvalues k and k + 1 tie at all weights."""
    n, m, k = _size(rng), int(rng.integers(1, 6)), int(rng.integers(1, 9))
    H = np.eye(k + 1)[np.arange(n) % (k + 1)]
    H = H / np.linalg.norm(H, axis=0)
    return Problem(np.stack([(1 + rng.random()) * H @ H.T for _ in range(m)]), k, RAW)


def near_ties(rng):
    """Random eigenvectors and falling eigenvalues, of which some nearly tie at the
    optimum."""
    n, m = _size(rng, 50, 700), int(rng.integers(2, 7))
    falling = rng.choice([0.5, 0.8, 0.95]) ** np.arange(n)
    kernels = [(Q * falling) @ Q.T for Q in (_orthogonal(rng, n) for _ in range(m))]
    return Problem(_symmetric(kernels), int(rng.integers(1, 8)), RAW)


def rank_one(rng):
    """Kernels of rank one to three, often below k."""
    n, m = _size(rng), int(rng.integers(2, 9))
    factors = [rng.normal(size=(n, 1 + p % 3)) for p in range(m)]
    return Problem(_symmetric([X @ X.T for X in factors]), int(rng.integers(1, 8)), RAW)


def dynamic_range(rng):
    """Kernels whose eigenvalues, and whose sizes, span many orders of magnitude."""
    n, m = _size(rng, 50, 700), int(rng.integers(2, 6))
    kernels = []
    for _ in range(m):
        Q = _orthogonal(rng, n)
        kernels.append(
            10 ** rng.uniform(-4, 4) * (Q * 10 ** rng.uniform(-8, 0, size=n)) @ Q.T
        )
    return Problem(_symmetric(kernels), int(rng.integers(1, 8)), RAW)


def duplicates(rng):
    """Kernels given several times, among others."""
    n, k = _size(rng, 50, 900), int(rng.integers(2, 7))
    y = rng.integers(k, size=n)
    views = [3 * rng.normal(size=(k, 5))[y] + rng.normal(size=(n, 5)) for _ in range(3)]
    kernels = [_gaussian(X) for X in views]
    kernels += [kernels[int(rng.integers(3))] for _ in range(int(rng.integers(1, 5)))]
    return Problem(_symmetric(kernels), k, {})


def many_kernels(rng):
    """Many kernels of noise and some structure."""
    n, m, k = _size(rng, 50, 500), int(rng.integers(12, 40)), int(rng.integers(2, 7))
    y, kernels = rng.integers(k, size=n), []
    for _ in range(m):
        centers = rng.choice([0, 1, 3]) * rng.normal(size=(k, 4))
        kernels.append(_gaussian(centers[y] + rng.normal(size=(n, 4))))
    return Problem(_symmetric(kernels), k, {})


def sparse_graphs(rng):
    """Sparse similarities: neighborhoods within groups that are not connected."""
    n, m, k = _size(rng), int(rng.integers(2, 6)), int(rng.integers(2, 9))
    kernels = []
    for _ in range(m):
        group = rng.integers(int(rng.integers(2, 30)), size=n)
        B = scipy.sparse.random_array(
            (n, n), density=min(1.0, 4 / n), rng=rng, format="csr"
        )
        B = B.multiply(group[:, None] == group).tocsr() if n <= 600 else B
        kernels.append((B @ B.T + 0.01 * scipy.sparse.eye_array(n)).tocsr())
    return Problem(kernels, k, RAW)


def categories(rng):
    """Kernels of equal categories: what one explains, the other maps to zero."""
    n, m = _size(rng, 60, 1200), int(rng.integers(2, 5))
    codes = [rng.integers(int(rng.integers(3, 25)), size=n) for _ in range(m)]
    kernels = [(c[:, None] == c).astype(float) for c in codes]
    kernels[0] = kernels[0] + 0.2 * kernels[1]
    options = {} if rng.random() < 0.5 else RAW
    return Problem(np.stack(kernels), int(rng.integers(2, 9)), options)


def noise(rng):
    """Pure noise with a slowly falling spectrum."""
    n, m = _size(rng, 50, 900), int(rng.integers(2, 6))
    kernels = [X @ X.T for X in (rng.normal(size=(n, n // 2 + 1)) for _ in range(m))]
    options = {} if rng.random() < 0.5 else RAW
    return Problem(_symmetric(kernels), int(rng.integers(1, 9)), options)


def _one_of(rng, other):
    """Return a problem of one of some families of dense kernels."""
    families = (
        disconnected_groups,
        hidden_groups,
        other,
        near_ties,
        duplicates,
        noise,
        categories,
    )
    return families[int(rng.integers(len(families)))](rng)


def single_precision(rng):
    """One of the other families in float32."""
    problem = _one_of(rng, diagonal)
    return problem._replace(kernels=[K.astype(np.float32) for K in problem.kernels])


def streamed(rng):
    """One of the other families, read some rows at a time in every pass."""
    problem = _one_of(rng, many_kernels)
    return problem._replace(options=problem.options | {"streamed": True})


def streamed_many(rng):
    """More samples than a mix of streamed kernels is held for: products alone have to
    tell."""
    n, m, k = (
        int(rng.integers(2001, 2400)),
        int(rng.integers(2, 4)),
        int(rng.integers(2, 8)),
    )
    y = rng.integers(k, size=n)

    def blobs():
        strength = rng.choice([0.5, 1.0, 3.0])
        return _gaussian(
            strength * rng.normal(size=(k, 5))[y] + rng.normal(size=(n, 5))
        )

    def falling():
        """Return a kernel of random directions whose eigenvalues fall slowly, and
        nearly tie."""
        rank = int(rng.integers(50, 300))
        Q = np.linalg.qr(rng.normal(size=(n, rank)))[0]
        return (Q * rng.choice([0.8, 0.95, 0.99]) ** np.arange(rank)) @ Q.T

    def categories_of_one():
        codes = rng.integers(int(rng.integers(3, 25)), size=n)
        return (codes[:, None] == codes).astype(float)

    def apart():
        """Return a kernel of two groups without a link, of which one is far smaller."""
        small = int(rng.integers(20, 200))
        first, second = (rng.normal(size=(size, 30)) for size in (small, n - small))
        scale = rng.uniform(1, 30)
        return scipy.linalg.block_diag(scale * first @ first.T, second @ second.T)

    def shares():
        return np.diag(rng.random(n) ** rng.choice([1, 3, 6]) + 1e-3)

    makers = (blobs, falling, categories_of_one, apart, shares)
    kernels = [makers[int(rng.integers(len(makers)))]() for _ in range(m)]
    return Problem(_symmetric(kernels), k, RAW | {"streamed": True})


def incomplete(rng):
    """One of the other families that lacks samples; two groups may have no kernel in
    common."""
    kernels, k, options = _one_of(rng, many_kernels)
    m, n = kernels.shape[:2]
    lacks = rng.random((m, n)) < rng.choice([0.1, 0.4, 0.7])
    if rng.random() < 0.3:
        lacks[:] = (np.arange(m) < m // 2)[:, None] == (np.arange(n) < n // 2)
    lacks[np.arange(n) % m, np.arange(n)] = False
    for K, missing in zip(kernels, lacks, strict=True):
        K[missing] = K[:, missing] = np.nan
    return Problem(kernels, k, options | {"fill": str(rng.choice(["zero", "rescale"]))})


FAMILIES = (
    disconnected_groups,
    hidden_groups,
    diagonal,
    diagonal_groups,
    exact_ties,
    near_ties,
)
FAMILIES += (
    rank_one,
    dynamic_range,
    duplicates,
    many_kernels,
    sparse_graphs,
    categories,
    noise,
)
FAMILIES += (single_precision, streamed, incomplete, streamed_many)


def draw(family, seed):
    """Return the problem of a family that a seed makes."""
    return family(np.random.default_rng([FAMILIES.index(family), seed]))


def check(problem, **options):
    """Solve a problem, and compare what is claimed of it with a dense eigensolver."""
    stack, began = problem.stack(), time.perf_counter()
    solution = solve_simple_mkkm(stack, problem.n_clusters, **options)
    seconds = time.perf_counter() - began
    J = dense_objective(stack, solution.weights, problem.n_clusters)
    return {
        "n": stack.n_samples,
        "m": stack.n_kernels,
        "k": problem.n_clusters,
        "claimed": float(solution.gap),
        "true": float((J - solution.lower_bound) / max(abs(J), np.finfo(float).tiny)),
        "converged": bool(solution.converged),
        "certificate": str(solution.certificate),
        "probability": float(solution.certificate.probability),
        "seconds": seconds,
    }


def dense_objective(stack, weights, n_clusters):
    """Return the sum of the k largest eigenvalues of the mix, written out in double
    precision."""
    kernels = (np.asarray(kernel.dense(), np.float64) for kernel in stack.kernels)
    mixed = sum(c * K for c, K in zip(weights**2, kernels, strict=True))
    return float(np.linalg.eigvalsh((mixed + mixed.T) / 2)[-n_clusters:].sum())


def is_false(row):
    """Return whether a dense eigensolver denies what is claimed."""
    return row["true"] > row["claimed"] + ROUNDING or row["true"] < -ROUNDING


def run(family, seed, prove="auto"):
    """Check one problem; what fails is a row that says how."""
    row = {"family": family.__name__, "seed": seed, "prove": prove, "error": None}
    row["mkclust"] = versions()["mkclust"]
    try:
        row |= check(draw(family, seed), prove=prove)
    except Exception as error:
        return row | {"error": repr(error)}
    kind = row["certificate"].split(" ")[0]
    return row | {"kind": kind, "false": is_false(row)}


def run_as_rows(family, seed):
    """Return the row of one problem, in a list."""
    return [run(family, seed)]


def summarize(rows):
    """Return counts by family."""
    names = {
        "claimed": "largest claimed gap",
        "true": "largest true gap",
        "probability": "largest stated probability",
    }
    rows = rows.rename(columns=names)
    families = rows.groupby("family", sort=False)
    counts = families.agg(
        {"seed": "size", "error": "count", "converged": "sum", "false": "sum"}
    )
    counts = counts.rename(columns={"seed": "problems", "error": "errors"})
    largest = families[list(names.values())].max()
    kinds = pd.crosstab(rows["family"], rows["kind"])
    return counts.join(kinds).join(largest).join(families["seconds"].sum().round(1))


def main():
    """Run the problems and write their counts."""
    problems, seed = ({"type": int, "default": number} for number in (2000, 0))
    more = {"problems": problems, "jobs": JOBS, "first-seed": seed}
    options = parse(__doc__, "certificates.json", **more)
    every = (
        (family, seed) for seed in count(options.first_seed) for family in FAMILIES
    )
    tasks = list(islice(every, options.problems))
    path = options.out.with_suffix(".jsonl.gz")
    write_rows(path, run_as_rows, tasks, options.jobs)
    rows = read_rows(path)

    table = summarize(rows)
    print(table.to_string())
    for row in rows.to_dict("records"):
        if row["error"] or row["false"]:
            print("ERROR" if row["error"] else "FALSE", row)
    record = {"problems": len(rows), "false": int(table["false"].sum())}
    record["families"] = json.loads(table.to_json(orient="index", double_precision=15))
    write_record(options.out, record)


if __name__ == "__main__":
    main()
