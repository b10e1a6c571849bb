"""The development data: where it lies, and how a test without it is skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: HYCAL_DATA, or shared/data beside the repository.
DATA = Path(os.environ.get("HYCAL_DATA", ROOT.parent / "shared" / "data"))


def missing(folder: str) -> str:
    """Return why the tests of this folder of the data are skipped, or nothing."""
    return "" if (DATA / folder).is_dir() else f"needs {DATA / folder}; set HYCAL_DATA to a folder that holds {folder}"


def require(folder: str) -> Path:
    """Return a folder of the data; skip the test where it is missing."""
    if reason := missing(folder):
        pytest.skip(reason)
    return DATA / folder


def needs(folder: str) -> pytest.MarkDecorator:
    """Return the mark that skips a test where this folder of the data is missing."""
    return pytest.mark.skipif(bool(missing(folder)), reason=missing(folder) or "the data are there")
