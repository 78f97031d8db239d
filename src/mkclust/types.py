"""Names for the two kinds of arrays: sample-sized ones of any library, small ones of NumPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any
Float = NDArray[np.float64]
# Clusters of samples.
Labels = NDArray[np.integer[Any]]
