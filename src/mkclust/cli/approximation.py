"""Exact kernels, or landmarks that stand for them: what was asked for, and what the data allow."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mkclust.cli.failures import CommandError, one_line
from mkclust.cli.inputs import Data
from mkclust.data.samples import Samples
from mkclust.kernels import KernelBank, Nystroem, default_bank
from mkclust.linalg.memory import available_bytes, in_units
from mkclust.methods import METHODS
from mkclust.methods.inductive import InductiveClusterer

CHOICES = ("auto", "nystroem", "none")
LANDMARKS = 200
# Left to itself the command computes exact kernels up to so many samples, where they take no more
# than this share of the memory there is: solvers want room beside them.
MOST_EXACT_SAMPLES = 10_000
COMFORTABLE_SHARE = 0.5
NEEDS_VIEWS = (
    "needs views, samples x features, not kernels that are computed "
    "already; give the views, or leave the option out"
)


@dataclass(frozen=True)
class LandmarkOptions:
    """The options that decide whether landmarks stand for the kernels."""

    choice: str
    landmarks: int | None
    on_workers: bool

    @property
    def option(self) -> str:
        """The option that asks for an approximation, or would set one; empty without."""
        if self.on_workers:
            return "--cluster"
        if self.choice == "nystroem":
            return "--approximation nystroem"
        return "" if self.landmarks is None else f"--landmarks {self.landmarks}"


@dataclass(frozen=True)
class KernelChoice:
    """What a model is fitted on, and in a sentence why, unless that is the estimator's way."""

    samples: Samples
    sentence: str = ""
    landmarks: int | None = None


def check_approximation(
    options: LandmarkOptions, method: str, method_class: type, *, kernels: Any
) -> None:
    """Refuse what no data could make possible, before any is read."""
    if kernels == "on-the-fly" and options.option:
        raise CommandError(
            f"{options.option} asks for landmarks, --kernels on-the-fly for exact kernels; "
            "leave one of them out"
        )
    if options.on_workers and options.choice == "none":
        raise CommandError(
            "--cluster needs an approximation, because exact kernels are computed on one "
            "machine; leave out --approximation none, or --cluster"
        )
    if options.landmarks is not None and options.choice == "none":
        raise CommandError(
            f"--landmarks {options.landmarks} belongs to an approximation, and --approximation "
            "none asks for exact kernels; leave one of them out"
        )
    if not options.option:
        return
    if not _allows_landmarks(method_class):
        names = ", ".join(name for name, other in METHODS.items() if _allows_landmarks(other))
        raise CommandError(
            f"{options.option}: {method} needs the entries of the kernels, which landmarks do not "
            f"give; leave the option out, or choose among {names}"
        )
    if kernels == "precomputed":
        raise CommandError(f"{options.option} {NEEDS_VIEWS}")


def choose_kernels(
    model: Any,
    data: Data,
    options: LandmarkOptions,
    *,
    on_the_fly: bool,
    most_exact_samples: int = MOST_EXACT_SAMPLES,
    free_bytes: Callable[[], int | None] = available_bytes,
) -> KernelChoice:
    """Set a model's kernels, or landmarks that stand for them, where its default will not do."""
    samples, asked_for = data.samples, model.get_params()["kernels"]
    plain, by_name = asked_for == "gaussian", isinstance(asked_for, Mapping)
    if samples.kind == "kernels":
        asked = "--kernels on-the-fly" if on_the_fly else "--kernels gaussian" if plain else ""
        asked = "--kernels with the names of kernels" if by_name else asked
        if option := asked or options.option:
            raise CommandError(f"{option} {NEEDS_VIEWS}")
        model.set_params(kernels="precomputed")
        return KernelChoice(samples)
    if _allows_landmarks(type(model)):
        reason = _approximation_reason(data, options, most_exact_samples, free_bytes)
        if reason:
            return _choose_landmarks(model, samples, options.landmarks, reason)
    is_table, sentence = len(samples.names) == 1 and not by_name, ""
    if is_table:
        samples = samples.as_table()
    if data.bank is not None and not plain and not by_name:
        bank = KernelBank(**data.bank, on_the_fly=on_the_fly)
        model.set_params(kernels=bank)
        sentence = f"Kernels: as the data set {data.name} has them, {one_line(bank)}."
    elif on_the_fly:
        model.set_params(kernels="on-the-fly")
    elif not is_table and model.get_params()["kernels"] == "auto":
        _refuse_square(data)
    if is_table and data.bank is None:
        sentence = (
            "There is only one view: it is treated as a table, and a bank of "
            "kernels is computed from it."
        )
    return KernelChoice(samples, sentence)


def _refuse_square(data: Data) -> None:
    """Refuse several square matrices, which could be kernels, unless it was said what they are."""
    n = data.samples.n_samples
    if all(view.shape == (n, n) for view in data.samples.parts):
        raise CommandError(
            f"{data.name}: holds square matrices only, all {n} x {n}: they could be kernels or "
            "views with as many features as samples; pass --kernels precomputed for kernels, or "
            "--kernels on-the-fly for views"
        )


def _choose_landmarks(
    model: Any, samples: Samples, landmarks: int | None, reason: str
) -> KernelChoice:
    """Have landmarks stand for the kernels of a model."""
    if landmarks is not None and landmarks > samples.n_samples:
        raise CommandError(
            f"--landmarks {landmarks}: landmarks are samples, and there are only "
            f"{samples.n_samples}; ask for at most as many"
        )
    number = min(LANDMARKS, samples.n_samples) if landmarks is None else landmarks
    # One kernel a view, whatever bank a known data set would have.
    asked = model.get_params()["kernels"]
    asked = asked if asked == "gaussian" or isinstance(asked, Mapping) else "auto"
    model.set_params(approximation=Nystroem(n_components=number), kernels=asked)
    sentence = (
        f"Approximation: {number} landmarks stand for the Gaussian kernel, one a view, "
        f"of {samples.n_samples} samples ({reason})."
    )
    return KernelChoice(samples, sentence, number)


def _allows_landmarks(method_class: type) -> bool:
    """Whether a method can do with features that stand for kernels."""
    return issubclass(method_class, InductiveClusterer)


def _approximation_reason(
    data: Data,
    options: LandmarkOptions,
    most_exact_samples: int,
    free_bytes: Callable[[], int | None],
) -> str:
    """Return why exact kernels are not to be computed; empty where they are."""
    if options.on_workers or options.choice == "nystroem":
        return f"asked for by {options.option}"
    if options.choice == "none":
        return ""
    bank = default_bank(len(data.names) > 1) if data.bank is None else KernelBank(**data.bank)
    n_kernels, n, dtype = bank.announce(data.samples)
    needed, free = (n_kernels + 1) * n**2 * dtype.itemsize, free_bytes()
    size = f"exact kernels would take {in_units(needed)}"
    if n > most_exact_samples:
        return f"more than {most_exact_samples}, whose {size}"
    if free is not None and needed > COMFORTABLE_SHARE * free:
        return f"whose {size}, and {in_units(free)} of memory are there"
    return ""
