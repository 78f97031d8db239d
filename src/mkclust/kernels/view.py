"""The kernel that a user asks for of one view: a transformer of its rows and a name."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class view:  # noqa: N801 - written like a function, as a value of the parameter ``kernels``
    """What to make of one view: rows by a scikit-learn transformer, then a kernel by its name.

    Parameters
    ----------
    preprocess : transformer or None, default=None
        Anything with ``fit`` and ``transform``, such as ``StandardScaler()`` or a pipeline. A
        clone of it is fitted on the training rows, and transforms new rows before they are
        compared with these.
    kernel : str, default="auto"
        The name of a kernel or the kind of a view, as `KernelBank` lists them under ``rules``, of
        the transformed rows; "auto" recognizes the kind by their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mkclust import AverageKKM, view
    >>> rng = np.random.default_rng(0)
    >>> views = {"lab": rng.normal(size=(30, 4)) * [1, 10, 100, 1000], "text": rng.random((30, 9))}
    >>> wishes = {"lab": view(StandardScaler(), "gaussian"), "text": "cosine"}
    >>> model = AverageKKM(2, kernels=wishes, random_state=0).fit(views)
    >>> print(model.bank_.explain())
    lab: gaussian (asked for); rows by StandardScaler(); gaussian x1, median distance 2.71
    text: cosine (asked for); rows of unit length; cosine
    """

    preprocess: Any = None
    kernel: str = "auto"
