"""Several processes that answer through one socket, over one model that none of them changes.

A supervisor binds the socket and starts the processes; the system gives each connection to one of them. It starts a new
one for each that ends, and ends all of them when it is told to. The model file is mapped, so its arrays are in memory
once; what a method derives from them, and the encoder, each process has for itself.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Event
from pathlib import Path

from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.project import ReadOnlyProject
from hycal.project.encoder import encoder_if_any
from hycal.serve.app import make_app
from hycal.serve.metrics import SHARED, count_as, forget_open_requests
from hycal.serve.security import Access
from hycal.serve.server import limit_heaps, serve_on
from hycal.serve.service import Service

MOST_FAILURES = 3  # workers that end before they have opened the model, one after the other
_SECONDS_TO_END = 15.0  # uvicorn takes up to 10 to finish requests
_LOOK = 0.5  # seconds between two looks at the workers
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReadOnlyModel:
    """What a worker opens."""

    path: Path
    encoder: str | None = None  # the encoder that the user named; by default the model's own
    weights: Path | None = None  # where its weights are
    threads: int | None = None  # threads of the encoder; by default every core

    def open(self) -> tuple[ReadOnlyProject, Encoder | None, str]:
        """Return the project, its encoder, and why there is none: a model without its encoder takes embeddings."""
        project = ReadOnlyProject(self.path)
        return project, *encoder_if_any(project.state, self.encoder, self.weights, threads=self.threads)

    def serve(self, door: socket.socket, access: Access, ready: Event) -> None:
        """Answer what comes through `door`, until this process is told to end; set `ready` once the model is open."""
        project, encoder, problem = self.open()
        ready.set()
        serve_on(door, make_app(Service(project, encoder, why_no_encoder=problem), access))


def run_workers(model: ReadOnlyModel, access: Access, door: socket.socket, *, workers: int) -> None:
    """Serve by `workers` processes until this one is told to end; then let them finish what they accepted."""
    with door, _shared_metrics(), _told_to_end() as ending:
        Supervisor(model, door, access, ending).run(workers)


class Supervisor:
    """Keeps workers running.

    `door` is bound to the port; `ending` is set when all are to end.
    """

    def __init__(self, model: ReadOnlyModel, door: socket.socket, access: Access, ending: threading.Event) -> None:
        self._task = model, door, access
        self._ending = ending
        self._workers: dict[int, tuple[SpawnProcess, Event]] = {}  # by number: the process, and whether it is ready
        self._failures = 0

    def run(self, workers: int) -> None:
        """Keep `workers` processes running until `ending` is set; raise a HyCalError if each ends at once."""
        try:
            while not self._ending.is_set():
                for number in set(range(workers)) - self._workers.keys():
                    self._start(number)
                wait([worker.sentinel for worker, _ in self._workers.values()], timeout=_LOOK)
                for number, (worker, _) in list(self._workers.items()):
                    if not worker.is_alive():
                        self._bury(number)
        finally:
            self._end_all()

    def _start(self, number: int) -> None:
        spawn = get_context("spawn")
        ready = spawn.Event()
        worker = spawn.Process(target=_work, args=(number, ready, *self._task), name=f"hycal-worker-{number}")
        worker.start()
        self._workers[number] = worker, ready

    def _bury(self, number: int) -> None:
        """Forget a worker that ended by itself; wait a moment if none gets ready."""
        worker, ready = self._workers.pop(number)
        self._failures = 0 if ready.is_set() else self._failures + 1
        _log.warning("worker %s ended with code %s; another one is started", worker.pid, worker.exitcode)
        forget_open_requests(number)
        if self._failures > MOST_FAILURES and not any(one.is_set() for _, one in self._workers.values()):
            raise HyCalError(
                f"No process of this server gets ready; the last one ended with code {worker.exitcode}. Its error "
                "stands above; start the server without --workers to see more."
            )
        self._ending.wait(min(5.0, 0.1 * 2**self._failures) if self._failures else 0.0)

    def _end_all(self) -> None:
        workers = [worker for worker, _ in self._workers.values()]
        for worker in workers:
            worker.terminate()
        until = time.monotonic() + _SECONDS_TO_END
        for worker in workers:
            worker.join(max(0.0, until - time.monotonic()))
            if worker.is_alive():
                worker.kill()
                worker.join()


def _work(number: int, ready: Event, model: ReadOnlyModel, door: socket.socket, access: Access) -> None:
    """Be a worker, which ends with its supervisor, however that ends."""
    count_as(number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the supervisor decides
    threading.Thread(target=_end_with_parent, name="hycal-parent", daemon=True).start()
    limit_heaps()
    try:
        model.serve(door, access, ready)
    except HyCalError as error:
        sys.stderr.write(f"worker {os.getpid()}: {error}\n")
        raise SystemExit(1) from None


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _told_to_end() -> Iterator[threading.Event]:
    """Give an event that SIGINT and SIGTERM set."""
    ending = threading.Event()
    kinds = signal.SIGINT, signal.SIGTERM
    before = [signal.signal(kind, lambda *_: ending.set()) for kind in kinds]
    try:
        yield ending
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


@contextmanager
def _shared_metrics() -> Iterator[None]:
    """Let all workers count in one folder of temporary files."""
    with tempfile.TemporaryDirectory(prefix="hycal-metrics-", ignore_cleanup_errors=True) as folder:
        os.environ[SHARED] = folder
        try:
            yield
        finally:
            del os.environ[SHARED]
