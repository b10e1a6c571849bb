"""The comparison over time finds losses beyond noise, and those only."""

from __future__ import annotations

import json
import math

import pytest

from benchmarks import perf


def test_the_kept_file_has_every_kind():
    kept = json.loads(perf.KEPT.read_text())["values"]
    assert kept.keys() == perf.KINDS.keys() == perf.MEASURES.keys()
    assert all(values and all(math.isfinite(value) for value in values.values()) for values in kept.values())


@pytest.mark.parametrize(
    ("kind", "before", "noise", "loss"),
    [
        ("speed", 100.0, 88.0, 80.0),
        ("memory", 0.10, 0.101, 0.103),
        ("accuracy", 0.8, 0.798, 0.796),
        ("calibration", 0.02, 0.024, 0.026),
    ],
)
def test_a_loss_is_beyond_the_tolerance_and_a_gain_is_none(kind, before, noise, loss):
    gain = before + (before - loss)
    assert perf.compare({kind: {"x": before}}, {kind: {"x": noise}}) == []
    assert perf.compare({kind: {"x": before}}, {kind: {"x": gain}}) == []
    assert len(perf.compare({kind: {"x": before}}, {kind: {"x": loss}})) == 1


def test_a_value_that_is_gone_is_a_loss_and_a_new_one_is_none():
    assert len(perf.compare({"speed": {"x": 1.0}}, {"speed": {"y": 1.0}})) == 1
    assert perf.compare({}, {"speed": {"y": 1.0}}) == []
