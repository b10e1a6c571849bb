"""COCO: categories of whole images.

An annotation without a box gives the class of its image. Boxes do so too if all of an image have one category, as those
that `hycal sort` writes. The supercategory is the domain. An annotation with a score is a prediction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hycal.data.annotations.image_label import MODEL, ImageLabel, SizeOf, by_image, one_class, probability
from hycal.errors import HyCalError
from hycal.escaping import json_text

MARK = b'{"info": {"description": "hycal labels"}'


def is_coco(content: Any) -> bool:
    """Whether JSON has the three lists of COCO."""
    return isinstance(content, dict) and {"images", "annotations", "categories"} <= set(content)


def read_coco(path: Path, content: Any) -> list[ImageLabel]:
    """Return the labels in the content of a COCO file."""
    try:
        categories = {entry["id"]: _category(entry) for entry in content["categories"]}
        names: dict[Any, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        scores: dict[Any, float] = {}
        for entry in content["annotations"]:
            score = entry.get("score")
            names[entry["image_id"]]["" if score is None else MODEL].append(categories[entry["category_id"]])
            if score is not None:
                scores[entry["image_id"]] = probability(score)
        labels = []
        for image in content["images"]:
            file, number = str(image["file_name"]), image["id"]
            where, found = f"image {number}", names.get(number, {})
            if not found:
                labels.append(ImageLabel(file, where=where))
            for by, own in found.items():
                confidence = scores[number] if by else None
                labels.append(one_class(file, own, by=by, confidence=confidence, where=where))
        return labels
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HyCalError(
            f"{path} is not a COCO file that can be read: {type(error).__name__} {error}. Expected images with id and "
            "file_name, annotations with image_id and category_id, categories with id and name."
        ) from None


def _category(entry: Any) -> str:
    """Return the name of a category, with its supercategory as the domain."""
    name, domain = str(entry["name"]).strip(), str(entry.get("supercategory") or "").strip()
    whole = not domain or domain.lower() == "none" or name.startswith(f"{domain}/")
    return name if whole else f"{domain}/{name}"


def write_coco(labels: Sequence[ImageLabel], size_of: SizeOf) -> bytes:
    """Return labels as COCO; where the size of an image is known, its annotation has a box of the whole image."""
    domains = {item.name: item.domain for item in labels if item.label}
    numbers = {name: number for number, name in enumerate(sorted(domains), start=1)}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, (file, own) in enumerate(by_image(labels).items(), start=1):
        size = size_of(file)
        sized = {} if size is None else {"width": size[0], "height": size[1]}
        box = {} if size is None else {"bbox": [0, 0, *size], "area": size[0] * size[1], "segmentation": []}
        images.append({"id": number, "file_name": file, **sized})
        for item in own:
            score = {"score": 0.0 if item.confidence is None else item.confidence} if item.predicted else {}
            about = {"image_id": number, "category_id": numbers[item.name], **box, "iscrowd": 0, **score}
            annotations.append({"id": len(annotations) + 1, **about})
    categories = [{"id": number, "name": name, "supercategory": domains[name]} for name, number in numbers.items()]
    content = {"info": {"description": "hycal labels"}, "images": images, "annotations": annotations}
    return json_text(content | {"categories": categories}).encode()
