"""Labels as rows of a table: CSV, with commas, semicolons or tabs, and JSON lines.

The columns are `file`, or `path`, and `label`; where wanted `domain`, `split`, `confidence`, `by`, `when` and `sha256`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hycal.data.annotations.image_label import ImageLabel, read_whole
from hycal.errors import HyCalError
from hycal.escaping import csv_line, csv_text

COLUMNS = ("file", "label", "domain", "split", "confidence", "by", "when", "sha256")
MARK = ",".join(COLUMNS).encode()
_DELIMITERS = ",;\t"


def read_csv_labels(path: Path) -> list[ImageLabel]:
    """Return the labels of a CSV table. Its first line says which character separates the cells."""
    try:
        text = read_whole(path).decode("utf-8-sig")
        delimiter = _delimiter(path, io.StringIO(text).readline())
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
        reader.fieldnames = [name.strip().lower() for name in reader.fieldnames or ()]
        return [
            _label(path, f"line {reader.line_num}", {name: _cell(value) for name, value in row.items()})
            for row in reader
        ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise HyCalError(f"The manifest {path} cannot be read: {error}. Expected CSV in UTF-8.") from None


def _delimiter(path: Path, line: str) -> str:
    for delimiter in _DELIMITERS:
        header = {name.strip().lower() for row in csv.reader([line], delimiter=delimiter) for name in row}
        if "label" in header and header & {"file", "path"}:
            return delimiter
    raise HyCalError(
        f"The first line of {path} is {line.strip()[:200]!r}; expected a header with the columns file (or path) and "
        "label, and split and domain if there are any, separated by commas, semicolons or tabs."
    )


def _cell(value: Any) -> Any:
    return csv_text(value) if isinstance(value, str) else value


def read_json_lines(path: Path) -> list[ImageLabel]:
    """Return the labels of a file with one JSON object in each line."""
    try:
        lines = read_whole(path).decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise HyCalError(f"The manifest {path} cannot be read: {error}. Expected JSON lines.") from None
    return [_label(path, f"line {number}", row) for number, row in _objects(path, lines)]


def _objects(path: Path, lines: Sequence[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise HyCalError(f"{path}, line {number} is not JSON: {error}.") from None
        if not isinstance(entry, dict):
            raise HyCalError(f'{path}, line {number}: expected an object, {{"file": ..., "label": ...}}.')
        yield number, entry


def _label(path: Path, where: str, row: Mapping[str, Any]) -> ImageLabel:
    texts = {name: _text(path, where, row, name) for name in (*COLUMNS, "path") if name != "confidence"}
    file = texts.pop("path") if not texts["file"] else texts["file"]
    if not file:
        raise HyCalError(f"{path}, {where}: the file must not be empty.")
    known: dict[str, Any] = {name: text for name, text in texts.items() if name not in ("file", "path")}
    return ImageLabel(file, **known, confidence=_confidence(path, where, row), where=where)


def _text(path: Path, where: str, row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise HyCalError(f"{path}, {where}: {name} is {value!r}; expected text.")
    return str(value).strip()


def _confidence(path: Path, where: str, row: Mapping[str, Any]) -> float | None:
    value = row.get("confidence")
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except (ValueError, TypeError, OverflowError):
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise HyCalError(f"{path}, {where}: confidence is {value!r}; expected a number from 0 to 1.")
    return number


def write_csv_labels(labels: Sequence[ImageLabel]) -> bytes:
    """Return labels as CSV. An image without a label has a row to fill in."""
    lines = [MARK.decode()]
    for item in labels:
        cells = ("" if item.confidence is None else item.confidence, item.by, item.when, item.sha256)
        lines.append(csv_line((item.file, item.label, item.domain, item.split, *cells)))
    return "".join(f"{line}\r\n" for line in lines).encode()
