"""Requests per second and latencies of `hycal serve` at 1, 8 and 64 clients, while the model is being changed.

    python -m benchmarks.load [--seconds 5] [--clients 1 8 64] [--classes 100] [--soak 0]

Embeddings go in as .npy, one row or 256 rows a request; images as JPEG of 640 x 480, through the built-in encoder. One
more client corrects images all the time. The rate for one core is what the server answered for each second of
processor time that it used, in lines of their own without corrections; it is compared with the same answers computed
in this process, without HTTP.

--soak N keeps 8 clients and the correcting one busy for N seconds (1800 for the full test) and fits a line to the
server's memory over the second half. Ends with code 1 if a request failed, or if at that slope memory would rise by
more than 5% in half an hour; below a minute there is no verdict on memory.
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

from benchmarks.correct import many_classes
from benchmarks.load.clients import Tally, ask, json_request, request
from benchmarks.load.serving import Served, served
from hycal.encoders import load_encoder
from hycal.project import Project, State
from hycal.project.answering import answer
from hycal.project.images import space
from hycal.validation import Floats

ROWS = 256
SHOTS = 8
MOST_GROWTH = 0.05
_CORRECTING = 0.05  # seconds between an answer and the next correction
_HALF_AN_HOUR, _SHORTEST_VERDICT = 1800, 60
_FEWEST_SAMPLES, _MOST_SAMPLES = 10, 120


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
    chosen = [example.identity.hex() for example in state.shelves[home].examples[: SHOTS // 2]]
    return [json_request("/api/correct", {"image": one, "label": label}) for label in (away, home) for one in chosen]


async def load(
    server: Served, requests: Sequence[bytes], changes: Sequence[bytes], *, clients: int, seconds: float
) -> tuple[Tally, Tally]:
    """Return what the clients saw, and what the correcting one did, if there is anything to correct."""
    tally, changing = Tally(), Tally()
    until = time.monotonic() + seconds
    correcting = [ask(server.port, changes, changing, until=until, pause=_CORRECTING)] if changes else []
    await asyncio.gather(*correcting, *(ask(server.port, requests, tally, until=until) for _ in range(clients)))
    return tally, changing


def measure(server: Served, state: State, clients: Sequence[int], seconds: float) -> bool:
    """Print requests per second and latencies; return whether every request was answered."""
    kinds = {
        "1 embedding": [embeddings(state, 1)],
        f"{ROWS} embeddings": [embeddings(state, ROWS)],
        "1 image": images(40),
    }
    print(f"{'a request holds':16}{'clients':>8}{'requests/s':>12}{'p50 ms':>9}{'p99 ms':>9}", end="")
    print(f"{'failed':>8}{'changes/s':>11}")
    changes, sound = corrections(state), True
    for name, requests in kinds.items():
        for count in clients:
            began = time.monotonic()
            tally, changing = asyncio.run(load(server, requests, changes, clients=count, seconds=seconds))
            spent = time.monotonic() - began
            failed = tally.refused + changing.refused
            sound &= not failed and bool(tally.seconds)
            print(
                f"{name:16}{count:>8}{len(tally.seconds) / spent:>12.1f}{tally.quantile(0.5):>9.1f}"
                f"{tally.quantile(0.99):>9.1f}{failed:>8}{len(changing.seconds) / spent:>11.1f}",
                flush=True,
            )
    return sound


def compare(server: Served, state: State, seconds: float) -> None:
    """Print rows answered for each second of processor time, by the server and without one."""
    print(f"{'a request holds':16}{'rows/s of a core':>18}{'in process':>12}{'share':>8}")
    for rows in (1, 16, ROWS):
        used = server.cpu_seconds
        tally, _ = asyncio.run(load(server, [embeddings(state, rows)], [], clients=2, seconds=seconds))
        own, reference = rows * len(tally.seconds) / (server.cpu_seconds - used), in_process(state, rows)
        print(f"{f'{rows} embeddings':16}{own:>18,.0f}{reference:>12,.0f}{own / reference:>8.0%}", flush=True)


def in_process(state: State, rows: int) -> float:
    """Return rows answered for each second of processor time, without a server."""
    queries = _queries(state, rows)
    answer(state, queries, top=5)
    began, done = time.process_time(), 0
    while time.process_time() - began < 1.0:
        answer(state, queries, top=5)
        done += rows
    return done / (time.process_time() - began)


def soak(server: Served, state: State, seconds: float) -> bool:
    """Keep the server busy; return whether every request was answered and its memory was flat."""
    requests, changes = [embeddings(state, 1), embeddings(state, ROWS), *images(4)], corrections(state)
    count = max(_FEWEST_SAMPLES, min(_MOST_SAMPLES, int(seconds / 2)))
    samples: list[tuple[float, float]] = []
    began, answered, reopened = time.monotonic(), 0, 0
    for _ in range(count):
        tally, changing = asyncio.run(load(server, requests, changes, clients=8, seconds=seconds / count))
        answered += len(tally.seconds) + len(changing.seconds)
        reopened += tally.reopened + changing.reopened
        samples.append((time.monotonic() - began, server.megabytes))
        if tally.refused or changing.refused:
            print(f"{tally.refused + changing.refused} requests failed")
            return False
    at, megabytes = np.array(samples).T[:, count // 2 :]
    slope = float(np.polyfit(at, megabytes, 1)[0])
    growth = slope * _HALF_AN_HOUR / float(np.median(megabytes))
    print(f"soak: {answered:,} requests in {at[-1]:.0f} s, {reopened} connections reopened;", end=" ")
    print(f"memory {samples[0][1]:.0f} MB after {samples[0][0]:.0f} s, {megabytes[-1]:.0f} MB at the end;", end=" ")
    print(f"second half {slope * 60:+.2f} MB a minute")
    return seconds < _SHORTEST_VERDICT or growth <= MOST_GROWTH


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
        many_classes(path, space(load_encoder("builtin")), classes=options.classes, shots=SHOTS).close()
        state = Project(path).state
        with served(path) as server:
            sound = True
            if options.seconds:
                sound = measure(server, state, options.clients, options.seconds)
                compare(server, state, options.seconds)
            return 0 if sound and (not options.soak or soak(server, state, options.soak)) else 1


if __name__ == "__main__":
    sys.exit(main())
