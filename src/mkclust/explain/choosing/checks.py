"""What may be asked of a suggestion, and the sentences that refuse the rest."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from mkclust.parameters import Count, Number, check_parameter
from mkclust.types import Float

# With fewer samples than this no test could tell.
FEWEST_SAMPLES = 20
# Without k_values: up to this number of clusters, of so many samples each at least.
MOST_CLUSTERS, FEWEST_IN_CLUSTER = 12, 5
# An example, for messages.
SUCH_AS = "pass numbers of clusters to try, such as [2, 3, 4]"


def check_k_values(k_values: Any, n_samples: int, n_used: int) -> list[int]:
    """Return the numbers of clusters to try, rising, or say which cannot be; None chooses."""
    if n_used < FEWEST_SAMPLES:
        what = f"{n_samples} samples" if n_used == n_samples else f"max_samples={n_used}"
        raise ValueError(
            f"{what}: too few to tell clusters from chance, which needs at least {FEWEST_SAMPLES}"
        )
    if k_values is None:
        return list(range(2, min(MOST_CLUSTERS, n_used // FEWEST_IN_CLUSTER) + 1))
    if isinstance(k_values, str) or not isinstance(k_values, Iterable):
        raise ValueError(f"k_values={k_values!r}: {SUCH_AS}")
    values = list(k_values)
    if not values:
        raise ValueError(f"k_values is empty: {SUCH_AS}")
    for k in values:
        if not isinstance(k, Integral) or isinstance(k, bool):
            raise ValueError(f"k_values holds {k!r}, which is not an integer: {SUCH_AS}")
    numbers = sorted({int(k) for k in values})
    if numbers[0] < 2:
        raise ValueError(
            f"k_values holds {numbers[0]}: pass numbers of at least 2; all of them are "
            "compared with the case of one cluster, or none"
        )
    if numbers[-1] > n_used - 1:
        advice = "" if n_used == n_samples else ", or raise max_samples"
        raise ValueError(
            f"k_values holds {numbers[-1]}, with {n_used} samples to look at: pass numbers up to "
            f"{n_used - 1}{advice}"
        )
    return numbers


def check_draws(n_draws: Any, level: Any) -> None:
    """Refuse a level that so many draws cannot reach."""
    check_parameter("level", level, Number(0, 1, open_low=True, open_high=True))
    check_parameter("n_draws", n_draws, Count())
    least = int(np.ceil(1 / level - 1e-9)) - 1
    if n_draws < least:
        raise ValueError(
            f"n_draws={n_draws} cannot show a likelihood below {1 / (n_draws + 1):.2g}, and the "
            f"level is {level:g}: pass n_draws={least} at least"
        )


def check_coefficients(coefficients: Any) -> Float | None:
    """Return coefficients as an array, or say why they are none."""
    if coefficients is None:
        return None
    array = np.asarray(coefficients, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all() or array.min() < 0 or array.sum() <= 0:
        raise ValueError(
            f"coefficients={coefficients!r}: pass one number a kernel, not negative and not all "
            "zero"
        )
    return array
