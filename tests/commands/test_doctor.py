"""`hycal doctor`: what works on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import hycal


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "a[b]"))
    monkeypatch.setenv("COLUMNS", "200")


def test_what_works_and_what_is_missing() -> None:
    said = hycal("doctor")
    assert "builtin: works: agrees with its golden vectors" in said
    assert "clip-vit-b16-w8: The file model.onnx" in said


def test_brackets_in_a_path_are_shown(tmp_path: Path) -> None:
    assert f"cache {tmp_path}/a[b]" in hycal("doctor")
