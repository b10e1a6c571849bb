"""What a model would say of each image it learned, had it never seen that image.

Held-out scores need no held-out images: a model is a function of its samples, and the sample is taken away. Methods
whose scores change in closed form say how (`_leave_one_out`); any other is derived again without the sample, which is
as exact and much slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from hycal.state.records import Records
from hycal.state.selection import Selection
from hycal.state.steps import Step
from hycal.validation import Doubles, Floats


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores of samples by models that never saw them.

    Attributes
    ----------
    samples : Selection
    scores : ndarray of shape (n, C)
        Columns as those of `decision_function`; -inf for a class whose only sample was taken away.
    """

    samples: Selection
    scores: Doubles

    @property
    def hits(self) -> npt.NDArray[np.bool_]:
        """Whether each sample is answered right."""
        return np.asarray(self.scores.argmax(axis=1) == self.samples.own)


class Method(Protocol):
    """What is needed of a classifier: `hycal.base.IncrementalClassifier`."""

    def derive(self, records: Records, previous: Any) -> Any:
        """Return what scoring needs."""

    def score_rows(self, derived: Any, X: Floats, columns: npt.NDArray[np.intp] | None) -> npt.NDArray[Any]:
        """Return the scores of unit rows."""

    def scores_without_each(self, derived: Any, records: Records, samples: Selection) -> npt.NDArray[Any] | None:
        """Return the scores of samples, each by the model without it, or None."""

    def scores_by_value(
        self, records: Records, samples: Selection, name: str, values: Sequence[Any]
    ) -> Iterable[Doubles] | None:
        """Return the same under each value of a parameter, or None."""


def held_out(method: Method, derived: Any, records: Records, samples: Selection) -> HeldOut:
    """Return the held-out scores of `samples`, in closed form where the method has one.

    The only sample of a class takes the class with it; those are always answered by a model derived again.
    """
    scores = np.full((len(samples.rows), len(records.counts)), -np.inf)
    several = np.flatnonzero(samples.counts > 1)
    fast = method.scores_without_each(derived, records, samples.at(several)) if len(several) else None
    if fast is not None:
        scores[several] = fast
    slow = samples.each if fast is None else np.flatnonzero(samples.counts == 1)
    for position in slow:
        scores[position] = _without(method, records, samples.at(np.array([position])), derived)
    return HeldOut(samples, scores)


def has_closed_form(method: Method, derived: Any, records: Records, sample: Selection) -> bool:
    """Whether held-out scores cost about as much as answers do; if not, a model is derived for each sample.

    Asked of one sample, of a class of two or more.
    """
    return method.scores_without_each(derived, records, sample) is not None


def held_out_by(
    method: Any, records: Records, samples: Selection, name: str, values: Sequence[Any]
) -> Iterator[npt.NDArray[Any]]:
    """Yield the held-out scores of `samples` under each value of a parameter; each of a class of two or more."""
    together = method.scores_by_value(records, samples, name, values)
    if together is not None:
        yield from together
        return
    for value in values:
        other = clone(method).set_params(**{name: value})
        yield held_out(other, other.derive(records, None), records, samples).scores


def _without(method: Method, records: Records, sample: Selection, previous: Any = None) -> Doubles:
    """Return the scores of one sample by the model derived again without it; from `previous`, where that is quicker."""
    label = records.labels[int(sample.own[0])]
    fewer = records.remove(Step({label: sample.X}, None, {}))
    scores = np.full(len(records.counts), -np.inf)
    if fewer.by_label:
        kept = records.columns(fewer.labels)
        scores[kept] = method.score_rows(method.derive(fewer, previous), sample.X, None)[0]
    return scores
