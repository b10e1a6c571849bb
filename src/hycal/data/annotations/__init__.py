"""Labels of images in the formats of other programs: readers and writers, all by way of one table of `ImageLabel`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hycal.data.annotations import coco, cvat, label_studio, rows
from hycal.data.annotations.image_label import MODEL, ImageLabel, SizeOf, one_class, parse_json
from hycal.errors import HyCalError

#: What the first bytes of every file have that hycal wrote, by the name of its format.
MARKS: Mapping[str, bytes] = {
    "label-studio": label_studio.MARK,
    "cvat": cvat.MARK,
    "coco": coco.MARK,
    "csv": rows.MARK,
}


def _read_json(path: Path) -> list[ImageLabel]:
    content = parse_json(path)
    if coco.is_coco(content):
        return coco.read_coco(path, content)
    if label_studio.is_tasks(content):
        return label_studio.read_tasks(path, content)
    raise HyCalError(
        f"{path} is neither COCO (images, annotations, categories) nor a list of tasks of Label Studio, each with its "
        "data. From Label Studio export JSON, not JSON-MIN."
    )


_READERS = {
    ".csv": rows.read_csv_labels,
    ".tsv": rows.read_csv_labels,
    ".jsonl": rows.read_json_lines,
    ".json": _read_json,
    ".xml": cvat.read_cvat,
}
SUFFIXES = tuple(_READERS)


def read_labels(path: Path) -> list[ImageLabel]:
    """Return the labels in a file; its suffix, and of JSON its content, say which format it has."""
    return _READERS[path.suffix.lower()](path)


def write_labels(labels: Sequence[ImageLabel], form: str, size_of: SizeOf) -> bytes:
    """Return labels in the format called `form`, one of `MARKS`; `size_of` returns width and height of an image."""
    if form == "label-studio":
        return label_studio.write_tasks(labels)
    if form == "csv":
        return rows.write_csv_labels(labels)
    return (cvat.write_cvat if form == "cvat" else coco.write_coco)(labels, size_of)


__all__ = ["MARKS", "MODEL", "SUFFIXES", "ImageLabel", "one_class", "read_labels", "write_labels"]
