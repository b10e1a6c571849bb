"""Which images of a pile to label next: those that stand for most of what is not yet covered.

An image covers its neighbours. The coverage of a pile by a set S of labelled and suggested images is

    F(S) = sum_i w_i max_{s in S} exp((x_i.x_s - 1)/T)

and each suggestion is the image that adds most to it (greedy facility location: submodular, so within 63% of the best
set). Labelled images cover already, so what is suggested is new, and no near-duplicate of anything labelled or
suggested. The weight w_i is the doubt of the model about an image, and 1 where it fits no class:

    w_i = 1 - (1 - g^3) (p_1 - p_2)

Without a model, and as long as every label is of another class, all weights are 1, so the first labels are typical
images of the largest parts of the pile. A model that knows few of the classes is sure of images of the others too;
the more labels come of classes that have one already, the more its margin counts.

    symbol    meaning
    x         unit embeddings of the crowd: the pile, or 8,192 images of it, drawn by their weights
    T         0.3 of the mean distance of two images, 1 - |mean of x|^2
    p_1, p_2  probabilities of the two best classes
    g         share of the labels that are the only one of their class: the chance of a new class (Good and Turing)
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from hycal.base import IncrementalClassifier
from hycal.errors import HyCalError
from hycal.pile.distances import canonical_order, mean_distance, near_distance
from hycal.uncertainty.unknown import rejected
from hycal.validation import Doubles, Floats, check_samples, unit_queries

_CROWD = 8192  # images that are looked at, two by two
_REACH = 0.3  # T, as a share of the mean distance
_LEAST = 0.3  # weight of an image without any doubt
_UNSEEN = 3  # power of g
_UNKNOWN = 0.05  # error of calling an image unknown
_AT_ONCE = 4096  # rows

Rows = npt.NDArray[np.intp]


def suggest(X: npt.ArrayLike, most: int, classifier: IncrementalClassifier | None = None) -> Rows:
    """Return the rows to label next, the most useful first.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Embeddings of a pile of images. Some may be learned already; they are not suggested again.
    most : int
        How many to suggest. Fewer are returned if all others are near-duplicates of what is labelled or suggested.
    classifier : IncrementalClassifier, optional
        What was learned so far; None at the start.

    Examples
    --------
    >>> import numpy as np
    >>> groups = np.repeat(np.eye(3), 10, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(30, 3))
    >>> sorted(int(row) // 10 for row in suggest(groups, 3))
    [0, 1, 2]
    """
    if most < 1:
        raise HyCalError(f"most is {most}; expected the number of images to suggest, 1 or more.")
    learned = None if classifier is None or not classifier.records_.by_label else classifier
    rows = check_samples(X, width=None if learned is None else learned.records_.width, owner="suggest")
    order = canonical_order(rows)
    weights = np.ones(len(rows)) if learned is None else _doubt(learned, learned.check_queries(rows))[order]
    crowd = _drawn(weights, max(_CROWD, min(2 * most, len(rows))))
    x = rows[order][crowd]
    w = np.ones(len(x)) if len(x) < len(rows) else weights  # what was drawn by its weight has it in its number
    covering = _Covering(x, w)
    if learned is not None:
        learned.records_.check_samples("say which images are unlike the learned ones")
        for record in learned.records_.ordered:
            covering.cover(unit_queries(record.samples.rows))  # as a whole: with views, each part is a unit vector
    return order[crowd[covering.pick(most)]]


def _doubt(classifier: IncrementalClassifier, rows: Floats) -> Doubles:
    """Return the weight of each image: its doubt."""
    doubt = np.ones(len(rows))
    familiarity = classifier.familiarity_
    threshold = familiarity.threshold(_UNKNOWN) if len(familiarity.held_out) else -np.inf
    counts = classifier.counts_
    trust = 1.0 - (np.sum(counts == 1) / counts.sum()) ** _UNSEEN
    for start in range(0, len(rows), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        chances = np.sort(classifier.predict_proba(rows[part]), axis=1)
        if chances.shape[1] > 1:
            doubt[part] = 1.0 - trust * (chances[:, -1] - chances[:, -2])
        doubt[part][rejected(familiarity(rows[part]), threshold)] = 1.0
    return np.maximum(doubt, _LEAST)


def _drawn(weights: Doubles, most: int) -> Rows:
    """Return all rows, or `most` of many, drawn evenly along the sum of their weights; each at most once."""
    if len(weights) <= most:
        return np.arange(len(weights))
    ends = np.cumsum(weights)
    drawn = np.searchsorted(ends, (np.arange(most) + 0.5) * (ends[-1] / most))
    return np.unique(drawn.clip(max=len(weights) - 1))


class _Covering:
    """How well each image of a crowd is covered, and the images that add most to that."""

    def __init__(self, x: Floats, weights: Doubles) -> None:
        self._x, self._weights = x, weights.astype(np.float32)
        self._reach, self._near = np.float32(_REACH * mean_distance(x)), near_distance(x)
        self._covered = np.zeros(len(x), np.float32)
        self._free = np.ones(len(x), bool)

    def cover(self, rows: Floats) -> None:
        """Let images outside the crowd cover it."""
        for start in range(0, len(rows), _AT_ONCE):
            cosines = (self._x @ rows[start : start + _AT_ONCE].T).max(axis=1)
            self._cover(cosines)

    def _cover(self, cosines: Floats) -> None:
        np.maximum(self._covered, np.exp((cosines - 1.0) / self._reach), out=self._covered)
        self._free &= cosines < 1.0 - self._near

    def pick(self, most: int) -> Rows:
        """Return up to `most` images, each adding the most to the coverage by all before it, and cover by them.

        What an image adds never grows, so one whose last known gain is below another's new gain can wait.
        """
        heap = [(-gain, row) for row, gain in enumerate(self._gains())]
        heapq.heapify(heap)
        picked: list[int] = []
        while heap and len(picked) < most:
            _, row = heapq.heappop(heap)
            if not self._free[row]:
                continue
            cosines = self._x @ self._x[row]
            gain = self._gain(cosines)
            if heap and -gain > heap[0][0]:
                heapq.heappush(heap, (-gain, row))
                continue
            picked.append(row)
            self._cover(cosines)
        return np.array(picked, np.intp)

    def _gain(self, cosines: Floats) -> float:
        return float(self._weights @ np.maximum(np.exp((cosines - 1.0) / self._reach) - self._covered, 0.0))

    def _gains(self) -> list[float]:
        gains: list[float] = []
        for start in range(0, len(self._x), _AT_ONCE // 4):
            part = self._x @ self._x[start : start + _AT_ONCE // 4].T
            part = np.exp((part - 1.0) / self._reach) - self._covered[:, None]
            gains += (self._weights @ np.maximum(part, 0.0, out=part)).tolist()
        return gains
