"""The server that is measured: the command `hycal serve` in a process of its own, its time and memory."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_PATIENCE = 120
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Served:
    """A running server."""

    process: int
    port: int

    @property
    def cpu_seconds(self) -> float:
        """Seconds of processor time it has used, all threads together."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def megabytes(self) -> float:
        """Resident memory."""
        pages = int(Path(f"/proc/{self.process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    @property
    def heaps(self) -> int:
        """Heaps of the allocator beside the main one: each begins at a multiple of 64 MB and has no file."""
        lines = (line.split() for line in Path(f"/proc/{self.process}/maps").read_text().splitlines())
        return sum(len(line) == 5 and int(line[0].partition("-")[0], 16) % 2**26 == 0 for line in lines)

    @property
    def threads(self) -> int:
        """Threads that it has now."""
        return len(list(Path(f"/proc/{self.process}/task").iterdir()))


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@contextmanager
def served(model: Path, *options: str, first: str = "") -> Iterator[Served]:
    """Run `hycal serve` on a free port until the end of the block; `first` is Python that its process runs before."""
    port = free_port()
    program = f"{first}\nfrom hycal.cli import app\napp()"
    command = [sys.executable, "-c", program, "serve", str(model), "--port", str(port), *options]
    log = model.with_name("server.log")
    with log.open("w") as errors, subprocess.Popen(command, stderr=errors) as process:
        try:
            _wait(port)
            yield Served(process.pid, port)
        finally:
            died = process.poll()
            process.send_signal(signal.SIGINT)
            process.wait(_PATIENCE)
            if died is not None:
                raise RuntimeError(f"the server died with code {died}: {log.read_text()[-2000:]}")
            if "Traceback" in log.read_text():
                raise RuntimeError(f"the server met an error of its own: {log.read_text()[-2000:]}")


def _wait(port: int) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health"):
            return
        time.sleep(0.05)
    raise RuntimeError("the server does not start")
