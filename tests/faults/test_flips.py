"""Flipped bits of models, journals and caches; `python -m benchmarks.flips` does it 10,000 times."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks.flips import flip, is_silent, targets
from hycal.embedding import cache


def test_no_flipped_bit_is_silent(tmp_path: Path) -> None:
    for name, target in targets(tmp_path).items():
        told = flip(target, 12, random.Random(0))
        assert not [outcome for outcome in told if is_silent(outcome)], (name, told)
        if name in ("model and undo", "journal"):
            assert told["refused"] == 12, (name, told)


def test_the_harness_sees_a_silent_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = targets(tmp_path)["shard of the cache"]
    monkeypatch.setattr(cache, "file_hash", lambda path: path.stem)  # a cache that checks no shard
    assert flip(found, 12, random.Random(0))["silent"]
