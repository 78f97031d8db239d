"""What the docstrings of several methods share, written into each of them.

Run it after changing a section or the references of a method; a test says if a
docstring has something else::

    python docs/make_docstrings.py
"""

import ast
import inspect
import re
import sys
from pathlib import Path
from textwrap import fill, indent

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from mkclust import METHODS  # noqa: E402

# The longest line of a docstring that is indented by four.
WIDTH = 84

# Entries of numpydoc that several methods share, in their order.
SECTIONS = {
    "inputs": """\
n_clusters : int, default=8
    Number of clusters, k.
kernels : str, view, dict or KernelBank, default="auto"
    How X is read.

    - "auto" takes a 3-D array as kernels. It gives each view the kernel of its kind
      (``rules`` of `KernelBank`; ``bank_.explain()`` says which and why), and one
      table twelve kernels, or the one of its kind. It refuses square matrices of
      one size that may be kernels.
    - "precomputed" takes kernels only.
    - "on-the-fly" is "auto" with kernels that are computed whenever they are used,
      and never stored. AgreementKKM stores no kernels of views anyway.
    - A name makes that kernel of each view: "gaussian" (twelve of a table),
      "self-tuning", "linear", "cosine", "polynomial", "laplacian", "chi2",
      "hellinger", "jaccard", "overlap" (or "categorical"), or "from_distances" for
      views of distances.
    - A dict such as ``{"text": "sparse", "K": "precomputed"}`` decides for the
      views that it names.
    - A `mkclust.view` adds a transformer of rows, and a `KernelBank` gives full
      control.

    With an approximation, names and a dict say how the rows of each view are
    prepared.
center : bool, default=True
    Center every kernel in its feature space (on the fly; nothing is copied).
normalize : bool, default=True
    Scale every kernel to a unit diagonal (on the fly; nothing is copied).
psd : {"error", "shift"}, default="error"
    What to do with an indefinite kernel, also for new samples. "error" refuses it,
    and "shift" adds the multiple of the identity that repairs it.""",
    "approximation": """\
approximation : transformer or None, default=None
    A scikit-learn transformer, such as ``mkclust.kernels.Nystroem(200)``, cloned
    for each view. The kernels are those of its features, and no n x n matrix is
    ever made. Views are read some rows at a time, also from memory maps, HDF5 and
    parquet files or dask arrays.""",
    "solver": """\
solver : {"subspace", "reduced-gradient"}, default="subspace"
    The certified subspace solver, or the paper's reduced gradient, which can stall
    before the minimizer if eigenvalues k and k + 1 tie there.
stopping : {"gap", "step"}, default="gap"
    Stop at the certified relative gap ``tol`` or, for the reduced gradient only, as
    the paper does: when no weight changes by more than 1e-4.""",
    "proof": """\
prove : bool or "auto", default="auto"
    Whether to prove, by a Cholesky factorization of one more n x n matrix, that the
    eigensolver missed no eigenvector. "auto" does so if it is cheaper than a
    search, or if a random search cannot decide; False only searches.
tol : float, default=1e-6
    Certified relative gap at which to stop.
max_iter : int, default=200
    When to give up, with a warning that says how large the gap still is.""",
    "stopping": """\
tol, max_iter : float, int
    Relative change of the objective at which to stop, and the most iterations.""",
    "rounding": """\
rounding : {"best", "unit", "components"}, default="best"
    Which rows of the partition k-means clusters. "unit" brings them to unit length,
    as the authors do, and breaks up a large cluster next to a small one;
    "components" takes kernel principal components, eigenvectors times the roots of
    their eigenvalues. "best" takes components if their clusters explain more of the
    kernel by half a percent, or are the same, else unit length. What clusters
    explain is the share of the trace between them, which is the objective of kernel
    k-means before it is relaxed.""",
    "common": """\
n_init : int, default=10
    Number of k-means starts on the embedding; the best is kept.
random_state : int, RandomState instance or None, default=None
    Seed of the k-means starts (and of the rows they learn from beyond 100,000
    samples), of an approximation without its own seed, and of the search behind a
    certificate.
views : dict of str to (list, slice or str) or None, default=None
    Splits one wide data frame or array into views, each given by a list of columns
    (names or numbers), a slice of their numbers, or a prefix of their names, such
    as ``{"mrna": ["g1", "g2"], "mirna": "mirna_"}``. This is for scikit-learn,
    which takes one table. Other columns are left out.

    Categorical and boolean columns of data frames, and text with at most 20
    repeated values, become a view ``NAME (categories)``, compared by equal
    categories. Other text and dates are refused.
join : {"exact", "inner", "outer"}, default="exact"
    Data frames are aligned by their ids (the index of pandas, the observations of
    AnnData); arrays, polars and the default index by the order of rows. "exact"
    requires the same ids, in any order, "inner" takes the samples that all frames
    have, and "outer" all samples.
impute : {None, "median"}, default=None
    Missing cells (NaN, None, masked entries) are refused, or filled with the median
    of their column, or the most frequent category, also in new samples; not on
    disk, in dask or on devices.
missing_views : {None, "learn", "zero", "rescale"}, default=None
    How to treat samples that are missing from a view: not in its frame, a row of
    NaN, NaN in the whole row and column of a kernel, or marked in ``observed``.
    "zero" sets their similarities there to zero, the average. "rescale" also scales
    them up to the self-similarity of samples in all views. "learn" imputes values
    predicted by the clustering, in turns with it. None is "learn" for SimpleMKKM,
    MKKM and AverageKKM with exact kernels, otherwise "rescale". AgreementKKM fills
    in nothing, and compares two samples by the views that both have, whichever is
    passed; it refuses "learn".
scale : {"auto", "standard", "robust", "log", "none"} or dict, default="auto"
    How columns of numbers are scaled, in all views or by the name of a view. "auto"
    divides those of a table (at most 20 columns, or at most 100 whose spreads
    differ by a factor of 1,000) by their spread. It leaves principal components
    (uncorrelated columns whose spreads fall) as they are, and in other views scales
    down columns that vary much more than the others. "standard" divides by the
    standard deviation, "robust" by the distance between the quartiles, "log" takes
    log2(x + 1) first, as for strongly skewed expression, and "none" changes
    nothing. Counts, histograms, directions and categories are not scaled by "auto".

Attributes
----------
labels_ : ndarray of shape (n_samples,)
    Clusters, numbered by falling size; -1 for samples of which nothing is known.
alignments_ : ndarray of shape (n_kernels,)
    Share of each kernel's own top-k eigenvalue sum that the consensus captures, 0
    to 1.
embedding_ : array of shape (n_samples, n_clusters)
    The orthonormal H, unique up to a rotation.""",
    "coefficients": """\
coefficients_ : ndarray of shape (n_kernels,)
    The mixed kernel is ``sum_p coefficients_p K_p``: the weights, or their squares,
    as above.""",
    "descent": """\
objective_ : float
    The objective of the final weights and partition.
history_ : ndarray of shape (n_iter_ + 1,)
    The objective in each iteration, and at the end, falling.""",
    "certificate": """\
duality_gap_ : float
    An upper bound on the relative distance of the objective to its global minimum;
    certain if ``certificate_`` is "proved", and otherwise wrong with the
    probability stated there.
certificate_ : str
    How it is known that the eigensolver missed nothing: "proved" (by a
    factorization or a dense eigendecomposition), "searched (missed with probability
    at most ...)", or "open" if the solver stopped early.
lower_bounds_ : ndarray of the shape of history_
    Certified lower bound after each iteration, rising.
cluster_gap_ : float
    Relative gap between eigenvalues k - 1 and k, where k centered clusters show;
    NaN for k = 1.
eigengap_ : float
    Relative gap between eigenvalues k and k + 1: zero at a tie. It says nothing
    about clusters.
baseline_labels_ : ndarray of shape (n_samples,)
    Clusters of the compromise of the views, the mix that `AgreementKKM` makes of
    them, by relaxed kernel k-means.
baseline_agreement_ : float
    Adjusted Rand index between ``labels_`` and ``baseline_labels_``.
n_passes_ : int
    How often every kernel was read while solving.
history_ : ndarray of shape (n_iter_,), or (n_iter_ + 1,) for the reduced gradient
    Best objective after each iteration: non-increasing upper bounds, residual
    errors included. For the reduced gradient, the objective at the start comes
    first.""",
    "rounded": """\
rounding_ : {"unit", "components"}
    Which rows k-means clustered.""",
    "notes": """\
converged_ : bool
    Whether the stopping rule was met within ``max_iter``.
n_iter_ : int
    Number of iterations.
kernel_names_ : tuple of str
    Names of the kernels.
agreement_ : Agreement
    Which kernels agree (`mkclust.agreement`), if there are several.
uncovered_samples_ : ndarray
    Ids, or else numbers, of samples with the label -1: no used view has an entry,
    or a neighbor, of them.
fill_history_ : ndarray of shape (n_fills + 1,)
    Objective without and with each learned fill; ``history_`` is of the last solve.
missingness_ : Missingness
    Whether the clusters follow which views samples are missing from; only if some
    are.
n_components_ : int
    Number of groups that no neighborhood connects, if all kernels consist of
    neighborhoods.
bank_ : KernelBank
    Source of the kernels of views or a table; not for precomputed kernels.
sample_ids_ : ndarray of shape (n_samples,)
    The index of the data frames in X, in the order of ``labels_``; only if they
    have ids.
observed_ : ndarray of bool of shape (n_samples, n_views)
    Which views, or precomputed kernels, have which samples; only if some are
    missing.
view_names_in_ : tuple of str
    Names of the views, those of categorical columns included; not for precomputed
    kernels.
n_features_in_ : int
    Columns of the table, or of all views together, or the number of samples for
    kernels.
solve_seconds_, fit_seconds_ : float
    Time spent on solving, and on the whole fit.
approximation_error_ : ndarray of shape (n_kernels,)
    With an approximation: the share of each kernel's trace, before centering, that
    its features miss, on some of the samples; NaN if the feature map does not know
    it.""",
}
# The sections of all methods, ...
SECTIONS_OF_ALL = ("inputs", "common", "notes")
# ... and those that each has in addition.
SECTIONS_OF = {
    "AgreementKKM": "",
    "AnchoredMKKM": "approximation proof rounding coefficients certificate rounded",
    "AverageKKM": "approximation rounding coefficients rounded",
    "KAMMR": "approximation rounding coefficients rounded",
    "KAMMA": "approximation rounding coefficients rounded",
    "LFMVC": "approximation stopping rounding rounded",
    "LKAM": "stopping rounding descent rounded",
    "LMKKM": "rounding descent rounded",
    "LocalizedSimpleMKKM": "proof rounding certificate rounded",
    "MKKM": "approximation stopping rounding coefficients descent rounded",
    "MKKMMiR": "approximation stopping rounding coefficients descent rounded",
    "MKKMMM": "approximation rounding coefficients rounded",
    "ONKC": "stopping rounding coefficients rounded",
    "SimpleMKKM": (
        "approximation solver proof rounding coefficients certificate rounded"
    ),
}
# An entry of numpydoc: its names, and their type.
HEAD = re.compile(r"[\w, ]+ : ")


def heads_of(lines):
    """Return the positions of the entries of numpydoc among lines."""
    return [number for number, line in enumerate(lines) if HEAD.match(line)]


def end_of_entry(lines, start):
    """Return where an entry ends that begins at a line, in paragraphs perhaps."""
    for number in range(start + 1, len(lines)):
        if HEAD.match(lines[number]):
            return number
        is_last = number + 1 == len(lines) or not lines[number + 1].startswith(" ")
        if not lines[number] and is_last:
            return number
    return len(lines)


def with_section(docstring, name):
    """Return a docstring with the text of a section, from its first entry to its last.

    The first and the last entry of a section must be those that the docstring has; what
    is between them may be anything.
    """
    lines = docstring.splitlines()
    own = SECTIONS[name].splitlines()
    places = heads_of(own)
    ends = (own[places[0]], own[places[-1]])
    for entry in ends:
        if entry not in lines:
            raise ValueError(
                f"section {name!r} of SECTIONS: the docstring has no line {entry!r}; "
                "copy it from another method"
            )
    start, last = map(lines.index, ends)
    stop = end_of_entry(lines, last)
    return "\n".join([*lines[:start], *own, *lines[stop:]])


def with_references(docstring, references):
    """Return a docstring with the papers of a method, if any, before its examples."""
    papers = [
        fill(
            f".. [{number}] {text}",
            WIDTH,
            subsequent_indent="   ",
            break_on_hyphens=False,
        )
        for number, text in enumerate(references, 1)
    ]
    before, _, examples = docstring.partition("Examples\n--------\n")
    before = before.partition("References\n----------\n")[0]
    listed = ""
    if papers:
        listed = "\n".join(["References", "----------", *papers, "", ""])
    return f"{before}{listed}Examples\n--------\n{examples}"


def written_out(method):
    """Return the docstring that a method should have."""
    docstring = inspect.getdoc(method)
    name = method.__name__
    if name not in SECTIONS_OF:
        raise ValueError(
            f"SECTIONS_OF of docs/make_docstrings.py has no line for {name}: name the "
            f"sections that its docstring shares ({', '.join(SECTIONS)}), or none"
        )
    for section in (*SECTIONS_OF_ALL, *SECTIONS_OF[name].split()):
        try:
            docstring = with_section(docstring, section)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return with_references(docstring, method.REFERENCES)


def write(method):
    """Write the docstring of a method into its file."""
    path = Path(inspect.getsourcefile(method))
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    (node,) = (
        each
        for each in tree.body
        if isinstance(each, ast.ClassDef) and each.name == method.__name__
    )
    old = node.body[0]
    lines = source.splitlines()
    quotes = lines[old.lineno - 1].partition('"""')[0] + '"""'
    text = indent(written_out(method), "    ").strip()
    new = f'{quotes}{text}\n    """'.splitlines()
    lines[old.lineno - 1 : old.end_lineno] = new
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for method in METHODS.values():
        write(method)
