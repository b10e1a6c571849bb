"""From a correction to the answer of the corrected model, over HTTP, on a model of many classes.

    python -m benchmarks.correct [CLASSES] [SHOTS]

The image was sent and embedded before: this is what a person waits for after a click, without the browser's drawing.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from statistics import median

import numpy as np
import uvicorn

from hycal.project import Arrival, Example, Project, Space, empty_state
from hycal.serve.app import make_app
from hycal.serve.service import Service
from hycal.validation import Doubles

WIDTH = 512
THUMBNAIL = 2500
CORRECTIONS = 20


def many_classes(path: Path, space: Space, *, classes: int, shots: int, seed: int = 0) -> Project:
    """Write a model of synthetic classes with thumbnails of the usual size."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(classes, space.dimension))
    arrivals = [
        Arrival(f"domain{number % 8}/class{number:04d}", _example(means[number], f"{number}-{shot}", rng))
        for number in range(classes)
        for shot in range(shots)
    ]
    project = Project(path, empty_state(space, has_text=False), journal=True)
    project.learn(arrivals)
    return project


def _example(mean: Doubles, name: str, rng: np.random.Generator) -> Example:
    row = mean + rng.normal(size=mean.shape)
    unit = (row / np.linalg.norm(row)).astype(np.float32)
    return Example(unit, hashlib.sha256(name.encode()).digest(), f"{name}.jpg", rng.bytes(THUMBNAIL))


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
        found: dict[str, dict[str, float]] = json.load(answer)
    return found


def main() -> None:
    """Print the milliseconds of a correction, over HTTP and inside, and of writing the whole file instead."""
    given = [int(text) for text in sys.argv[1:]]
    classes, shots = [*given, *(1000, 10)[len(given) :]]
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        project = many_classes(Path(folder, "m.hycal"), Space("none", None, WIDTH), classes=classes, shots=shots)
        size = project.path.stat().st_size / 1e6
        print(f"{classes:,} classes of {shots} images, {size:.0f} MB, {os.cpu_count()} cores")
        service = Service(project, None)
        examples = [_example(rng.normal(size=WIDTH), f"new-{number}", rng) for number in range(CORRECTIONS + 3)]
        service._tray.put(examples)
        server, thread, url = _serve(service)
        whole, work, inside = [], [], []
        for number, example in enumerate(examples):
            began, worked = time.perf_counter(), time.process_time()
            body = {"image": example.identity.hex(), "label": f"domain0/class{8 * (number % 5):04d}"}
            told = _post(f"{url}correct", body)
            whole.append(1e3 * (time.perf_counter() - began))
            work.append(1e3 * (time.process_time() - worked))
            inside.append(told["milliseconds"])
            time.sleep(0.2)
        server.should_exit = True
        thread.join()
        warm = slice(3, None)  # the first ones derive the model from nothing
        print(f"over HTTP: median {median(whole[warm]):.0f} ms, longest {max(whole[warm]):.0f} ms")
        print(f"  processor time, on all cores: median {median(work[warm]):.0f} ms")
        for part in ("changing", "answering"):
            print(f"  of which {part}: median {median(one[part] for one in inside[warm]):.0f} ms")
        other = Project(project.path)
        began = time.perf_counter()
        other.forget(examples[0].identity)
        print(f"a change that writes the whole file instead: {1e3 * (time.perf_counter() - began):.0f} ms")


if __name__ == "__main__":
    main()
