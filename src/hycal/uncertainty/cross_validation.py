"""Cross-validation on learned samples: each is scored by a model that was derived without it.

Leave-one-out in closed form keeps some statistics of all samples (`hycal.algebra.hierarchy_held_out`), which with few
samples is most of what is said. Here a model is derived again for each of at most five rounds, for every method, and
nothing of a held-out sample is left in it. A round holds out every fifth sample of each class, or one of a class that
has fewer; near-duplicates are held out together, and the last group of a class stays. A group counts as one sample.

The models of the rounds saw less than the model that is judged. Errors fall about as 1/sqrt(K) with K samples of a
class, so each counts sqrt(1 - 1/R) where a class is held out in R rounds.

An estimate from n samples is worth m = 1/(2.5/n + 1/60) independent ones. Images of a class succeed or fail together,
so five are worth two. And new images differ from the learned ones, by their day, camera or place: at 500 samples of a
bundled discipline, the accuracy on its test images still deviates as an estimate from some 60 independent ones would.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.state.records import ClassRecord, Records
from hycal.state.samples import ClassSamples
from hycal.uncertainty.leave_one_out import ScoringMethod
from hycal.uncertainty.near_duplicates import duplicate_groups

_ROUNDS = 5
_COVERAGE = 0.9
_SAMPLES_WORTH_ONE = 2.5  # measured by benchmarks.small
_MOST_WORTH = 60.0  # samples; the same


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """The answers to learned samples by models that never saw them.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Positions of the samples in `Records.stacked`; the samples of classes of one group are not among them.
    own, answers : ndarrays of shape (n,)
        Column of the class of each sample, and of the best class.
    groups : ndarray of shape (n,)
        Near-duplicates have the same number.
    rounds : ndarray of shape (n,)
        Rounds in which the class of each sample is held out.
    """

    rows: npt.NDArray[np.intp]
    own: npt.NDArray[np.intp]
    answers: npt.NDArray[np.intp]
    groups: npt.NDArray[np.intp]
    rounds: npt.NDArray[np.intp]

    @property
    def hits(self) -> npt.NDArray[np.bool_]:
        """Whether the best class of each sample is its own."""
        return np.asarray(self.own == self.answers)

    def estimate(self, column: int | None = None) -> Estimate:
        """Return the estimated accuracy, of one class or of all."""
        chosen = slice(None) if column is None else self.own == column
        groups, sizes = np.unique(self.groups[chosen], return_inverse=True, return_counts=True)[1:]
        wrong = ~self.hits[chosen] * np.sqrt(1.0 - 1.0 / self.rounds[chosen])
        return Estimate(len(sizes) - float(np.sum(wrong / sizes[groups])), len(sizes))


@dataclass(frozen=True)
class Estimate:
    """An accuracy on new images like the learned ones: right answers out of a number of independent samples."""

    right: float
    total: int

    @property
    def accuracy(self) -> float:
        """Share of right answers; NaN if nothing was judged."""
        return self.right / self.total if self.total else float("nan")

    @property
    def low(self) -> float:
        """Lower end of the 90% interval of Jeffreys for m samples; 0 if nothing was judged."""
        return self._quantile(0.5 - _COVERAGE / 2) if self.right else 0.0

    @property
    def high(self) -> float:
        """Upper end; 1 where nothing is wrong."""
        return self._quantile(0.5 + _COVERAGE / 2) if self.right < self.total else 1.0

    def _quantile(self, share: float) -> float:
        from scipy.special import betaincinv  # takes longer to import than an answer

        m = 1.0 / (_SAMPLES_WORTH_ONE / self.total + 1.0 / _MOST_WORTH)
        return float(betaincinv(self.accuracy * m + 0.5, (1.0 - self.accuracy) * m + 0.5, share))


def cross_validate(method: ScoringMethod, records: Records) -> CrossValidation:
    """Score the samples of all classes that have two groups or more; every class must have samples."""
    groups = duplicate_groups(records)
    own = np.repeat(np.arange(len(records.counts)), records.counts)
    rounds = _rounds(own, groups, len(records.counts))
    rows = np.flatnonzero(rounds >= 0)
    answers = np.empty(len(own), np.intp)
    for number in range(int(rounds.max(initial=-1)) + 1):
        held = np.flatnonzero(rounds == number)
        answers[held] = _answers_without(method, records, held)
    last = np.full(len(records.counts), -1)
    np.maximum.at(last, own, rounds)
    return CrossValidation(rows, own[rows], answers[rows], groups[rows], last[own[rows]] + 1)


def _rounds(own: npt.NDArray[np.intp], groups: npt.NDArray[np.intp], classes: int) -> npt.NDArray[np.intp]:
    """Return the round in which each sample is held out, -1 for the samples of classes of one group."""
    ends = np.cumsum(np.bincount(own, minlength=classes))
    rounds = np.full(len(own), -1)
    for end, count in zip(ends, np.bincount(own, minlength=classes), strict=True):
        part = slice(end - count, end)
        places = np.unique(groups[part], return_inverse=True)[1]
        if places.max(initial=0):
            rounds[part] = places % _ROUNDS
    return rounds


def _answers_without(method: ScoringMethod, records: Records, held: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the best class of each held-out sample by the model derived without all of them."""
    starts = np.cumsum(records.counts) - records.counts
    by_label = {}
    for label, record, start in zip(records.labels, records.ordered, starts, strict=True):
        kept = np.delete(record.samples.rows, held[(held >= start) & (held < start + record.count)] - start, axis=0)
        by_label[label] = ClassRecord(ClassSamples(kept), record.domain, record.text)
    scores = method.score_rows(method.derive(Records(by_label, records.memo), None), records.stacked()[held], None)
    return np.asarray(scores.argmax(axis=1))
