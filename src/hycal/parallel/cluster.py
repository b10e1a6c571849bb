"""Independent pieces of work on many processes: of this machine, or of a Ray or Dask cluster.

A process may be lost at any moment; its pieces are then done again. So a piece must be idempotent: done twice, or begun
and then done, it has the effect of being done once. A string names a cluster:

    local, local:4              processes of this machine: one on each core, or the given number
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
_FRUITLESS = 3  # rounds in a row that finish no piece, before an error
_ATTEMPTS = 3  # at a session with Ray's client server, before an error


def run_each(work: Callable[[T], R], pieces: Sequence[T], *, cluster: str = LOCAL) -> Iterator[tuple[int, R]]:
    """Do every piece, and yield its number and result as soon as it is done, in any order.

    `work` is idempotent. It, the pieces and the results must be picklable. An error that it raises is raised here. The
    pieces of a lost process are done again, until several rounds in a row finish no piece.

    >>> sorted(run_each(abs, [-1, 2, -3], cluster="local:1"))
    [(0, 1), (1, 2), (2, 3)]
    """
    waiting = dict(enumerate(pieces))
    fruitless = 0
    with join_cluster(cluster) as backend:
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
    """Yield outcomes until all pieces are done or a process is lost, at which joblib gives up the other pieces too."""
    from joblib import Parallel, delayed, parallel_config  # late: commands that run nothing must start fast

    tasks = (delayed(_outcome)(work, number, piece) for number, piece in waiting.items())
    with parallel_config(**backend):  # exit before the first yield, or it would hold for the caller too
        parallel = Parallel(return_as="generator_unordered")
    try:
        yield from parallel(tasks)
    except Exception as loss:  # never an error of `work`: that is an outcome
        losses.append(loss)


def _outcome(work: Callable[[T], R], number: int, piece: T) -> tuple[int, R | None, Exception | None]:
    try:
        return number, work(piece), None
    except Exception as error:
        return number, None, error


@contextlib.contextmanager
def join_cluster(cluster: str) -> Iterator[Mapping[str, Any]]:
    """Join `cluster`, and yield the options of joblib that select it; raise if it cannot be joined."""
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
        """Ray's backend, declared able to return results as they come; its pool has a thread for each."""

        supports_return_generator = True

    register_parallel_backend("ray", Streaming)
    with contextlib.ExitStack() as leaving:
        if not ray.is_initialized():
            _start_session(f"ray:{place}" if place.startswith("//") else place)
            leaving.callback(ray.shutdown)
        yield {"backend": "ray", "n_jobs": -1}


def _start_session(address: str) -> None:
    """Join the Ray cluster at `address`, in several attempts.

    Ray's client server forks while gRPC's threads run, which sometimes kills or hangs the forked process. The server
    then aborts the connection, and the next attempt succeeds.
    """
    import ray

    for _ in range(_ATTEMPTS - 1):
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
        """joblib's backend, for a single worker too, where joblib would do the work in this process."""

        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(2, super().effective_n_jobs(n_jobs))

    register_parallel_backend("dask", Elsewhere)
    with Client(place, set_as_default=False) as client:
        yield {"backend": "dask", "client": client, "n_jobs": -1}


class _Scheme(NamedTuple):
    """A kind of cluster: the pattern of its address, and how to join it."""

    place: str
    join: Callable[[str], contextlib.AbstractContextManager[Mapping[str, Any]]]


_SCHEMES: Mapping[str, _Scheme] = {
    LOCAL: _Scheme(r"(-1|[1-9][0-9]{0,4})?", _local),
    "ray": _Scheme(r".+", _ray),
    "dask": _Scheme(r".+", _dask),
}
