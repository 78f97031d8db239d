"""Below which p-value two views agree: both kinds of error by the number of samples.

    OMP_NUM_THREADS=1 python benchmarks/agreement_limit.py

writes a row for every number of samples and limit to ``results/agreement_limit.json``
beside itself. "rule" is the limit of the library. Views have weak or strong clusters. A
row has

false_pairs       share of pairs of independent views that agree (n_pairs of them were
                  compared)
noise_used        share of problems in which a noise view beside three real ones is used
real_left_out     share of the real views that are not used
ari               mean adjusted Rand index of AgreementKKM's clusters with the classes
                  ari_without_noise that of a fit on all real views and nothing else
ari_with_noise    that of a fit on all views, the noise view included
"""

import warnings
from dataclasses import replace

import numpy as np

from mkclust import KernelBank
from mkclust.agreements import measure_agreement, p_value_limit
from mkclust.fit.mixture import Mixture
from mkclust.metrics import adjusted_rand_index
from mkclust.stack import as_stack
from mkclust.stack.discretize import discretize
from records import JOBS, ONE_GAUSSIAN, in_processes, parse, write_record

SAMPLES = (30, 40, 60, 100, 200, 500)
LIMITS = (1e-5, 1e-4, 1e-3, 1e-2, "rule")
N_PROBLEMS, N_CLUSTERS, STRENGTHS = 96, 3, (0.4, 0.6, 0.8, 1.2)
MEASURED = ("false_pairs", "noise_used", "real_left_out")
MEASURED += ("ari", "ari_without_noise", "ari_with_noise")


def noise_views(rng, n):
    """Return views that are independent of each other and of everything else."""
    blobs = 2 * rng.normal(size=(3, 5))[rng.integers(3, size=n)]
    views = [
        rng.normal(size=(n, 20)),
        rng.normal(size=(n, 1)),
        rng.standard_t(2, size=(n, 3)),
    ]
    views += [rng.gamma(0.3, size=(n, 5)), blobs + rng.normal(size=(n, 5))]
    views += [np.eye(levels)[rng.permutation(n) % levels] for levels in (2, 4)]
    return [*views, (rng.permutation(n) < n / 10)[:, None].astype(float)]


def measure(views):
    """Return the stack of one Gaussian kernel per view, and its agreement."""
    stack = as_stack(
        list(KernelBank(**ONE_GAUSSIAN).fit_transform(views)), validate=False
    )
    return stack, measure_agreement(stack)


def decided(agreement, limit):
    """Return an agreement in which another limit decides."""
    limit = p_value_limit(agreement.n_samples) if limit == "rule" else limit
    return replace(agreement, p_values=np.where(agreement.p_values < limit, 0.0, 1.0))


def score(stack, y, coefficients):
    """Return the adjusted Rand index of the clusters of a mix of kernels."""
    partition = Mixture(stack, N_CLUSTERS).relax(coefficients).vectors[:, :N_CLUSTERS]
    labels = discretize(partition, N_CLUSTERS, n_init=5, random_state=0)[0]
    return adjusted_rand_index(y, labels)


def run(n):
    """Return the rows for one number of samples."""
    pairs, found = [], {limit: [] for limit in LIMITS}
    for seed in range(20_000 // (n + 30)):
        agreement = measure(noise_views(np.random.default_rng(seed), n))[1]
        pairs.extend(agreement.p_values[np.triu_indices(8, 1)])
    for seed in range(N_PROBLEMS):
        rng = np.random.default_rng(seed)
        y, strength = rng.permutation(n) % N_CLUSTERS, STRENGTHS[seed % 4]
        means = strength * rng.normal(size=(3, N_CLUSTERS, 10))
        views = [each[y] + rng.normal(size=(n, 10)) for each in means]
        stack, agreement = measure([*views, noise_views(rng, n)[seed // 4 % 8]])
        mix = decided(agreement, 2).coefficients()
        bounds = score(stack, y, mix * [1, 1, 1, 0]), score(stack, y, mix)
        scores = {}
        for limit, results in found.items():
            one = decided(agreement, limit)
            used = np.isin(range(4), one.chosen) & one.any_share
            key = used.tobytes()
            scores[key] = scores.get(key) or score(stack, y, one.coefficients())
            results.append((used[3], 1 - used[:3].mean(), scores[key], *bounds))
    for limit, results in found.items():
        false = np.mean(
            np.array(pairs) < (p_value_limit(n) if limit == "rule" else limit)
        )
        row = dict(zip(MEASURED, [false, *np.mean(results, axis=0)], strict=True))
        row = {name: round(float(value), 5) for name, value in row.items()}
        yield {"n_samples": n, "limit": limit, "n_pairs": len(pairs)} | row


def run_quietly(n):
    """Return the rows for one number of samples, in a list."""
    warnings.simplefilter("ignore")
    return list(run(n))


def main():
    """Run all numbers of samples, and write the rows."""
    options = parse(__doc__, "agreement_limit.json", jobs=JOBS)
    tasks = [(n,) for n in SAMPLES]
    rows = [
        row for own in in_processes(run_quietly, tasks, options.jobs) for row in own
    ]
    order = list(map(str, LIMITS))
    rows.sort(key=lambda row: (row["n_samples"], order.index(str(row["limit"]))))
    write_record(options.out, {"rows": rows})


if __name__ == "__main__":
    main()
