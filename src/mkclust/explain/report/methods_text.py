"""Parts of the methods paragraph of a report that take more than a sentence of the template."""

from typing import Any

import numpy as np

from mkclust.explain.fitted import kernel_source
from mkclust.methods import InductiveClusterer
from mkclust.methods.parameter_checks import COMMON
from mkclust.text import count, join_words


def kernels_text(model: Any) -> str:
    """Return where the kernels came from."""
    names, source = model.kernel_names_, kernel_source(model)
    m = len(names)
    if source == "given":
        return f"{count(m, 'kernel')} {'was' if m == 1 else 'were'} given ({join_words(names)})."
    if source == "features":
        number = getattr(model.approximation, "n_components", None)
        several = f"{number} " if isinstance(number, int) else ""
        what = f"features per view by {type(model.approximation).__name__}"
        if type(model.approximation).__name__ == "Nystroem":
            what = "landmarks per view by Nyström's method"
        views = f"{count(m, 'view')} ({join_words(names)})"
        return f"The similarities within {views} were approximated by {several}{what}."
    made_of = list(model.bank_.views_)
    origin = f"{count(len(made_of), 'view')} ({join_words(made_of)})"
    origin = "the table" if made_of == ["table"] else origin
    explained = "; ".join(model.bank_.explain().splitlines())
    several = f": {join_words(names, 20)}" if m > len(made_of) else ""
    return f"From {origin} we computed {count(m, 'kernel')}{several}. {explained}."


def steps_of_kernels(model: Any) -> list[str]:
    """Return what was done to every kernel before the fit."""
    steps = []
    if hasattr(model, "n_neighbors_"):
        steps.append(f"replaced by the shared neighborhoods of {model.n_neighbors_} neighbors")
    if kernel_source(model) == "given" and model.psd != "error":
        steps.append(f"made positive semidefinite if it was not (psd = {model.psd})")
    steps += ["centered in its feature space"] * model.center
    return steps + ["scaled to a unit diagonal"] * model.normalize


def missing_counts(model: Any) -> list[str]:
    """Return how many samples each view lacks, in words."""
    names = getattr(model, "view_names_in_", model.kernel_names_)
    counts = (~model.observed_).sum(axis=0).tolist()
    return [f"{n:,} from {name}" for name, n in zip(names, counts, strict=True) if n]


def own_settings(model: Any) -> list[str]:
    """Return the parameters that only this method has, with their values."""
    shared = {*InductiveClusterer().get_params(deep=False), *COMMON}
    own = {k: v for k, v in model.get_params(deep=False).items() if k not in shared}
    if getattr(model, "anchor_", None) is not None:
        own["anchor"] = model.anchor_  # the value that was used, rather than "auto"
    quotes = "'\""
    return [f"{name} = {parameter_text(value).strip(quotes)}" for name, value in own.items()]


def parameter_text(value: Any) -> str:
    """Return a parameter as it was given; if it has no readable form, its type or name."""
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return f"a {type(value).__name__}"
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    return getattr(value, "__qualname__", None) or repr(value)
