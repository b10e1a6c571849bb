"""The package as it was at an older commit, so that a measurement can run on both."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def source_at(commit: str) -> Iterator[Path]:
    """Yield a folder with the source of the package at a commit, for PYTHONPATH."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, stdout=subprocess.PIPE)
    if packed.returncode:
        raise SystemExit(f"There is no commit {commit!r} here: a shallow clone? Try git fetch --unshallow.")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder, "src")
