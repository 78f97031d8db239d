"""The eleven data sets of the paper, and what stands in for them."""

from mkclust.datasets.entry import Entry, Way
from mkclust.datasets.recipes import (
    ONE_GAUSSIAN,
    distance_kernels,
    factor_kernels,
    histogram_kernels,
    ready_kernels,
    views,
)

DIGITS = "the UCI repository's Multiple Features; the paper's copy was at ss.sysu.edu.cn/py"
RAW = "One Gaussian kernel a view of the raw features, as wide as the median distance."
READY = "The kernels are as their makers stored them."
_FLOWERS = "the Visual Geometry Group in Oxford, www.robots.ox.ac.uk/~vgg/data/flowers"
_CALTECH = "Caltech-101, www.vision.caltech.edu/Image_Datasets/Caltech101"
_PROTEINS = "mkl.ucsd.edu/dataset/protein-fold-prediction"
_VIDEOS = "Columbia Consumer Video, www.ee.columbia.edu/ln/dvmm/CCV"
_MEAN = "Kernels are exp(-D / mean D), with D the squared Hellinger distance between histograms"
_OWN = "A substitute: features computed anew from the images, not the kernels of the paper"
_LOW_RANK = "Truncated: methods that use the tail of a spectrum are not comparable to the paper"


def authors_kernels(*stems: str) -> tuple[Way, ...]:
    """Return ways to read the paper's kernels as its authors store them."""
    return tuple(Way((f"{stem}_Kmatrix.mat",), READY, ready_kernels()) for stem in stems)


def _caltech(per_class: int) -> Entry:
    """Return the entry of so many images of each category of Caltech-101."""
    return Entry(
        f"cal-{per_class}",
        f"{per_class} images of each of the 102 categories of Caltech-101",
        102 * per_class,
        48,
        102,
        _CALTECH,
        authors_kernels(f"caltech101_nTrain{per_class}_48"),
        aliases=(
            f"caltech101-{per_class}",
            f"caltech-{per_class}",
            f"caltech101_nTrain{per_class}",
        ),
        paper=f"Cal-{per_class}",
        stand_ins=(f"cal-{per_class}-substitute",) if per_class <= 10 else (),
        note=(
            f"The paper lists {15 * per_class} samples, 25 kernels and {per_class} classes, but "
            f"its scores belong to 102 classes with {per_class} samples each."
        ),
        per_class=per_class,
    )


def _caltech_substitute(per_class: int) -> Entry:
    """Return the entry of what can be read in place of the paper's kernels."""
    read = histogram_kernels(euclidean=("gist", "pix16"), per_class=per_class)
    made = f"{_MEAN}, or the squared Euclidean one (gist, pix16)."
    return Entry(
        f"cal-{per_class}-substitute",
        f"{per_class} images of each of the 102 categories of Caltech-101",
        102 * per_class,
        22,
        102,
        _CALTECH,
        (Way(("caltech101/features.npz",), made, read),),
        paper=f"Cal-{per_class}",
        caveat="substitute",
        note=f"{_OWN}; of each class the first {per_class} images.",
    )


PAPER_ENTRIES = (
    Entry(
        "flo17",
        "Images of 17 kinds of flowers",
        1360,
        7,
        17,
        f"{_FLOWERS}/17",
        (
            *authors_kernels("flower17"),
            Way(
                ("distancematrices17gcfeat06.mat", "distancematrices17itfeat08.mat"),
                "Kernels are exp(-D / mean D) of the distances D that the makers published.",
                distance_kernels(17, 80),
            ),
        ),
        aliases=("flower17", "flowers17", "oxford-flower17"),
        paper="Flo17",
        stand_ins=("flo17-substitute",),
    ),
    Entry(
        "flo17-substitute",
        "Images of 17 kinds of flowers",
        1360,
        7,
        17,
        f"{_FLOWERS}/17",
        (
            Way(
                ("flower17/features.npz",),
                f"{_MEAN}, or the squared Euclidean one (hog_fg).",
                histogram_kernels(euclidean=("hog_fg",)),
            ),
        ),
        paper="Flo17",
        caveat="substitute",
        note=f"{_OWN}.",
    ),
    Entry(
        "flo102",
        "Images of 102 kinds of flowers",
        8189,
        4,
        102,
        f"{_FLOWERS}/102",
        authors_kernels("flower102"),
        aliases=("flower102", "flowers102", "oxford-flower102"),
        paper="Flo102",
    ),
    Entry(
        "pfold",
        "Proteins of 27 folds",
        694,
        12,
        27,
        _PROTEINS,
        authors_kernels("proteinFold"),
        aliases=("proteinfold",),
        paper="PFold",
        stand_ins=("pfold-truncated",),
    ),
    Entry(
        "pfold-truncated",
        "Proteins of 27 folds",
        694,
        12,
        27,
        _PROTEINS,
        tuple(
            Way((file,), "Kernels are X X^T of factors X of rank 27.", factor_kernels())
            for file in ("ProteinFold.mat", "ProteinFold_v73.mat")
        ),
        paper="PFold",
        caveat="truncated",
        note=f"{_LOW_RANK}.",
    ),
    Entry(
        "ccv",
        "Videos of 20 kinds of events",
        6773,
        3,
        20,
        _VIDEOS,
        authors_kernels("CCV"),
        aliases=("columbia-consumer-video",),
        paper="CCV",
        stand_ins=("ccv-truncated",),
    ),
    Entry(
        "ccv-truncated",
        "Videos of 20 kinds of events",
        6773,
        3,
        20,
        _VIDEOS,
        (
            Way(
                ("CCV.mat",),
                "Kernels are X X^T of factors X of rank 20, the diagonal set to 1.",
                factor_kernels(unit_diagonal=True),
            ),
        ),
        paper="CCV",
        caveat="truncated",
        note=f"{_LOW_RANK}; some videos are all zero in a factor.",
    ),
    Entry(
        "digit",
        "Handwritten numerals: pixels, Fourier coefficients and morphology",
        2000,
        3,
        10,
        DIGITS,
        (
            *authors_kernels("UCI_DIGIT", "Digit"),
            Way(("UCI.mat",), RAW, views(("pix", "fou", "mor"), bank=ONE_GAUSSIAN)),
        ),
        aliases=("uci-digit", "uci"),
        paper="Digit",
    ),
    *(_caltech(per_class) for per_class in (5, 10, 15, 20, 25, 30)),
    *(_caltech_substitute(per_class) for per_class in (5, 10)),
)
