"""Banks, and the input that they take, by the names that ``kernels`` of an estimator may have."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from mkclust.kernels.bank import KernelBank
from mkclust.kernels.chosen_rules import asked_of_views, check_rules, choose_rules, rules_of
from mkclust.kernels.kinds import is_rule
from mkclust.kernels.view import is_view
from mkclust.samples.samples import Expected, read_views


def default_bank(several_views: bool, kernels: Any = "auto") -> KernelBank:
    """Return the bank that ``kernels`` of an estimator asks for by names.

    Parameters
    ----------
    several_views : bool
        Whether there are views, of which each gets one kernel, or one table, which gets all.
    kernels : {"auto", "on-the-fly"}, str, view or mapping of str to str or view, default="auto"
        Rules by the kind of each view, one kernel by its name, or rules by the name of a view.
    """
    parameters = {"rules": rules_of(kernels), "on_the_fly": kernels == "on-the-fly"}
    if several_views:
        parameters |= {"widths": (1.0,), "polynomials": (), "linear": None}
    return KernelBank(**parameters)


def with_rules_by_name(bank: KernelBank, X: Any) -> KernelBank:
    """Return the same bank with the kinds of views fixed, so that parts of them keep these."""
    if bank.rules is None:
        return bank
    check_rules(bank.rules)
    views = read_views(X).views
    asked, rules = asked_of_views(bank.rules, views), dict[str, Any]()
    for name, chosen in choose_rules(bank.rules, views).items():
        wish: Any = asked.get(name)
        kind = chosen.rule.kind
        rules[name] = replace(wish, kernel=kind) if is_view(wish) else kind
    return clone(bank).set_params(rules=rules)


def expected_input(asked: Any) -> Expected:
    """Return what input the parameter ``kernels`` of an estimator asks for, or refuse it."""
    if isinstance(asked, Mapping) or is_view(asked) or is_rule(asked):
        check_rules(asked, "kernels")
        return "views"
    if isinstance(asked, str) and asked in ("auto", "precomputed"):
        return "auto" if asked == "auto" else "precomputed"
    if not (isinstance(asked, KernelBank) or (isinstance(asked, str) and asked == "on-the-fly")):
        raise ValueError(
            f"kernels={asked!r}: pass 'auto', 'gaussian', 'on-the-fly', 'precomputed', a dict "
            "from names of views to kinds or kernels, such as {'text': 'sparse', 'image': "
            "'laplacian'}, the name of another kernel, such as 'cosine', or a KernelBank instance"
        )
    return "views"
