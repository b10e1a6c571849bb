"""The space of a project: which encoder made its embeddings, or which encoders, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hycal.encoders.catalog import JOINED_BY
from hycal.errors import HyCalError
from hycal.validation import Floats, view_slices


@dataclass(frozen=True)
class Space:
    """The space of the embeddings: name and fingerprint of the encoder, and the number of dimensions.

    `views` are the widths of the parts of a combined encoder, whose names and fingerprints are joined by "+".

    Examples
    --------
    >>> Space("builtin", None, 512).dimension
    512
    """

    name: str
    fingerprint: str | None
    dimension: int
    views: tuple[int, ...] | None = None

    @classmethod
    def joined(cls, parts: Iterable[Space]) -> Space:
        """Return the space of several parts side by side, ordered by name; the space itself of one part."""
        ordered = sorted(parts, key=lambda part: part.name)
        if len(ordered) == 1:
            return ordered[0]
        views = tuple(part.dimension for part in ordered)
        prints = [part.fingerprint for part in ordered if part.fingerprint is not None]
        fingerprint = JOINED_BY.join(prints) if len(prints) == len(ordered) else None
        return cls(JOINED_BY.join(part.name for part in ordered), fingerprint, sum(views), views)

    @property
    def parts(self) -> tuple[Space, ...]:
        """The space of each view; itself if there are none. A name is "" if the space does not say it."""
        if self.views is None:
            return (self,)
        count = len(self.views)
        names, prints = self.name.split(JOINED_BY), (self.fingerprint or "").split(JOINED_BY)
        names = names if len(names) == count else [""] * count
        prints = prints if len(prints) == count else [""] * count
        return tuple(
            Space(name, own or None, width) for name, own, width in zip(names, prints, self.views, strict=True)
        )

    def widened(self, rows: Floats, name: str) -> Floats:
        """Return rows of the view called `name` as rows of the space: the other views are zeros. "" is all views."""
        if not name:
            return rows
        own = [columns for part, columns in zip(self.parts, self.columns, strict=True) if part.name == name.lower()]
        if not own or rows.shape[1] != own[0].stop - own[0].start:
            views = ", ".join(f"{part.name or 'not named'} of {part.dimension} numbers" for part in self.parts)
            raise HyCalError(
                f"Rows of {rows.shape[1]} numbers as the view {name!r}; this model has {views}. Name one of these, "
                "and send the embeddings that its encoder makes."
            )
        wide = np.zeros((len(rows), self.dimension), np.float32)
        wide[:, own[0]] = rows
        return wide

    @property
    def columns(self) -> list[slice]:
        """The columns of each part."""
        return view_slices([part.dimension for part in self.parts])
