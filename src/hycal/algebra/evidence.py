"""What a score is made of: kinds of evidence that add up, for each query and class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from hycal.validation import Doubles


@dataclass(frozen=True, eq=False)
class ScorePart:
    """One kind of evidence.

    Attributes
    ----------
    name : str
        What it rests on: "direction", "distance", "kernel", "covariance", "text" or "domain".
    share : ndarray of shape (n, C)
        What it adds.
    measure : ndarray of shape (n, C), or None
        The quantity behind it, such as a cosine or a squared distance.
    weight : ndarray of shape (C,), or None
        The weight of the measure, where one for each class says all.
    """

    name: str
    share: npt.NDArray[Any]
    measure: npt.NDArray[Any] | None = None
    weight: Doubles | None = None


@dataclass(frozen=True, eq=False)
class ScoreParts:
    """The scores of `decision_function`, (n, C), and the kinds of evidence that make them up.

    `quantity` is what the shares add up to: "score", a level in [0, 1], or "evidence", in nats above the average class.
    """

    scores: npt.NDArray[Any]
    parts: tuple[ScorePart, ...]
    quantity: str
