"""The development data: where it lies, and how a test without it is skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.domains import data_folder

ROOT = Path(__file__).resolve().parents[2]
DATA = data_folder()


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
