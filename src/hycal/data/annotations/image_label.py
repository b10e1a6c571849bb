"""One label of one image: what every format of labels is read into and written from.

So each pair of formats goes through the same table, a list of `ImageLabel`. An image may have several: of people, and
of a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from hycal.data.samples import split_of
from hycal.errors import HyCalError

MODEL = "model"  # who gave a label that is a prediction
MOST_BYTES = 256 * 2**20
_SHOWN = 3

SizeOf = Callable[[str], tuple[int, int] | None]  # width and height of an image, if it can be read


@dataclass(frozen=True)
class ImageLabel:
    """What a file of labels says about an image."""

    file: str  # path of the image below the folder of the images
    # Class, domain and split; "" where there is none.
    label: str = ""
    domain: str = ""
    split: str = ""
    confidence: float | None = None  # probability of the label, of a prediction
    # Who gave the label, "model" for a prediction, and when; "" if nobody knows.
    by: str = ""
    when: str = ""
    sha256: str = ""  # of the content of the image, hexadecimal; "" if it is not known
    problem: str = ""  # why the image has no label that can be learned
    where: str = field(default="", compare=False)  # place in the file, for messages
    elsewhere: tuple[str, ...] = field(default=(), compare=False)  # other paths that the image may have

    @property
    def name(self) -> str:
        """Domain and class in one: `domain/class`, or the class alone."""
        return f"{self.domain}/{self.label}" if self.domain else self.label

    @property
    def predicted(self) -> bool:
        """Whether a model gave the label."""
        return self.by == MODEL


def one_class(file: str, names: Sequence[str], **more: Any) -> ImageLabel:
    """Return the label of an image that has these names, `domain/class` or a class alone; several are a problem.

    >>> one_class("1.jpg", ["bird/heron", "bird/heron"]).label, one_class("1.jpg", ["a", "b"]).problem
    ('heron', 'has 2 labels: a, b; a model learns one class of an image')
    """
    found = sorted(set(names))
    if len(found) > 1:
        shown = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
        more["problem"] = f"has {len(found)} labels: {shown}; a model learns one class of an image"
    elif found:
        domain, slash, name = found[0].partition("/")
        more |= {"domain": domain, "label": name} if slash else {"label": domain}
    return ImageLabel(file, **more)


def probability(value: Any) -> float:
    """Return a number of a file as a probability; one outside of 0 and 1 is moved there, and no number a ValueError.

    >>> probability("1.5"), probability(10**400), probability(float("-inf"))
    (1.0, 1.0, 0.0)
    """
    number = min(max(value if isinstance(value, int) else float(value), 0.0), 1.0)  # an int may be too large for float
    if number != number:
        raise ValueError("the confidence of a prediction is not a number")
    return float(number)


def known_split(text: object) -> str:
    """Return the name of a split if it is one, else "": other programs call other things so.

    >>> known_split("Train"), known_split("default"), known_split(None)
    ('Train', '', '')
    """
    return text if isinstance(text, str) and split_of(text) else ""


def by_image(labels: Sequence[ImageLabel]) -> dict[str, list[ImageLabel]]:
    """Return the labels of each image that has some, or none, by its path, in order; problems are left out."""
    found: dict[str, list[ImageLabel]] = {}
    for item in labels:
        found.setdefault(item.file, [])
        if item.label:
            found[item.file].append(item)
    return found


def read_whole(path: Path) -> bytes:
    """Return the content of a file of labels."""
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise HyCalError(f"{path} is larger than {MOST_BYTES:,} bytes, so it was not read. Split it into several.")
    return content


def parse_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    try:
        return json.loads(read_whole(path))
    except (ValueError, RecursionError) as error:  # text that is not UTF-8 is a ValueError too
        raise HyCalError(f"{path} is not JSON: {str(error)[:200]}.") from None


class _PlainTree(ElementTree.TreeBuilder):
    """A tree of elements without a document type, which could define entities of any size."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise HyCalError("it has a DOCTYPE, which could define anything; expected XML without one")


def parse_xml(content: bytes | str) -> ElementTree.Element:
    """Return the root of an XML document; one with a document type or malformed is a HyCalError, its text a reason."""
    parser = ElementTree.XMLParser(target=_PlainTree())
    try:
        parser.feed(content)
        return parser.close()
    except (ElementTree.ParseError, ValueError, LookupError, RecursionError) as error:  # ValueError: a HyCalError too
        raise HyCalError(str(error)[:200]) from None
