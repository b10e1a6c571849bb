"""The README is one screen and a half, and its examples run as they stand."""

from __future__ import annotations

from tests.support.documents import ROOT, blocks, follow

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 100


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))
    assert [language for language, _ in blocks(README)] == ["", "sh", "python", ""]
    commands = follow(README)
    assert [command.split()[1] for command in commands] == ["examples/photos.py", "learn", "predict", "forget"]
    assert (tmp_path / "model.safetensors").is_file()


def test_the_commands_that_take_long_are_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [line.split()[1] for line in blocks(README)[0][1].splitlines()]
    assert targets == ["demo", "test"]
    assert all(f"\n{target}:" in makefile for target in targets)
