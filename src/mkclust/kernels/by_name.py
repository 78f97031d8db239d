"""Banks, and the input that they take, by the names that ``kernels`` of an estimator may have."""

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone

from mkclust.kernels.bank import KernelBank
from mkclust.kernels.kinds import check_rules, choose_rules
from mkclust.samples.samples import Expected, read_views


def default_bank(several_views: bool, kernels: Any = "auto") -> KernelBank:
    """Return the bank that ``kernels`` of an estimator asks for by names.

    Parameters
    ----------
    several_views : bool
        Whether there are views, of which each gets one kernel, or one table, which gets all.
    kernels : {"auto", "on-the-fly", "gaussian"} or mapping of str to str, default="auto"
        Rules by the kind of each view, none, or rules by the name of a view.
    """
    parameters = {"rules": rules_of(kernels), "on_the_fly": kernels == "on-the-fly"}
    if several_views:
        parameters |= {"widths": (1.0,), "polynomials": (), "linear": None}
    return KernelBank(**parameters)


def with_rules_by_name(bank: KernelBank, X: Any) -> KernelBank:
    """Return the same bank, with the kinds that views have as wholes for parts of them, too."""
    if bank.rules is None:
        return bank
    check_rules(bank.rules)
    views = read_views(X).views
    n = next(iter(views.values())).shape[0]
    return clone(bank).set_params(rules=choose_rules(bank.rules, views, n))


def rules_of(asked: Any) -> Any:
    """Return the rules of a bank that ``kernels`` of an estimator asks for by names."""
    if isinstance(asked, Mapping):
        return asked
    return None if asked == "gaussian" else "kind"


def expected_input(asked: Any) -> Expected:
    """Return what input the parameter ``kernels`` of an estimator asks for, or refuse it."""
    if isinstance(asked, Mapping):
        check_rules(asked, "kernels")
        return "views"
    if isinstance(asked, str) and asked in ("auto", "precomputed"):
        return "auto" if asked == "auto" else "precomputed"
    named = isinstance(asked, str) and asked in ("on-the-fly", "gaussian")
    if not (named or isinstance(asked, KernelBank)):
        raise ValueError(
            f"kernels={asked!r}: pass 'auto', 'gaussian', 'on-the-fly', 'precomputed', a dict "
            "from names of views to kinds, such as {'text': 'sparse'}, or a KernelBank instance"
        )
    return "views"
