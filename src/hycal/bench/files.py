"""Files that appear in one step."""

from __future__ import annotations

from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step: whoever looks sees the old one or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")  # one name, so that what a kill leaves is written over
    temporary.write_bytes(content)
    temporary.replace(path)
