"""Votes of stored images for their classes, which follow small changes: images that come or go are counted apart.

    s_c = sum of w_i exp(-gamma |x - x_i|^2) over the images i of class c

Votes are summed class by class; no matrix of images by classes is built. An image that was removed votes with the
opposite weight, until one in fifty has changed and all are stored anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hycal.algebra.features import Kernel
from hycal.parallel.threads import map_rows
from hycal.state.changes import Changes, is_due
from hycal.state.records import Records
from hycal.validation import Doubles, Floats

#: The weights of images of the classes at columns, (n,).
Weights = Callable[[Floats, npt.NDArray[np.intp]], Doubles]


@dataclass(frozen=True, eq=False)
class Votes:
    """The votes of all images."""

    records: Records
    keys: Callable[[Doubles], Doubles]  # from embeddings to the unit vectors that are compared
    kernel: Kernel  # of the images that were stored, class after class
    weights: Doubles  # (N,): of their votes
    starts: npt.NDArray[np.intp]  # (C',): first image of each class that had images then
    source: npt.NDArray[np.intp]  # (C,): number of each class among those, -1 if it has none stored
    since: Floats  # (m, d): images that came or went since
    since_weights: Doubles  # (m,): their weights, with a sign
    own: npt.NDArray[np.intp]  # (m,): the column of their class, -1 if it is gone
    changed: int = 0  # images that came or went

    @classmethod
    def of(cls, records: Records, weights: Weights, gamma: float, keys: Callable[[Doubles], Doubles]) -> Votes:
        """Store all images."""
        rows, counts = records.stacked(), records.counts
        source = np.where(counts > 0, np.cumsum(counts > 0) - 1, -1)
        given = weights(rows, np.repeat(np.arange(len(counts)), counts))
        kernel = Kernel(keys(rows.astype(np.float64)), gamma)
        starts = (np.cumsum(counts) - counts)[counts > 0]
        none = np.empty(0, np.intp)
        return cls(records, keys, kernel, given, starts, source, rows[:0], np.empty(0), none)

    def after(self, records: Records, weights: Weights) -> Votes | None:
        """Return the votes of the images of other records; None if all should be stored anew."""
        changes = Changes.between(self.records, records)
        if not changes.few or is_due(self.changed + changes.samples, int(records.counts.sum())):
            return None
        was, now = changes.moves
        rows, signed, own = [self.since], [self.since_weights], [now[self.own]]
        for one in changes.classes:
            if one.column is None:
                continue  # its votes are for no class
            for part, sign in ((one.added, 1.0), (one.removed, -1.0)):
                column = np.full(len(part), one.column)
                rows.append(part)
                signed.append(sign * weights(part, column))
                own.append(column)
        return replace(
            self,
            records=records,
            source=np.where(was >= 0, self.source[was], -1),
            since=np.concatenate(rows),
            since_weights=np.concatenate(signed),
            own=np.concatenate(own),
            changed=self.changed + max(changes.samples, 1),
        )

    def __call__(self, X: Floats, columns: npt.NDArray[np.intp] | None = None) -> Doubles:
        """Return the votes for every class, (n, C), or for the classes at `columns`."""
        kernel = replace(self.kernel, samples=self.keys(self.since.astype(np.float64)))
        valid = np.flatnonzero(self.own >= 0)
        targets = np.zeros((len(self.since), len(self.source)))
        targets[valid, self.own[valid]] = self.since_weights[valid]

        def score(part: Doubles) -> Doubles:
            asked = self.keys(part)
            found = np.zeros((len(part), len(self.source)))
            if len(self.starts):
                votes = np.add.reduceat(self.kernel(asked) * self.weights, self.starts, axis=1)
                found[:, self.source >= 0] = votes[:, self.source[self.source >= 0]]
            return found + kernel(asked) @ targets if len(targets) else found

        scores = map_rows(score, X, width=len(self.source), numbers_per_row=self.kernel.size + len(self.source))
        return scores if columns is None else scores[:, columns]
