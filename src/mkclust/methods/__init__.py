"""The methods: one page each, and the registry that everything else reads.

AgreementKKM, the recommended one, cuts its clusters from a graph of neighborhoods, for
any number of samples; the others are kernel k-means.
"""

from mkclust.fit.base import MultipleKernelClusterer
from mkclust.methods.agreement_kkm import AgreementKKM, solve_agreement_kkm
from mkclust.methods.anchored_mkkm import AnchoredMKKM, solve_anchored_mkkm
from mkclust.methods.average import AverageKKM, solve_average_kkm
from mkclust.methods.kamm import KAMMA, KAMMR, solve_kamm_a, solve_kamm_r
from mkclust.methods.lf_mvc import LFMVC, solve_lf_mvc
from mkclust.methods.lkam import LKAM, solve_lkam
from mkclust.methods.lmkkm import LMKKM, solve_lmkkm
from mkclust.methods.localized_simple_mkkm import (
    LocalizedSimpleMKKM,
    solve_localized_simple_mkkm,
)
from mkclust.methods.mkkm import MKKM, solve_mkkm
from mkclust.methods.mkkm_mir import MKKMMiR, solve_mkkm_mir
from mkclust.methods.mkkm_mm import MKKMMM, solve_mkkm_mm, solve_mkkm_mm_saddle
from mkclust.methods.onkc import ONKC, solve_onkc
from mkclust.methods.simple_mkkm import (
    SimpleMKKM,
    solve_reduced_gradient,
    solve_simple_mkkm,
)
from mkclust.recommended import RECOMMENDED

__all__ = [
    "KAMMA",
    "KAMMR",
    "LFMVC",
    "LKAM",
    "LMKKM",
    "METHODS",
    "MKKM",
    "MKKMMM",
    "ONKC",
    "RECOMMENDED",
    "AgreementKKM",
    "AnchoredMKKM",
    "AverageKKM",
    "LocalizedSimpleMKKM",
    "MKKMMiR",
    "SimpleMKKM",
    "solve_agreement_kkm",
    "solve_anchored_mkkm",
    "solve_average_kkm",
    "solve_kamm_a",
    "solve_kamm_r",
    "solve_lf_mvc",
    "solve_lkam",
    "solve_lmkkm",
    "solve_localized_simple_mkkm",
    "solve_mkkm",
    "solve_mkkm_mir",
    "solve_mkkm_mm",
    "solve_mkkm_mm_saddle",
    "solve_onkc",
    "solve_reduced_gradient",
    "solve_simple_mkkm",
]

# The classes by the names that the command line and benchmarks use.
METHODS: dict[str, type[MultipleKernelClusterer]] = {
    "simplemkkm": SimpleMKKM,
    "avg-kkm": AverageKKM,
    "mkkm": MKKM,
    "lmkkm": LMKKM,
    "onkc": ONKC,
    "mkkm-mir": MKKMMiR,
    "lkam": LKAM,
    "lf-mvc": LFMVC,
    "mkkm-mm": MKKMMM,
    "kamm-r": KAMMR,
    "kamm-a": KAMMA,
    "agreement-kkm": AgreementKKM,
    "anchored-mkkm": AnchoredMKKM,
    "localized-simplemkkm": LocalizedSimpleMKKM,
}
