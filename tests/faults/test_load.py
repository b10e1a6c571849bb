"""A real server under load, briefly; `python -m benchmarks.load --soak 1800` is the full test."""

from __future__ import annotations

from tests.faults.test_kills import run


def test_no_request_fails_while_the_model_changes() -> None:
    done = run("-m", "benchmarks.load", "--seconds", 0.2, "--clients", 4, "--classes", 20, "--soak", 4)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "soak:" in done.stdout and "256 embeddings" in done.stdout
