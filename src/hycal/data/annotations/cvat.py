"""CVAT for images, version 1.1: an XML file in which images have tags.

Without tags, the labels of boxes and other shapes count, if all of an image have the same. Labels of the source `auto`
are predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from hycal.data.annotations.image_label import (
    MODEL,
    ImageLabel,
    SizeOf,
    by_image,
    known_split,
    one_class,
    parse_xml,
    probability,
    read_whole,
)
from hycal.errors import HyCalError
from hycal.escaping import html_text

MARK = b"<!-- hycal labels -->"
_CONFIDENCE = "confidence"


def read_cvat(path: Path) -> list[ImageLabel]:
    """Return the labels of a file of CVAT."""
    try:
        root = parse_xml(read_whole(path))
        if root.tag != "annotations":
            raise HyCalError(f"its outer element is {root.tag[:50]!r}")
        if root.find("track") is not None:
            raise HyCalError("it has the tracks of a video")
        return [item for image in root.iter("image") for item in _labels(image)]
    except HyCalError as error:
        raise HyCalError(
            f"{path} cannot be read: {error}. Expected `CVAT for images 1.1`: <annotations> with <image> and <tag>."
        ) from None


def _labels(image: Element) -> list[ImageLabel]:
    file, where = image.get("name", ""), f"image {image.get('id', '')}"
    if not file:
        raise HyCalError(f"{where} has no name")
    split: dict[str, Any] = {"split": known_split(image.get("subset"))}
    shapes = [shape for shape in image if shape.get("label")]
    tags = [shape for shape in shapes if shape.tag == "tag"] or shapes
    found = []
    for by in ("", MODEL):
        own = [tag for tag in tags if (MODEL if tag.get("source") == "auto" else "") == by]
        if own:
            confidence = _confidence(own) if by else None
            names = [tag.get("label", "") for tag in own]
            found.append(one_class(file, names, by=by, confidence=confidence, where=where, **split))
    return found or [ImageLabel(file, where=where, **split)]


def _confidence(tags: Sequence[Element]) -> float | None:
    values = [entry.text or "" for tag in tags for entry in tag.iter("attribute") if entry.get("name") == _CONFIDENCE]
    try:
        return probability(values[0]) if values else None
    except ValueError:
        return None


def write_cvat(labels: Sequence[ImageLabel], size_of: SizeOf) -> bytes:
    """Return labels as XML of CVAT."""
    splits = {item.file: item.split for item in labels}
    names = sorted({item.name for item in labels if item.label})
    declared = "".join(f"<label><name>{html_text(name)}</name><type>tag</type></label>" for name in names)
    lines = ['<?xml version="1.0" encoding="utf-8"?>', MARK.decode(), "<annotations>", "<version>1.1</version>"]
    lines.append(f"<meta><task><labels>{declared}</labels></task></meta>")
    for number, (file, own) in enumerate(by_image(labels).items()):
        size = size_of(file)
        about = "" if size is None else f' width="{size[0]}" height="{size[1]}"'
        split = f' subset="{html_text(splits[file])}"' if splits[file] else ""
        lines.append(f'<image id="{number}" name="{html_text(file)}"{split}{about}>{"".join(map(_tag, own))}</image>')
    return "\n".join([*lines, "</annotations>", ""]).encode()


def _tag(item: ImageLabel) -> str:
    sure = "" if item.confidence is None else f'<attribute name="{_CONFIDENCE}">{item.confidence}</attribute>'
    return f'<tag label="{html_text(item.name)}" source="{"auto" if item.predicted else "manual"}">{sure}</tag>'
