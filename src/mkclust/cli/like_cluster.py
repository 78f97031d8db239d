"""Commands that take the options of ``mkclust cluster``, whatever these are, without its files."""

import inspect
from collections.abc import Callable
from typing import Any

from mkclust.cli import cluster
from mkclust.cli.failures import CommandError
from mkclust.cli.options import AUTO
from mkclust.cli.request import Request

# Of the options of mkclust cluster, those that only write, and those that only it can follow.
WRITING = ("labels", "run", "plot", "report", "save", "annotate")
OF_CLUSTER_ALONE = (*WRITING, "address")
Command = Callable[..., None]


def takes_options_of_cluster(*without: str) -> Callable[[Command], Command]:
    """Let a command with ``**options`` take those of ``mkclust cluster``, but for some."""

    def extend(command: Command) -> Command:
        own = [
            parameter
            for parameter in inspect.signature(command).parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        taken = {*without, *OF_CLUSTER_ALONE, *(parameter.name for parameter in own)}
        shared = [p for name, p in _cluster_parameters().items() if name not in taken]
        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *shared)]
        # typer reads both.
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return extend


def request_for(**options: Any) -> Request:
    """Return a request with some options, and the defaults of ``mkclust cluster`` for others."""
    defaults = {
        name: parameter.default
        for name, parameter in _cluster_parameters().items()
        if parameter.default is not inspect.Parameter.empty
    }
    return Request(**(defaults | options))


def require_number(request: Request, command: str) -> None:
    """Refuse -k auto where a number is wanted."""
    if request.n_clusters == AUTO:
        raise CommandError(
            f"mkclust {command} takes a number of clusters, -k N; mkclust suggest tells which"
        )


def _cluster_parameters() -> dict[str, inspect.Parameter]:
    """Return the parameters of ``mkclust cluster`` by name."""
    return dict(inspect.signature(cluster.run).parameters)
