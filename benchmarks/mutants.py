"""Small faults, planted one at a time in a copy of the library: which tests notice?

    OMP_NUM_THREADS=1 python benchmarks/mutants.py [--only NAME ...]

plants every fault of `MUTANTS` in a copy of ``src`` and runs the fast tests that should
notice. ``results/mutants.json`` has the first test that fails for each fault. A fault
that nobody notices asks for a test. The tests have to pass without any fault, which is
tried first.

It takes about ten minutes, and is run once per release.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from records import parse, read_record, write_record

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "mkclust"
# Seconds after which tests of a fault that makes a loop endless are stopped.
PATIENCE = 300
# What pytest returns if tests passed, and if some failed; all else is an error.
PASSED, FAILED = 0, 1


@dataclass(frozen=True)
class Mutant:
    """A fault: some text of a file replaced by another one."""

    name: str
    file: str  # in src/mkclust
    old: str  # occurs in the file once
    new: str
    reason: str  # what goes wrong
    tests: tuple[str, ...]  # files in tests


MUTANTS = (
    Mutant(
        "least-mix",
        "engine/simplex.py",
        "ratio = smallest / alignments ",
        "ratio = (smallest / alignments) ** 2 ",
        "The weights that answer a partition are not those of the minimum.",
        ("engine/test_simplex.py",),
    ),
    Mutant(
        "simplex-sign",
        "engine/simplex.py",
        "v = -(vectors @ coordinates) / scale",
        "v = (vectors @ coordinates) / scale",
        "The linear term of a quadratic over the simplex has the wrong sign.",
        ("engine/test_simplex.py",),
    ),
    Mutant(
        "reduced-direction",
        "engine/simplex.py",
        "direction[pivot] = -direction.sum()",
        "direction[pivot] = direction.sum()",
        "Along the reduced gradient, weights do not sum to one any more.",
        ("engine/test_simplex.py", "benchmarks/test_released_descent.py"),
    ),
    Mutant(
        "certificate-probability",
        "engine/certificate.py",
        "n_powers = 2 * n_steps - 1",
        "n_powers = 2 * n_steps + 1",
        "A search claims the certainty of one more step than it took.",
        ("engine/test_certificate.py",),
    ),
    Mutant(
        "certificate-bound",
        "engine/certificate.py",
        "raised = eigvalsh(values + gram / distance)",
        "raised = eigvalsh(values)",
        "The bound forgets the residuals of the eigenvectors.",
        ("engine/test_certificate.py",),
    ),
    Mutant(
        "proof-of-too-much",
        "engine/certificate.py",
        "free = allowed_error - underestimate",
        "free = 10 * allowed_error - underestimate",
        "A proof shows a sum of eigenvalues up to ten times the error it states.",
        ("engine/test_certificate.py",),
    ),
    Mutant(
        "certificate-outside",
        "engine/certificate.py",
        "levels = np.sort(np.append(raised, np.full(k, tau)))",
        "levels = np.sort(raised)",
        "Eigenvalues outside of the known vectors do not count in the bound.",
        ("engine/test_certificate.py",),
    ),
    Mutant(
        "agreement-limit",
        "agreements/alignments.py",
        "LIMIT_TIMES_SQUARE / np.maximum(n_samples, 1.0) ** 2",
        "LIMIT_TIMES_SQUARE / np.maximum(n_samples, 1.0)",
        "The limit of p-values does not fall with the square of the samples.",
        ("agreements/test_agreement.py",),
    ),
    Mutant(
        "agreement-tail",
        "agreements/alignments.py",
        "return gammaincc(shape, np.maximum(quantile, 0))",
        "return 1 - gammaincc(shape, np.maximum(quantile, 0))",
        "P-values are those of the other tail.",
        ("agreements/test_debiased_alignment.py",),
    ),
    Mutant(
        "agreement-centering",
        "agreements/alignments.py",
        "sums = xp.sum(K, axis=1) / (n - 2)",
        "sums = xp.sum(K, axis=1) / n",
        "Kernels are centered as if their diagonals counted.",
        ("agreements/test_debiased_alignment.py",),
    ),
    Mutant(
        "agreement-variance",
        "agreements/alignments.py",
        "np.sqrt(n_samples * (n_samples - 3) / 2)",
        "np.sqrt(n_samples * (n_samples - 3))",
        "Alignments are measured in standard deviations that are too small.",
        ("agreements/test_debiased_alignment.py",),
    ),
    Mutant(
        "agreement-within-groups",
        "agreements/grouped.py",
        "np.fill_diagonal(pairs, sizes * (sizes - 3))",
        "np.fill_diagonal(pairs, sizes * (sizes - 1))",
        "The variance within groups is that of kernels with a diagonal.",
        ("agreements/test_grouped.py",),
    ),
    Mutant(
        "holm-reversed",
        "bench/tables.py",
        "factors = np.arange(len(ordered), 0, -1)",
        "factors = np.arange(1, len(ordered) + 1)",
        "Holm's factors rise instead of falling.",
        ("bench/test_bench_tables.py",),
    ),
    Mutant(
        "kaplan-meier-ties",
        "plots/survival.py",
        "right_censored(own, ~happened)",
        "right_censored(own - 1e-9 * ~happened, ~happened)",
        "A sample censored at the time of an event is not at risk in it.",
        ("plots/test_displays.py", "explain/test_annotate.py"),
    ),
    Mutant(
        "log-rank-ties",
        "explain/survival.py",
        "firsts = np.searchsorted(times[self.order], steps)",
        "firsts = np.searchsorted(times[self.order], steps, side='right') - 1",
        "Of samples with one time, only the last is at risk.",
        ("explain/test_annotate.py",),
    ),
    Mutant(
        "permutation-p-value",
        "explain/permuted_clusters.py",
        "return (1 + n_as_large) / (1 + len(drawn))",
        "return n_as_large / len(drawn)",
        "The given order does not count among the permutations, so p may be zero.",
        ("explain/test_annotate.py",),
    ),
    Mutant(
        "border-test",
        "explain/evidence.py",
        "binom.cdf(self.n_between, total",
        "binom.cdf(self.n_between - 1, total",
        "The number of samples at borders is not part of its own tail.",
        ("explain/test_borders.py",),
    ),
    Mutant(
        "stability-cutoff",
        "explain/clarity.py",
        "if self.stability < LOW_STABILITY:",
        "if self.stability > LOW_STABILITY:",
        "Stable clusters are called unstable.",
        ("explain/test_clarity.py",),
    ),
    Mutant(
        "stability-unaligned",
        "explain/stability.py",
        "align_labels(found, labels[part]) == labels[part]",
        "found == labels[part]",
        "Clusters of refits are compared by their numbers.",
        ("explain/test_stability.py",),
    ),
    Mutant(
        "lonely-silhouette",
        "explain/sample_scores.py",
        "np.where(sizes[own] == 1, 0.0,",
        "np.where(sizes[own] == 1, 1.0,",
        "A sample alone in its cluster fits perfectly.",
        ("explain/test_sample_scores.py",),
    ),
    Mutant(
        "purity-axis",
        "metrics.py",
        "table.max(axis=0).sum() / table.sum()",
        "table.max(axis=1).sum() / table.sum()",
        "Purity is that of classes, not of clusters.",
        ("test_metrics.py",),
    ),
    Mutant(
        "pairs-without-samples",
        "metrics.py",
        "        if table[p, q]:\n            numbers",
        "        if True:\n            numbers",
        "Clusters with nothing in common are paired.",
        ("test_metrics.py",),
    ),
    Mutant(
        "seed-of-k-means",
        "stack/discretize.py",
        "rows = rows - middle\n    rng = check_random_state(random_state)",
        "rows = rows - middle\n    rng = check_random_state(None)",
        "The random state does not decide on the starts of k-means.",
        ("stack/test_discretize.py", "test_contract.py"),
    ),
    Mutant(
        "seed-of-the-command",
        "cli/models.py",
        '{"random_state": request.seed}',
        '{"random_state": None}',
        "--seed is ignored.",
        ("cli/test_cluster.py", "cli/test_inputs.py"),
    ),
    Mutant(
        "numbers-of-clusters",
        "stack/discretize.py",
        "return np.lexsort((all_first, -shares, -all_sizes))",
        "return np.lexsort((all_first, -shares, all_sizes))",
        "The smallest cluster is number zero.",
        ("stack/test_discretize.py",),
    ),
    Mutant(
        "better-rounding",
        "fit/rounding.py",
        "is_better = shares[1] > (1 + tied) * shares[0]",
        "is_better = shares[1] < (1 + tied) * shares[0]",
        "Of two partitions, the one that explains less is taken.",
        ("fit/test_rounding.py",),
    ),
    Mutant(
        "predict-scale",
        "stack/standardized.py",
        "lengths = lengths - 2 * means + self.mean",
        "lengths = lengths - means + self.mean",
        "New samples are not scaled to the length of centered ones.",
        ("fit/test_out_of_sample.py", "stack/test_kernel.py"),
    ),
    Mutant(
        "predict-centering",
        "stack/standardized.py",
        "        if local.row_means is not None:\n"
        "            rows = rows - local.row_means @ P",
        "        if local.row_means is not None:\n            rows = rows - 0.0",
        "New samples are not centered by the means of the training samples.",
        ("fit/test_out_of_sample.py", "stack/test_kernel.py"),
    ),
    Mutant(
        "coverage-of-itself",
        "fit/coverage.py",
        "return np.sort(nearness(similarities, n_own=1))",
        "return np.sort(nearness(similarities))",
        "Samples of the fit are among their own nearest ones.",
        ("fit/test_coverage.py",),
    ),
    Mutant(
        "rescaling",
        "stack/observed.py",
        "return np.sqrt(ratios)",
        "return ratios",
        "Samples that lack views are scaled up twice.",
        ("stack/test_observed.py", "fit/test_fits_of_missing_samples.py"),
    ),
    Mutant(
        "inner-join",
        "data/join.py",
        "kept = common[find(index, common) >= 0]",
        "kept = common[find(index, common) > 0]",
        "An inner join loses the first sample of a table.",
        ("data/test_join.py",),
    ),
    Mutant(
        "columns-by-position",
        "data/encode.py",
        "return table.take_columns(places.tolist())",
        "return table.take_columns(sorted(places.tolist()))",
        "Columns of new tables are matched by position.",
        ("data/test_encoding.py", "data/test_frames.py"),
    ),
    Mutant(
        "own-medians",
        "data/encode.py",
        'SimpleImputer(strategy="median").fit(self.medians[None])',
        'SimpleImputer(strategy="median").fit(numbers)',
        "Empty cells of new samples are filled by their own medians.",
        ("data/test_encoding.py", "data/test_missing.py"),
    ),
    Mutant(
        "missing-kernel-samples",
        "data/missing.py",
        'return empty & _empty_rows(kernel.T, "")',
        "return empty | True",
        "A kernel with one empty sample has none.",
        ("data/test_missing_kernels.py", "data/test_missing.py"),
    ),
    Mutant(
        "rows-of-alignment",
        "data/join.py",
        "order = where[where >= 0]",
        "order = np.sort(where[where >= 0])",
        "Rows of a table stay in their own order.",
        ("data/test_join.py", "test_alignment.py"),
    ),
    Mutant(
        "missing-words",
        "datasets/tables.py",
        'dict.fromkeys(may_be_ids, "={}".format)',
        'dict.fromkeys(names[:1], "={} ".format)',
        "The first column of a file is read as text.",
        ("datasets/test_tables.py",),
    ),
    Mutant(
        "missing-of-a-first-column",
        "datasets/tables.py",
        "unknown = MISSING.union(layout.missing)",
        "unknown = MISSING",
        "missing= has no effect on the type of a first column.",
        ("datasets/test_tables.py",),
    ),
    Mutant(
        "matlab-axes",
        "datasets/interpret.py",
        "axes = (2, 0, 1)",
        "axes = (0, 2, 1)",
        "The kernels of a cube of MATLAB are counted along its first axis.",
        ("datasets/test_files.py",),
    ),
    Mutant(
        "parquet-parts",
        "datasets/parquet.py",
        'np.searchsorted(self._starts, row, side="right")',
        'np.searchsorted(self._starts, row, side="left")',
        "The first row of a part of a file is looked for in the part before.",
        ("datasets/test_parquet.py",),
    ),
    Mutant(
        "width-of-gaussian",
        "kernels/formulas.py",
        "rate = 0.5 / width**2",
        "rate = 0.5 / width",
        "The width of a Gaussian kernel is the root of the one asked for.",
        ("kernels/test_bank.py", "kernels/test_rules.py"),
    ),
    Mutant(
        "links-to-oneself",
        "graph/partition.py",
        "degrees = self.linked(np.ones(n)) - self.own",
        "degrees = self.linked(np.ones(n))",
        "Degrees in the graph of neighborhoods count links of samples to themselves.",
        ("graph/test_partition.py",),
    ),
    Mutant(
        "nearest-of-a-tie",
        "graph/lists.py",
        "is_nearest = to_lists >= highest[:, None] - tie",
        "is_nearest = to_lists >= highest[:, None]",
        "Of two lists that are as near, rounding decides which one a sample joins.",
        ("graph/test_lists.py",),
    ),
    Mutant(
        "list-of-nobody",
        "graph/lists.py",
        "has_others = np.isfinite(limits) & (lengths > 1)",
        "has_others = np.isfinite(limits)",
        "Samples to which nobody is near have a list of their own.",
        ("graph/test_lists.py",),
    ),
    Mutant(
        "modularity",
        "graph/partition.py",
        "modularity = judge.modularity(labels)",
        "modularity = -judge.modularity(labels)",
        "Of two cuts of the graph, the worse one is taken.",
        ("graph/test_partition.py", "methods/test_agreement_kkm.py"),
    ),
    Mutant(
        "unexplained",
        "fit/mixture.py",
        "rest = self.totals - self.alignments(partition)",
        "rest = self.alignments(partition)",
        "MKKM gives weight to kernels that the partition explains badly.",
        ("methods/test_mkkm.py",),
    ),
    Mutant(
        "same-refits",
        "bench/execute.py",
        "np.random.default_rng([plan.seed, repetition])",
        "np.random.default_rng([plan.seed, 0])",
        "Every repetition of a benchmark fits the same part of the samples.",
        ("bench/test_bench.py",),
    ),
)


def planted(text, mutant):
    """Return the text of a file with a fault, or say that it does not apply."""
    if text.count(mutant.old) != 1:
        raise ValueError(
            f"{mutant.name}: src/mkclust/{mutant.file} has {mutant.old!r} "
            f"{text.count(mutant.old)} times instead of once: adapt the entry"
        )
    return text.replace(mutant.old, mutant.new)


def run_tests(folder, tests, patience=PATIENCE):
    """Run the fast tests of files on the library of a folder; return code and lines."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow"]
    command += ["-p", "no:cacheprovider"]
    command += [str(ROOT / "tests" / test) for test in tests]
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
    }
    options = {"cwd": ROOT, "env": environment, "capture_output": True, "text": True}
    try:
        found = subprocess.run(command, timeout=patience, **options)
    except subprocess.TimeoutExpired:
        return FAILED, [f"FAILED no end within {patience} seconds"]
    return found.returncode, found.stdout.splitlines()


def first_failure(folder, mutant):
    """Return the test that notices a fault first, None if none does."""
    code, lines = run_tests(folder, mutant.tests)
    if code == PASSED:
        return None
    named = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    if code != FAILED or not named:
        raise RuntimeError(f"{mutant.name}: " + "\n".join(lines[-20:]))
    return named[0].split(maxsplit=1)[1].split(" - ")[0]


def check_unchanged(folder, mutants):
    """Raise an error unless the tests pass without any fault, on the copy."""
    program = "import mkclust; print(mkclust.__file__)"
    options = {"env": os.environ | {"PYTHONPATH": str(folder)}, "text": True}
    where = subprocess.check_output([sys.executable, "-c", program], **options)
    if not where.startswith(str(folder)):
        raise RuntimeError(f"mkclust is imported from {where}, not from {folder}")

    tests = sorted({test for mutant in mutants for test in mutant.tests})
    code, lines = run_tests(folder, tests, patience=20 * PATIENCE)
    if code != PASSED:
        raise RuntimeError("without any fault: " + "\n".join(lines[-20:]))


def try_mutant(folder, mutant):
    """Plant a fault, run the tests, and take it out again; return the record."""
    path = folder / "mkclust" / mutant.file
    sound = path.read_text(encoding="utf-8")
    path.write_text(planted(sound, mutant), encoding="utf-8")
    try:
        noticed_by = first_failure(folder, mutant)
    finally:
        path.write_text(sound, encoding="utf-8")
    return {
        "file": mutant.file,
        "reason": mutant.reason,
        "noticed_by": noticed_by,
    }


def summed_up(known):
    """Return the record of faults that were tried, in the order of `MUTANTS`."""
    tried = {each.name: known[each.name] for each in MUTANTS if each.name in known}
    return {
        "n_planted": len(tried),
        "n_noticed": sum(each["noticed_by"] is not None for each in tried.values()),
        "mutants": tried,
    }


def main():
    """Try all faults, or those asked for, and write down who noticed."""
    names = [mutant.name for mutant in MUTANTS]
    only = {"nargs": "*", "choices": names, "default": names}
    options = parse(__doc__, "mutants.json", only=only)
    chosen = [mutant for mutant in MUTANTS if mutant.name in options.only]

    known = read_record(options.out).get("mutants", {})
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder).resolve()
        shutil.copytree(SOURCE, folder / "mkclust")
        check_unchanged(folder, chosen)
        for mutant in chosen:
            known[mutant.name] = found = try_mutant(folder, mutant)
            print(f"{mutant.name}: {found['noticed_by'] or 'NOBODY'}", flush=True)
            write_record(options.out, summed_up(known))

    record = summed_up(known)
    print(f"{record['n_noticed']} of {record['n_planted']} faults were noticed")


if __name__ == "__main__":
    main()
