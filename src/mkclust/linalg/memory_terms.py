"""What a fit with exact kernels holds at the same time, term by term and moment by moment.

A moment is a dict of terms, bytes by name; a fit takes as much as its worst moment. Vectors and
entries that are computed with are float64 whatever the kernels are.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mkclust.linalg.memory import are_kept_in_halves, are_written_out

Terms = dict[str, int]

# The names of the methods, and how many partitions each holds while it looks for the next one.
PARTITIONS_HELD = {
    "simplemkkm": 3,
    "avg-kkm": 0,
    "mkkm": 1,
    "lmkkm": 1,
    "onkc": 0,
    "mkkm-mir": 1,
    "lkam": 1,
    "lf-mvc": 0,
    "mkkm-mm": 2,
    "kamm-r": 2,
    "kamm-a": 2,
    "agreement-kkm": 0,
    "anchored-mkkm": 4,  # that of a weaker anchor is held while the next one is tried
    "localized-simplemkkm": 3,
}
# Methods that search weights and eigenvectors together in one basis, and compare their clusters
# with those of the compromise.
CERTIFIED = ("simplemkkm", "anchored-mkkm", "localized-simplemkkm")
# What is read or drawn at a time; the tests keep these at what the rooms that do it say.
MEDIAN_ROWS, FEATURE_MEDIAN_ROWS, MEDIAN_BLOCK = 5_000, 1_000, 256
STREAM_BYTES, STREAM_ROWS, STREAM_SHARE, STREAM_LEAST = 64 * 2**20, 32, 1 / 32, 4 * 2**20
# Work space of the linear algebra, blocks of small products, what was freed and not given back.
OVERHEAD = 20 * 10**6
# Methods that work on the entries of the kernels and cannot cluster new samples.
OF_ENTRIES = ("lmkkm", "onkc", "lkam", "localized-simplemkkm")
# What the rooms that do the work say: below so many samples, or where so many blocks fill the
# space, an eigenproblem is solved at full size; steps of the search for missed eigenvectors, and
# random vectors in it; blocks of a Krylov space, and of one where eigenvalues lie close together;
# rows that the localized methods weigh at a time.
SMALL_SPACE, BLOCKS_IN_SPACE = 200, 5
# Rows of a kernel that are written together where half of it is kept.
STRIP_ROWS = 128
# So many vectors at least are iterated with a mix on a device, where that is less than the space.
WIDTH_ON_DEVICE = 64
SEARCH_STEPS, N_PROBES = 32, 8
KRYLOV_BLOCKS, MANY_KRYLOV_BLOCKS = 4, 12
# Up to about so many samples a certificate is proved unasked; above, where there is room only.
PROVED_SAMPLES = 3000
LOCAL_ROWS = 256
# Rows of all kernels that are compared at a time, on the host and on a device, and samples by whose
# entries the directions of each kernel are judged.
COMPARED_ROWS, COMPARED_ROWS_ON_DEVICE, JUDGED_SAMPLES = 32, 1024, 192


@dataclass(frozen=True)
class Fit:
    """The sizes that decide what a fit with exact kernels takes.

    Attributes
    ----------
    n, m, k : int
        Number of samples, kernels and clusters.
    itemsize : int
        Bytes of an entry of the kernels.
    method : str
        Name of the method.
    makes_kernels : bool
        Whether the fit itself makes the kernels and holds them, rather than its user.
    has_mix : bool
        Whether a mix of the kernels is a matrix, rather than computed when asked for.
    on_device : bool
        Whether the kernels are on a device, where larger parts of them are worked on at a time.
    """

    n: int
    m: int
    k: int
    itemsize: int = 8
    method: str = "simplemkkm"
    makes_kernels: bool = True
    has_mix: bool = True
    on_device: bool = False

    @property
    def width(self) -> int:
        """How many vectors are iterated together."""
        width = self.k + max(8, self.k // 4)
        is_wide = self.on_device and self.has_mix and self.method in CERTIFIED
        is_wide = is_wide and self.n > BLOCKS_IN_SPACE * WIDTH_ON_DEVICE
        return max(width, WIDTH_ON_DEVICE) if is_wide else width

    @property
    def whole(self) -> bool:
        """Whether eigenproblems are solved at full size."""
        return self.n <= SMALL_SPACE or BLOCKS_IN_SPACE * self.width >= self.n

    @property
    def compared_rows(self) -> int:
        """How many rows of all kernels are compared at a time."""
        return COMPARED_ROWS_ON_DEVICE if self.on_device else COMPARED_ROWS

    @property
    def capacity(self) -> int:
        """How many vectors the basis of a search for weights holds at most."""
        return max(3 * self.width, min(6 * self.width, self.n // 24))

    def vectors(self, count: int) -> int:
        """Return what so many vectors over the samples take."""
        return 8 * self.n * count

    @property
    def square(self) -> int:
        """What the entries of one kernel take that are computed with."""
        return self.vectors(self.n)

    @property
    def partition(self) -> int:
        """What a partition takes, with its products and, below full size, its residuals."""
        if self.whole:  # all eigenvectors, of which the partition is a part
            return self.square + self.vectors(self.k + 1)
        return self.vectors(3 * self.width)

    def moments(self) -> Iterable[Terms]:
        """Yield what is held at each moment that may be the worst."""
        moments = SOLVER_TERMS.get(self.method, _mixing_terms)(self) + _embedding_terms(self)
        held = {"kernels": self.m * self.n**2 * self.itemsize if self.makes_kernels else 0}
        if self.has_mix and self.itemsize == 8 and are_written_out(self.m, self.n):
            held["kernels written out"] = self.m * self.square
        elif self.has_mix and self.itemsize == 8 and are_kept_in_halves(self.m, self.n):
            held["half of each kernel"] = 2 * self.m * self.n * (self.n + STRIP_ROWS)
        return ({**held, **moment} for moment in moments)

    def worst(self) -> Terms:
        """Return the terms of the moment that takes most."""
        return max(self.moments(), key=total)


def total(terms: Terms) -> int:
    """Return the sum of terms."""
    return sum(terms.values())


def _mix_terms(fit: Fit) -> Terms:
    """Return what a mix of the kernels takes; of a single one there is none."""
    return {"mix of the kernels": fit.n**2 * fit.itemsize * (fit.has_mix and fit.m > 1)}


def _eigenvector_terms(fit: Fit, *, written_out: bool = False) -> list[Terms]:
    """Return what finding the leading eigenvectors of one matrix takes, beside the matrix."""
    if fit.whole:
        # LAPACK wants a copy, a work space of two, and a place for the eigenvectors.
        entries = 0 if written_out else fit.square
        return [{"entries of one matrix": entries, "eigendecomposition": 4 * fit.square}]
    # Eigenvectors that were missed at first make the block wider.
    w = fit.width + N_PROBES
    blocks = KRYLOV_BLOCKS * w
    if fit.method in CERTIFIED:
        blocks = max(blocks, min(MANY_KRYLOV_BLOCKS * w, fit.n // 4))
    return [
        {
            "Krylov space and its images": fit.vectors(2 * blocks),
            "blocks on the way to them": fit.vectors(11 * w),
            "eigendecompositions in it": 6 * 8 * blocks**2,
        },
        {
            "search for missed eigenvectors": fit.vectors(w + 2 * SEARCH_STEPS * N_PROBES),
            "blocks on the way to them": fit.vectors(4 * N_PROBES + 3 * w),
            "eigendecompositions in it": 6 * 8 * (SEARCH_STEPS * N_PROBES) ** 2,
        },
    ]


def _product_terms(fit: Fit) -> Terms:
    """Return what the products of all kernels with a partition take, and those of their entries."""
    # Streamed kernels need what they are multiplied with for each kernel, too.
    copies = 2 * fit.m + (0 if fit.has_mix else fit.m)
    return {"products of all kernels": fit.vectors(copies * fit.k + 3 * fit.k)}


def _mixing_terms(fit: Fit) -> list[Terms]:
    """Return what methods take that look at one mix of the kernels after another."""
    mix, partitions = _mix_terms(fit), PARTITIONS_HELD[fit.method] * fit.partition
    basis: Terms = {}
    if fit.method in CERTIFIED and not fit.whole:
        w, c = fit.width, fit.capacity
        basis = {
            "basis": fit.vectors(c),
            "products of all kernels with the basis": fit.vectors(fit.m * c),
            "kernels seen from the basis": 2 * 8 * fit.m * c**2,
        }
        # One of the partitions is where eigenvectors start from; two more blocks expand the basis.
        partitions += fit.vectors(2 * w) - fit.partition
        copies = 2 * fit.m + (0 if fit.has_mix else 2 * fit.m)
        expansion = {"products on their way to the basis": fit.vectors((copies + 6) * w)}
    else:
        expansion = {**_product_terms(fit), "new partition": fit.partition}
    common = {**mix, **basis, "partitions held": partitions}
    steps = [*_eigenvector_terms(fit), expansion]
    if basis and fit.has_mix and fit.n <= PROVED_SAMPLES:
        # Kernels in single precision are written out in double precision one after another.
        copies = 3 if fit.itemsize < 8 else 1
        steps.append({"matrix to factorize for a proof": copies * fit.square})
    return [{**common, **step} for step in steps]


def _lf_mvc_terms(fit: Fit) -> list[Terms]:
    """Return what LF-MVC takes: the partitions of all kernels and of their mix, and a consensus."""
    mix, vectors, small = _mix_terms(fit), fit.vectors(fit.k), 8 * fit.k**2
    partitions = {"partitions of the kernels": (fit.m + 1) * fit.partition}
    aligned = {**mix, **partitions, "partitions to align": (2 * fit.m + 2) * vectors}
    return [
        *({**mix, **partitions, **step} for step in _eigenvector_terms(fit)),
        {
            **aligned,
            "rotations": 5 * fit.m * small,
            "consensus": 4 * vectors,
            "singular value decomposition": 2 * vectors + 6 * small,
        },
        {**aligned, "rotations": 2 * fit.m * small, "projections": (fit.m + 4) * vectors},
    ]


def _lkam_terms(fit: Fit) -> list[Terms]:
    """Return what LKAM takes: kernels written out among neighbors, and mixes of them."""
    kernels = {"kernels among neighbors": fit.m * fit.square}
    mix = {**kernels, "mix of the kernels": fit.square * (fit.m > 1)}
    partitions = {"partitions held": fit.partition + fit.vectors(2 * fit.k)}
    return [
        *_localizing_terms(fit),
        *({**mix, **partitions, **step} for step in _eigenvector_terms(fit)),
        {**mix, **partitions, "new partition": fit.partition, **_product_terms(fit)},
    ]


def _localizing_terms(fit: Fit) -> list[Terms]:
    """Return what it takes to find neighborhoods, and to write out kernels among neighbors."""
    return [
        {**_mix_terms(fit), "entries of the average kernel": 3 * fit.square},
        {
            "kernels among neighbors": fit.m * fit.square,
            "shared neighborhoods": fit.square // 2,
            "rows weighed at a time": 3 * (fit.m + 1) * fit.vectors(min(LOCAL_ROWS, fit.n)),
        },
    ]


def _localized_simple_terms(fit: Fit) -> list[Terms]:
    """Return what LocalizedSimpleMKKM takes: kernels among neighbors, and SimpleMKKM's of these."""
    kernels = {"kernels among neighbors": fit.m * fit.square}
    solver = _mixing_terms(replace(fit, itemsize=8, has_mix=True))
    return [*_localizing_terms(fit), *({**kernels, **step} for step in solver)]


def _lmkkm_terms(fit: Fit) -> list[Terms]:
    """Return what LMKKM takes: kernels written out, and one mix of them in its own memory."""
    kernels = {"kernels written out": fit.m * fit.square}
    iterate = {"mix of the kernels": fit.square, "partitions held": fit.partition}
    weights = {"weights of the samples": fit.vectors(20 * fit.m)}
    return [
        {**kernels, "kernel on its way there": fit.square},
        *(
            {**kernels, **iterate, **weights, **s}
            for s in _eigenvector_terms(fit, written_out=True)
        ),
    ]


def _onkc_terms(fit: Fit) -> list[Terms]:
    """Return what ONKC takes: a mix of the kernels, and the kernel near it."""
    mix, vectors = _mix_terms(fit), fit.vectors(fit.k)
    return [
        *({**mix, **step} for step in _eigenvector_terms(fit)),
        {**mix, "entries of the mix": 3 * fit.square, "partitions held": 2 * vectors},
        {
            "entries of the mix": fit.square,
            "matrix to decompose": fit.square,
            "its eigenvectors": 3 * fit.square,
            "partitions held": 4 * vectors,
        },
    ]


SOLVER_TERMS = {
    "lf-mvc": _lf_mvc_terms,
    "lkam": _lkam_terms,
    "lmkkm": _lmkkm_terms,
    "localized-simplemkkm": _localized_simple_terms,
    "onkc": _onkc_terms,
}


def _embedding_terms(fit: Fit) -> list[Terms]:
    """Return what it takes to embed the samples, cluster them, and compare with each kernel."""
    vectors, centers = fit.vectors(fit.k), 8 * fit.k**2
    # A certified method keeps the partition of its baseline, LF-MVC has only that and a consensus.
    solution = {"solution": fit.partition * (2 if fit.method in CERTIFIED else 1)}
    if fit.method == "onkc":
        solution = {"learned kernel": fit.square, "its partition": 3 * vectors}
    embedded = {**solution, "embeddings": 3 * vectors}
    clustering = {"k-means": 5 * vectors + 2 * centers}
    if fit.method not in OF_ENTRIES:
        embedded["projections"] = fit.m * vectors
    searches = _eigenvector_terms(fit)
    if fit.method in CERTIFIED:  # of the compromise, which is a mix of the kernels
        searches = [{**_mix_terms(fit), **search} for search in searches]
    steps = [*searches, _product_terms(fit), clustering]
    if fit.method not in OF_ENTRIES:
        steps.append({"alignments with centroids": (fit.m + 5) * vectors, "centers": centers})
    return [{**solution, **_agreement_terms(fit)}, *({**embedded, **step} for step in steps)]


def _agreement_terms(fit: Fit) -> Terms:
    """Return what it takes to tell which kernels agree; of a single one there is nothing to."""
    if fit.m == 1:
        return {}
    n_judged = min(JUDGED_SAMPLES, fit.n)
    return {
        # As they are, and side by side; their sums over the rows.
        "rows compared at a time": fit.m * fit.vectors(2 * min(fit.compared_rows, fit.n) + 2),
        "kernels among some samples": 8 * fit.m * n_judged**2,
        "one of them, rows and entries": fit.vectors(n_judged) + 3 * 8 * n_judged**2,
    }


def exact_terms(
    storage: str,
    n_samples: int,
    n_kernels: int,
    n_clusters: int,
    *,
    itemsize: int = 8,
    method: str = "simplemkkm",
    n_features: int = 0,
    n_views: int = 1,
    on_device: bool = False,
) -> Terms:
    """Return what a fit with exact kernels takes beside the data, at its worst moment.

    Parameters
    ----------
    storage : {"dense", "on-the-fly", "streamed", "precomputed", "sparse"}
        Where the kernels come from. Those that are sparse have a mix that is, which counts nothing.
    n_samples, n_kernels, n_clusters : int
        Sizes of the problem.
    itemsize : int, default=8
        Bytes of an entry of the kernels.
    method : str, default="simplemkkm"
        Name of the method.
    n_features, n_views : int
        Of kernels computed from views: columns over all views, and the number of these.
    on_device : bool, default=False
        Whether the kernels are on a device, where larger parts of them are worked on at a time.

    Returns
    -------
    dict of str to int
        Bytes by name.
    """
    n, d = n_samples, n_features
    if storage == "on-the-fly" and method in OF_ENTRIES:
        storage = "dense"  # they are written out
    is_dense, from_views = storage == "dense", storage in ("dense", "on-the-fly")
    has_mix = storage in ("dense", "precomputed")
    fit = Fit(n, n_kernels, n_clusters, itemsize, method, is_dense, has_mix, on_device)
    moments = [fit.worst()]
    if storage in ("on-the-fly", "streamed"):
        moments[0] |= {
            "rows read at a time": 2 * _block_bytes(n, n_kernels, itemsize),
            "means, scales and diagonals": fit.vectors(5 * n_kernels),
        }
    if storage == "on-the-fly":
        moments[0]["views as they are multiplied"] = fit.vectors(d + 2 * n_views)
    if from_views:
        views = 0 if is_dense else 2 * fit.vectors(d)
        moments.append({"views": views, "median distance": median_bytes(min(n, MEDIAN_ROWS))})
    # What a model keeps of the views, for new samples.
    copies = itemsize * n * d if from_views else 0
    return max(moments, key=total) | {"copy of the views": copies, "overhead": OVERHEAD}


def kernel_bytes(n_samples: int, n_kernels: int, itemsize: int = 8) -> int:
    """Return what kernels take that are held, and one mix of them where there are several."""
    return (n_kernels + (n_kernels > 1)) * n_samples**2 * itemsize


def compressed_bytes(n_columns: int, n_views: int) -> int:
    """Return what the compression of features takes: matrices of products of their columns.

    One for every view, before and after it is made symmetric, and three on the way to these.
    """
    return (2 * n_views + 3) * 8 * n_columns**2


def median_bytes(n: int) -> int:
    """Return what the median distance takes: all pairs of n rows, and blocks of distances."""
    return 4 * n**2 + 26 * n * MEDIAN_BLOCK


def _block_bytes(n: int, m: int, itemsize: int) -> int:
    """Return what the rows of all kernels take that are read at a time."""
    one = m * n * itemsize
    most = max(STREAM_BYTES, STREAM_ROWS * one)
    return min(most, max(int(STREAM_SHARE * n * n * itemsize), STREAM_LEAST), n * one)
