"""Requests per second and latencies of `hycal serve` at 1, 8 and 64 clients, while the model is being changed.

    python -m benchmarks.load [--seconds 5] [--clients 1 8 64] [--classes 100] [--soak 0]

Embeddings go in as .npy, one row or 256 rows a request; images as JPEG of 640 x 480, through the built-in encoder. One
more client corrects images all the time. The rate for one core is what the server answered for each second of
processor time that it used, in lines of their own without corrections; it is compared with the same answers, in calls
of as many rows as a request holds, computed in this process without HTTP.

--soak N keeps 8 clients and the correcting one busy for N seconds (1800 for the full test), prints the server's memory
minute by minute, and fits a line to its second half. Ends with code 1 if a request failed, or if at that slope memory
would rise by more than 5% in half an hour; in less than a minute, by more than 30 kB for each request.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.load.clients import json_request, load, request
from benchmarks.load.server import Served, served
from benchmarks.load.soak import soak
from benchmarks.printed import PrintedTable
from benchmarks.synthetic import many_classes
from hycal.encoders import load_encoder
from hycal.project import Project, State
from hycal.project.answers import answer
from hycal.project.encoder import encoder_space
from hycal.validation import Floats

ROWS = 256
SHOTS = 8


def embeddings(state: State, rows: int) -> bytes:
    """Return a request that classifies so many embeddings."""
    buffer = io.BytesIO()
    np.save(buffer, _queries(state, rows))
    return request("/api/classify-embeddings", buffer.getvalue(), "application/octet-stream")


def _queries(state: State, rows: int) -> Floats:
    random = np.random.default_rng(1).normal(size=(rows, state.space.dimension))
    return (random / np.linalg.norm(random, axis=1, keepdims=True)).astype(np.float32)


def images(count: int) -> list[bytes]:
    """Return requests that classify one photograph each, all different."""
    return [_image(number) for number in range(count)]


def _image(number: int) -> bytes:
    coarse = np.random.default_rng(number).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(coarse).resize((640, 480), Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=90)
    head = (
        b'--cut\r\nContent-Disposition: form-data; name="files"; filename="a.jpg"\r\nContent-Type: image/jpeg\r\n\r\n'
    )
    return request("/api/classify", head + buffer.getvalue() + b"\r\n--cut--\r\n", "multipart/form-data; boundary=cut")


def corrections(state: State) -> list[bytes]:
    """Return requests that move some images to another class and back."""
    home, away = map(str, state.labels[:2])
    chosen = [example.identity.hex() for example in state.classes[home].examples[: SHOTS // 2]]
    return [json_request("/api/correct", {"image": one, "label": label}) for label in (away, home) for one in chosen]


def measure(server: Served, state: State, clients: Sequence[int], seconds: float) -> bool:
    """Print requests per second and latencies; return whether every request was answered."""
    kinds = {
        "1 embedding": [embeddings(state, 1)],
        f"{ROWS} embeddings": [embeddings(state, ROWS)],
        "1 image": images(40),
    }
    heads = ("clients", "requests/s", "p50 ms", "p99 ms", "failed", "changes/s")
    table = PrintedTable("Requests while the model changes", "a request holds", *heads)
    changes, sound = corrections(state), True
    for name, requests in kinds.items():
        for count in clients:
            began = time.monotonic()
            tally, changing = asyncio.run(load(server, requests, changes, clients=count, seconds=seconds))
            spent = time.monotonic() - began
            failed = tally.refused + changing.refused
            sound &= not failed and bool(tally.seconds)
            figures = (len(tally.seconds) / spent, tally.quantile(0.5), tally.quantile(0.99))
            cells = (str(count), *(f"{figure:,.1f}" for figure in figures), str(failed))
            table.row(name, *cells, f"{len(changing.seconds) / spent:.1f}")
    return sound


def compare(server: Served, state: State, clients: Sequence[int], seconds: float) -> None:
    """Print rows answered for each second of processor time, by the server and without one."""
    heads = ("in process", *(f"{count} client{'s' * (count > 1)}" for count in clients))
    table = PrintedTable("Rows for each second of processor time", "a request holds", *heads)
    for rows in (1, 16, ROWS):
        reference = in_process(state, rows, seconds=min(1.0, seconds))
        cells = []
        for count in clients:
            used = server.cpu_seconds
            tally, _ = asyncio.run(load(server, [embeddings(state, rows)], [], clients=count, seconds=seconds))
            own = rows * len(tally.seconds) / (server.cpu_seconds - used)
            cells.append(f"{own:,.0f}, {own / reference:.0%}")
        table.row(f"{rows} embedding{'s' * (rows > 1)}", f"{reference:,.0f}", *cells)


def in_process(state: State, rows: int, *, seconds: float) -> float:
    """Return rows answered for each second of processor time, without a server."""
    queries = _queries(state, rows)
    answer(state, queries, top=5)
    began, done = time.process_time(), 0
    while time.process_time() - began < seconds:
        answer(state, queries, top=5)
        done += rows
    return done / (time.process_time() - began)


def main() -> int:
    """Measure, then soak if asked for."""
    parser = argparse.ArgumentParser(description="Load on a real server that learns at the same time.")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each line of the table; 0 for no table")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--soak", type=float, default=0.0, help="seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.hycal")
        many_classes(path, encoder_space(load_encoder("builtin")), classes=options.classes, shots=SHOTS).close()
        state = Project(path).state
        with served(path) as server:
            sound = True
            if options.seconds:
                sound = measure(server, state, options.clients, options.seconds)
                compare(server, state, options.clients, options.seconds)
            if options.soak:
                requests = [embeddings(state, 1), embeddings(state, ROWS), *images(4)]
                sound &= soak(server, requests, corrections(state), options.soak)
            return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
