"""Exact kernels, or landmarks that stand for them: what was asked for, and what the data allow."""

from dataclasses import dataclass
from typing import Any

from mkclust.cli.failures import CommandError
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
class Approximation:
    """What stands for the kernels, and why."""

    landmarks: int
    reason: str

    def describe(self, n_samples: int) -> str:
        """Return both in a sentence."""
        return (
            f"Approximation: {self.landmarks} landmarks stand for the Gaussian kernel, one a view, "
            f"of {n_samples} samples ({self.reason})."
        )


def check_approximation(
    choice: str,
    landmarks: int | None,
    method: str,
    kind: type,
    *,
    kernels: str,
    cluster: bool,
) -> None:
    """Refuse what no data could make possible, before any is read."""
    asked = _asked(choice, landmarks, cluster)
    if cluster and choice == "none":
        raise CommandError(
            "--cluster needs an approximation, for exact kernels are computed on one machine; "
            "leave out --approximation none, or --cluster"
        )
    if landmarks is not None and choice == "none":
        raise CommandError(
            f"--landmarks {landmarks} belongs to an approximation, and --approximation none asks "
            "for exact kernels; leave one of them out"
        )
    if not asked:
        return
    if not _allows(kind):
        able = ", ".join(name for name, other in METHODS.items() if _allows(other))
        raise CommandError(
            f"{asked}: {method} needs the entries of the kernels, which landmarks do not give; "
            f"leave the option out, or choose among {able}"
        )
    if kernels == "precomputed":
        raise CommandError(f"{asked} {NEEDS_VIEWS}")
    if kernels == "on-the-fly":
        raise CommandError(
            f"{asked} stands for exact kernels, which --kernels on-the-fly asks for; leave one of "
            "them out"
        )


def compute_on_the_fly(model: Any, data: Data) -> None:
    """Have exact kernels of views computed whenever they are asked for."""
    if data.precomputed:
        raise CommandError(f"--kernels on-the-fly {NEEDS_VIEWS}")
    bank = "on-the-fly" if data.bank is None else KernelBank(**data.bank, on_the_fly=True)
    model.set_params(kernels=bank)


def choose_approximation(
    model: Any, data: Data, choice: str, landmarks: int | None, *, cluster: bool
) -> Approximation | None:
    """Set what stands for the kernels, where something is to; return what was chosen."""
    asked = _asked(choice, landmarks, cluster)
    if data.precomputed and asked:
        raise CommandError(f"{asked} {NEEDS_VIEWS}")
    if data.precomputed or choice == "none" or not _allows(type(model)):
        return None
    reason = f"asked for by {asked}" if cluster or choice == "nystroem" else _reason(data)
    if not reason:
        return None
    if landmarks is not None and landmarks > data.n_samples:
        raise CommandError(
            f"--landmarks {landmarks}: landmarks are samples, of which there are "
            f"{data.n_samples}; ask for at most as many"
        )
    number = min(LANDMARKS, data.n_samples) if landmarks is None else landmarks
    # One Gaussian kernel a view, whatever bank a known data set would have.
    model.set_params(approximation=Nystroem(n_components=number), kernels="auto")
    return Approximation(number, reason)


def _asked(choice: str, landmarks: int | None, cluster: bool) -> str:
    """Return the option that asks for an approximation, or would set one; empty without."""
    if cluster:
        return "--cluster"
    if choice == "nystroem":
        return "--approximation nystroem"
    return "" if landmarks is None else f"--landmarks {landmarks}"


def _allows(method: type) -> bool:
    """Whether a method can do with features that stand for kernels."""
    return issubclass(method, InductiveClusterer)


def _reason(data: Data) -> str:
    """Return why exact kernels are not to be computed; empty where they are."""
    bank = default_bank(len(data.parts) > 1) if data.bank is None else KernelBank(**data.bank)
    n_kernels, n, dtype = bank.announce(data.parts)
    needed, there = kernel_bytes(n, n_kernels, dtype.itemsize), available_bytes()
    told = f"exact kernels would take {in_units(needed)}"
    if n > MOST_EXACT_SAMPLES:
        return f"more than {MOST_EXACT_SAMPLES}, whose {told}"
    if there is not None and needed > COMFORTABLE_SHARE * there:
        return f"whose {told}, and {in_units(there)} of memory are there"
    return ""
