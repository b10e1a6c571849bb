"""From a correction to the answer of the corrected model, over HTTP, on a model of many classes.

    python -m benchmarks.correction [CLASSES] [SHOTS]

The image was sent and embedded before: this is what a person waits for after a click, without the browser's drawing;
`make test-browser` prints that with it. Half of the corrections come while leave-one-out is computed for the table.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import uvicorn

from benchmarks.printed import PrintedTable
from benchmarks.synthetic import many_classes, synthetic_example
from hycal.parallel.threads import keep_one_blas_thread
from hycal.project import Project, Space
from hycal.serve.app import make_app
from hycal.serve.service import Service

WIDTH = 512
CORRECTIONS = 100
WARM = 3  # the first ones derive the model from nothing
SECONDS_BETWEEN = 0.1


def _serve(service: Service) -> tuple[uvicorn.Server, threading.Thread, str]:
    server = uvicorn.Server(uvicorn.Config(make_app(service), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    return server, thread, f"http://127.0.0.1:{port}/api/"


def _post(url: str, body: object) -> dict[str, dict[str, float]]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


@dataclass
class Watched:
    """Milliseconds of corrections: over HTTP, of processors, and of the parts that the server tells."""

    whole: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    inside: list[dict[str, float]] = field(default_factory=list)

    def correct(self, url: str, image: str, number: int) -> None:
        """Send one correction."""
        began, worked = time.perf_counter(), time.process_time()
        told = _post(f"{url}correct", {"image": image, "label": f"domain0/class{8 * (number % 50):04d}"})
        self.whole.append(1e3 * (time.perf_counter() - began))
        self.work.append(1e3 * (time.process_time() - worked))
        self.inside.append(told["milliseconds"])
        time.sleep(SECONDS_BETWEEN)


def _cells(times: list[float]) -> list[str]:
    return [f"{time:.0f}" for time in (*np.percentile(times, [50, 99]), max(times))]


def main() -> None:
    """Print the milliseconds of a correction, over HTTP and inside, and of writing the whole file instead."""
    given = [int(text) for text in sys.argv[1:]]
    classes, shots = [*given, *(1000, 10)[len(given) :]]
    keep_one_blas_thread()  # as `hycal serve` does
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        project = many_classes(Path(folder, "m.hycal"), Space("none", None, WIDTH), classes=classes, shots=shots)
        size = f"{project.path.stat().st_size / 1e6:.0f} MB"
        title = f"{classes:,} classes of {shots} images, {size}, {os.cpu_count()} cores; {CORRECTIONS} corrections"
        service = Service(project, None)
        examples = [
            synthetic_example(rng.normal(size=WIDTH), f"new-{number}", rng) for number in range(CORRECTIONS + WARM)
        ]
        service.recent.put(examples)
        images = [example.identity.hex() for example in examples]
        server, thread, url = _serve(service)
        service.warm()  # as it does by itself when it starts
        warming, alone, beside = Watched(), Watched(), Watched()
        for number, image in enumerate(images[:WARM]):
            warming.correct(url, image, number)
        half = WARM + CORRECTIONS // 2
        for number, image in enumerate(images[WARM:half]):
            alone.correct(url, image, number)
        with _table_shown(url):
            for number, image in enumerate(images[half:]):
                beside.correct(url, image, number)
        server.should_exit = True
        thread.join()
        table = PrintedTable(title, "milliseconds", "median", "p99", "longest")
        table.row("from a correction to the new answer, over HTTP", *_cells(alone.whole))
        for part in ("changing", "answering"):
            table.row(f"of which {part}", *_cells([one[part] for one in alone.inside]))
        table.row("the same while leave-one-out is computed", *_cells(beside.whole))
        table.row("processor time of a correction, client and server", *_cells(alone.work))
        other = Project(project.path)
        began = time.perf_counter()
        other.forget(examples[0].identity)
        table.row("a change that writes the whole file instead", f"{1e3 * (time.perf_counter() - began):.0f}", "", "")


@contextmanager
def _table_shown(url: str) -> Iterator[None]:
    """Ask for the leave-one-out estimates again and again meanwhile, as a page does that shows the table."""
    ending = threading.Event()

    def ask() -> None:
        while not ending.is_set():
            urllib.request.urlopen(f"{url}accuracy").read()

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        ending.set()
        asking.join()


if __name__ == "__main__":
    main()
