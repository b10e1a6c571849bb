"""What a model would have answered to each of its own samples, had it never learned that one.

For any classifier it is exact by definition: take the sample out, score it, for every sample. For HyCal the same scores
follow from one evaluation of all samples: only the sample's own class changes, and a Gaussian without one sample is the
whole one with two rank-one corrections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.bank import GaussianBank
from hycal.base import IncrementalClassifier
from hycal.classifiers import HyCal
from hycal.errors import HyCalError
from hycal.held_out import own_without_each
from hycal.parallel import in_chunks
from hycal.records import Records, Step
from hycal.scoring import blend_log_odds, standardise
from hycal.validation import Floats


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Scores of every sample without itself.

    Attributes
    ----------
    columns : ndarray of shape (N,)
        The class of each sample, as a column of `scores`; samples stand class after class, in the model's order.
    scores : ndarray of shape (N, C)
        Row i is what `decision_function` gives for sample i in the model that never saw it. A class whose only
        sample is left out is not there: -inf.
    """

    columns: npt.NDArray[np.intp]
    scores: Floats

    @property
    def predicted(self) -> npt.NDArray[np.intp]:
        """The best column for each sample."""
        return self.scores.argmax(axis=1)

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """Whether each sample would have been told right."""
        return self.predicted == self.columns


def leave_one_out(classifier: IncrementalClassifier, *, watch: Callable[[int, int], None] | None = None) -> LeftOut:
    """Return the scores of every learned sample without itself.

    Parameters
    ----------
    classifier : IncrementalClassifier
    watch : callable, optional
        Told how many samples of how many are done.

    Examples
    --------
    >>> from hycal import HyCal
    >>> clf = HyCal(fusion="image").fit([[1, 0], [1, 0.1], [0, 1], [0.9, 0]], ["a", "a", "b", "b"])
    >>> leave_one_out(clf).right
    array([ True,  True, False, False])
    """
    records = classifier._table
    if len(records.labels) < 2:
        raise HyCalError("Leaving one out needs two classes at least, or nothing can be mistaken. Learn another class.")
    columns = np.repeat(np.arange(len(records.labels)), records.counts)
    scores = np.full((len(columns), len(records.labels)), -np.inf, np.float32)
    fill = _fill_fast if type(classifier) is HyCal else _fill_one_by_one
    fill(classifier, records, columns, scores, watch or (lambda done, total: None))
    return LeftOut(columns, scores)


def _fill_one_by_one(
    classifier: IncrementalClassifier,
    records: Records,
    columns: npt.NDArray[np.intp],
    scores: Floats,
    watch: Callable[[int, int], None],
) -> None:
    for number, (row, column) in enumerate(zip(records.stacked(), columns, strict=True)):
        left = records.remove(Step({records.labels[column]: row[None]}, None, {}))
        there = [records.column_of[label] for label in left.labels]
        scores[number, there] = classifier.knowing(left).decision_function(row[None])[0]
        watch(number + 1, len(columns))


def _fill_fast(
    classifier: HyCal,
    records: Records,
    columns: npt.NDArray[np.intp],
    scores: Floats,
    watch: Callable[[int, int], None],
) -> None:
    bank: GaussianBank = classifier._current().value
    samples, place = records.stacked(), np.argsort(bank.order)
    own_cosines, own_closeness = own_without_each(records.ordered, bank.shape)
    weights, own_weights = classifier.weights(records.counts), classifier.weights(records.counts - 1)
    alone = records.counts[columns] == 1  # their class goes with them, and so does its column

    def score(numbers: npt.NDArray[np.intp], chunk: slice) -> None:
        part = numbers[chunk]
        rows, own = np.arange(len(part)), columns[part]
        there = np.ones((len(part), len(weights)), bool)
        there[rows, own] = ~alone[part]
        cosines, closeness = (values[place].T for values in bank.evaluate(samples[part]))
        blend = np.tile(weights, (len(part), 1))
        cosines[rows, own], closeness[rows, own] = own_cosines[part], own_closeness[part]
        blend[rows, own] = own_weights[own]
        cosines, closeness, blend = (_columns(values, there) for values in (cosines, closeness, blend))
        blended = blend_log_odds(standardise(cosines), standardise(closeness), blend)
        scores[part[:, None], there.nonzero()[1].reshape(len(part), -1)] = blended.T

    for numbers in (np.flatnonzero(~alone), np.flatnonzero(alone)):
        in_chunks(partial(score, numbers), len(numbers), numbers_per_row=len(weights))
    watch(len(columns), len(columns))


def _columns(values: npt.NDArray[Any], there: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Return the classes that are there, of (queries, classes) values, as (classes, queries)."""
    return np.ascontiguousarray(values[there].reshape(len(values), -1).T)
