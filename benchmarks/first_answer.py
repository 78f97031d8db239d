"""What a first answer is worth: kernels by the kind of a view, neighborhoods, and other
packages.

    MKCLUST_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/first_answer.py --jobs 15

adds a row for every data set, contestant (a method with kernels, or one of
`peers.PEERS`) and seed to ``results/first_answer/rows.jsonl.gz``, and ``--table``
prints the means. No contestant sees labels; all get the number of classes.

gaussian          one Gaussian kernel of median width per view, of the rows as they are
dense, histogram, sparse, directions
                  the rule of one kind for every view, if its numbers allow it
auto              the rule of each view's own kind
auto + noise      one view of twenty normal columns is added
auto + levels     one random categorical column of three levels, one-hot coded, is added

Kernels that come as such have no rules: "gaussian" and "auto" are then these kernels
themselves.
"""

import time
import warnings

import numpy as np

import agreement
from agreement import read
from mkclust import METHODS
from mkclust.metrics import scores
from mkclust.stack.discretize import discretize
from peers import PEERS
from records import JOBS, add_rows, parse, read_rows, rounded

NAMES = (*agreement.NAMES, "cal-10-substitute")
N_SEEDS, N_DISTURBED = 10, 3
RULES = ("dense", "histogram", "sparse", "directions")
KERNELS = ("gaussian", *RULES, "auto")
FEW = ("gaussian", "auto")
DISTURBED = ("auto + noise", "auto + levels")
COMPARED = (
    "lkam",
    "localized-simplemkkm",
    "simplemkkm",
    "agreement-kkm",
    "avg-kkm",
    "lf-mvc",
)
# Peers that take minutes from some thousand samples on: they have one seed on more than
# these.
SLOW_PEERS, MANY_SAMPLES = ("SNF", "co-", "NEMO"), 600
# Takes hours: not run on that many.
SLOWEST_PEER = "co-training spectral"


def options_of(kernels, data):
    """Return the parameters of a way to make kernels; None if the data do not allow
    it."""
    rule = kernels.partition(" + ")[0]
    if not isinstance(data, dict):
        has_kernels = rule not in RULES and kernels not in DISTURBED
        return {"kernels": "precomputed"} if has_kernels else None
    if (
        rule in ("histogram", "sparse")
        and min(view.min() for view in data.values()) < 0
    ):
        return None
    return {"kernels": dict.fromkeys(data, rule) if rule in RULES else rule}


def disturb(data, kernels, seed):
    """Return the views with what is added to them."""
    if kernels not in DISTURBED:
        return data
    rng, n = np.random.default_rng(seed), len(next(iter(data.values())))
    if kernels.endswith("noise"):
        return data | {"noise": rng.normal(size=(n, 20))}
    return data | {"levels": np.eye(3)[rng.integers(3, size=n)]}


def answers(data, y, method, kernels):
    """Yield the seed, seconds and labels of a method on kernels made in one way."""
    options, k = options_of(kernels, data), len(np.unique(y))
    if options is None:
        return
    for seed in range(N_DISTURBED if kernels in DISTURBED else 1):
        started = time.perf_counter()
        model = METHODS[method](k, random_state=seed, **options)
        model.fit(disturb(data, kernels, seed))
        yield seed, time.perf_counter() - started, model.labels_
    # Of a fit, only k-means on the embedding depends on the seed.
    for seed in range(1, N_SEEDS) if kernels not in DISTURBED else ():
        options = {"root": model._root, "n_init": 10, "random_state": seed}
        yield seed, None, discretize(model.embedding_, k, **options)[0]


def answers_of_peer(data, y, peer):
    """Yield the seed, seconds and labels of another package."""
    if not isinstance(data, dict):
        return
    is_large = len(y) > MANY_SAMPLES
    if is_large and peer == SLOWEST_PEER:
        raise ValueError(f"not run on more than {MANY_SAMPLES} samples")
    for seed in range(1 if is_large and peer.startswith(SLOW_PEERS) else N_SEEDS):
        started = time.perf_counter()
        labels = PEERS[peer](data, len(np.unique(y)), seed)
        yield seed, time.perf_counter() - started, labels


def run(name, contestant, kernels):
    """Return the rows of one contestant, a method with kernels or, without kernels, a
    peer."""
    warnings.simplefilter("ignore")
    data, y = read(name)
    row = {
        "dataset": name,
        "kernels": kernels,
        "method": contestant,
        "n_samples": len(y),
    }
    answered = (
        answers(data, y, contestant, kernels)
        if kernels
        else answers_of_peer(data, y, contestant)
    )
    rows = []
    try:
        for seed, seconds, labels in answered:
            took = {} if seconds is None else {"seconds": round(seconds, 3)}
            found = scores(y, labels)
            took |= rounded({name: found[name] for name in ("ari", "acc", "nmi")})
            rows.append(row | {"seed": seed} | took | {"status": "ok"})
    except Exception as error:  # whatever another package raises is a result
        return [row | {"seed": len(rows), "status": f"failed: {error!r}"[:200]}]
    return rows


def problems(names, contestants):
    """Return data set, contestant and kernels of every problem, those that take long
    first."""
    if "peers" in contestants:
        slow_first = sorted(PEERS, key=lambda peer: not peer.startswith(SLOW_PEERS))
        yield from ((name, peer, "") for peer in slow_first for name in names)
    for method in COMPARED if "ours" in contestants else ():
        everything = (
            (*KERNELS, *DISTURBED) if method in ("agreement-kkm", "avg-kkm") else FEW
        )
        yield from ((name, method, kernels) for kernels in everything for name in names)


def mean_scores(rows):
    """Return mean scores by contestant, and by data set."""
    rows = rows[rows.status == "ok"]
    rows = rows.assign(contestant=rows.method + " | " + rows.kernels)
    return rows.pivot_table("ari", "contestant", "dataset")


def main():
    """Run all problems, and print what failed and the mean scores."""
    more = {
        "datasets": {"nargs": "*", "default": NAMES},
        "table": {"action": "store_true"},
    }
    more["contestants"] = {"nargs": "*", "default": ("ours", "peers")}
    options = parse(__doc__, "first_answer/rows.jsonl.gz", jobs=JOBS, **more)
    if not options.table:
        todo = problems(options.datasets, options.contestants)
        add_rows(options.out, run, todo, options.jobs)
    rows = read_rows(options.out)
    print(
        rows[rows.status != "ok"][
            ["dataset", "method", "kernels", "status"]
        ].to_string()
    )
    means = mean_scores(rows)
    print(means.assign(mean=means.mean(axis=1)).round(3).to_string())


if __name__ == "__main__":
    main()
