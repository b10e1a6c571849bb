"""The learner of a project: it embeds images and learns them, for the command line and for the server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field

from hycal.embedding.decoding import MOST_PIXELS, Thumbnails
from hycal.embedding.pipeline import embed
from hycal.embedding.preparation import Prepare, prepare
from hycal.embedding.sources import ImageSource
from hycal.embedding.store import EmbeddingStore, Skipped, Tick
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.project.changes import Arrival, Receipt
from hycal.project.encoder import text_embeddings
from hycal.project.examples import Example
from hycal.project.project import Project
from hycal.validation import Floats, unit_views


@dataclass(frozen=True)
class EmbeddedExamples:
    """Images by their number among the sources, those that cannot be used, and how many the encoder had to embed."""

    examples: dict[int, Example]
    skipped: tuple[Skipped, ...]
    encoded: int = 0

    @property
    def problems(self) -> dict[int, str]:
        """Why images cannot be used, by their number among the sources: the skipped ones are in order."""
        rest = (number for number in range(len(self.examples) + len(self.skipped)) if number not in self.examples)
        return {number: item.reason for number, item in zip(rest, self.skipped, strict=True)}

    def labelled(self, labels: Sequence[str]) -> list[Arrival]:
        """Return the images to learn, each under the label of its source."""
        return [Arrival(labels[number], example) for number, example in self.examples.items()]


@dataclass(eq=False)
class Learner:
    """A project and its encoder; safe to share between threads.

    Without an encoder nothing can be embedded, for the reason `why_no_encoder`, and new classes get no text embedding.
    `on_encoded` is called with the number of images whenever the encoder has embedded some.
    """

    project: Project
    encoder: Encoder | None
    _: KW_ONLY
    why_no_encoder: str = ""
    on_encoded: Callable[[int], None] = lambda images: None
    # One batch at a time: it uses every core.
    _encoding: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def embed(
        self,
        sources: Sequence[ImageSource],
        *,
        names: Sequence[str] | None = None,
        thumbnails: bool = True,
        known: Container[bytes] = (),
        store: EmbeddingStore | None = None,
        watch: Callable[[Tick], None] | None = None,
        most_pixels: int = MOST_PIXELS,
        preparing: Prepare = prepare,
    ) -> EmbeddedExamples:
        """Embed images and make their thumbnails. An image that cannot be used is skipped, with its reason.

        `names` is what the project calls the images; by default the names of the sources. A thumbnail takes up to 3 kB
        in the file; images whose content hash is `known` to the project need none. The other options are those of
        `hycal.embedding.embed`.
        """
        if self.encoder is None:
            raise HyCalError(f"Images cannot be embedded here. {self.why_no_encoder}".strip())
        made = Thumbnails(known) if thumbnails else None
        with self._encoding:
            result = embed(
                sources,
                self.encoder,
                store=store,
                watch=watch,
                most_pixels=most_pixels,
                thumbnails=made,
                preparing=preparing,
            )
        self.on_encoded(result.encoded)
        rows = unit_views(result.rows, self.project.state.space.views) if len(result.rows) else result.rows
        called = [source.name for source in sources] if names is None else names
        examples = {
            int(number): Example(row, key, called[number], b"" if made is None else made.get(key))
            for number, row, key in zip(result.kept, rows, result.keys, strict=True)
        }
        return EmbeddedExamples(examples, result.skipped, result.encoded)

    def learn(self, arrivals: Sequence[Arrival]) -> Receipt:
        """Learn embedded images in one step. A new class gets the text embedding of its name."""
        return self.project.learn(arrivals, self._texts(arrival.label for arrival in arrivals))

    def correct(self, example: Example, label: str) -> Receipt:
        """Learn an image as `label`, and forget it as any other class."""
        return self.project.correct(example, label, self._texts([label]))

    def _texts(self, labels: Iterable[str]) -> dict[str, Floats]:
        known = self.project.current().classes
        new = [label for label in dict.fromkeys(labels) if label not in known]
        if self.encoder is None or not new:
            return {}
        with self._encoding:
            return text_embeddings(new, self.encoder)
