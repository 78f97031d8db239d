"""Exact kernels, or landmarks that stand for them: what was asked for, and what the data allow."""

from dataclasses import dataclass
from typing import Any

from mkclust.cli.failures import CommandError, one_line
from mkclust.cli.inputs import Data
from mkclust.kernels import KernelBank, Nystroem, default_bank
from mkclust.linalg.memory import available_bytes, in_units
from mkclust.linalg.memory_terms import kernel_bytes
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
    """What the command decided about the kernels, in a sentence; empty for the estimator's way."""

    sentence: str = ""
    landmarks: int | None = None


def check_approximation(
    options: LandmarkOptions, method: str, method_class: type, *, kernels: str
) -> None:
    """Refuse what no data could make possible, before any is read."""
    if kernels == "on-the-fly" and options.option:
        raise CommandError(
            f"{options.option} asks for landmarks, --kernels on-the-fly for exact kernels; "
            "leave one of them out"
        )
    if options.on_workers and options.choice == "none":
        raise CommandError(
            "--cluster needs an approximation, for exact kernels are computed on one machine; "
            "leave out --approximation none, or --cluster"
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
    model: Any, data: Data, options: LandmarkOptions, *, on_the_fly: bool
) -> KernelChoice:
    """Set a model's kernels, or landmarks that stand for them, where its default will not do."""
    if data.precomputed:
        if option := "--kernels on-the-fly" if on_the_fly else options.option:
            raise CommandError(f"{option} {NEEDS_VIEWS}")
        model.set_params(kernels="precomputed")
        return KernelChoice()
    if _allows_landmarks(type(model)) and (reason := _approximation_reason(data, options)):
        return _choose_landmarks(model, data, options.landmarks, reason)
    if data.bank is not None:
        bank = KernelBank(**data.bank, on_the_fly=on_the_fly)
        model.set_params(kernels=bank)
        return KernelChoice(f"Kernels: as the data set {data.name} has them, {one_line(bank)}.")
    if on_the_fly:
        model.set_params(kernels="on-the-fly")
    if data.is_table:
        return KernelChoice("One view alone is a table, of which a bank makes the kernels.")
    return KernelChoice()


def _choose_landmarks(model: Any, data: Data, landmarks: int | None, reason: str) -> KernelChoice:
    """Have landmarks stand for the kernels of a model."""
    if landmarks is not None and landmarks > data.n_samples:
        raise CommandError(
            f"--landmarks {landmarks}: landmarks are samples, of which there are "
            f"{data.n_samples}; ask for at most as many"
        )
    number = min(LANDMARKS, data.n_samples) if landmarks is None else landmarks
    # One Gaussian kernel a view, whatever bank a known data set would have.
    model.set_params(approximation=Nystroem(n_components=number), kernels="auto")
    sentence = (
        f"Approximation: {number} landmarks stand for the Gaussian kernel, one a view, "
        f"of {data.n_samples} samples ({reason})."
    )
    return KernelChoice(sentence, number)


def _allows_landmarks(method_class: type) -> bool:
    """Whether a method can do with features that stand for kernels."""
    return issubclass(method_class, InductiveClusterer)


def _approximation_reason(data: Data, options: LandmarkOptions) -> str:
    """Return why exact kernels are not to be computed; empty where they are."""
    if options.on_workers or options.choice == "nystroem":
        return f"asked for by {options.option}"
    if options.choice == "none":
        return ""
    bank = default_bank(len(data.parts) > 1) if data.bank is None else KernelBank(**data.bank)
    n_kernels, n, dtype = bank.announce(data.parts)
    needed_bytes, free_bytes = kernel_bytes(n, n_kernels, dtype.itemsize), available_bytes()
    size = f"exact kernels would take {in_units(needed_bytes)}"
    if n > MOST_EXACT_SAMPLES:
        return f"more than {MOST_EXACT_SAMPLES}, whose {size}"
    if free_bytes is not None and needed_bytes > COMFORTABLE_SHARE * free_bytes:
        return f"whose {size}, and {in_units(free_bytes)} of memory are there"
    return ""
