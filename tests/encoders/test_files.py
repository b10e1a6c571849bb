"""The folder of the user's cache: the variable, the platform's own folder, and the move of an earlier one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hycal.encoders import files
from hycal.encoders.catalog import find_encoder
from hycal.encoders.files import cache_dir, encoder_dir


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, in an environment that names no cache."""
    for name in ("HYCAL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def library(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of a platform that has it elsewhere than in ~/.cache."""
    folder = home / "Library" / "Caches" / "hycal"
    monkeypatch.setattr(files, "user_cache_dir", lambda name, appauthor: str(folder.with_name(name)))
    return folder


def former(home: Path) -> Path:
    folder = home / ".cache" / "hycal"
    (folder / "embeddings").mkdir(parents=True)
    (folder / "embeddings" / "index.sqlite").write_bytes(b"rows")
    return folder


def test_the_variables_are_honoured(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_dir() == home / ".cache" / "hycal"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "b"))
    assert cache_dir() == home / "b" / "hycal"
    monkeypatch.setenv("HYCAL_CACHE", "~/a")
    assert cache_dir() == home / "a"
    assert encoder_dir(find_encoder("clip-vit-b16"), backend="open_clip").name == "clip-vit-b16@open_clip"
    assert not list(home.iterdir())


def test_a_folder_at_the_same_place_stays(home: Path) -> None:
    assert cache_dir() == former(home)
    assert (home / ".cache" / "hycal" / "embeddings" / "index.sqlite").read_bytes() == b"rows"


def test_an_earlier_folder_is_moved_once(home: Path, library: Path) -> None:
    former(home)
    for _ in range(2):
        assert cache_dir() == library
        assert (library / "embeddings" / "index.sqlite").read_bytes() == b"rows"
        assert not (home / ".cache" / "hycal").exists()
    former(home)  # an earlier version was used again: its folder is left alone
    assert cache_dir() == library and (home / ".cache" / "hycal").exists()


def test_an_earlier_folder_named_by_xdg_is_moved(home: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "~/.cache")  # not absolute: the XDG specification ignores it
    former(home)
    assert cache_dir() == library and (library / "embeddings").is_dir()


def test_nothing_is_moved_where_the_variable_names_a_folder(
    home: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = former(home)
    monkeypatch.setenv("HYCAL_CACHE", str(home / "a"))
    assert cache_dir() == home / "a" and old.exists() and not library.exists()


def test_nothing_is_made_where_there_was_nothing(home: Path, library: Path) -> None:
    assert cache_dir() == library and not list(home.iterdir())


def test_a_folder_that_cannot_be_moved_is_used_where_it_is(
    home: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_disk(source: object, target: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    old = former(home)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", other_disk)
        assert cache_dir() == old
    assert cache_dir() == library


def test_a_link_is_not_moved(home: Path, library: Path) -> None:
    (home / "disk").mkdir()
    (home / ".cache").mkdir()
    (home / ".cache" / "hycal").symlink_to(Path("..") / "disk")
    assert cache_dir() == home / ".cache" / "hycal" and not library.exists()


def test_two_processes_may_move_it_at_once(home: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = former(home)

    def overtaken(source: Path, target: Path) -> None:
        monkeypatch.undo()
        old.rename(library)
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "rename", overtaken)
    assert cache_dir() == library
