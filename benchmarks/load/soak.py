"""A server kept busy for long: does every request get its answer, and does memory stay where it was?

Corrections move images from one class to another and back, so the model is as large at the end as at the beginning; its
history is full after 1,000 of them. What grows beyond that is a leak.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.load.clients import Tally, load
from benchmarks.load.server import Served
from benchmarks.printed import PrintedTable

CLIENTS = 8
MOST_GROWTH = 0.05  # of the memory in half an hour, at the slope of the second half
MOST_KILOBYTES = 30  # for each request of the second half, where a run is too short for a slope
_HALF_AN_HOUR, _SHORTEST_SLOPE = 1800, 60
_FEWEST_SAMPLES, _SECONDS_PER_SAMPLE = 10, 5


@dataclass(frozen=True)
class Sample:
    """What was known at one moment: seconds since the beginning, requests answered, megabytes and threads held."""

    seconds: float
    answered: int
    megabytes: float
    threads: int


@dataclass(frozen=True)
class Verdict:
    """The second half of a soak: how fast memory grew, and why that is too fast, if it is."""

    megabytes_a_minute: float
    kilobytes_a_request: float
    problem: str | None


def judged(samples: Sequence[Sample]) -> Verdict:
    """Return what the second half of the samples says."""
    late = samples[len(samples) // 2 :]
    at, megabytes = np.array([[sample.seconds, sample.megabytes] for sample in late]).T
    slope = 60 * float(np.polyfit(at, megabytes, 1)[0])
    growth = slope / 60 * _HALF_AN_HOUR / float(np.median(megabytes))
    answered = late[-1].answered - late[0].answered
    kilobytes = 1024 * (late[-1].megabytes - late[0].megabytes) / max(answered, 1)
    problem = None
    if samples[-1].seconds >= _SHORTEST_SLOPE:
        if growth > MOST_GROWTH:
            problem = f"{slope:+.2f} MB a minute, {growth:.0%} in half an hour; at most {MOST_GROWTH:.0%}"
    elif kilobytes > MOST_KILOBYTES:
        problem = f"{kilobytes:.0f} kB a request; at most {MOST_KILOBYTES}"
    return Verdict(slope, kilobytes, problem)


def soak(server: Served, requests: Sequence[bytes], changes: Sequence[bytes], seconds: float) -> bool:
    """Keep the server busy; return whether every request was answered and its memory was flat."""
    count = max(_FEWEST_SAMPLES, int(seconds / _SECONDS_PER_SAMPLE))
    samples: list[Sample] = []
    table = PrintedTable("Memory of the server", "minutes", "requests", "MB", "threads")
    total, began = Tally(), time.monotonic()
    for _ in range(count):
        for tally in asyncio.run(load(server, requests, changes, clients=CLIENTS, seconds=seconds / count)):
            total.add(tally)
        spent = time.monotonic() - began
        samples.append(Sample(spent, len(total.seconds), server.megabytes, server.threads))
        if len(samples) == 1 or spent // 60 > samples[-2].seconds // 60:
            _show(table, samples[-1])
        if total.refused:
            print(f"soak: {total.refused} requests failed")
            return False
    _show(table, samples[-1])
    found = judged(samples)
    print(
        f"\nsoak: {len(total.seconds):,} requests in {samples[-1].seconds:.0f} s, none failed, {total.reopened} "
        f"connections reopened; second half {found.megabytes_a_minute:+.2f} MB a minute, "
        f"{found.kilobytes_a_request:+.2f} kB a request: {found.problem or 'flat'}"
    )
    return found.problem is None


def _show(table: PrintedTable, sample: Sample) -> None:
    minutes, megabytes = f"{sample.seconds / 60:.1f}", f"{sample.megabytes:.1f}"
    table.row(minutes, f"{sample.answered:,}", megabytes, str(sample.threads))
