"""`hycal new method`: a package to start from; tests/classifiers/test_plugin.py installs, tests and benchmarks one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hycal.classifiers.registry import import_method
from hycal.testing import check_laws
from tests.support.commands import hycal, hycal_error


def test_a_package_under_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = hycal("new", "method", "MyKLDA2")
    assert "pytest my-klda2" in said
    written = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    files = ("README.md", "pyproject.toml", "src/my_klda2/__init__.py", "tests/test_my_klda2.py")
    assert written == [f"my-klda2/{name}" for name in files]
    texts = "".join((tmp_path / name).read_text(encoding="utf-8") for name in written)
    assert 'MyKLDA2 = "my_klda2:MyKLDA2"' in texts and "earest" not in texts.replace("nearest_median", "earest")
    monkeypatch.syspath_prepend(str(tmp_path / "my-klda2" / "src"))
    check_laws(import_method("my_klda2:MyKLDA2")())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my-method", "is not the name of a class"),
        ("../Up", "is not the name of a class"),
        ("lower", "is not the name of a class"),
        ("NCM", "There is a method NCM already"),
        ("Hycal", "There is a method HyCal already"),
        ("Json", "There is a module json already"),
        ("Class", "is not the name of a class"),
    ],
)
def test_names_that_cannot_be_used(name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in hycal_error("new", "method", name)
    assert not list(tmp_path.iterdir())


def test_nothing_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert "exists, so nothing was written" in hycal_error("new", "method", "Mine", "--folder", tmp_path / "mine")
    assert not list((tmp_path / "mine").iterdir())
