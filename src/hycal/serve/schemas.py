"""What clients receive, as the OpenAPI document describes it; `requests` has what they send.

Pydantic reads a response from the attributes of the project's own dataclasses: a field has the name of the attribute,
or an alias says where it is.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from hycal.escaping import whole_unicode

Text = Annotated[str, BeforeValidator(whole_unicode)]
LabelText = Annotated[str, BeforeValidator(str)]  # a model that was made elsewhere may have numbers for labels
Hexadecimal = Annotated[str, BeforeValidator(lambda given: given.hex() if isinstance(given, bytes) else given)]


class ResponseBody(BaseModel):
    """The body of a response, or a part of one; read from attributes, or from a mapping."""

    model_config = ConfigDict(from_attributes=True, populate_by_name=True)


class ProblemOut(ResponseBody):
    """Why a request was not carried out: what happened, what was expected, what to do."""

    detail: str


class HealthOut(ResponseBody):
    """The server is running."""

    status: str
    version: str


class LimitsOut(ResponseBody):
    """What one request may hold; `tray` is how many images the server keeps that were sent and not learned yet."""

    request_bytes: int
    image_bytes: int
    image_pixels: int
    images: int
    rows: int
    tray: int


class InfoOut(ResponseBody):
    """The model as a whole.

    `undo` and `redo` say what the next undo would take back, and the next redo make again, if anything; `undo_empties`
    whether that undo leaves no class. A `read_only` server refuses every change; a `sealed` model has no images and no
    undo. `views` has the width of each encoder of a combined one, in the order of a row; images that are sent lack the
    `missing_views`, for the reason beside them.
    """

    name: str
    model: str
    method: str
    encoder: str
    views: dict[str, int]
    missing_views: dict[str, str]
    can_embed: bool
    read_only: bool
    sealed: bool
    classes: int
    images: int
    domains: dict[str, int]
    bytes: int
    undo: str | None
    undo_empties: bool
    redo: str | None
    limits: LimitsOut


class NeighbourOut(ResponseBody):
    """A learned image near the query."""

    image: Hexadecimal = Field(validation_alias=AliasPath("example", "identity"))
    label: LabelText
    similarity: float


class PartOut(ResponseBody):
    """One kind of evidence: what it adds, the measure behind it, and the weight of that measure."""

    name: str
    share: float
    measure: float | None
    weight: float | None


class EvidenceOut(ResponseBody):
    """Why a class has its score. The shares of the parts add up to a score in [0, 1], or to evidence in nats."""

    shots: int
    nearest: list[NeighbourOut]
    quantity: str
    parts: list[PartOut]


class CandidateOut(ResponseBody):
    """A class that an image may show."""

    label: LabelText
    score: float
    probability: float
    evidence: EvidenceOut | None


class ImageOut(ResponseBody):
    """An image that was sent: its content hash, or the problem with it; `learned_as` if the model knows it."""

    name: Text
    image: Hexadecimal | None
    problem: str | None
    learned_as: LabelText | None


class PlaceOut(ResponseBody):
    """What a folder says about the files in it; "" where it says nothing."""

    folder: str
    domain: str
    split: str
    name: str


class FoldersOut(ResponseBody):
    """The folders of the request."""

    places: list[PlaceOut]


class ImagesOut(ResponseBody):
    """Images that were sent, in the order of the request."""

    images: list[ImageOut]
    milliseconds: dict[str, float]


class AnswerOut(ImageOut):
    """The answer to one image: candidates, best first, or the problem with it; `learned_as` if the model knows it.

    `unknown` says whether it fits no learned class; null if nobody asked (`unknown=0`), or no class has two images.
    """

    unknown: bool | None
    candidates: list[CandidateOut]


class AnswersOut(ResponseBody):
    """The answers of one model, in the order of the request."""

    model: str
    answers: list[AnswerOut]
    milliseconds: dict[str, float]


class SkippedOut(ResponseBody):
    """An image that was not learned, and why."""

    name: Text
    reason: str


class ClassOut(ResponseBody):
    """One class with some of its images."""

    label: LabelText
    domain: str
    name: str
    shots: int
    images: list[Hexadecimal]


class ClassesOut(ResponseBody):
    """All classes, sorted."""

    model: str
    classes: list[ClassOut]


class ChangeOut(ResponseBody):
    """A change that is on the disk, and what a table of the classes needs to follow it.

    Hashes of the model before and after; images learned or forgotten, by class; the model as a whole; the rows of the
    classes that changed, and the labels that are gone. If another change came in between, `info.model` is not `after`:
    ask for all classes again.
    """

    action: str
    what: str
    before: str
    after: str
    images: dict[LabelText, int]
    skipped: list[SkippedOut]
    undoable: bool
    milliseconds: dict[str, float]
    info: InfoOut
    rows: list[ClassOut]
    gone: list[LabelText]


class CorrectionOut(ChangeOut):
    """A correction, and the model's new answer to that image."""

    answer: AnswerOut


class ExampleOut(ResponseBody):
    """A learned image."""

    image: Hexadecimal = Field(validation_alias="identity")
    name: Text


class ExamplesOut(ResponseBody):
    """The images of one class."""

    label: str
    examples: list[ExampleOut]


class ScoreOut(ResponseBody):
    """How many were right, of how many."""

    right: int
    total: int


class EstimateOut(ResponseBody):
    """The accuracy to expect on new images: a 90% interval, from 0 to 1 if nothing could be judged."""

    low: float
    high: float


class ClassAdviceOut(ResponseBody):
    """How many images of a class are right, each judged by a model without it; what to expect, and what to do."""

    label: LabelText
    left_out: ScoreOut
    estimate: EstimateOut
    taken_for: LabelText | None
    advice: str


class SuspectOut(ResponseBody):
    """A learned image that looks like another class."""

    image: Hexadecimal = Field(validation_alias=AliasPath("example", "identity"))
    name: Text = Field(validation_alias=AliasPath("example", "name"))
    label: LabelText
    looks_like: LabelText


class DuplicatesOut(ResponseBody):
    """Learned images of one class that are nearly the same, and are judged as one."""

    label: LabelText
    images: list[Hexadecimal] = Field(validation_alias="identities")


class AccuracyOut(ResponseBody):
    """Accuracy on learned images, each judged by a model without it.

    `overall` and `estimate` are null if the model has fewer than two classes, or it would take too long.
    """

    model: str
    overall: ScoreOut | None
    estimate: EstimateOut | None
    classes: list[ClassAdviceOut]
    suspects: list[SuspectOut]
    duplicates: list[DuplicatesOut]
    hints: list[str]


class MethodOut(ResponseBody):
    """A method: one line about it, and why this model cannot have it, "" if it can."""

    name: str
    summary: str
    problem: str


class EncoderOut(ResponseBody):
    """An encoder; `ready` if its weights are installed where the server runs."""

    name: str
    summary: str
    ready: bool


class ChoicesOut(ResponseBody):
    """The methods and encoders that there are. The encoder is free until the first image is learned."""

    methods: list[MethodOut]
    encoders: list[EncoderOut]
    encoder_is_free: bool


class TrialOut(ResponseBody):
    """The accuracy of a method on the learned images, each judged by a model without it; `problem` if it failed."""

    model: str
    method: str
    overall: ScoreOut | None = None
    estimate: EstimateOut | None = None
    seconds: float
    problem: str


class PointOut(ResponseBody):
    """A class on the map; coordinates from -1 to 1. A sealed model has no image of it."""

    label: LabelText
    domain: str
    x: float
    y: float
    shots: int
    image: Hexadecimal | None


class MapOut(ResponseBody):
    """The classes in the plane where they differ most."""

    model: str
    points: list[PointOut]


class EntryOut(ResponseBody):
    """One accepted change."""

    when: str
    action: str
    what: Text
    before: str
    after: str
    undoable: bool


class HistoryOut(ResponseBody):
    """Accepted changes, newest first."""

    entries: list[EntryOut]
