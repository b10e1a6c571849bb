"""What the routes do, as plain functions of one project, its encoder and the images seen lately."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy.typing as npt

from hycal.embedding import ImageBytes
from hycal.embedding.cache import embeddings_folder, forget_images
from hycal.embedding.sources import ImageError
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.project import Arrival, Example, Project, Receipt, State
from hycal.project.advice import Advice, advise
from hycal.project.answers import Answer, Ranking, answer, rank
from hycal.project.labels import LONGEST_NAME, check_class_name
from hycal.project.learner import Learner
from hycal.project.mapping import class_map
from hycal.serve.caches import Latest, much_the_same, same_classes
from hycal.serve.limits import Limits
from hycal.serve.tray import Tray
from hycal.uncertainty.unknown import Familiarity, rejected
from hycal.validation import Floats, Label

MOST_ONE_BY_ONE = 300  # images, where leaving one out makes one model for each


class UnknownImageError(HyCalError):
    """An image that the server does not have at hand."""


@dataclass(frozen=True)
class Upload:
    """An image as a client sent it: a name to show, never a path to open, and its content."""

    name: str
    content: bytes


@dataclass(frozen=True)
class _Numbered:
    """An upload on its way through the encoder, under its number: two uploads may have one name."""

    name: str
    content: bytes
    most_bytes: int

    def read(self) -> bytes:
        if len(self.content) > self.most_bytes:
            raise ImageError(f"{len(self.content):,} bytes; the limit is {self.most_bytes:,}")
        return ImageBytes(self.name, self.content).read()


@dataclass(frozen=True)
class Look:
    """One upload that was looked at: the image, or the problem with it."""

    name: str
    example: Example | None
    problem: str | None = None


@dataclass
class Stopwatch:
    """Milliseconds by what they were spent on."""

    spent: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Count the time of a block."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.spent[what] = self.spent.get(what, 0.0) + 1e3 * (time.perf_counter() - began)


class Service:
    """One project, opened for many.

    Parameters
    ----------
    project : Project
    encoder : Encoder or None
        That of the project; without it only embeddings can be classified.
    why_no_encoder : str
        What to tell those who send images all the same.
    limits : Limits
    """

    def __init__(
        self, project: Project, encoder: Encoder | None, *, why_no_encoder: str = "", limits: Limits | None = None
    ) -> None:
        self.project = project
        self.limits = limits or Limits()
        self.encoder = encoder
        self._learner = Learner(project, encoder, why_no_encoder=why_no_encoder)
        self._tray = Tray(self.limits.tray)
        self._advice = Latest(_advice)
        self._map = Latest(class_map)
        self._temperature = Latest(lambda state: state.classifier.temperature_, still=much_the_same)
        self._familiarity = Latest(_familiarity, still=same_classes)

    @property
    def state(self) -> State:
        """The state to read from: whole, and the newest."""
        return self.project.current()

    def look(self, uploads: Sequence[Upload]) -> list[Look]:
        """Embed images and keep them at hand. What cannot be used has its reason."""
        most = self.limits.image_bytes
        sources = [_Numbered(str(number), upload.content, most) for number, upload in enumerate(uploads)]
        names = [_shown(upload.name) for upload in uploads]
        embedded = self._learner.embed(sources, names=names, most_pixels=self.limits.image_pixels)
        self._tray.put(embedded.examples.values())
        problems = {int(item.name): item.reason for item in embedded.skipped}
        return [Look(name, embedded.examples.get(number), problems.get(number)) for number, name in enumerate(names)]

    def look_again(self, identity: str) -> Look:
        """Look at an image that was sent before; one that is not at hand any more has that for a problem."""
        try:
            example = self.image(identity)
        except UnknownImageError as error:
            return Look("", None, str(error))
        return Look(example.name, example)

    def image(self, identity: str) -> Example:
        """Return an image that was learned, or seen lately, by its content hash."""
        try:
            key = bytes.fromhex(identity)
        except ValueError:
            key = b""
        found = _learned(self.state, key) or self._tray.get(key)
        if found is None:
            raise UnknownImageError(f"The image {identity[:12]} is not at hand any more. Send it again.")
        return found

    def answers(self, state: State, rows: npt.ArrayLike, *, top: int, why: bool = False) -> list[Answer]:
        """Return answers; percentages by the temperature of a model that was much the same."""
        return answer(state, rows, top=top, why=why, temperature=self._temperature(state) if state.shelves else None)

    def answer_at_once(self, state: State, example: Example, *, top: int, why: bool = False) -> Answer:
        """Return the answer to an image that was just learned, by the last temperature: nobody waits for a new one."""
        (found,) = answer(state, [example.row], top=top, why=why, temperature=self._temperature.at_hand(state))
        return found

    def ranking(self, state: State, rows: npt.ArrayLike, *, top: int) -> Ranking:
        """Return the best classes of many rows, as `answers` does; for whoever needs no object for each of them."""
        return rank(state, rows, top=top, temperature=self._temperature(state) if state.shelves else None)

    def unknown(self, state: State, rows: Sequence[Floats] | Floats, error: float | None) -> Sequence[bool | None]:
        """Return which embeddings fit no learned class; None where nobody asks, or no class has two images."""
        if error is None or not len(rows) or not any(len(shelf.examples) > 1 for shelf in state.shelves.values()):
            return [None] * len(rows)
        known = self._familiarity(state)
        queries = state.classifier.check_queries(rows)
        found: list[bool] = rejected(known(queries), known.threshold(error)).tolist()
        return found

    def warm(self) -> None:
        """Work out what the first question will need, so that it need not wait for it."""
        state = self.state
        if state.shelves:
            with contextlib.suppress(HyCalError):  # whoever asks is told
                self._temperature(state)
                self._familiarity(state)

    def correct(self, identity: str, label: str) -> Receipt:
        """Say what an image shows; see `Project.correct`."""
        example = self.image(identity)
        self._tray.put([example])  # should it be forgotten later, it can still be shown and taught
        return self._learner.correct(example, label)

    def learn(self, labels: Mapping[str, str]) -> Receipt:
        """Learn images that were sent before, by content hash, all in one step."""
        for label in set(labels.values()) - self.state.shelves.keys():
            check_class_name(label)
        arrivals, missing = [], []
        for identity, label in labels.items():
            try:
                arrivals.append(Arrival(label, self.image(identity)))
            except UnknownImageError:
                missing.append(identity)
        if missing and len(labels) > self.limits.tray:
            raise HyCalError(
                f"{len(labels):,} images at once; the server keeps {self.limits.tray:,} at hand. Nothing was learned. "
                "Send and learn them in several steps, or learn the folder by `hycal learn`."
            )
        if missing:
            raise UnknownImageError(
                f"{len(missing):,} of {len(labels):,} images are not at hand any more, such as {missing[0][:12]}. "
                "Nothing was learned; send them again."
            )
        return self._learner.learn(arrivals)

    def forget(self, target: str | bytes, *, for_good: bool) -> Receipt:
        """Forget a class, a domain or an image; if for good, in the undo, in memory and in the embedding cache too."""
        if not for_good:
            return self.project.forget(target)

        def erase(lost: set[bytes]) -> None:
            self._tray.drop(lost)
            forget_images(embeddings_folder(), lost)

        return self.project.forget_for_good(target, erase)

    def rename(self, old: str, new: str) -> Receipt:
        """Rename a class or a domain."""
        return self.project.rename(old, new)

    def advice(self, state: State) -> Advice | None:
        """Return advice on a model; None where it would take too long, or there is nothing to tell apart."""
        return self._advice(state)

    def map(self, state: State) -> Mapping[Label, tuple[float, float]]:
        """Return the map of the classes."""
        return self._map(state)


def _familiarity(state: State) -> Familiarity:
    return state.classifier.familiarity_


def _advice(state: State) -> Advice | None:
    if len(state.labels) < 2:
        return None
    quick = len(state.examples) <= MOST_ONE_BY_ONE or state.classifier.leaves_out_in_closed_form()
    return advise(state) if quick else None


def _learned(state: State, identity: bytes) -> Example | None:
    label = state.label_of.get(identity)
    if label is None:
        return None
    return next(example for example in state.shelves[label].examples if example.identity == identity)


def _shown(name: str) -> str:
    return "".join(letter for letter in name if letter.isprintable())[-LONGEST_NAME:]
