"""Predicting a thousand images: answers come while later images are unread, and memory stays flat."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from hycal.embedding import EmbeddingCache, lanes
from hycal.embedding.sources import ImageFile
from hycal.project import Project, empty_state
from hycal.project.answers import Predictor
from hycal.project.encoder import encoder_space
from hycal.project.learner import Learner
from tests.support.encoders import TinyEncoder
from tests.support.images import make_folder, picture

IMAGES = 1000


@pytest.fixture(scope="module")
def tower():
    return TinyEncoder(dimension=256)


@pytest.fixture(scope="module")
def state(tmp_path_factory, tower):
    root = make_folder(tmp_path_factory.mktemp("zoo"))
    files = sorted(root.rglob("*.png"))
    project = Project(root / "zoo.hycal", empty_state(encoder_space(tower), has_text=False))
    learner = Learner(project, tower)
    embedded = learner.embed([ImageFile(file) for file in files])
    learner.learn(embedded.labelled([f"zoo/{file.parent.name}" for file in files]))
    return project.state


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    for number in range(IMAGES):
        picture(number, size=(64, 64)).save(folder / f"{number:04}.png")
    return sorted(folder.iterdir())


def test_answers_come_before_the_last_image_is_read(state, tower, many):
    read: list[Path] = []

    def files() -> Iterator[Path]:
        for file in many:
            read.append(file)
            yield file

    answers = Predictor(state, top=1).predict(files(), tower)
    first = next(answers)
    assert first.file == str(many[0]) and len(read) <= 300
    assert [item.file for item in answers] == [str(file) for file in many[1:]]


def test_memory_does_not_grow(state, tower, many, tmp_path, monkeypatch):
    monkeypatch.setattr(lanes, "_ROWS_PER_SHARD", 64)  # rows on their way to the cache are held up to so many

    predictor = Predictor(state, top=5, why=True, error=0.05)

    def peak(files: list[str], folder: Path) -> int:
        tracemalloc.start()
        with EmbeddingCache.of(tower, folder) as store:
            assert sum(1 for _ in predictor.predict(map(Path, files), tower, store=store)) == len(files)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    names = [str(file) for file in many]  # a Path would keep what it was asked, and seem to leak
    peak(names, tmp_path / "warm")  # imports and buffers of the first call, and Python's own tables of names
    few = max(peak(names[:400], tmp_path / f"few-{run}") for run in range(2))  # how many are on their way varies
    all_of_them = min(peak(names, tmp_path / f"all-{run}") for run in range(2))
    each = 400  # of an image there remains at most its hash: less than half of an embedding, let alone a picture
    assert all_of_them < few + each * (IMAGES - 400), f"{few:,} bytes for 400 images, {all_of_them:,} for {IMAGES:,}"
