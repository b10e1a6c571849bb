"""Independent pieces of work on many processes: of this machine, or of a Ray or Dask cluster.

A process may be lost at any moment, and what it was doing is then done again. So a piece must be idempotent: done
twice, or begun and then done, it leaves what doing it once leaves. A cluster is named by a text:

    local, local:4              processes of this machine: one on each core, or as many as said
    ray:auto, ray:HOST:PORT     the Ray cluster that this machine belongs to, or the one at an address
    ray://HOST:PORT             a Ray cluster, through Ray's client
    dask:tcp://HOST:PORT        the Dask cluster with that scheduler
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from hycal.errors import HyCalError

T = TypeVar("T")
R = TypeVar("R")

LOCAL = "local"
_FRUITLESS = 3  # rounds in a row that finish nothing, before we give up
_KNOCKS = 3  # times that we ask Ray's client server for a session, before we give up


def each(work: Callable[[T], R], pieces: Sequence[T], *, cluster: str = LOCAL) -> Iterator[tuple[int, R]]:
    """Do every piece, and yield its number and result as soon as it is done, in any order.

    An error that `work` raises is raised here. A lost process is no error: its pieces are done again, until several
    rounds in a row finish nothing.

    Parameters
    ----------
    work : callable
        Idempotent. It, the pieces and the results must be picklable.
    pieces : sequence
    cluster : str
        As described above.

    Examples
    --------
    >>> sorted(each(abs, [-1, 2, -3], cluster="local:1"))
    [(0, 1), (1, 2), (2, 3)]
    """
    waiting = dict(enumerate(pieces))
    fruitless = 0
    with joined(cluster) as backend:
        while waiting:
            before, losses = len(waiting), list[Exception]()
            for number, result, error in _until_lost(work, dict(waiting), backend, losses):
                if error is not None:
                    raise error
                del waiting[number]
                yield number, result
            fruitless = 0 if len(waiting) < before else fruitless + 1
            if fruitless == _FRUITLESS:
                raise HyCalError(
                    f"{len(waiting)} of {len(pieces)} pieces of work, begun {_FRUITLESS} times on {cluster!r}, did "
                    f"not come back: {losses}. What is done is kept. Look at the memory and the logs of the workers, "
                    "then run it again."
                )


def _until_lost(
    work: Callable[[T], R], waiting: Mapping[int, T], backend: Mapping[str, Any], losses: list[Exception]
) -> Iterator[tuple[int, Any, Exception | None]]:
    """Yield outcomes until all are there, or a process is lost: joblib then gives up the others as well."""
    from joblib import Parallel, delayed, parallel_config  # late: commands that run nothing must start at once

    tasks = (delayed(_outcome)(work, number, piece) for number, piece in waiting.items())
    with parallel_config(**backend):  # left before the first yield: it would hold for the caller as well
        parallel = Parallel(return_as="generator_unordered")
    try:
        yield from parallel(tasks)
    except Exception as loss:  # never one that `work` raised: that is an outcome
        losses.append(loss)


def _outcome(work: Callable[[T], R], number: int, piece: T) -> tuple[int, R | None, Exception | None]:
    try:
        return number, work(piece), None
    except Exception as error:
        return number, None, error


@contextlib.contextmanager
def joined(cluster: str) -> Iterator[Mapping[str, Any]]:
    """Join `cluster`, and yield what joblib needs to work on it; or say why it cannot be joined."""
    scheme, _, place = cluster.partition(":")
    if scheme not in _SCHEMES or not re.fullmatch(_SCHEMES[scheme].place, place):
        raise HyCalError(
            f"{cluster!r} names no cluster; expected local:PROCESSES, ray:auto, ray:HOST:PORT, ray://HOST:PORT or "
            "dask:tcp://HOST:PORT."
        )
    try:
        joining = _SCHEMES[scheme].join(place)
        backend = joining.__enter__()
    except ImportError as error:
        raise HyCalError(
            f"Work on {cluster!r} needs a package that cannot be imported ({error}). Install it here and on every "
            f'worker: pip install "hycal[{scheme}]".'
        ) from None
    except (OSError, ValueError, RuntimeError) as error:
        raise HyCalError(f"Cannot join {cluster!r}: {error}. Check the address, and that the cluster is up.") from None
    with contextlib.ExitStack() as leaving:
        leaving.push(joining)
        yield backend


@contextlib.contextmanager
def _local(processes: str) -> Iterator[Mapping[str, Any]]:
    yield {"backend": "loky", "n_jobs": int(processes or -1)}


@contextlib.contextmanager
def _ray(place: str) -> Iterator[Mapping[str, Any]]:
    import ray
    from joblib import register_parallel_backend
    from ray.util.joblib.ray_backend import RayBackend

    class Streaming(RayBackend):
        """Ray's backend, which can hand over results as they come: its pool, unlike joblib's, has a thread for each."""

        supports_return_generator = True

    register_parallel_backend("ray", Streaming)
    with contextlib.ExitStack() as leaving:
        if not ray.is_initialized():
            _start_session(f"ray:{place}" if place.startswith("//") else place)
            leaving.callback(ray.shutdown)
        yield {"backend": "ray", "n_jobs": -1}


def _start_session(address: str) -> None:
    """Join the Ray cluster at `address`. Its client server forks beside gRPC's threads, which now and then kills or
    hangs the process that was to serve us: the server then aborts the connection, and the next one is served.
    """
    import ray

    for _ in range(_KNOCKS - 1):
        with contextlib.suppress(ConnectionAbortedError):
            ray.init(address=address, log_to_driver=False)
            return
    ray.init(address=address, log_to_driver=False)


@contextlib.contextmanager
def _dask(place: str) -> Iterator[Mapping[str, Any]]:
    from distributed import Client
    from joblib import register_parallel_backend
    from joblib._dask import DaskDistributedBackend

    class Elsewhere(DaskDistributedBackend):
        """joblib's backend, also for one worker, or for one that is left: joblib would do its work in this process."""

        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(2, super().effective_n_jobs(n_jobs))

    register_parallel_backend("dask", Elsewhere)
    with Client(place, set_as_default=False) as client:
        yield {"backend": "dask", "client": client, "n_jobs": -1}


class _Scheme(NamedTuple):
    """A kind of cluster: how its place is written, and how to join it."""

    place: str
    join: Callable[[str], contextlib.AbstractContextManager[Mapping[str, Any]]]


_SCHEMES: Mapping[str, _Scheme] = {
    LOCAL: _Scheme(r"(-1|[1-9][0-9]{0,4})?", _local),
    "ray": _Scheme(r".+", _ray),
    "dask": _Scheme(r".+", _dask),
}
