"""Drift: the effect of other domains on the answers to one domain.

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

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.base import IncrementalClassifier
from hycal.validation import Doubles, Floats


@dataclass(frozen=True)
class Drift:
    """Shares of one domain's images, and the shift of its scores; NaN where nothing was asked or there is one class."""

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

    Parameters
    ----------
    classifier : IncrementalClassifier
        It is not changed.
    X, y, answers : ndarray
        Images of the domain, their labels, and the predictions of `classifier`.
    own : ndarray of bool
        Which of `classifier.classes_` belong to the domain.
    """
    if not len(y):
        return NO_DRIFT
    labels = classifier.classes_
    alone = classifier.with_records(classifier.records_.forget(labels[~own].tolist()))
    kept = labels[own]
    before, after = alone.class_scores(X), classifier.class_scores(X, classes=kept.tolist())
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
    centred: Doubles = scores.astype(np.float64) - scores.mean(axis=1, keepdims=True, dtype=np.float64)
    return centred


def _shift(before: Doubles, after: Doubles) -> float:
    lengths = np.linalg.norm(before) * np.linalg.norm(after)
    if not lengths > 0:
        return float("nan")
    return max(0.0, 1.0 - float((before * after).sum() / lengths))
