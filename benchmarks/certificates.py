"""Are certificates true? Random problems made to deceive them, each checked by a dense eigensolver.

    OMP_NUM_THREADS=1 python benchmarks/certificates.py --out benchmarks/results/certificates.json

A certificate is false where a dense eigensolver finds the objective further above the certified
lower bound than the reported gap, or where the bound lies above the objective that a second solve
reaches. `FAMILIES` is also what the tests draw their smaller sample from.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from mkclust.methods import solve_simple_mkkm
from mkclust.stack import as_stack

LARGEST = 1500
# What rounding in the dense eigensolver may add to a relative gap.
ROUNDING = 1e-10


@dataclass(frozen=True)
class Problem:
    """Kernels, how they are stacked, and how many clusters are asked for."""

    kernels: Any
    n_clusters: int
    options: dict[str, Any] = field(default_factory=dict)

    def stack(self):
        """Return the kernels as the solver takes them."""
        return as_stack(self.kernels, validate=False, **self.options)


RAW = {"center": False, "normalize": False}


def _size(rng, low=50, high=LARGEST):
    """Draw a number of samples, small ones more often, so that most problems are solved soon."""
    return int(np.exp(rng.uniform(np.log(low), np.log(high))))


def _random_block(rng, n, low, high):
    """Return a symmetric matrix with random eigenvectors and eigenvalues in an interval."""
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    block = (Q * rng.uniform(low, high, size=n)) @ Q.T
    return (block + block.T) / 2


def disconnected_groups(rng):
    """Two groups that no kernel connects; one kernel is a multiple of the identity on each."""
    scale = rng.uniform(0.1, 1.0)
    small, large = int(150 * scale) + 2, int(850 * scale) + 2
    n = small + large
    first = np.diag(np.repeat([rng.choice([8000.0, 800.0]), 40.0], [small, large]))
    second = np.zeros((n, n))
    second[:small, :small] = _random_block(rng, small, 0, rng.choice([40, 400]))
    second[small:, small:] = _random_block(rng, large, 0, rng.choice([2000, 8000]))
    return Problem(np.stack([first, second]), int(rng.integers(1, 5)), RAW)


def hidden_groups(rng):
    """Families of samples that one kernel sees beside samples that are noise in the other."""
    n = int(rng.integers(300, 800))
    families, size = int(rng.integers(3, 12)), int(rng.integers(5, 30))
    a = families * size
    n = max(n, a + 10)  # some samples belong to no family
    similar = rng.uniform(0.2, 0.95)
    first = np.eye(n)
    members = np.repeat(np.arange(families), size)
    first[:a, :a] += similar * (members[:, None] == members) - similar * np.eye(a)
    W = rng.normal(size=(n - a, n - a))
    W = (W + W.T) / 2
    W *= rng.uniform(0.5, 0.999) / np.abs(np.linalg.eigvalsh(W)).max()
    np.fill_diagonal(W, 0)
    W *= 0.999 / max(np.abs(np.linalg.eigvalsh(W)).max(), 0.999)
    second = np.eye(n)
    second[a:, a:] += W
    if rng.random() < 0.5:
        # A strong direction in the complement of what the families span.
        u = np.zeros(n)
        u[a:] = rng.normal(size=n - a)
        u /= np.linalg.norm(u)
        second += rng.uniform(1, 20) * np.outer(u, u)
        scale = 1 / np.sqrt(np.diag(second))
        second = second * scale * scale[:, None]
    k = int(rng.integers(2, families + 2))
    return Problem(np.stack([first, (second + second.T) / 2]), k)


def diagonal(rng):
    """Diagonal kernels: eigenvectors cross and tie exactly, and no product leads to another."""
    n, m = _size(rng, 50, 1200), int(rng.integers(2, 9))
    power = rng.choice([1, 3, 6])
    values = rng.random((m, n)) ** power + 1e-3
    kernels = [np.diag(v) for v in values]
    if rng.random() < 0.3:
        kernels = [scipy.sparse.csr_array(K) for K in kernels]
    return Problem(kernels, int(rng.integers(1, 9)), RAW)


def diagonal_groups(rng):
    """Diagonal kernels of few different values: large exact ties."""
    n, m = _size(rng, 50, 1200), int(rng.integers(2, 5))
    values = rng.choice([0.1, 1.0, 2.0, 5.0, 40.0], size=(m, 6))[:, rng.integers(6, size=n)]
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
    """Random eigenvectors and falling eigenvalues, of which some nearly tie at the optimum."""
    n, m = _size(rng, 50, 700), int(rng.integers(2, 7))
    falling = rng.choice([0.5, 0.8, 0.95]) ** np.arange(n)
    kernels = []
    for _ in range(m):
        Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        kernels.append((Q * falling) @ Q.T)
    K = np.stack(kernels)
    return Problem((K + K.transpose(0, 2, 1)) / 2, int(rng.integers(1, 8)), RAW)


def rank_one(rng):
    """Kernels of rank one to three, often below k."""
    n, m = _size(rng), int(rng.integers(2, 9))
    factors = [rng.normal(size=(n, 1 + p % 3)) for p in range(m)]
    K = np.stack([X @ X.T for X in factors])
    return Problem((K + K.transpose(0, 2, 1)) / 2, int(rng.integers(1, 8)), RAW)


def dynamic_range(rng):
    """Kernels whose eigenvalues, and whose sizes, span many orders of magnitude."""
    n, m = _size(rng, 50, 700), int(rng.integers(2, 6))
    kernels = []
    for _ in range(m):
        Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        kernels.append(10 ** rng.uniform(-4, 4) * (Q * 10 ** rng.uniform(-8, 0, size=n)) @ Q.T)
    K = np.stack(kernels)
    return Problem((K + K.transpose(0, 2, 1)) / 2, int(rng.integers(1, 8)), RAW)


def _gaussian(X):
    """Return the Gaussian kernel of mean width."""
    squares = (X**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0)
    K = np.exp(-distances / distances.mean())
    return (K + K.T) / 2


def duplicates(rng):
    """Kernels given several times, among others."""
    n, k = _size(rng, 50, 900), int(rng.integers(2, 7))
    y = rng.integers(k, size=n)
    views = [3 * rng.normal(size=(k, 5))[y] + rng.normal(size=(n, 5)) for _ in range(3)]
    kernels = [_gaussian(X) for X in views]
    kernels += [kernels[int(rng.integers(3))] for _ in range(int(rng.integers(1, 5)))]
    return Problem(np.stack(kernels), k)


def many_kernels(rng):
    """Many kernels of noise and some structure."""
    n, m, k = _size(rng, 50, 500), int(rng.integers(12, 40)), int(rng.integers(2, 7))
    y = rng.integers(k, size=n)
    views = [
        rng.choice([0, 1, 3]) * rng.normal(size=(k, 4))[y] + rng.normal(size=(n, 4))
        for _ in range(m)
    ]
    return Problem(np.stack([_gaussian(X) for X in views]), k)


def sparse_graphs(rng):
    """Sparse similarities: neighborhoods within groups that are not connected."""
    n, m, k = _size(rng), int(rng.integers(2, 6)), int(rng.integers(2, 9))
    kernels = []
    for _ in range(m):
        group = rng.integers(int(rng.integers(2, 30)), size=n)
        B = scipy.sparse.random_array((n, n), density=min(1.0, 4 / n), rng=rng, format="csr")
        B = B.multiply(group[:, None] == group).tocsr() if n <= 600 else B
        kernels.append((B @ B.T + 0.01 * scipy.sparse.eye_array(n)).tocsr())
    return Problem(kernels, k, RAW)


def categories(rng):
    """Kernels of equal categories: what one explains, the other maps to zero."""
    n, m = _size(rng, 60, 1200), int(rng.integers(2, 5))
    kernels = []
    for _ in range(m):
        c = rng.integers(int(rng.integers(3, 25)), size=n)
        kernels.append((c[:, None] == c).astype(float))
    kernels[0] = kernels[0] + 0.2 * kernels[1]
    options = {} if rng.random() < 0.5 else RAW
    return Problem(np.stack(kernels), int(rng.integers(2, 9)), options)


def noise(rng):
    """Pure noise with a slowly falling spectrum."""
    n, m = _size(rng, 50, 900), int(rng.integers(2, 6))
    K = []
    for _ in range(m):
        X = rng.normal(size=(n, n // 2 + 1))
        K.append(X @ X.T)
    K = np.stack(K)
    options = {} if rng.random() < 0.5 else RAW
    return Problem((K + K.transpose(0, 2, 1)) / 2, int(rng.integers(1, 9)), options)


def single_precision(rng):
    """One of the other families in float32."""
    family = [
        disconnected_groups,
        hidden_groups,
        diagonal,
        near_ties,
        duplicates,
        noise,
        categories,
    ]
    problem = family[int(rng.integers(len(family)))](rng)
    kernels = [
        K.astype(np.float32) if scipy.sparse.issparse(K) else np.asarray(K, np.float32)
        for K in problem.kernels
    ]
    return Problem(kernels, problem.n_clusters, problem.options)


FAMILIES = (
    disconnected_groups,
    hidden_groups,
    diagonal,
    diagonal_groups,
    exact_ties,
    near_ties,
    rank_one,
    dynamic_range,
    duplicates,
    many_kernels,
    sparse_graphs,
    categories,
    noise,
    single_precision,
)


def draw(family, seed):
    """Return the problem of a family that a seed makes."""
    return family(np.random.default_rng([FAMILIES.index(family), seed]))


def check(problem, **options):
    """Solve a problem and hold what is claimed of it against a dense eigensolver."""
    stack = problem.stack()
    began = time.perf_counter()
    solution = solve_simple_mkkm(stack, problem.n_clusters, **options)
    seconds = time.perf_counter() - began
    J = dense_objective(stack, solution.weights, problem.n_clusters)
    scale = max(abs(J), np.finfo(float).tiny)
    return {
        "n": stack.n_samples,
        "m": stack.n_kernels,
        "k": problem.n_clusters,
        "claimed": float(solution.gap),
        "true": float((J - solution.lower_bound) / scale),
        "converged": bool(solution.converged),
        "certificate": getattr(solution, "certificate", None) and str(solution.certificate),
        "seconds": seconds,
    }


def dense_objective(stack, weights, n_clusters):
    """Return the sum of the k largest eigenvalues of the mix, written out in double precision."""
    mixed = sum(c * kernel_entries(stack, p) for p, c in enumerate(weights**2))
    return float(np.linalg.eigvalsh((mixed + mixed.T) / 2)[-n_clusters:].sum())


def kernel_entries(stack, index):
    """Return one kernel of a stack, centered and scaled, in double precision."""
    return np.asarray(stack.kernels[index].dense(), np.float64)


def is_false(row):
    """Return whether a dense eigensolver denies what is claimed."""
    return row["true"] > row["claimed"] + ROUNDING or row["true"] < -ROUNDING


def _run(task):
    """Check one problem; what fails is a row that says how."""
    index, seed, options = task
    try:
        return {"family": FAMILIES[index].__name__, "seed": seed} | check(
            draw(FAMILIES[index], seed), **options
        )
    except Exception as error:
        return {"family": FAMILIES[index].__name__, "seed": seed, "error": repr(error)}


def summarize(rows):
    """Return counts by family."""
    table = {}
    for family in FAMILIES:
        own = [row for row in rows if row["family"] == family.__name__]
        solved = [row for row in own if "error" not in row]
        words = Counter((row["certificate"] or "").split(" ")[0] for row in solved)
        table[family.__name__] = {
            "problems": len(own),
            "errors": len(own) - len(solved),
            "converged": sum(row["converged"] for row in solved),
            "false": sum(map(is_false, solved)),
            **{word: count for word, count in sorted(words.items()) if word},
            "largest claimed gap": max((row["claimed"] for row in solved), default=None),
            "largest true gap": max((row["true"] for row in solved), default=None),
            "seconds": round(sum(row["seconds"] for row in solved), 1),
        }
    return table


def main():
    """Run the problems and write their counts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=10000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--families", nargs="*", default=None)
    parser.add_argument("--search-only", action="store_true", help="never prove")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--rows", type=Path, default=None)
    arguments = parser.parse_args()
    names = [f.__name__ for f in FAMILIES]
    chosen = [names.index(name) for name in arguments.families or names]
    each = -(-arguments.problems // len(chosen))
    seeds = range(arguments.first_seed, arguments.first_seed + each)
    options = {"prove": False} if arguments.search_only else {}
    tasks = [(index, seed, options) for seed in seeds for index in chosen][: arguments.problems]
    with get_context("spawn").Pool(arguments.jobs) as pool:
        rows = list(pool.imap_unordered(_run, tasks, chunksize=4))
    if arguments.rows:
        arguments.rows.write_text("\n".join(map(json.dumps, rows)) + "\n")
    table = summarize(rows)
    for name, counts in table.items():
        print(name, counts)
    false = [row for row in rows if "error" not in row and is_false(row)]
    for row in false[:20]:
        print("FALSE", row)
    for row in [row for row in rows if "error" in row][:20]:
        print("ERROR", row)
    if arguments.out:
        result = {
            "command": "python benchmarks/certificates.py " + " ".join(sys.argv[1:]),
            "machine": platform.machine(),
            "problems": len(rows),
            "false": len(false),
            "families": table,
        }
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
