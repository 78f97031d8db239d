"""The cluster that passes run on: how to reach one, and whether it is still there."""

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

# How often a failing task is tried again; a task whose worker died is counted by dask itself.
RETRIES = 3
INSTALL = 'dask.distributed is not installed, which reaches clusters: pip install "mkclust[dask]"'
# Seconds between two questions whether a worker has come.
PATIENCE = 0.1


@contextmanager
def connect(address: str, *, timeout: float = 10) -> Iterator[Any]:
    """Compute on a running dask cluster within a ``with`` block.

    What a fit keeps on the workers, ``labels_`` and ``embedding_``, is there until the block ends:
    fetch it with ``compute()``, or write it to a file, before that. Where the scheduler goes away
    meanwhile, passes raise instead of going on in this process.

    Parameters
    ----------
    address : str
        Address of the scheduler, such as ``"tcp://host:8786"``. For ``tls://`` the certificates
        are those of dask's configuration (``distributed.comm.tls``).
    timeout : float, default=10
        Seconds to wait for an answer, and for the first worker.

    Yields
    ------
    distributed.Client
        The client, which all of dask uses within the block.

    Raises
    ------
    ConnectionError
        If there is no scheduler at this address, or none that has a worker.
    ImportError
        If dask.distributed is not installed.

    Examples
    --------
    >>> from mkclust.samples.cluster import connect
    >>> with connect("tcp://host:8786") as client:  # doctest: +SKIP
    ...     labels = model.fit(views).labels_.compute()
    """
    try:
        import dask
        from distributed import Client
    except ImportError as error:
        raise ImportError(INSTALL) from error
    if not isinstance(timeout, int | float) or not timeout > 0:
        raise ValueError(f"timeout={timeout!r}: pass a positive number of seconds")
    # A client by itself would wait forever for what listens and does not answer, and for workers.
    # In a thread, for a notebook has a loop of events running in this one.
    with ThreadPoolExecutor(1, "mkclust-connect") as aside:
        aside.submit(asyncio.run, _greet(address, timeout)).result()
    # Said before the client says so, for it takes that back when it closes; and it closes itself
    # when its scheduler is gone, whereupon dask would silently go on in this process.
    with dask.config.set(scheduler="dask.distributed"):
        try:
            client = Client(address, timeout=timeout)
        except OSError as error:
            raise _no_scheduler(address, timeout, error) from error
        with _closing(client):
            yield client


@contextmanager
def _closing(client: Any) -> Iterator[None]:
    """Have dask use a client, and close it: quietly where its scheduler is gone.

    That was told by what failed; how attempts to reach it end would be logged as a traceback.
    """
    log = logging.getLogger("distributed.client")
    level = log.level
    try:
        with client:
            try:
                yield
            finally:
                if client.status != "running":
                    log.setLevel(logging.CRITICAL)
    finally:
        log.setLevel(level)


async def _greet(address: str, timeout: float) -> None:
    """Make sure that a scheduler with a worker answers."""
    from distributed import Security, rpc

    identity: dict[str, Any] = {}
    try:
        connection = Security().get_connection_args("client")
        # A little sooner than all of this, to learn why.
        scheduler = rpc(address, timeout=0.9 * timeout, connection_args=connection)
        async with asyncio.timeout(timeout), scheduler:
            identity = await scheduler.identity()
            while identity["type"] == "Scheduler" and not identity["workers"]:
                await asyncio.sleep(PATIENCE)
                identity = await scheduler.identity()
    except TimeoutError as error:
        if identity:
            raise ConnectionError(
                f"The scheduler at {address} has no workers, and got none within {timeout:g} s, so "
                f"that work would wait forever: start some with 'dask worker {address}'"
            ) from error
        raise ConnectionError(
            f"What listens at {address} did not answer as a dask scheduler within {timeout:g} s: "
            "check the port, and whether it expects TLS (tls://) or not (tcp://)"
        ) from error
    except OSError as error:
        raise _no_scheduler(address, timeout, error) from error
    except (ValueError, TypeError) as error:
        raise ConnectionError(
            f"{address!r} cannot be reached as the address of a dask scheduler ({error}): pass one "
            "such as 'tcp://host:8786'; for tls:// set the certificates in dask's configuration, "
            "under distributed.comm.tls"
        ) from error
    except Exception as error:
        raise ConnectionError(
            f"What listens at {address} does not answer like a dask scheduler of this "
            "version: check the port, and that both sides have the same version of dask"
        ) from error
    if identity["type"] != "Scheduler":
        raise ConnectionError(
            f"At {address} there is a dask {identity['type'].lower()}, not a scheduler: pass the "
            f"address of its scheduler, {identity.get('scheduler', 'which it does not tell')}"
        )


def _no_scheduler(address: str, timeout: float, error: BaseException) -> ConnectionError:
    """Return the error that says why nobody answered."""
    reason = error
    while reason.__cause__ is not None:
        reason = reason.__cause__
    return ConnectionError(
        f"No dask scheduler answered at {address} within {timeout:g} s "
        f"({str(reason) or 'no connection'}): check host, port and whether it expects TLS "
        "(tls://), or start one with 'dask scheduler'"
    )


def active_client() -> Any:
    """Return the client of the cluster that dask computes on, None where it is this process."""
    from dask.base import get_scheduler

    try:
        scheduler = get_scheduler()
    except RuntimeError as error:
        try:
            import distributed  # noqa: F401
        except ImportError:
            raise ImportError(INSTALL) from error
        raise ConnectionError(
            "dask is configured to compute on a cluster, but no client is connected to one: "
            "connect with mkclust.samples.cluster.connect(address), or set another scheduler"
        ) from error
    client = getattr(scheduler, "__self__", None)
    # A client is known by its own persist, as dask itself knows it.
    return client if hasattr(client, "persist") else None


def compute(*lazy: Any, client: Any = None) -> tuple[Any, ...]:
    """Compute dask objects, and return them in this process.

    Parameters
    ----------
    *lazy : dask objects
        What to compute, in one go.
    client : distributed.Client or None, default=None
        The cluster that is to compute them; None takes what is active.
    """
    import dask

    client = client or active_client()
    with _watching(client):
        return dask.compute(*lazy, **_options(client))


def persist(array: Any, *, client: Any = None) -> Any:
    """Compute a dask array, and keep it where its blocks are computed.

    A cluster only begins with it here; whoever asks for the array waits, and meets its errors.

    Parameters
    ----------
    array : dask array
        What to compute.
    client : distributed.Client or None, default=None
        The cluster that is to compute it; None takes what is active.
    """
    import dask

    client = client or active_client()
    with _watching(client):
        return dask.persist(array, **_options(client))[0]


@contextmanager
def _watching(client: Any) -> Iterator[None]:
    """Say so where the cluster is lost, before or during what is computed on it."""
    if client is not None and client.status != "running":
        raise _lost(client, "does not answer any more")
    try:
        yield
    except CancelledError as error:
        if client is None:
            raise
        raise _lost(client, "went away in the middle of a pass, or cancelled it") from error


def _lost(client: Any, what: str) -> ConnectionError:
    """Return the error of a cluster that was lost."""
    # A client that closed itself has forgotten where the scheduler was.
    where = "" if client.scheduler is None else f" at {client.scheduler.address}"
    return ConnectionError(
        f"The scheduler{where} {what} (the client is {client.status}): see that it runs, connect "
        "anew and fit again"
    )


def _options(client: Any) -> dict[str, Any]:
    """Return what a scheduler is told: a cluster, to try failing tasks again."""
    return {} if client is None else {"retries": RETRIES}
