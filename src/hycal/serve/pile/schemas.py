"""What clients send about a pile, and what they receive."""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasPath, Field

from hycal.serve.requests import ImageHash, RequestBody
from hycal.serve.schemas import AnswerOut, EstimateOut, Hexadecimal, ResponseBody, SkippedOut, Text

MOST_IN_HAND = 12
Person = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", description="A number that a page made for itself.")]
Share = Annotated[float, Field(gt=0, lt=1)]


class NextIn(RequestBody):
    """Who asks, how many images that person should have in hand, and one that should be among them if it is free."""

    person: Person
    most: Annotated[int, Field(ge=1, le=MOST_IN_HAND)] = 6
    first: ImageHash | None = None


class LaterIn(RequestBody):
    """An image that a person puts off."""

    person: Person
    image: ImageHash


class SortIn(RequestBody):
    """The share of wrong images to expect in class folders, and of known ones in unknown/; null: nothing is unknown."""

    error: Share = 0.05
    unknown: Share | None = 0.05


class PileOut(ResponseBody):
    """The pile: its files, how far it is embedded and labelled, and what to expect of the rest.

    `rest` is the accuracy to expect of images that nobody labelled, null while that cannot be said; `more` is about how
    many more labels bring it to `target`. `folder` is the name of the folder that the server was started with, "" for
    images that were dropped; `out` is the folder that it is sorted into, and `sorted` whether it is there.
    """

    folder: Text
    out: Text | None
    sorted: bool
    total: int
    embedded: int
    skipped: int
    left_out: int
    labelled: int
    problem: Text
    people: int
    rest: EstimateOut | None
    target: float
    more: int | None


class NextOut(ResponseBody):
    """The images that a person has in hand, with the model's candidates for each, and the pile."""

    model: str
    images: list[AnswerOut]
    pile: PileOut


class SkippedFilesOut(ResponseBody):
    """The last files that cannot be used, with the reason."""

    files: list[SkippedOut]


class GroupOut(ResponseBody):
    """Images that are alike and fit no class: the most typical first, and the mean cosine of two of them."""

    images: list[Hexadecimal]
    similarity: float


class GroupsOut(ResponseBody):
    """The groups, the largest first."""

    model: str
    groups: list[GroupOut]


class StayedOut(ResponseBody):
    """An image that was not sorted, and why."""

    name: Text = Field(validation_alias=AliasPath("file"))
    reason: str


class SortedOut(ResponseBody):
    """What became of a pile: the folder, images in class folders, unsure and unknown, and the share of wrong ones."""

    folder: Text
    classes: int
    sorted: int
    unsure: int
    unknown: int
    wrong: float
    problems: list[StayedOut]


class UnsortedOut(ResponseBody):
    """The folder that was removed again."""

    folder: Text
