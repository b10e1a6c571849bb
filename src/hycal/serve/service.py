"""The service behind the routes: one project, its encoder, and the images that clients sent last."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy.typing as npt

from hycal.classifiers import METHODS
from hycal.embedding import ImageBytes
from hycal.embedding.cache import embeddings_folder, forget_images
from hycal.embedding.preparation import isolated, start_workers
from hycal.embedding.sources import ImageError
from hycal.encoders import load_encoder
from hycal.encoders.encoder import Encoder, present_parts
from hycal.errors import HyCalError
from hycal.escaping import visible
from hycal.parallel.threads import one_blas_thread
from hycal.project import Arrival, Example, Project, ReadOnlyProject, Receipt, Space, State
from hycal.project.advice import Advice, advise
from hycal.project.answers import Answer, Ranking, answer, class_map, find_unknown, rank
from hycal.project.encoder import encoder_if_any, encoder_space
from hycal.project.labels import LONGEST_NAME, whole_label
from hycal.project.learner import Learner
from hycal.project.methods import Trial, empty_state, trials
from hycal.serve.caches import CachedResult, RecentImages, mostly_unchanged, same_labels
from hycal.serve.pile.images import ImagePile, PileLimits
from hycal.validation import Floats

MOST_REFITS = 300  # images, if leave-one-out fits one model for each


class UnknownImageError(HyCalError):
    """An image that the server does not have, or does not have any more."""


@dataclass(frozen=True)
class Limits:
    """The limits of one server on what clients send."""

    requests: int = 96  # requests that are answered at the same time
    # Bytes of one request, all its images together, and of all requests at the same time.
    request_bytes: int = 64 * 2**20
    held_bytes: int = 512 * 2**20
    # Bytes and pixels of one image.
    image_bytes: int = 32 * 2**20
    image_pixels: int = 50_000_000
    images: int = 64  # images in one request
    rows: int = 4096  # embeddings in one request
    tray: int = 20_000  # images that were sent and can be learned later without sending them again; about 5 kB each


@dataclass(frozen=True)
class _Upload(ImageBytes):
    """An image file as a client sent it, of `most_bytes` at most; its name is to be shown, never a path to open."""

    most_bytes: int

    def read(self) -> bytes:
        if len(self.content) > self.most_bytes:
            raise ImageError(f"{len(self.content):,} bytes; the limit is {self.most_bytes:,}")
        return super().read()


@dataclass(frozen=True)
class SentImage:
    """An image that was sent: embedded, or with the problem that prevented it."""

    name: str
    example: Example | None
    problem: str | None = None


class Service:
    """One project that many clients use.

    Without an encoder only embeddings can be classified; `why_no_encoder` is the reason for clients that send images.
    `pile` has the images to label and sort; by default those that clients drop.
    """

    def __init__(
        self,
        project: Project,
        encoder: Encoder | None,
        *,
        why_no_encoder: str = "",
        limits: Limits | None = None,
        pile: ImagePile | None = None,
    ) -> None:
        self.project = project
        self.limits = limits or Limits()
        most = PileLimits(image_bytes=self.limits.image_bytes, image_pixels=self.limits.image_pixels)
        self.pile = pile or ImagePile(limits=most)
        self.read_only = isinstance(project, ReadOnlyProject)
        self.on_encoded: Callable[[int], None] = lambda images: None
        self._earlier: dict[str, Encoder] = {}  # by fingerprint: undo may bring back one whose files nothing here names
        self._use(encoder, why_no_encoder, project.current().space)
        self._changing = threading.Lock()  # no image is learned while the encoder is replaced
        self._trying = threading.Lock()  # one method at a time is tried: it may take minutes
        #: Advice on a model; None if it has fewer than two classes, is sealed, or it would take too long.
        self.advice = CachedResult(_advice)
        self.map = CachedResult(class_map)  # the place of each class on the map
        # Probabilities use a cached calibration, refitted once over 10% of classes changed.
        self._calibration = CachedResult(lambda state: state.classifier.calibration_, valid=mostly_unchanged)
        self._familiarity = CachedResult(lambda state: state.classifier.familiarity_, valid=same_labels)
        self.on_drop: list[Callable[[set[bytes]], None]] = []  # called with images that were forgotten for good
        project.on_loss = self._drop

    def _use(self, encoder: Encoder | None, why_none: str, space: Space) -> None:
        """Embed by `encoder`, into `space`, from now on; what another one embedded is dropped."""
        self.encoder = encoder
        self._space = space
        self._learner = Learner(
            self.project, encoder, why_no_encoder=why_none, on_encoded=lambda images: self.on_encoded(images)
        )
        self.recent = RecentImages(self.limits.tray)  # last: `receive` takes the tray first, then the learner
        self.pile.use(self._learner)

    @property
    def width(self) -> int:
        """Numbers of an embedding of the model as it was read last."""
        return self.project.state.space.dimension

    @property
    def has_text(self) -> bool:
        """Whether the encoder embeds class names too."""
        return self.encoder is not None and self.encoder.has_text

    @property
    def state(self) -> State:
        """The newest state; a reader keeps it for the whole request, because it never changes."""
        return self.project.current()

    def receive(self, uploads: Sequence[ImageBytes]) -> list[SentImage]:
        """Embed images and keep them for later requests. An image that cannot be used has its problem instead."""
        self.follow_space()  # `hycal views` may have changed the model
        most, recent = self.limits.image_bytes, self.recent
        sources = [_Upload(visible(upload.name)[-LONGEST_NAME:], upload.content, most) for upload in uploads]
        embedded = self._learner.embed(sources, most_pixels=self.limits.image_pixels, preparing=isolated())
        found, problems = embedded.examples, embedded.problems
        recent.put(found.values())  # of the same encoder
        return [SentImage(source.name, found.get(at), problems.get(at)) for at, source in enumerate(sources)]

    def sent_image(self, identity: str) -> SentImage:
        """Return an image that was sent before; if the server does not have it any more, that is its problem."""
        try:
            example = self.image(identity)
        except UnknownImageError as error:
            return SentImage("", None, str(error))
        return SentImage(example.name, example)

    def image(self, identity: str) -> Example:
        """Return an image that was learned, sent lately, or lies in the pile, by its content hash."""
        try:
            key = bytes.fromhex(identity)
        except ValueError:
            key = b""
        found = _learned_example(self.state, key) or self.recent.get(key) or self.pile.example(key)
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

    def unknown(self, state: State, rows: Sequence[Floats] | Floats, error: float) -> Sequence[bool | None]:
        """Return which embeddings fit no learned class; None if that was not asked (`error` is 0) or cannot be said."""
        asked = error and len(rows) and state.classes
        return find_unknown(state, rows, error, self._familiarity(state) if asked else None)

    def warm(self) -> None:
        """Compute what the first request will need, so that it does not wait."""
        if self.encoder is not None:
            with contextlib.suppress(OSError):
                start_workers()
        self.pile.start()
        state = self.state
        if state.classes:
            with contextlib.suppress(HyCalError):  # a request that needs it reports the error
                self._calibration(state)
                self._familiarity(state)

    def correct(self, identity: str, label: str) -> Receipt:
        """Learn an image as `label`, and as nothing else; see `Project.correct`."""
        with self._changing:
            example = self.image(identity)
            self.recent.put([example])  # if it is forgotten later, it can still be shown and learned
            return self._learner.correct(example, whole_label(self.state, label))

    def learn(self, labels: Mapping[str, str]) -> Receipt:
        """Learn images that were sent before, as labels by content hash, in one step."""
        with self._changing:
            return self._learner.learn(self._arrivals(labels))

    def _arrivals(self, labels: Mapping[str, str]) -> list[Arrival]:
        state = self.state
        whole = {label: whole_label(state, label) for label in set(labels.values())}
        arrivals, missing = [], []
        for identity, label in labels.items():
            try:
                arrivals.append(Arrival(whole[label], self.image(identity)))
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
        return arrivals

    def forget(self, target: str | bytes, *, for_good: bool) -> Receipt:
        """Forget a class, a domain or an image; `for_good` also in the undo, in memory and in the embedding cache."""
        if not for_good:
            return self.project.forget(target)

        forgotten: set[bytes] = set()

        def erase(lost: set[bytes]) -> None:
            forgotten.update(lost)
            self.pile.drop(lost)  # before the cache: else the pile might write them again
            forget_images(embeddings_folder(), lost)

        try:
            return self.project.forget_for_good(target, erase)
        finally:
            self._drop(forgotten)

    def _drop(self, forgotten: set[bytes]) -> None:
        """Drop images that were forgotten for good, here or by another program, and all that was derived from them."""
        self.recent.drop(forgotten)
        self.pile.drop(forgotten)
        self.project.state.classifier.refresh()  # what it carries over from before knows them
        for cached in (self.advice, self.map, self._calibration, self._familiarity):
            cached.clear(self.project.state.version)
        for tell in self.on_drop:
            tell(forgotten)

    def undo(self, *, only_if: str | None = None) -> Receipt:
        """Take the last change back; if `only_if` is given, only from the model of that hash."""
        receipt = self.project.undo(only_if=only_if)
        self.follow_space()
        return receipt

    def redo(self, *, only_if: str | None = None) -> Receipt:
        """Make the change again that the last undo took back; if `only_if` is given, only on the model of that hash."""
        receipt = self.project.redo(only_if=only_if)
        self.follow_space()
        return receipt

    def follow_space(self) -> None:
        """Embed by the encoder of the model as it is now, which may have got or lost a view."""
        if (space := self.state.space) is not self._space and space != self._space:
            with self._changing:
                state = self.state
                if state.space != self._space:  # no other thread was first
                    if self.encoder is not None:
                        self._earlier |= {part.fingerprint: part for part in present_parts(self.encoder)}
                    self._use(*encoder_if_any(state, loaded=self._earlier.values()), state.space)

    def change_method(self, method: str) -> Receipt:
        """Change the method: of a new project its first one, of any other with undo."""
        if not self.project.is_new:
            return self.project.change_method(method)
        with self._changing:
            return self._start(empty_state(self.state.space, has_text=self.has_text, method=method))

    def change_encoder(self, name: str) -> Receipt:
        """Embed images by another encoder; a project that has learned something is refused."""
        method = type(self.state.classifier).__name__
        self.project.check_new()
        encoder = load_encoder(name)
        with self._changing:
            receipt = self._start(empty_state(encoder_space(encoder), has_text=encoder.has_text, method=method))
            self._use(encoder, "", self.state.space)
        return receipt

    def _start(self, empty: State) -> Receipt:
        before, what = self.state.hash, f"{type(empty.classifier).__name__} on {empty.space.name}"
        self.project.start_from(empty)
        return Receipt("start", what, before, empty.hash, {}, undoable=False)

    def try_method(self, state: State, method: str) -> Trial:
        """Return the accuracy of a method on the images of a model, each judged by a model that never saw it."""
        with self._trying, one_blas_thread():
            return next(iter(trials(state, [METHODS.find(method).__name__])))


def _advice(state: State) -> Advice | None:
    if len(state.labels) < 2 or state.sealed:
        return None
    quick = len(state.examples) <= MOST_REFITS or state.classifier.leaves_out_quickly()
    return advise(state) if quick else None


def _learned_example(state: State, identity: bytes) -> Example | None:
    label = state.label_of.get(identity)
    examples = () if label is None else state.classes[label].examples
    return next((example for example in examples if example.identity == identity), None)
