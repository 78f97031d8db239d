"""The training views of a bank: their kernels, and what new views must have in common."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mkclust.linalg import free_bytes, is_foreign, namespace, precision_of
from mkclust.linalg.memory import require_memory
from mkclust.linalg.sparse_rows import like_rows
from mkclust.samples.blocks import fingerprint
from mkclust.samples.samples import Samples
from mkclust.samples.tables import TABLE
from mkclust.types import Array


def common_precision(views: Mapping[str, Array]) -> str:
    """Return the number type of the kernels of training views."""
    single = all(precision_of(view) == "float32" for view in views.values())
    return "float32" if single else "float64"


def kernel_names(views: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of the kernels of every view."""
    names: list[str] = []
    for view in views:
        kinds = list(map(str, view.formulas))
        if len(kinds) == 1:
            names.append(view.name)
        elif len(views) == 1 and view.name == TABLE:
            names += kinds
        else:
            names += [f"{view.name} {kind}" for kind in kinds]
    return tuple(names)


def require_kernel_memory(
    shape: tuple[int, int, int], views: Mapping[str, Array], advice: str
) -> None:
    """Refuse kernels that do not fit into memory."""
    m, n_new, n = shape
    require_memory(
        m * n_new * n * np.dtype(common_precision(views)).itemsize,
        f"holding {m} kernels of {n_new} x {n} entries",
        f"pass on_the_fly=True to compute them when they are asked for{advice}",
        available=free_bytes(next(iter(views.values()))),
    )


def check_files(training: Mapping[str, Array], fingerprints: Mapping[str, Any]) -> None:
    """Refuse training views in files that no longer hold what the bank was fitted on."""
    for name, fitted in fingerprints.items():
        # A view in a file is in memory after the bank was stored and loaded.
        if fitted is not None and fingerprint(training[name]) not in (None, fitted):
            raise ValueError(
                f"View {name!r} is in a file that has changed since the bank was fitted, and "
                "new samples are compared with what it holds: fit again, or fit on an array "
                "in memory, such as numpy.array(view)."
            )


def match_views(
    samples: Samples,
    training: Mapping[str, Array],
    columns: Mapping[str, list[str]],
    who: str,
) -> dict[str, Array]:
    """Return new views in the order and place of the training views, or say how they differ."""
    views = samples.views
    if views.keys() != training.keys():
        raise ValueError(
            f"The bank was fitted on {_listed(training)}, but found {_listed(views)}; "
            "pass the new samples in the same form as the training ones."
        )
    samples.check_columns(columns, "bank")
    for name, view in training.items():
        n_columns, expected = views[name].shape[1], view.shape[1]
        if n_columns != expected and list(views) == [TABLE]:
            # The wording that scikit-learn's checks of estimators look for.
            needs = f"{who} is expecting {expected} features as input"
            raise ValueError(f"X has {n_columns} features, but {needs}.")
        if n_columns != expected:
            raise ValueError(
                f"View {name!r} has {n_columns} columns, but {expected} when the bank was "
                "fitted; pass the same features in the same order."
            )
    return {name: like_rows(views[name], view) for name, view in training.items()}


def _listed(views: Mapping[str, Array]) -> str:
    """Name views in an error message."""
    if list(views) == [TABLE]:
        return "one table"
    return f"{len(views)} view{'s' * (len(views) > 1)} ({', '.join(map(repr, views))})"


def length_of(view: Any) -> int:
    """Return the number of rows of what may be a view, zero if it is unknown."""
    shape = getattr(view, "shape", None)
    if shape is None:
        return len(view) if hasattr(view, "__len__") else 0
    return int(shape[0]) if len(shape) and shape[0] == shape[0] else 0


def is_single(view: Any) -> bool:
    """Return whether what may be a view holds float32 only."""
    if is_foreign(view):
        floating = namespace(view).isdtype(view.dtype, "real floating")
        return floating and precision_of(view) == "float32"
    dtypes = view.dtypes if hasattr(view, "dtypes") else [getattr(view, "dtype", None)]
    return all(kind == np.float32 for kind in dtypes)
