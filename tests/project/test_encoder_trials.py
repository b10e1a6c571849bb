"""Two encoders on the same learned images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hycal.embedding import ImageBytes
from hycal.embedding.sources import content_hash
from hycal.errors import HyCalError
from hycal.project import Arrival, Example, Space, changes, empty_state
from hycal.project.encoder_trials import (
    SAMPLE,
    SampleRows,
    join,
    judge,
    recommend,
    sample_labelled,
    sample_learned,
    singles_and_pairs,
    surpasses,
    try_encoder,
)
from hycal.project.inputs import LabelledImage

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
    assert len(sample.sources) == SAMPLE and all(state.label_of[key] == label for key, label in sample.labels.items())
    counts = [list(sample.labels.values()).count(label) for label in state.labels]
    assert counts == [SAMPLE // 8] * 8
    with pytest.raises(HyCalError, match="Too few of these images were learned"):
        sample_learned(state, sources[:3])


def labelled_of(rows: dict[bytes, np.ndarray], shots: int) -> dict[bytes, str]:
    return {key: f"d/{at // shots}" for at, key in enumerate(rows)}


def test_a_pair_is_recommended_only_if_it_is_better_beyond_chance():
    """Each of two encoders tells half of the classes apart; together they tell all."""
    rng, shots = np.random.default_rng(1), 12
    keys = list(rows_of(8, shots, 0.1))
    halves = []
    for half in (0, 1):
        rows = {}
        for at, key in enumerate(keys):
            label = at // shots
            own = np.eye(WIDTH)[label if label % 2 == half else WIDTH - 1] + 0.1 * rng.normal(size=WIDTH)
            rows[key] = (own / np.linalg.norm(own)).astype(np.float32)
        halves.append(SampleRows(Space(f"half{half}", f"f{half}", WIDTH), rows, seconds=1.0 + half))
    labels = labelled_of(dict.fromkeys(keys), shots)
    found = [judge(one, labels, method="HierarchicalHyCal") for one in singles_and_pairs(halves)]
    assert [judged.encoder for judged in found] == ["half0", "half1", "half0+half1"]
    assert found[2].score.accuracy > 0.95 > found[0].score.accuracy and found[2].seconds == 3.0
    assert found[0].score.total == found[2].score.total == len(keys)
    assert recommend(found) is found[2] and surpasses(found[2], found[0], groups=found[0].groups)
    assert found[2].estimate.low < found[2].estimate.accuracy <= found[2].estimate.high


def test_of_equals_the_fastest_is_recommended():
    rows, labels = rows_of(6, 6, 0.1), labelled_of(rows_of(6, 6, 0.1), 6)
    slow, fast = (SampleRows(Space(name, name, WIDTH), rows, seconds) for name, seconds in (("a", 0.2), ("b", 0.1)))
    found = [judge(one, labels, method="NCM") for one in (slow, fast)]
    assert recommend(found).encoder == "b" and not surpasses(*found, groups=found[0].groups)


def test_joined_rows_are_of_images_that_both_could_embed():
    rows = rows_of(2, 3, 0.1)
    fewer = dict(list(rows.items())[1:])
    both = join([SampleRows(MUDDLED, rows), SampleRows(CLEAR, fewer)])
    assert (
        both.space.name == "clear+muddled" and both.space.views == (WIDTH, WIDTH) and both.rows.keys() == fewer.keys()
    )


def test_a_sample_of_a_folder_is_even_over_classes_and_counts_a_copy_once():
    images = [
        LabelledImage(ImageBytes(f"{c}-{s}", f"{c}-{s % 50}".encode()), f"{c}-{s}", f"d/{c}")
        for c in range(5)
        for s in range(60)
    ]
    sample = sample_labelled(images)
    assert sorted(sample.labels.values()) == sorted(f"d/{c}" for c in range(5) for _ in range(SAMPLE // 5))
    with pytest.raises(HyCalError, match="two images of two classes"):
        sample_labelled(images[:30])
