"""What a newcomer types first answers at once: it imports no library for numbers that it does not need."""

import subprocess
import sys

import pytest

import hycal
from hycal import classifiers, loading

HEAVY = {"sklearn", "scipy", "joblib", "matplotlib", "onnxruntime", "onnx", "tokenizers", "torch"}

RUN = """
import sys
from hycal.cli import app
try:
    app(sys.argv[1:], prog_name="hycal")
finally:
    print("imported:", *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def run(*arguments: str) -> tuple[str, set[str]]:
    """Return what `hycal` says, and the libraries that it imported."""
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=True)
    said, _, imported = done.stdout.rpartition("imported:")
    return said, set(imported.split())


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["bench", "--help"], ["embed", "--help"], ["gravity", "--help"]]
)
def test_help_and_version_import_nothing_heavy(arguments: list[str]) -> None:
    said, imported = run(*arguments)
    assert "hycal" in said and "typer" in imported
    assert not imported & HEAVY


def test_listing_the_methods_shows_that_the_check_can_fail() -> None:
    said, imported = run("bench", "list")
    assert "TipAdapter" in said
    assert {"sklearn", "scipy"} <= imported


def test_the_package_offers_every_name_though_late() -> None:
    assert {*classifiers.__all__, "load"} < set(hycal.__all__) <= set(dir(hycal))
    assert all(getattr(hycal, name) is getattr(classifiers, name) for name in classifiers.__all__)
    assert hycal.load is loading.load
    with pytest.raises(AttributeError, match="no attribute 'HyKal'"):
        _ = hycal.HyKal  # type: ignore[attr-defined]
