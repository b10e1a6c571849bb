"""A real server under load, briefly; `python -m benchmarks.load --soak 1800` is the full test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.load.__main__ import corrections, embeddings
from benchmarks.load.server import served
from benchmarks.load.soak import Sample, judged, soak
from benchmarks.synthetic import many_classes
from hycal.encoders import load_encoder
from hycal.project import Project
from hycal.project.encoder import encoder_space
from tests.support.commands import run_python

LEAK = """
import mmap
from hycal.project import answers

rank, kept = answers.rank, []  # before hycal.serve takes it from there

def leaking(state, rows, **options):
    kept.append(mmap.mmap(-1, 2**17 * len(rows)))  # outside the heaps, which are counted
    kept[-1].write(b"1" * len(kept[-1]))
    return rank(state, rows, **options)

answers.rank = leaking
"""


def test_no_request_fails_while_the_model_changes() -> None:
    done = run_python("-m", "benchmarks.load", "--seconds", 0.1, "--clients", 4, "--classes", 20, "--soak", 3)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "none failed" in done.stdout and "256 embeddings" in done.stdout


def test_a_server_that_keeps_something_of_each_request_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.hycal"
    many_classes(path, encoder_space(load_encoder("builtin")), classes=5, shots=8).close()
    state = Project(path).state
    with served(path, first=LEAK) as server:
        assert not soak(server, [embeddings(state, 1)], corrections(state), 2)
        assert not sys.platform.startswith("linux") or server.heaps <= 2, "one heap for each thread grows for hours"
    assert "kB a request; at most 30" in capsys.readouterr().out


def line(megabytes_a_minute: float, *, minutes: int = 10, warm: float = 0.0) -> list[Sample]:
    """Samples of a server that first warms up, then grows along a line."""
    return [
        Sample(60.0 * n, 1000 * n, 300 + warm * min(n, minutes // 2) + megabytes_a_minute * n, 12)
        for n in range(minutes + 1)
    ]


def test_the_slope_of_the_second_half_decides() -> None:
    assert judged(line(0.0)).problem is None
    assert judged(line(0.3, warm=20.0)).problem is None
    slow = judged(line(5.0))
    assert slow.megabytes_a_minute == pytest.approx(5.0)
    assert slow.problem == "+5.00 MB a minute, 44% in half an hour; at most 5%"
