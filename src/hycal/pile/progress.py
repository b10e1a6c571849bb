"""How far a pile is: the accuracy to expect of the images that nobody labelled, and the labels that would raise it.

The accuracy is the mean calibrated probability of the best class, as `hycal sort` estimates its errors, less what
belongs to classes that nobody has labelled yet. Their share is about that of the labels whose class has no other one
(Good and Turing), if images are asked about at random; `hycal.suggest` finds new classes sooner, so a fifth of it
counts. Leave-one-out on the labelled images would be too low: those that were asked about are the doubtful ones. The
interval is the one of `hycal.uncertainty.cross_validation` for as many samples as there are labels; `python -m
benchmarks.pile --only progress` measures how often it holds.

How many more labels a target takes is read from the errors expected so far, which fall about as a power of the labels:

    e(n) = c n^(-p)

c and p are fitted to what was expected from half of the labels on. Nothing is said where the errors do not fall, where
there are too few points, or where the target is farther away than three times the labels so far.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hycal.base import IncrementalClassifier
from hycal.uncertainty.cross_validation import Estimate
from hycal.validation import Floats

_LOOKED_AT = 4096  # images, spread evenly
_UNSEEN = 0.2  # of the share of labels that are the only one of their class
_LEAST_POINTS = 3
_LEAST_POWER = 0.1
_FARTHEST = 3.0  # times the labels so far


def estimate_rest(classifier: IncrementalClassifier, rows: Floats) -> Estimate | None:
    """Return the accuracy to expect of unlabelled images, by their rows; None if there are fewer than two classes."""
    if len(classifier.classes_) < 2 or not len(rows):
        return None
    some = np.linspace(0, len(rows) - 1, min(len(rows), _LOOKED_AT)).astype(np.intp)
    accuracy = float(classifier.predict_proba(rows[some]).max(axis=1).mean())
    labels = int(classifier.counts_.sum())
    unseen = _UNSEEN * float(np.mean(np.repeat(classifier.counts_, classifier.counts_) == 1))
    return Estimate(accuracy * (1.0 - unseen) * labels, labels)


@dataclass
class LabelCurve:
    """The errors expected after so many labels, as a pile is labelled.

    >>> curve = LabelCurve()
    >>> for labels in (10, 20, 25, 30, 35, 40): curve.add(labels, 2 / labels)
    >>> curve.more_labels(0.04), curve.more_labels(0.1), curve.more_labels(0.001)
    (10, 0, None)
    """

    errors: dict[int, float] = field(default_factory=dict)

    def add(self, labels: int, error: float) -> None:
        """Keep the error expected after `labels` labels; what was expected of more labels was taken back."""
        self.errors = {n: e for n, e in self.errors.items() if n < labels}
        if labels > 0:
            self.errors[labels] = max(error, 1e-6)

    def more_labels(self, error: float) -> int | None:
        """Return about how many more labels bring the error down to `error`; None if that cannot be said."""
        if not self.errors:
            return None
        last = max(self.errors)
        if self.errors[last] <= error:
            return 0
        recent = {n: e for n, e in self.errors.items() if 2 * n >= last}
        if len(recent) < _LEAST_POINTS:
            return None
        x, y = np.log(list(recent)), np.log(list(recent.values()))
        power = -float(np.polyfit(x, y, 1)[0])
        level = float(np.exp(np.mean(y) + power * (np.mean(x) - np.log(last))))  # of the fitted curve at `last`
        if power < _LEAST_POWER:
            return None
        more = last * ((level / error) ** (1.0 / power) - 1.0)
        return max(1, round(more)) if more <= _FARTHEST * last else None
