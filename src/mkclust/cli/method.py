"""The method that a command line names, and its parameters, as an estimator."""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from mkclust.bench.plan import import_class
from mkclust.cli.failures import CommandError
from mkclust.kernels.kinds import ALIASES, RULES
from mkclust.methods import METHODS, MultipleKernelClusterer

# Parameters that are not set by name but by options of their own.
OWN_OPTIONS = {
    "kernels": "--kernels",
    "n_clusters": "-k",
    "random_state": "--seed",
    "approximation": "--approximation",
}


def build_model(method: str, options: Mapping[str, Any], settings: Sequence[str]) -> Any:
    """Return an estimator with the parameters that are not None, refusing those it has not."""
    model = _new_estimator(method)
    parameters = {name: value for name, value in options.items() if value is not None}
    parameters |= parse_settings(settings, parameters)
    if unknown := sorted(parameters.keys() - model.get_params().keys()):
        raise CommandError(_explain_unknown(method, unknown, model.get_params()))
    return model.set_params(**parameters)


def _explain_unknown(method: str, unknown: Sequence[str], choices: Iterable[str]) -> str:
    """Say which parameters a method lacks, which it has, and which methods have them all."""
    names, others = ", ".join(unknown), _methods_with(unknown)
    advice = f"leave it out, or choose --method {' or '.join(others)}" if others else "leave it out"
    return (
        f"--method {method} has no such option: {names}; {advice} ({method} has "
        f"{', '.join(choices)})"
    )


def _methods_with(parameters: Sequence[str]) -> list[str]:
    """Return the names of the methods that have all of these parameters."""
    wanted = set(parameters)
    return [name for name, method in METHODS.items() if wanted <= method().get_params().keys()]


def check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is not among the choices, suggesting the nearest."""
    if value not in choices:
        near = difflib.get_close_matches(value, choices, n=1)
        start = option if option.endswith("=") else f"{option} "
        advice = f"did you mean {start}{near[0]}?" if near else "choose another"
        raise CommandError(f"{start}{value}: unknown; {advice} (one of: {', '.join(choices)})")


def parse_settings(settings: Sequence[str], options: Collection[str]) -> dict[str, Any]:
    """Return parameters by name, refusing those that options of their own set."""
    parameters: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        if not name or not equals or not text:
            raise CommandError(f"--set {setting!r}: write NAME=VALUE, such as --set reg=0.5")
        if option := OWN_OPTIONS.get(name):
            raise CommandError(f"--set {setting!r}: {name} has its own option, {option}")
        if name in parameters or name in options:
            raise CommandError(f"--set {setting!r}: {name} is set twice")
        parameters[name] = parse_value(text)
    return parameters


def parse_value(text: str) -> Any:
    """Return what a text spells: a whole number, a number, a truth value, or itself."""
    for number_type in (int, float):
        try:
            return number_type(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)


# What --kernels may be beside the kinds of views and the names of kernels.
KERNEL_CHOICES = ("auto", "gaussian", "on-the-fly", "precomputed")


def parse_kernels(values: Sequence[str]) -> str | dict[str, str]:
    """Return the one choice that was made for all views, or those by the names of views."""
    if not values:
        return "auto"
    pairs = {}
    for value in values:
        name, equals, kind = (part.strip() for part in value.rpartition("="))
        if not equals:
            continue
        if not name or not kind:
            raise CommandError(f"--kernels {value}: write VIEW=KERNEL, such as text=cosine")
        if name in pairs:
            raise CommandError(f"--kernels {value}: the view {name} has two kernels; give one")
        check_choice(f"--kernels {name}=", kind, [*dict.fromkeys((*RULES, *ALIASES))])
        pairs[name] = kind
    single = [value for value in values if "=" not in value]
    if not single:
        return pairs
    if pairs or len(single) > 1:
        raise CommandError(
            f"--kernels {single[0]} is for all views; leave it out, or write VIEW=KERNEL each time"
        )
    check_choice("--kernels", single[0], [*dict.fromkeys((*KERNEL_CHOICES, *RULES, *ALIASES))])
    return single[0]


def kernels_by_view(kernels: str | dict[str, str], views: Sequence[str]) -> Any:
    """Return kernels as an estimator takes them: a kernel by its name is that of every view."""
    if isinstance(kernels, str):
        return kernels if kernels in KERNEL_CHOICES else dict.fromkeys(views, kernels)
    if unknown := [name for name in kernels if name not in views]:
        near = difflib.get_close_matches(unknown[0], views, n=1)
        advice = f"did you mean --kernels {near[0]}={kernels[unknown[0]]}?" if near else ""
        names = ", ".join(views)
        raise CommandError(
            f"--kernels {unknown[0]}={kernels[unknown[0]]}: there is no such view; "
            f"{advice or 'choose among them'} (views: {names})"
        )
    return kernels


def _new_estimator(name: str) -> Any:
    """Return an estimator by its name, or of the class that package.module:Class names."""
    if ":" not in name:
        check_choice("--method", name, list(METHODS))
        return METHODS[name]()
    try:
        estimator_class = import_class(name)
    except ValueError as error:
        raise CommandError(f"--{error}") from None  # the message begins with "method"
    if not issubclass(estimator_class, MultipleKernelClusterer):
        raise CommandError(
            f"--method {name} is no method of multiple kernel clustering; derive the class from "
            "mkclust.methods.MultipleKernelClusterer"
        )
    try:
        return estimator_class()
    except Exception as error:  # other people's code
        reason = f"{type(error).__name__}: {error}"
        raise CommandError(f"--method {name} cannot be made ({reason})") from None
