"""The bank that the parameters of an estimator ask for, and the input that it takes."""

from dataclasses import replace
from typing import Any

from sklearn.base import clone

from mkclust.data.samples import Expected, read_views
from mkclust.kernels.bank import KernelBank
from mkclust.kernels.kinds import are_rules, check_rules, choose_rules, requests_of, rules_of


def default_bank(several_views: bool, kernels: Any = "auto", scale: Any = "auto") -> KernelBank:
    """Return the bank that ``kernels`` and ``scale`` of an estimator ask for by names.

    Each of several views gets one kernel, and one table all kernels of the bank.
    """
    parameters = {"rules": rules_of(kernels), "scale": scale}
    parameters["on_the_fly"] = isinstance(kernels, str) and kernels == "on-the-fly"
    if several_views:
        parameters |= {"widths": (1.0,), "polynomials": (), "linear": None}
    return KernelBank(**parameters)


def with_rules_by_name(bank: KernelBank, X: Any) -> KernelBank:
    """Return the same bank with the kinds of views fixed, so that parts of them keep these."""
    if bank.rules is None:
        return bank
    check_rules(bank.rules)
    views = read_views(X).views
    requests, chosen = requests_of(bank.rules, views), choose_rules(bank.rules, bank.scale, views)
    rules = {name: replace(requests[name], kernel=chosen[name][0].kind) for name in views}
    return clone(bank).set_params(rules=rules)


def expected_input(asked: Any) -> Expected:
    """Return what input the parameter ``kernels`` of an estimator asks for, or refuse it."""
    if isinstance(asked, str) and asked in ("auto", "precomputed"):
        return "auto" if asked == "auto" else "precomputed"
    if are_rules(asked):
        check_rules(asked, "kernels")
        return "views"
    if not (isinstance(asked, KernelBank) or (isinstance(asked, str) and asked == "on-the-fly")):
        raise ValueError(
            f"kernels={asked!r}: pass 'auto', 'gaussian', 'on-the-fly', 'precomputed', a dict "
            "from names of views to kinds or kernels, such as {'text': 'sparse', 'K': "
            "'precomputed'}, the name of another kernel, such as 'cosine', or a KernelBank instance"
        )
    return "views"
