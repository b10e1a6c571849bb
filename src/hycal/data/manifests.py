"""Lists of labelled images that users write: CSV with a header, or one JSON object per line.

Fields: `file` (relative to the manifest), `label`, and where wanted `split` and `domain`.
"""

from __future__ import annotations

import csv
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hycal.data.samples import ImageSet, Split, from_names, split_of
from hycal.embedding.sources import ImageFile, ImageSource
from hycal.errors import HyCalError

_FIELDS = ("file", "label", "split", "domain")

Numbered = tuple[int, Mapping[str, Any]]


def read_csv(path: str | os.PathLike[str]) -> dict[str, ImageSet]:
    """Return the image sets of a CSV manifest, by domain."""
    source = Path(path)
    try:
        with source.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            header = reader.fieldnames or ()
            if not {"file", "label"} <= set(header):
                raise HyCalError(
                    f"The first line of {source} is {','.join(header)!r}; expected a header with the columns "
                    "file and label, and split and domain if there are any."
                )
            return _read(source, ((reader.line_num, row) for row in reader))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise HyCalError(f"The manifest {source} cannot be read: {error}. Expected CSV in UTF-8.") from None


def read_jsonl(path: str | os.PathLike[str]) -> dict[str, ImageSet]:
    """Return the image sets of a JSONL manifest, by domain."""
    source = Path(path)
    try:
        with source.open(encoding="utf-8-sig") as file:
            return _read(source, _objects(source, file))
    except (OSError, UnicodeDecodeError) as error:
        raise HyCalError(f"The manifest {source} cannot be read: {error}. Expected JSON lines.") from None


def _objects(source: Path, lines: Iterable[str]) -> Iterator[Numbered]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise HyCalError(f"{source}, line {number} is not JSON: {error}.") from None
        if not isinstance(entry, dict):
            raise HyCalError(f'{source}, line {number}: expected an object, {{"file": ..., "label": ...}}.')
        yield number, entry


def _read(source: Path, rows: Iterable[Numbered]) -> dict[str, ImageSet]:
    found: dict[str, list[tuple[ImageSource, str, Split]]] = defaultdict(list)
    for number, row in rows:
        file, label, split_name, domain = (_text(source, number, row, field) for field in _FIELDS)
        split = split_of(split_name)
        if not file or not label:
            raise HyCalError(f"{source}, line {number}: file and label must not be empty.")
        if split is None:
            raise HyCalError(f"{source}, line {number}: split {split_name!r}; expected train, val, test or none.")
        found[domain or source.stem].append((ImageFile(source.parent / file), label, split))
    if not found:
        raise HyCalError(f"The manifest {source} lists no images. Add a line for each image.")
    return {domain: from_names(domain, entries) for domain, entries in sorted(found.items())}


def _text(source: Path, number: int, row: Mapping[str, Any], field: str) -> str:
    value = row.get(field)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise HyCalError(f"{source}, line {number}: {field} is {value!r}; expected text.")
    return str(value).strip()
