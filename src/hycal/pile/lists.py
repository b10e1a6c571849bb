"""What `hycal sort` writes beside the images: a CSV table, COCO annotations, and sidecar files with keywords (XMP)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from hycal.escaping import csv_line, html_text, json_text
from hycal.pile.manifest import COCO, CSV, SORTED, Manifest, PlannedMove

SIDECAR = ".xmp"

#: What the first bytes of every list have that hycal wrote.
MARKS: Mapping[str, bytes] = {
    CSV: b"file,sorted,place,label,probability",
    COCO: b'{"info": {"description": "hycal sort"}',
}

_XMP = """<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="hycal">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:lr="http://ns.adobe.com/lightroom/1.0/">
   <dc:subject><rdf:Bag>{keywords}</rdf:Bag></dc:subject>
   <lr:hierarchicalSubject><rdf:Bag><rdf:li>{path}</rdf:li></rdf:Bag></lr:hierarchicalSubject>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>
"""


def lists_of(out: Path, manifest: Manifest) -> dict[str, bytes]:
    """Return the lists that a sorted folder should have, by name."""
    writers = {CSV: _csv, COCO: _coco}
    return {name: writers[name](out, manifest) for name in manifest.written}


def sidecar_of(entry: PlannedMove) -> bytes:
    """Return the sidecar file of an image: domain and class as keywords, and as a path of keywords."""
    names = [name for name in entry.label.split("/", 1) if name]
    keywords = "".join(f"<rdf:li>{html_text(name)}</rdf:li>" for name in names)
    return _XMP.format(keywords=keywords, path=html_text("|".join(names))).encode()


def _csv(out: Path, manifest: Manifest) -> bytes:
    rows = (
        csv_line((entry.source, entry.target, entry.place, entry.label, f"{entry.probability:.6f}"))
        for entry in manifest.entries
    )
    return MARKS[CSV] + b"\r\n" + "".join(f"{row}\r\n" for row in rows).encode()


def _coco(out: Path, manifest: Manifest) -> bytes:
    """Return image-level annotations: one box of the whole image for each sorted image."""
    entries = [entry for entry in manifest.entries if entry.place == SORTED]
    labels = {label: number for number, label in enumerate(sorted({entry.label for entry in entries}), start=1)}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, entry in enumerate(entries, start=1):
        width, height = _size(out / entry.target)
        images.append({"id": number, "file_name": Path(entry.target).name, "width": width, "height": height})
        about = {"bbox": [0, 0, width, height], "area": width * height, "iscrowd": 0, "score": entry.probability}
        annotations.append({"id": number, "image_id": number, "category_id": labels[entry.label], **about})
    categories = [
        {"id": number, "name": label, "supercategory": label.rpartition("/")[0]} for label, number in labels.items()
    ]
    content = {"info": {"description": "hycal sort"}, "images": images, "annotations": annotations}
    return json_text(content | {"categories": categories}).encode()


def _size(path: Path) -> tuple[int, int]:
    """Return width and height from the head of a file; 0 for one that is not there, or was changed since."""
    try:
        with Image.open(path) as image:
            return image.size
    except Exception:  # Pillow raises errors of any type
        return 0, 0
