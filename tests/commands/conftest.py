"""Real images in class folders, and a model that learned them with the built-in encoder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from examples.photos import write_digits
from hycal import HyCal
from hycal.embedding import read_table
from tests.support.commands import hycal, hycal_json


@dataclass(frozen=True)
class Learned:
    """A model of two domains, `low` and `tall`, and the receipts of the two calls that taught it."""

    path: Path
    low: dict[str, Any]
    tall: dict[str, Any]


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders to learn, `low` and `high`, with a file that is no image, and `test` to test on."""
    root = tmp_path_factory.mktemp("photos")
    write_digits(root / "low", range(3), first=0, images=6)
    write_digits(root / "high", range(7, 10), first=0, images=6)
    write_digits(root / "test" / "low", range(3), first=50, images=2)
    (root / "high" / "7" / "notes.txt").write_text("not an image")
    return root


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep embeddings out of the user's cache; the tests share them."""
    monkeypatch.setenv("HYCAL_CACHE", str(shared_cache))
    return shared_cache


@pytest.fixture(scope="session")
def learned(photos: Path, shared_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Learned:
    """The model that every test may read and none may change."""
    path, cache = tmp_path_factory.mktemp("learned") / "digits.hycal", ("--cache", shared_cache / "embeddings")
    low = hycal_json("learn", path, photos / "low", *cache)
    tall = hycal_json("learn", path, photos / "high", "--domain", "tall", *cache)
    return Learned(path, low, tall)


@pytest.fixture
def model(learned: Learned, tmp_path: Path) -> Path:
    """A copy of the learned model that a test may change."""
    return Path(shutil.copy(learned.path, tmp_path / "digits.hycal"))


@pytest.fixture
def low_model(photos: Path, tmp_path: Path) -> Path:
    """A model that learned the domain `low` alone."""
    hycal_json("learn", tmp_path / "low.hycal", photos / "low")
    return tmp_path / "low.hycal"


@pytest.fixture
def library_model(photos: Path, tmp_path: Path) -> Path:
    """A model that the library made of `low`: its labels have no domains, and its file names no encoder."""
    hycal("embed", photos / "low", "--out", tmp_path / "low.npz")
    table = read_table(tmp_path / "low.npz")
    classifier = HyCal(fusion="image").fit(table.rows, table.labels)
    classifier.encoder_ = table.fingerprint
    classifier.save(tmp_path / "library.hycal")
    return tmp_path / "library.hycal"


@pytest.fixture
def broken_image(tmp_path: Path) -> Path:
    """A file that begins like a PNG and ends at once, in a class folder."""
    path = tmp_path / "broken" / "cat" / "1.png"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    return path
