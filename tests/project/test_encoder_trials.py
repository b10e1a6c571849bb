"""Two encoders on the same learned images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hycal.embedding import ImageBytes
from hycal.embedding.sources import content_hash
from hycal.errors import HyCalError
from hycal.project import Arrival, Example, Space, changes, empty_state
from hycal.project.encoder_trials import SAMPLE, sample_learned, try_encoder

WIDTH = 16
CLEAR, MUDDLED = Space("clear", "clear", WIDTH), Space("muddled", "muddled", WIDTH)


def rows_of(classes: int, shots: int, noise: float) -> dict[bytes, np.ndarray]:
    """Embeddings of `shots` images of each class; the larger the noise, the more are confused."""
    rng = np.random.default_rng(0)
    found = {}
    for label in range(classes):
        for shot in range(shots):
            row = np.eye(WIDTH)[label] + noise * rng.normal(size=WIDTH)
            found[content_hash(f"{label}-{shot}".encode())] = (row / np.linalg.norm(row)).astype(np.float32)
    return found


def model_of(space: Space, rows: dict[bytes, np.ndarray], shots: int):
    learned = [Arrival(f"d/{at // shots}", Example(row, key)) for at, (key, row) in enumerate(rows.items())]
    return changes.learn(empty_state(space, has_text=False, method="NCM"), learned)[0]


def test_the_encoder_that_tells_the_images_apart_is_better_beyond_chance():
    clear, muddled = rows_of(8, 8, 0.05), rows_of(8, 8, 0.8)
    trial = try_encoder(model_of(MUDDLED, muddled, 8), CLEAR, clear)
    assert trial.encoder == "clear" and trial.better and not trial.worse
    assert trial.other.right == trial.other.total == trial.own.total == 64 and trial.own.right < 50
    back = try_encoder(model_of(CLEAR, clear, 8), MUDDLED, muddled)
    assert back.worse and not back.better and (back.own, back.other) == (trial.other, trial.own)


def test_the_same_encoder_is_neither_and_near_duplicates_count_as_one():
    rows = rows_of(4, 4, 0.1)
    same = try_encoder(model_of(CLEAR, rows, 4), replace(CLEAR, name="again"), rows)
    assert same.own == same.other and not same.better and not same.worse
    # twelve copies of two wrong images: more than chance if each counted
    muddled = rows_of(4, 2, 0.05)
    keys = list(muddled)
    copies = {content_hash(bytes([n])): muddled[keys[n % 2]] for n in range(12)}
    wrong = {key: np.eye(WIDTH, dtype=np.float32)[3] for key in copies}
    state = model_of(CLEAR, muddled, 2)
    state = changes.learn(state, [Arrival("d/0", Example(row, key)) for key, row in copies.items()])[0]
    trial = try_encoder(state, MUDDLED, {**muddled, **wrong})
    assert trial.own.right - trial.other.right >= 12 and not trial.worse


def test_the_sample_is_of_learned_images_and_even_over_classes():
    shots = 60
    state = model_of(CLEAR, rows_of(8, shots, 0.1), shots)
    sources = [ImageBytes("new", b"never learned")]
    sources += [ImageBytes(f"{c}-{s}", f"{c}-{s}".encode()) for c in range(8) for s in range(shots)]
    sample = sample_learned(state, sources)
    assert len(sample) == SAMPLE and all(key in state.label_of for key in sample)
    counts = [sum(state.label_of[key] == label for key in sample) for label in state.labels]
    assert counts == [SAMPLE // 8] * 8
    with pytest.raises(HyCalError, match="Too few of these images were learned"):
        sample_learned(state, sources[:3])
