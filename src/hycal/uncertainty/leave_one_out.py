"""Leave-one-out scores: the scores of each learned sample by the model that never saw it.

No held-out images are needed. A model is a function of its samples, so the sample is removed. A method implements
`scores_without_each` in closed form, or by a few models that each leave out a part of every class. Any other method is
derived again without the sample: as exact as a closed form, and much slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hycal.state.records import Records
from hycal.state.selection import Selection
from hycal.state.steps import Step
from hycal.validation import Doubles, Floats

_MOST_HELD_OUT, _LEAST_HELD_OUT = 1000, 100  # samples
SCORES_AT_ONCE = 2**22  # scores that are computed at once: 16 MB in float32
_MOST_SCORES = 10_000_000  # of all held-out samples: some arrays of as many numbers are made


def held_out_limit(classes: int) -> int:
    """Return how many samples are held out at most of a model of so many classes.

    >>> held_out_limit(10_000), held_out_limit(40_000), held_out_limit(1_000_000)
    (1000, 250, 100)
    """
    return max(min(_MOST_HELD_OUT, _MOST_SCORES // classes), _LEAST_HELD_OUT)


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Scores of samples by models that never saw them.

    Attributes
    ----------
    samples : Selection
    scores : ndarray of shape (n, C)
        Columns as in `decision_function`; -inf for a class whose only sample was removed.
    """

    samples: Selection
    scores: Doubles

    def of_own(
        self, function: Callable[[Doubles, tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]], Doubles]
    ) -> Doubles:
        """Return what `function` says of each sample, given scores and the entries of the samples' own classes.

        Its result has one entry for each sample in the last axis. Scores of many classes are passed in parts.
        """
        step = max(SCORES_AT_ONCE // (2 * self.scores.shape[1]), 1)
        parts = [slice(start, start + step) for start in range(0, max(len(self.scores), 1), step)]
        owns = [self.samples.own[part] for part in parts]
        found = [function(self.scores[part], (np.arange(len(own)), own)) for part, own in zip(parts, owns, strict=True)]
        return np.concatenate(found, axis=-1)

    @property
    def hits(self) -> npt.NDArray[np.bool_]:
        """Whether the best class of each sample is its own."""
        return np.asarray(self.scores.argmax(axis=1) == self.samples.own)


class ScoringMethod(Protocol):
    """The part of `hycal.base.IncrementalClassifier` that leave-one-out and calibration need."""

    def derive(self, records: Records, previous: Any) -> Any:
        """Return what scoring needs."""

    def score_rows(self, derived: Any, X: Floats, columns: npt.NDArray[np.intp] | None) -> npt.NDArray[Any]:
        """Return the scores of unit rows."""

    def uses_texts(self, derived: Any) -> bool:
        """Whether the text of every class is part of its score."""

    def scores_without_each(self, derived: Any, records: Records, samples: Selection) -> npt.NDArray[Any] | None:
        """Return the scores of samples, each by the model without it, or None."""

    def scores_by_value(
        self, records: Records, samples: Selection, name: str, values: Sequence[Any]
    ) -> Iterable[Doubles] | None:
        """Return the same under each value of a parameter, or None."""


def score_held_out(method: ScoringMethod, derived: Any, records: Records, samples: Selection) -> HeldOutScores:
    """Return the held-out scores of `samples`, in closed form where the method has one.

    A class disappears with its only sample, so such samples are always scored by a model derived again.
    """
    several = np.flatnonzero(samples.counts > 1)
    fast = method.scores_without_each(derived, records, samples.at(several)) if len(several) else None
    if fast is not None and len(several) == len(samples.rows):
        return HeldOutScores(samples, fast.astype(np.float64, copy=False))
    scores = np.full((len(samples.rows), len(records.counts)), -np.inf)
    if fast is not None:
        scores[several] = fast
    slow = samples.each if fast is None else np.flatnonzero(samples.counts == 1)
    for position in slow:
        scores[position] = scores_without(method, records, samples.at(np.array([position])), derived)
    return HeldOutScores(samples, scores)


def leaves_out_quickly(method: ScoringMethod, derived: Any, records: Records, sample: Selection) -> bool:
    """Whether held-out scores have a closed form or take a few models, and not one model for each sample.

    `sample` is one sample of a class that has two or more.
    """
    return method.scores_without_each(derived, records, sample) is not None


def score_held_out_by_value(
    method: Any, records: Records, samples: Selection, name: str, values: Sequence[Any]
) -> Iterator[npt.NDArray[Any]]:
    """Yield the held-out scores of `samples` under each value of a parameter.

    Every sample belongs to a class that has two or more.
    """
    together = method.scores_by_value(records, samples, name, values)
    if together is not None:
        yield from together
        return
    for value in values:
        other = method.with_parameters(**{name: value})
        yield score_held_out(other, other.derive(records, None), records, samples).scores


def scores_without(method: ScoringMethod, records: Records, sample: Selection, previous: Any = None) -> Doubles:
    """Return the scores of one sample by the model derived again without it; `previous` may speed that up."""
    label = records.labels[int(sample.own[0])]
    fewer = records.remove(Step({label: sample.X}, None, {}))
    scores = np.full(len(records.counts), -np.inf)
    if fewer.by_label:
        kept = records.columns(fewer.labels)
        scores[kept] = method.score_rows(method.derive(fewer, previous), sample.X, None)[0]
    return scores
