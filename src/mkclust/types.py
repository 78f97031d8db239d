"""Names of the two kinds of arrays: of any library, and small ones of NumPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any
Float = NDArray[np.float64]
# Clusters of samples.
Labels = NDArray[np.integer[Any]]
