"""`hycal encoders`: which encoders there are, and what identifies one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hycal.encoders.catalog import list_encoders
from tests.support.commands import run_hycal as run


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")


def test_list_shows_every_encoder() -> None:
    result = run("encoders", "list")
    assert result.exit_code == 0
    assert all(spec.name in result.output for spec in list_encoders())


def test_the_list_is_one_line_for_each_encoder_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = run("encoders", "list").output.splitlines()
    for line, spec in zip(said[1:], list_encoders(), strict=False):
        assert line.startswith(spec.name) and line.rstrip().endswith(spec.summary) and len(line) <= 80


def test_show_of_one_that_is_not_here_has_its_licence_and_what_is_missing() -> None:
    result = run("encoders", "show", "clip-vit-b16-w8")
    assert result.exit_code == 1
    assert "licence" in result.output and "MIT" in result.output and "The file model.onnx" in result.output


def test_show() -> None:
    result = run("encoders", "show", "builtin")
    assert result.exit_code == 0
    assert "Apache-2.0" in result.output
    assert "fingerprint" in result.output


def test_wrong_name() -> None:
    result = run("encoders", "get", "clip-vit-b61")
    assert result.exit_code == 1
    assert "Did you mean 'clip-vit-b16'?" in result.output
    assert "Traceback" not in result.output


def test_bundled_needs_nothing() -> None:
    result = run("encoders", "get", "builtin")
    assert result.exit_code == 0
    assert "nothing to get" in result.output


@pytest.mark.parametrize("command", [["encoders", "show", "builtin"], ["embed", ".", "--out", "x.npz"]])
def test_wrong_backend(command: list[str]) -> None:
    result = run(*command, "--backend", "jax")
    assert result.exit_code == 2
    assert "transformers" in result.output


def test_wrong_weights_for_the_bundled_encoder(tmp_path: Path) -> None:
    result = run("encoders", "show", "builtin", "--weights", str(tmp_path))
    assert result.exit_code == 1 and "leave --weights out" in result.output
