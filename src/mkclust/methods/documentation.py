"""What the docstrings of all methods have in common, written once.

A method's docstring names a section in braces on a line of its own; `fill` writes it out, and adds
the method's ``REFERENCES`` before the examples.
"""

from collections.abc import Sequence
from inspect import cleandoc
from textwrap import fill as fill_lines

# How to read weights, in the words that stand beside them wherever they are shown.
MIXING_WEIGHT = "A weight says how the kernels are mixed; it is not importance."
LARGE_WEIGHT = "A large weight means little agreement with the consensus; it is not importance."

SECTIONS = {
    "inputs": """\
n_clusters : int, default=8
    Number of clusters, k.
kernels : {"auto", "on-the-fly", "precomputed"}, str, view, dict or KernelBank, default="auto"
    How X is read. "auto" takes a 3-D array as kernels. Each view of a list or dict, an array or a
    sparse matrix of SciPy, gets the kernel of its kind: counts, histograms, categories, links and
    columns of very different sizes are recognized by their numbers (see ``rules`` of `KernelBank`;
    ``bank_.explain()`` says what was made of each view, and why). One table gets twelve kernels, or
    the one of its kind. A list of square matrices of one size is refused as ambiguous. A name makes
    that kernel of each view: "gaussian" (twelve of a table), "self-tuning", "linear", "cosine",
    "polynomial", "laplacian", "chi2", "hellinger", "jaccard", "overlap" (or "categorical"), and
    "from_distances" for views that are distances between samples. A dict from names of views to
    kernels or kinds, such as ``{"text": "sparse", "K": "precomputed"}``, decides for these views; a
    `mkclust.view` in place of a name says what transformer rows go through before. "on-the-fly"
    computes the kernels of "auto" anew whenever they are used, and never holds them.
    "precomputed" takes kernels only. A `KernelBank` says in full which kernels to make. With an
    approximation, names and a dict say what is done to the rows of each view before.
center : bool, default=True
    Center every kernel in its feature space (on the fly; nothing is copied).
normalize : bool, default=True
    Scale every kernel to a unit diagonal (on the fly; nothing is copied).
psd : {"error", "clip", "shift"}, default="error"
    What to do with an indefinite kernel: refuse it, drop its negative part, or add a multiple
    of the identity. Clusters are those of the repaired kernels. Of new samples' similarities, the
    directions that a kernel lost are left out; a shift is added to those with themselves only.""",
    "neighbors": """\
neighbors : None, int, float or "auto", default=None
    Replace every kernel by its shared neighborhoods: the similarity of two samples is the share of
    neighborhoods that hold both, a neighborhood being a sample and this number of others, the most
    similar to it by that kernel, as far as they are similar at all. An integer of at least 2, a
    share of the samples, or "auto": 20, and fewer of less than 60 samples. These kernels are sparse
    and kept on the host, and positive semidefinite whatever the kernels were: ``psd`` has nothing
    to repair.
    Kernels are compared as scaled to a unit diagonal, precomputed ones if ``normalize`` says so.
    A table gets one Gaussian kernel, for those of all widths have the same neighbors.""",
    "approximation": """\
approximation : transformer or None, default=None
    A feature map in scikit-learn's manner, such as ``mkclust.kernels.Nystroem(200)``, cloned for
    each view: the kernels are those of its features, and nothing as large as the samples squared
    is ever made. Views are then read some rows at a time, from memory maps, HDF5 and parquet files
    or dask arrays.""",
    "solver": """\
solver : {"subspace", "reduced-gradient"}, default="subspace"
    The certified subspace solver, or the paper's reduced gradient. Both reach the same minimizer,
    but if eigenvalues k and k + 1 tie there, the reduced gradient can stall before it.
stopping : {"gap", "step"}, default="gap"
    Stop at the certified relative gap ``tol`` or, for the reduced gradient only, as the paper does:
    when no weight changes by more than 1e-4.""",
    "proof": """\
prove : bool or "auto", default="auto"
    Whether to prove, by a Cholesky factorization of one more n x n matrix, that the eigensolver
    missed no eigenvector. "auto" does so if it is cheaper than a search, or if a random search
    cannot tell; False only searches. ``certificate_`` says what was done.
tol : float, default=1e-6
    Certified relative gap at which to stop.
max_iter : int, default=200
    When to give up, with a warning that says how large the gap still is.""",
    "seeds": """\
n_init : int, default=10
    Number of k-means starts on the embedding; the best is kept.
random_state : int, RandomState instance or None, default=None
    Seed of the k-means starts, of the sample of rows they learn from beyond 100,000 samples, of an
    approximation that has none of its own, and of the search behind a certificate. With None that
    search always takes the same random vectors. The solvers themselves are deterministic.
views : dict of str to (list, slice or str) or None, default=None
    Takes one wide data frame, or array, apart into views: by the name of each view a list of its
    columns, by name or number, a slice of their numbers, or the prefix of their names, as in
    ``{"mrna": ["g1", "g2"], "mirna": "mirna_"}``. Columns in no view are left out. This is how
    several views go through scikit-learn's pipelines and searches, which pass one table on.

    Categorical and boolean columns of data frames, and text with at most 20 different values that
    repeat, become a view of their own, ``NAME (categories)``, one-hot encoded, in which the
    similarity of two samples is the share of equal categories. Other text and dates are refused.
join : {"exact", "inner", "outer"}, default="exact"
    Data frames of views are aligned by their ids (the index of pandas, the observations of
    AnnData; the default index, polars and arrays mean the order of rows). "exact" takes the same
    ids in any order, "inner" the samples that all frames have, in the order of the first frame with
    ids, and "outer" all samples, those included that are missing from some frames.
impute : {None, "median"}, default=None
    Missing cells (NaN, None, masked entries) are refused, all named at once, or filled with the
    median of their column, categories with the most frequent one. What is filled in is learned, and
    fills the cells of new samples, too. Views on disk, of dask and on devices are left as they are.
missing_views : {None, "learn", "zero", "rescale"}, default=None
    A sample that is missing from a view altogether (not in its frame, a row of NaN, NaN throughout
    the row and the column of a kernel, or marked in ``observed``) has no part in the kernels of
    that view, which are centered and scaled among the others. "zero" leaves its similarities by
    these kernels at zero, which is the average; "rescale" besides scales every sample up to the
    total self-similarity of one that is in all views; "learn" fills in what the clustering itself
    predicts, in turn with it. None is "learn" for SimpleMKKM, MKKM, AverageKKM and AgreementKKM
    with exact kernels, and "rescale" otherwise.
scale : {"auto", "standard", "robust", "none"} or dict of str to these, default="auto"
    How columns of numbers are scaled, in all views or by the name of a view. "auto" divides those
    of a table by their spread, so that units do not matter: at most 20 columns, or at most 100
    whose spreads differ by a factor of 1,000. Of other views it only scales columns down that vary
    much more than the others. "standard" divides by the standard deviation, "robust" by the
    distance between the quartiles, "none" leaves columns as they are. Counts, histograms,
    directions and categories are not scaled. ``summary()`` says what was done.""",
    "attributes": """\

Attributes
----------
labels_ : ndarray of shape (n_samples,)
    Clusters, numbered by falling size; -1 for samples of which nothing is known.
alignments_ : ndarray of shape (n_kernels,)
    The share of each kernel's own top-k eigenvalue sum that the consensus captures, 0 to 1, known
    to about 0.002. Read it beside the weights.
embedding_ : array of shape (n_samples, n_clusters)
    The orthonormal H, unique up to a rotation.""",
    "certificate": """\
duality_gap_ : float
    Relative distance of the objective to its global minimum at most. The lower side is exact, and
    so is the upper one if ``certificate_`` is "proved"; otherwise it holds but for the probability
    that is stated there. With an approximation it is the gap of the approximated problem;
    ``approximation_error_`` says how far that is from the kernels themselves.
certificate_ : str
    How it is known that the eigensolver missed nothing: "proved" (by a factorization or a dense
    eigendecomposition), "searched (missed with probability at most ...)" or, for streamed kernels
    and those computed on the fly, "searched"; "open" if the solver stopped before.
lower_bounds_ : ndarray of the shape of history_
    Certified lower bound after each iteration, rising.
cluster_gap_ : float
    Relative gap between eigenvalues k - 1 and k of the kernel that is clustered, where the
    structure of k centered clusters shows; NaN for k = 1.
eigengap_ : float
    Relative gap between eigenvalues k and k + 1: zero at a tie, where the objective has a kink. It
    says nothing about clusters.
baseline_labels_ : ndarray of shape (n_samples,)
    What the compromise of the views finds: the clusters of `AgreementKKM`.
baseline_agreement_ : float
    Adjusted Rand index between ``labels_`` and ``baseline_labels_``.
n_passes_ : int
    How often every kernel was read while solving.""",
    "notes": """\
converged_ : bool
    Whether the stopping rule was met within ``max_iter``.
n_iter_ : int
    Number of iterations.
kernel_names_ : tuple of str
    Names of the kernels.
agreement_ : Agreement
    What the kernels share beyond chance (`mkclust.agreement`); not there for one kernel alone.
    If samples are missing from views, every two are compared on the samples both have.
uncovered_samples_ : ndarray
    Ids, or else numbers, of the samples that have no entry in any view that is used
    (`UncoveredSamplesWarning`). They have the label -1, and the clusters are found without them.
    Only if there are any.
fill_history_ : ndarray of shape (n_fills + 1,)
    The objective without and with each of the fills of missing samples; only if
    ``missing_views="learn"`` had something to learn. ``history_`` is that of the last solve.
missingness_ : Missingness
    Whether the clusters follow which views samples are missing from, which `MissingnessWarning`
    warns of; only if some are.
n_neighbors_, n_components_ : int
    With ``neighbors`` only: how many every sample has, and into how many groups samples fall that
    no neighborhood of any kernel connects. More of these than clusters are warned of
    (`NeighborhoodsWarning`).
bank_ : KernelBank
    What made the kernels of views or a table; not there for precomputed kernels.
sample_ids_ : ndarray of shape (n_samples,)
    The index of the data frames in X, in the order of ``labels_``; only if they have ids.
observed_ : ndarray of bool of shape (n_samples, n_views)
    Which views, or precomputed kernels, have which samples; only if some are missing.
view_names_in_ : tuple of str
    Names of the views, those of categorical columns included; not there for precomputed kernels.
n_features_in_ : int
    Columns of the table, or of all views together, or the number of samples for kernels.
solve_seconds_, fit_seconds_ : float
    Time spent on solving, and on the whole fit.
approximation_error_ : ndarray of shape (n_kernels,)
    With an approximation: the share of each kernel's trace, before any centering, that its
    features miss, on some of the samples; NaN if the feature map does not know. Random waves
    miss nothing on average however few they are; ``mkclust.stability`` says more.
    Certificates and objectives are those of the approximated problem.""",
}
# The input of the methods that take features, too.
SECTIONS["inductive"] = "\n".join(
    SECTIONS[name] for name in ("inputs", "neighbors", "approximation")
)


def fill(docstring: str | None, references: Sequence[str] = ()) -> str | None:
    """Write out the sections that a docstring names, and the references before its examples."""
    if docstring is None:  # optimized away by python -OO
        return None
    papers = [
        fill_lines(f".. [{number}] {text}", 96, subsequent_indent="   ")
        for number, text in enumerate(references, 1)
    ]
    docstring = cleandoc(docstring)
    if papers and "{references}" not in docstring:
        heading = "References\n----------\n{references}\n\nExamples\n"
        docstring = docstring.replace("Examples\n", heading, 1)
    for name, text in (SECTIONS | {"references": "\n".join(papers)}).items():
        docstring = docstring.replace(f"{{{name}}}\n", f"{text}\n")
    return docstring
