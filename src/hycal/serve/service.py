"""The service behind the routes: one project, its encoder, and the images that clients sent last."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy.typing as npt

from hycal.embedding import ImageBytes
from hycal.embedding.cache import embeddings_folder, forget_images
from hycal.embedding.preparation import isolated, start_workers
from hycal.embedding.sources import ImageError
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.project import Arrival, Example, Project, Receipt, State
from hycal.project.advice import Advice, advise
from hycal.project.answers import Answer, Ranking, answer, class_map, rank
from hycal.project.labels import LONGEST_NAME, check_class_name
from hycal.project.learner import Learner
from hycal.serve.caches import CachedResult, RecentImages, mostly_unchanged, same_labels
from hycal.uncertainty.unknown import rejected
from hycal.validation import Floats, Label

MOST_REFITS = 300  # images, if leave-one-out fits one model for each


class UnknownImageError(HyCalError):
    """An image that the server does not have, or does not have any more."""


@dataclass(frozen=True)
class Limits:
    """The limits of one server on what clients send.

    Attributes
    ----------
    requests : int
        Requests that are answered at the same time.
    request_bytes, held_bytes : int
        Bytes of one request, all its images together, and of all requests at the same time.
    image_bytes, image_pixels : int
        Bytes and pixels of one image.
    images : int
        Images in one request.
    rows : int
        Embeddings in one request.
    tray : int
        Images that were sent and can be learned later without sending them again; about 5 kB each.
    """

    requests: int = 96
    request_bytes: int = 64 * 2**20
    held_bytes: int = 512 * 2**20
    image_bytes: int = 32 * 2**20
    image_pixels: int = 50_000_000
    images: int = 64
    rows: int = 4096
    tray: int = 20_000


@dataclass(frozen=True)
class Upload:
    """An image file as a client sent it: a name to show, never a path to open, and its content."""

    name: str
    content: bytes


@dataclass(frozen=True)
class _UploadSource:
    """An upload as a source of the encoder. Its name is its number, because two uploads may have the same name."""

    name: str
    content: bytes
    most_bytes: int

    def read(self) -> bytes:
        if len(self.content) > self.most_bytes:
            raise ImageError(f"{len(self.content):,} bytes; the limit is {self.most_bytes:,}")
        return ImageBytes(self.name, self.content).read()


@dataclass(frozen=True)
class SentImage:
    """An image that was sent: embedded, or with the problem that prevented it."""

    name: str
    example: Example | None
    problem: str | None = None


@dataclass
class Stopwatch:
    """Milliseconds of each kind of work."""

    spent: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Add the time of a block."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.spent[what] = self.spent.get(what, 0.0) + 1e3 * (time.perf_counter() - began)


class Service:
    """One project that many clients use.

    Parameters
    ----------
    project : Project
    encoder : Encoder or None
        The project's encoder. Without it only embeddings can be classified.
    why_no_encoder : str
        The reason for clients that send images without an encoder.
    limits : Limits
    """

    def __init__(
        self, project: Project, encoder: Encoder | None, *, why_no_encoder: str = "", limits: Limits | None = None
    ) -> None:
        self.project = project
        self.limits = limits or Limits()
        self.encoder = encoder
        self.width = project.current().space.dimension  # numbers of an embedding
        self._learner = Learner(project, encoder, why_no_encoder=why_no_encoder)
        self.recent = RecentImages(self.limits.tray)
        self._advice = CachedResult(_advice)
        self._map = CachedResult(class_map)
        # Probabilities use a cached calibration, refitted once over 10% of classes changed.
        self._calibration = CachedResult(lambda state: state.classifier.calibration_, valid=mostly_unchanged)
        self._familiarity = CachedResult(lambda state: state.classifier.familiarity_, valid=same_labels)

    @property
    def state(self) -> State:
        """The newest state; a reader keeps it for the whole request, because it never changes."""
        return self.project.current()

    def receive(self, uploads: Sequence[Upload]) -> list[SentImage]:
        """Embed images and keep them for later requests. An image that cannot be used has its problem instead."""
        most = self.limits.image_bytes
        sources = [_UploadSource(str(number), upload.content, most) for number, upload in enumerate(uploads)]
        names = [_printable(upload.name) for upload in uploads]
        embedded = self._learner.embed(sources, names=names, most_pixels=self.limits.image_pixels, preparing=isolated())
        self.recent.put(embedded.examples.values())
        problems = {int(item.name): item.reason for item in embedded.skipped}
        found = embedded.examples
        return [SentImage(name, found.get(number), problems.get(number)) for number, name in enumerate(names)]

    def sent_image(self, identity: str) -> SentImage:
        """Return an image that was sent before; if the server does not have it any more, that is its problem."""
        try:
            example = self.image(identity)
        except UnknownImageError as error:
            return SentImage("", None, str(error))
        return SentImage(example.name, example)

    def image(self, identity: str) -> Example:
        """Return an image that was learned, or sent lately, by its content hash."""
        try:
            key = bytes.fromhex(identity)
        except ValueError:
            key = b""
        found = _learned_example(self.state, key) or self.recent.get(key)
        if found is None:
            raise UnknownImageError(f"The server no longer has the image {identity[:12]}. Send it again.")
        return found

    def answers(self, state: State, rows: npt.ArrayLike, *, top: int, why: bool = False) -> list[Answer]:
        """Return the candidates for each row, best first. Probabilities use the cached calibration."""
        return answer(state, rows, top=top, why=why, calibration=self._calibration(state) if state.classes else None)

    def answer_quickly(self, state: State, example: Example, *, top: int, why: bool = False) -> Answer:
        """Return the candidates for an image that was just learned, with the last calibration: it is not refitted."""
        (found,) = answer(state, [example.row], top=top, why=why, calibration=self._calibration.last(state))
        return found

    def ranking(self, state: State, rows: npt.ArrayLike, *, top: int) -> Ranking:
        """Return the candidates for each row as arrays, faster than `answers` for many rows."""
        return rank(state, rows, top=top, calibration=self._calibration(state) if state.classes else None)

    def unknown(self, state: State, rows: Sequence[Floats] | Floats, error: float | None) -> Sequence[bool | None]:
        """Return which embeddings fit no learned class; None if that was not asked or cannot be said."""
        known = None if error is None or not len(rows) or not state.classes else self._familiarity(state)
        if error is None or known is None or not len(known.held_out):
            return [None] * len(rows)
        queries = state.classifier.check_queries(rows)
        found: list[bool] = rejected(known(queries), known.threshold(error)).tolist()
        return found

    def warm(self) -> None:
        """Compute what the first request will need, so that it does not wait."""
        if self.encoder is not None:
            with contextlib.suppress(OSError):
                start_workers()
        state = self.state
        if state.classes:
            with contextlib.suppress(HyCalError):  # a request that needs it reports the error
                self._calibration(state)
                self._familiarity(state)

    def correct(self, identity: str, label: str) -> Receipt:
        """Learn an image as `label`, and as nothing else; see `Project.correct`."""
        example = self.image(identity)
        self.recent.put([example])  # if it is forgotten later, it can still be shown and learned
        return self._learner.correct(example, label)

    def learn(self, labels: Mapping[str, str]) -> Receipt:
        """Learn images that were sent before, as labels by content hash, in one step."""
        for label in set(labels.values()) - self.state.classes.keys():
            check_class_name(label)
        arrivals, missing = [], []
        for identity, label in labels.items():
            try:
                arrivals.append(Arrival(label, self.image(identity)))
            except UnknownImageError:
                missing.append(identity)
        if missing and len(labels) > self.limits.tray:
            raise HyCalError(
                f"{len(labels):,} images at once; the server keeps {self.limits.tray:,}. Nothing was learned. "
                "Send and learn them in several steps, or learn the folder by `hycal learn`."
            )
        if missing:
            raise UnknownImageError(
                f"The server no longer has {len(missing):,} of {len(labels):,} images, such as {missing[0][:12]}. "
                "Nothing was learned; send them again."
            )
        return self._learner.learn(arrivals)

    def forget(self, target: str | bytes, *, for_good: bool) -> Receipt:
        """Forget a class, a domain or an image; `for_good` also in the undo, in memory and in the embedding cache."""
        if not for_good:
            return self.project.forget(target)

        forgotten: set[bytes] = set()

        def erase(lost: set[bytes]) -> None:
            forgotten.update(lost)
            forget_images(embeddings_folder(), lost)

        try:
            return self.project.forget_for_good(target, erase)
        finally:
            self.recent.drop(forgotten)
            for cached in (self._advice, self._map, self._calibration, self._familiarity):
                cached.clear(self.project.state.version)

    def rename(self, old: str, new: str) -> Receipt:
        """Rename a class or a domain."""
        return self.project.rename(old, new)

    def undo(self, *, only_if: str | None = None) -> Receipt:
        """Take the last change back; if `only_if` is given, only from the model of that hash."""
        return self.project.undo(only_if=only_if)

    def advice(self, state: State) -> Advice | None:
        """Return advice on a model; None if it has fewer than two classes, or it would take too long."""
        return self._advice(state)

    def map(self, state: State) -> Mapping[Label, tuple[float, float]]:
        """Return the place of each class on the map."""
        return self._map(state)


def _advice(state: State) -> Advice | None:
    if len(state.labels) < 2:
        return None
    quick = len(state.examples) <= MOST_REFITS or state.classifier.leaves_out_quickly()
    return advise(state) if quick else None


def _learned_example(state: State, identity: bytes) -> Example | None:
    label = state.label_of.get(identity)
    if label is None:
        return None
    return next(example for example in state.classes[label].examples if example.identity == identity)


def _printable(name: str) -> str:
    return "".join(letter for letter in name if letter.isprintable())[-LONGEST_NAME:]
