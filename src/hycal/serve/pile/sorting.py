"""Sorting of a served pile: into a folder beside it, with undo, or as a ZIP file that is made while it is sent."""

from __future__ import annotations

import io
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hycal.errors import HyCalError
from hycal.escaping import archive_path, csv_line
from hycal.pile.manifest import NAME, SORTED, UNKNOWN, UNSURE, Manifest, PlannedMove
from hycal.pile.moves import Problem, undo_sort
from hycal.pile.sorting import ImageToSort, decide, extended, new_manifest, sort_images
from hycal.project import State, split_label
from hycal.serve.pile.images import ImagePile, PileView
from hycal.serve.pile.schemas import SortedOut, StayedOut

TABLE = "labels.csv"
_COLUMNS = ("file", "domain", "label", "confidence", "source", "place", "guess")
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # that a ZIP file can say


class PileSorter:
    """Sorts one pile; at most one sorting or undo at a time."""

    def __init__(self, pile: ImagePile) -> None:
        self.pile = pile
        self._sorting = threading.Lock()

    @property
    def out(self) -> Path | None:
        """The folder beside the pile that images are sorted into; None if the pile was dropped."""
        folder = self.pile.folder
        return None if folder is None else folder.resolve().with_name(f"{folder.resolve().name}-sorted")

    @property
    def is_sorted(self) -> bool:
        """Whether that folder is there, with its manifest."""
        return self.out is not None and (self.out / NAME).is_file()

    def sort(self, state: State, *, error: float, unknown: float | None) -> SortedOut:
        """Copy the images of a folder into class folders beside it, in place of copies that were sorted before."""
        out = self.out
        if out is None or self.pile.folder is None:
            raise HyCalError(
                "These images were dropped, so there is no folder beside them to sort into. Download them instead."
            )
        images = _decisions(state, self.pile.view(), error, unknown)
        with self._sorting:
            if self.is_sorted:
                _check_none(undo_sort(out)[1])
            fresh = new_manifest(self.pile.folder, out, way="copy", layout="folders", csv=True)
            manifest, problems = sort_images(out, fresh, images, sidecars=False)
        return _summary(str(out), manifest.entries, problems)

    def unsort(self) -> str:
        """Remove the copies again, as `hycal unsort`; return the folder."""
        if self.out is None:
            raise HyCalError("Nothing of a dropped pile is sorted on this machine, so there is nothing to undo.")
        with self._sorting:
            _check_none(undo_sort(self.out)[1])
        return str(self.out)

    def plan(self, state: State, *, error: float, unknown: float | None) -> Manifest:
        """Return where each image goes, by name in a folder that has nothing in it yet."""
        found = _decisions(state, self.pile.view(), error, unknown)
        images = [replace(image, source=archive_path(image.source)) for image in found]
        root = Path("/nothing/is/here")
        return extended(Manifest(root, "copy", "folders"), root, images, sidecars=False)

    def zipped(self, plan: Manifest) -> Iterator[bytes]:
        """Yield a ZIP file: class folders, unknown/, unsure/ and a table. One image at a time is in memory.

        An image that was changed or removed since it was embedded is left out, and the table says so.
        """
        sink = _Sink()
        lines = [csv_line(_COLUMNS)]
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
            for entry in plan.entries:
                content = self._content(entry)
                if content is not None:
                    archive.writestr(zipfile.ZipInfo(entry.target, _EARLIEST), content)
                    yield sink.taken()
                lines.append(_line(entry, there=content is not None))
            archive.writestr(zipfile.ZipInfo(TABLE, _EARLIEST), "".join(f"{line}\r\n" for line in lines))
        yield sink.taken()

    def _content(self, entry: PlannedMove) -> bytes | None:
        image = self.pile.get(bytes.fromhex(entry.sha256))
        return None if image is None else self.pile.content(image)


def _check_none(problems: list[Problem]) -> None:
    if problems:
        raise HyCalError(f"{len(problems):,} images stay, such as {problems[0].file}: {problems[0].reason}.")


def _decisions(state: State, view: PileView, error: float, unknown: float | None) -> list[ImageToSort]:
    if not state.classes or not view.images:
        raise HyCalError("There is nothing to sort yet: label some images of the pile first.")
    taught = {row: state.label_of[image.key] for row, image in enumerate(view.images) if image.key in state.label_of}
    found = decide(state.classifier, view.rows, error=error, unknown=unknown, known=taught)
    images = [ImageToSort(image.file.name, image.key, each) for image, each in zip(view.images, found, strict=True)]
    return sorted(images, key=lambda image: image.source)


def _summary(folder: str, entries: tuple[PlannedMove, ...], problems: list[Problem]) -> SortedOut:
    places = Counter(entry.place for entry in entries)
    inside = [entry for entry in entries if entry.place == SORTED]
    return SortedOut(
        folder=folder,
        classes=len({entry.label for entry in inside}),
        sorted=len(inside),
        unsure=places[UNSURE],
        unknown=places[UNKNOWN],
        wrong=sum(1.0 - entry.probability for entry in inside) / max(len(inside), 1),
        problems=[StayedOut.model_validate(problem) for problem in problems],
    )


def _line(entry: PlannedMove, *, there: bool) -> str:
    """Return the line of an image. A label with a confidence is a guess, which `hycal learn` does not learn."""
    names = split_label(entry.label) if there and entry.place == SORTED else ("", "")
    place = entry.place if there else "changed or removed"
    confidence = "" if entry.probability == 1.0 else f"{entry.probability:.6f}"  # 1 is a label that a person gave
    return csv_line((entry.target, *names, confidence, entry.source, place, entry.label))


class _Sink(io.RawIOBase):
    """A file that cannot be sought in; what is written to it is taken away."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._parts.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        """Return what was written since the last call."""
        found, self._parts = b"".join(self._parts), []
        return found
