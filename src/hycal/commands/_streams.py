"""The standard streams of a command: an encoding never fails, and a stream that fails is said, not mistaken."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO


def prepare_streams() -> None:
    """Write what an encoding lacks as escapes, and give a closed stream its number, so that no other file gets it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # the lowest free number; to write there is an error
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def settle(stream: TextIO) -> None:
    """Flush a stream; if it fails, let it end at the null device, as Python flushes it once more at the end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # the stream of a test, or none at all
        try:
            stream.flush()
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
