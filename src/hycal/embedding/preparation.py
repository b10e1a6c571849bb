"""From the content of one image to the input of an encoder and a thumbnail: here, or in a worker process.

A server decodes untrusted images. A decoder is a large C program, so it runs in a worker with a limit on memory and
on processor time: an image that exhausts them, or crashes the decoder, costs its own answer and nothing else. The
worker receives the content and returns arrays and text, never a pickle. Files that a user names are decoded in the
process itself, which saves the way between two processes.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from PIL import Image

from hycal.embedding.decoding import TOO_LARGE, decode, thumbnail
from hycal.embedding.sources import Content, ImageError
from hycal.errors import HyCalError
from hycal.validation import Floats

SPARE_MEMORY: Final = 768 * 2**20  # bytes of a worker, beside what it has when it starts
_MOST_REPLY: Final = 64 * 2**20

Preprocess: TypeAlias = Callable[[Image.Image], Floats]
_PROGRAM: Final = "from hycal.embedding.preparation import main; main()"


@dataclass(frozen=True)
class ImageOrder:
    """What to make of an image: the input that `preprocess` returns, and a thumbnail if one is wanted.

    A worker receives the order as a pickle, so `preprocess` must be a function, or a method of an object, that can be
    pickled. `seconds` of its processor time are the limit.
    """

    preprocess: Preprocess
    most_pixels: int
    thumbnail: bool
    seconds: float = 10


@dataclass(frozen=True, eq=False)
class PreparedImage:
    """The input of an encoder, and a thumbnail as a JPEG file; b"" if none was wanted."""

    tensor: Floats
    thumbnail: bytes


Prepare: TypeAlias = Callable[[Content, ImageOrder], PreparedImage]


def prepare(content: Content, order: ImageOrder) -> PreparedImage:
    """Decode an image once, in this process, and return what was ordered."""
    picture = decode(content, most_pixels=order.most_pixels)
    tensor = order.preprocess(picture)
    return PreparedImage(tensor, thumbnail(picture) if order.thumbnail else b"")  # the thumbnail shrinks the picture


def isolated() -> Prepare:
    """Return the safest way to prepare untrusted images: in workers, where the platform can limit a process."""
    return prepare if sys.platform == "win32" else workers().prepare


def start_workers() -> None:
    """Start a worker, where `isolated` uses them, so that the first image does not wait for it."""
    if sys.platform != "win32":
        workers().start()


class Workers:
    """Processes that prepare images; threads may share it, and each call has a process of its own meanwhile."""

    def __init__(self) -> None:
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()

    def prepare(self, content: Content, order: ImageOrder) -> PreparedImage:
        """Return what was ordered, as `prepare` does; a crash or an exhausted limit is an ImageError."""
        if not isinstance(content, bytes):
            return prepare(content, order)  # pixels need no decoder
        try:
            worker = self._take()
        except OSError as error:
            raise ImageError(f"no process can be started to decode it: {error.strerror or error}") from None
        try:
            problem, shape, tensor, small = worker.ask(content, order)
        except (OSError, EOFError):
            raise ImageError(worker.bury(order)) from None
        except BaseException:
            worker.close()
            raise
        self._idle.put(worker)
        if problem:
            raise ImageError(problem.decode("utf-8", "replace"))
        return PreparedImage(np.frombuffer(tensor, np.float32).reshape(np.frombuffer(shape, np.int64)), small)

    def _take(self) -> _Worker:
        with contextlib.suppress(queue.Empty):
            while True:
                worker = self._idle.get_nowait()
                if worker.process.poll() is None:
                    return worker
                worker.close()
        return _Worker()

    def start(self) -> None:
        """Start a process if none is idle."""
        if self._idle.empty():
            self._idle.put(_Worker())

    def close(self) -> None:
        """End all processes that are idle."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()


@cache
def workers() -> Workers:
    """Return the workers of this process, which live as long as it does."""
    made = Workers()
    atexit.register(made.close)
    return made


if hasattr(os, "register_at_fork"):  # a forked child must not share the pipes of its parent
    os.register_at_fork(after_in_child=workers.cache_clear)


class _Worker:
    """One process, and the pipes to it and from it."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],  # -P: no module of the current folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl+C is for the server
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._orders = Connection(os.dup(self.process.stdin.fileno()), readable=False)
        self._replies = Connection(os.dup(self.process.stdout.fileno()), writable=False)
        self.process.stdin.close()
        self.process.stdout.close()

    def ask(self, content: bytes, order: ImageOrder) -> list[bytes]:
        """Return the problem of an image, or b"", the shape of its tensor, its numbers, and its thumbnail.

        An .npy file has a header to parse, as Python code: Python 3.11 may fail at that in two threads at once.
        """
        self._orders.send_bytes(pickle.dumps(order))
        self._orders.send_bytes(content)
        return [self._replies.recv_bytes(_MOST_REPLY) for _ in range(4)]

    def bury(self, order: ImageOrder) -> str:
        """End the process, and return why it gave no reply."""
        self.close()
        code = self.process.returncode
        if code == -signal.SIGPROF:
            return f"decoding it takes more than {order.seconds:g} s of processor time"
        return f"the decoder crashed ({signal.Signals(-code).name if code < 0 else f'exit code {code}'})"

    def close(self) -> None:
        self._orders.close()
        self._replies.close()
        self.process.kill()
        self.process.wait()


def main() -> None:
    """Prepare images, one after the other, until the orders end."""
    orders, replies = Connection(os.dup(0), writable=False), Connection(os.dup(1), readable=False)
    os.dup2(2, 1)  # a library that prints must not disturb the replies
    warnings.simplefilter("ignore")
    _limit_memory()
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            order, content = pickle.loads(orders.recv_bytes()), orders.recv_bytes()
            signal.setitimer(signal.ITIMER_PROF, order.seconds)  # then the system ends this process
            parts = _reply(content, order)
            signal.setitimer(signal.ITIMER_PROF, 0)
            for part in parts:
                replies.send_bytes(part)


def _reply(content: bytes, order: ImageOrder) -> tuple[bytes, bytes, bytes, bytes]:
    try:
        prepared = prepare(content, order)
    except HyCalError as problem:
        return str(problem).encode("utf-8", "replace"), b"", b"", b""
    except MemoryError:
        return TOO_LARGE.encode(), b"", b"", b""
    tensor = np.asarray(prepared.tensor, np.float32)
    return b"", np.array(tensor.shape, np.int64).tobytes(), tensor.tobytes(), prepared.thumbnail


def _limit_memory() -> None:
    """Allow this process `SPARE_MEMORY` more address space than it has now."""
    import resource

    pages = Path("/proc/self/statm")
    start = int(pages.read_text().split()[0]) * resource.getpagesize() if pages.exists() else 2**30
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # macOS knows the limit, and may refuse to set it
        resource.setrlimit(resource.RLIMIT_AS, (start + SPARE_MEMORY, start + SPARE_MEMORY))
