"""The dependency audit: a package that was skipped was not checked, whatever the program says at the end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tools.audit import licence, look_up, main, needed, unbounded

SKIPPED = {"name": "rich", "skip_reason": "not found"}
SOUND = {"name": "numpy", "version": "1", "vulns": []}
WEAK = {"name": "pillow", "version": "1", "vulns": [{"id": "CVE-1"}]}


def fake_pip_audit(folder: Path, *entries: dict) -> Path:
    program = folder / "pip-audit"
    program.write_text(f"#!{sys.executable}\nprint({json.dumps({'dependencies': entries})!r})\n")
    program.chmod(0o755)
    return program


def test_only_what_was_looked_up_counts(tmp_path: Path) -> None:
    packages = {name: needed()[name] for name in ("numpy", "pillow", "rich", "typer")}
    lookup = look_up(fake_pip_audit(tmp_path, SKIPPED, SOUND, WEAK), packages)
    assert lookup.found == {"pillow": ["CVE-1"]}
    assert lookup.unasked == ["rich", "typer"] and lookup.why == "not found"


@pytest.mark.parametrize("program", ["nowhere", "silent"])
def test_no_answer_is_not_a_good_answer(program: str, tmp_path: Path) -> None:
    (tmp_path / "silent").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "silent").chmod(0o755)
    assert look_up(tmp_path / program, needed()).unasked == list(needed())


def test_every_dependency_is_bounded_and_says_its_licence() -> None:
    assert not unbounded()
    assert "unknown" not in {licence(package) for package in needed().values()}


@pytest.mark.parametrize(
    ("vulnerable", "skipped", "options", "code"),
    [
        ((), (), ["--need-service"], 0),
        (["pillow"], (), [], 1),
        ((), ["rich"], [], 0),
        ((), ["rich"], ["--need-service"], 1),
    ],
)
def test_a_finding_fails_and_so_does_silence_where_the_service_is_needed(
    vulnerable, skipped, options, code, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [
        SKIPPED | {"name": name} if name in skipped else (WEAK if name in vulnerable else SOUND) | {"name": name}
        for name in needed()
    ]
    program = fake_pip_audit(tmp_path, *entries)
    monkeypatch.setattr(sys, "argv", ["audit", "--pip-audit", str(program), *options])
    assert main() == code
