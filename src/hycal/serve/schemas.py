"""What is told over the wire, as the OpenAPI document describes it."""

from __future__ import annotations

from pydantic import BaseModel


class Problem(BaseModel):
    """Why a request was not carried out: what happened, what was expected, what to do."""

    detail: str


class Health(BaseModel):
    """The server is there."""

    status: str
    version: str


class LimitsOfServer(BaseModel):
    """What one request may hold; `tray` is how many images that were not learned yet are at hand."""

    request_bytes: int
    image_bytes: int
    image_pixels: int
    images: int
    rows: int
    tray: int


class Info(BaseModel):
    """The model as a whole. `undo` says what the next undo would take back, if anything."""

    name: str
    model: str
    method: str
    encoder: str
    can_embed: bool
    classes: int
    images: int
    domains: dict[str, int]
    bytes: int
    undo: str | None
    limits: LimitsOfServer


class Neighbour(BaseModel):
    """A learned image near the query."""

    image: str
    label: str
    similarity: float


class Parts(BaseModel):
    """What HyCal's score in [0, 1] is made of: the weight of the distance, both measures, and what each adds."""

    weight: float
    cosine: float
    distance: float
    cosine_share: float
    distance_share: float


class Evidence(BaseModel):
    """Why a class scored what it did; no parts for methods other than HyCal."""

    shots: int
    nearest: list[Neighbour]
    parts: Parts | None


class Candidate(BaseModel):
    """A class that an image may show."""

    label: str
    score: float
    probability: float
    evidence: Evidence | None


class Answer(BaseModel):
    """The answer to one image: candidates, best first, or the problem with it; `learned_as` if the model knows it.

    `unknown` tells whether it fits no learned class; null if that was not asked, or no class has two images.
    """

    name: str
    image: str | None
    problem: str | None
    learned_as: str | None
    unknown: bool | None
    candidates: list[Candidate]


class Answers(BaseModel):
    """Answers of one whole model, in the order of the question."""

    model: str
    answers: list[Answer]
    milliseconds: dict[str, float]


class SeenImage(BaseModel):
    """An image that was sent: its content hash to learn it by, or the problem with it."""

    name: str
    image: str | None
    problem: str | None
    learned_as: str | None


class SeenImages(BaseModel):
    """Images that were sent."""

    images: list[SeenImage]
    milliseconds: dict[str, float]


class Skipped(BaseModel):
    """An image that was not learned, and why."""

    name: str
    reason: str


class ClassRow(BaseModel):
    """One class with some of its images."""

    label: str
    domain: str
    name: str
    shots: int
    images: list[str]


class Changed(BaseModel):
    """A change that is on the disk, and what a table of the classes needs to follow it.

    Hashes of the model before and after; images learned or forgotten, by class; the model as a whole; the rows of the
    classes that changed, and the labels that are gone. Should another change have come in between, `info.model` is not
    `after`: ask for all classes again.
    """

    action: str
    what: str
    before: str
    after: str
    images: dict[str, int]
    skipped: list[Skipped]
    undoable: bool
    milliseconds: dict[str, float]
    info: Info
    rows: list[ClassRow]
    gone: list[str]


class Corrected(Changed):
    """A correction, and what the model answers to that image now."""

    answer: Answer


class Classes(BaseModel):
    """All classes, sorted."""

    model: str
    classes: list[ClassRow]


class Example(BaseModel):
    """A learned image."""

    image: str
    name: str


class Examples(BaseModel):
    """The images of one class."""

    label: str
    examples: list[Example]


class Score(BaseModel):
    """How many were right, of how many."""

    right: int
    total: int


class ClassAdvice(BaseModel):
    """How often a class would be told right unseen, what it is taken for, and what to do."""

    label: str
    left_out: Score
    taken_for: str | None
    advice: str


class Suspect(BaseModel):
    """A learned image that looks like another class."""

    image: str
    name: str
    label: str
    looks_like: str


class Accuracy(BaseModel):
    """Leave-one-out estimates; `overall` is None where there is nothing to tell apart, or it would take too long."""

    model: str
    overall: Score | None
    classes: list[ClassAdvice]
    suspects: list[Suspect]


class Point(BaseModel):
    """A class on the map; coordinates from -1 to 1."""

    label: str
    domain: str
    x: float
    y: float
    shots: int
    image: str


class Map(BaseModel):
    """The classes in the plane where they differ most."""

    model: str
    points: list[Point]


class Event(BaseModel):
    """One accepted change."""

    when: str
    action: str
    what: str
    before: str
    after: str
    undoable: bool


class History(BaseModel):
    """Accepted changes, newest first."""

    entries: list[Event]
