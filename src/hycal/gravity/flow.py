"""The flow between domains, how often images of one are classified into another; and drift, what others do to one.

A model that forgot every other domain is the model that never saw them, so any fitted model can be compared with the
model of one domain alone; no history is needed, and the order of learning does not matter. Of a domain's images

    captured   right alone, now given to another domain,
    drifted    right alone, now given to a wrong class of the same domain,
    gained     wrong alone, now right,

and accuracy alone - accuracy together = captured + drifted - gained. Captures come from new candidates. Drift and gain
come from a changed decision inside the domain; a method that scores each class by itself has neither.

`shift` measures how far the prototypes moved, by scores of the domain's own classes. With s these scores less their
mean for each image, it is 1 - r, where r is the correlation of s alone and s together: 0 if the scores are the same up
to scale, 1 if they are unrelated. HyCal's is 0, since its class statistics do not depend on other classes; its answers
still drift, because it normalises its two measures over all candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hycal.base import IncrementalClassifier
from hycal.validation import Doubles, Floats

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DomainFlow:
    """Images by the domain they belong to (rows) and the domain of the class they were given (columns).

    Examples
    --------
    >>> flow = DomainFlow.of(["art", "art", "digit"], ["art", "digit", "digit"], ("art", "digit"))
    >>> flow.counts.tolist(), flow.net.tolist()
    ([[1, 1], [0, 1]], [-1, 1])
    """

    domains: tuple[str, ...]
    counts: Counts

    @classmethod
    def of(cls, truth: Sequence[str], answers: Sequence[str], domains: Sequence[str]) -> Self:
        """Count images of the domains `truth` that were answered with classes of the domains `answers`."""
        place = {domain: number for number, domain in enumerate(domains)}
        counts = np.zeros((len(place), len(place)), np.int64)
        rows, columns = ([place[domain] for domain in side] for side in (truth, answers))
        np.add.at(counts, (rows, columns), 1)
        return cls(tuple(domains), counts)

    @property
    def asked(self) -> Counts:
        """Images of each domain."""
        return self._sum(axis=1)

    @property
    def outflow(self) -> Counts:
        """Images that each domain lost to others."""
        return self.asked - np.diag(self.counts)

    @property
    def inflow(self) -> Counts:
        """Images of others that each domain took."""
        return self._sum(axis=0) - np.diag(self.counts)

    @property
    def net(self) -> Counts:
        """Images taken less images lost; the sum over domains is zero."""
        return self.inflow - self.outflow

    @property
    def rates(self) -> Doubles:
        """Each row as shares of its domain's images; NaN for a domain that was not asked about."""
        asked = self.asked[:, None].astype(np.float64)
        return np.divide(self.counts, asked, out=np.full(self.counts.shape, np.nan), where=asked > 0)

    @property
    def loss(self) -> Doubles:
        """Share of its images that each domain lost."""
        return 1.0 - np.diag(self.rates)

    @property
    def taken(self) -> Doubles:
        """Share of the images of all other domains that each domain took; NaN where there were none."""
        others = (self.asked.sum() - self.asked).astype(np.float64)
        return np.divide(self.inflow, others, out=np.full(len(others), np.nan), where=others > 0)

    @property
    def crossing(self) -> float:
        """Share of all images that were given to another domain."""
        return float(self.outflow.sum() / self.counts.sum())

    def pull(self, shares: npt.ArrayLike) -> Doubles:
        """Return each domain's share of the images that crossed, less the share it would have had by chance.

        By chance a lost image goes to each other domain in proportion to `shares`. A positive pull means that the
        domain takes more than its part; the sum over domains is zero. Without crossings every pull is zero.

        `shares` are positive, such as the number of classes: a wrong answer drawn at random among the other domains'
        classes.
        """
        parts = np.asarray(shares, dtype=np.float64) / np.sum(shares)
        crossed = self.outflow.sum()
        if not crossed:
            return np.zeros(len(parts))
        per_part = np.divide(self.outflow, 1.0 - parts, out=np.zeros(len(parts)), where=self.outflow > 0)
        expected = parts * (per_part.sum() - per_part)
        return (self.inflow - expected) / crossed

    def _sum(self, *, axis: int) -> Counts:
        return np.asarray(self.counts.sum(axis=axis), dtype=np.int64)


@dataclass(frozen=True)
class Drift:
    """Shares of one domain's images, and the shift of its scores; NaN where nothing was asked or there is one class.

    Examples
    --------
    >>> drift = Drift(alone=0.9, together=0.8, captured=0.1, drifted=0.1, gained=0.0, shift=-0.2)
    >>> round(drift.alone - drift.together, 2)
    0.1
    """

    alone: float
    together: float
    captured: float
    drifted: float
    gained: float
    shift: float


NO_DRIFT = Drift(*[float("nan")] * 6)


def drift(
    classifier: IncrementalClassifier,
    X: Floats,
    y: npt.NDArray[Any],
    answers: npt.NDArray[Any],
    own: npt.NDArray[np.bool_],
) -> Drift:
    """Compare `classifier` with the same model without other domains, on images of one domain.

    `X`, `y` and `answers` are images of the domain, their labels, and the predictions of `classifier`, which is not
    changed; `own` says which of its classes belong to the domain.
    """
    if not len(y):
        return NO_DRIFT
    labels = classifier.classes_
    alone = classifier.with_records(classifier.records_.forget(labels[~own].tolist()))
    kept = labels[own]
    before, after = alone.decision_function(X), classifier.decision_function(X, classes=kept.tolist())
    was_right, is_right = kept[before.argmax(axis=1)] == y, answers == y
    stayed = np.isin(answers, kept)
    return Drift(
        alone=float(was_right.mean()),
        together=float(is_right.mean()),
        captured=float((was_right & ~stayed).mean()),
        drifted=float((was_right & stayed & ~is_right).mean()),
        gained=float((~was_right & is_right).mean()),
        shift=_shift(_centred(before), _centred(after)),
    )


def _centred(scores: npt.NDArray[Any]) -> Doubles:
    return scores.astype(np.float64) - scores.mean(axis=1, keepdims=True, dtype=np.float64)


def _shift(before: Doubles, after: Doubles) -> float:
    lengths = np.linalg.norm(before) * np.linalg.norm(after)
    if not lengths > 0:
        return float("nan")
    return max(0.0, 1.0 - float((before * after).sum() / lengths))
