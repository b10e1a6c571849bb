"""Probabilities from scores of shape (queries, classes). SciPy has these functions too; its import takes longer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.validation import Doubles

LOGIT_SCALE = 100.0  # of cosines between images and texts: CLIP's temperature, as trained


def probabilities(scores: npt.NDArray[Any]) -> Doubles:
    """Return the softmax of scores over the classes.

    >>> probabilities(np.log([[1.0, 3.0]]))
    array([[0.25, 0.75]])
    """
    chances: Doubles = np.subtract(scores, scores.max(axis=1, keepdims=True), dtype=np.float64)
    np.exp(chances, out=chances)
    chances /= chances.sum(axis=1, keepdims=True)
    return chances


def log_softmax(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the logarithm of the softmax of scores over the classes, in their own precision."""
    below: npt.NDArray[Any] = scores - scores.max(axis=1, keepdims=True)
    below -= np.log(np.exp(below).sum(axis=1, keepdims=True))
    return below


def log_sum_exp(scores: Doubles) -> Doubles:
    """Return log sum exp(score) over the classes, (n,)."""
    highest = scores.max(axis=1)
    return highest + np.log(np.exp(scores - highest[:, None]).sum(axis=1))
