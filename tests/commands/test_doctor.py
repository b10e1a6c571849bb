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
    lines = said.splitlines()
    assert lines[1].startswith("builtin: works") and max(map(len, lines)) < 300
    absent = [line for line in lines if line.startswith("not installed: ")]
    assert len(absent) == 1 and "clip-vit-b16-w8, " in absent[0] and "hycal encoders get NAME" in absent[0]


def test_brackets_in_a_path_are_shown(tmp_path: Path) -> None:
    assert f"cache {tmp_path}/a[b]" in hycal("doctor")
