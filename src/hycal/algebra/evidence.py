"""What a score is made of: kinds of evidence that add up, for each query and class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hycal.validation import Doubles, Floats

if TYPE_CHECKING:
    from hycal.algebra.scores import Blend  # imports SciPy, which takes longer than an answer


@dataclass(frozen=True, eq=False)
class ScorePart:
    """One kind of evidence."""

    name: str  # what it rests on: "direction", "distance", "kernel", "covariance", "text", "count" or "domain"
    share: npt.NDArray[Any]  # (n, C): what it adds
    measure: npt.NDArray[Any] | None = None  # (n, C): the quantity behind it, such as a cosine or a squared distance
    weight: Doubles | None = None  # (C,): the weight of the measure, where one for each class says all


@dataclass(frozen=True, eq=False)
class ScoreParts:
    """The scores of `decision_function`, (n, C), and the kinds of evidence that make them up.

    `quantity` is what the shares add up to: "score", a level in [0, 1], or "evidence", in nats above the average class.
    """

    scores: npt.NDArray[Any]
    parts: tuple[ScorePart, ...]
    quantity: str

    @classmethod
    def of_evidence(cls, scores: npt.NDArray[Any], shares: Mapping[str, Doubles]) -> ScoreParts:
        """Return shares of evidence above the average class, by name, and what the domain of a class adds to them."""
        whole = {**shares, "domain": scores - sum(shares.values())}
        parts = (ScorePart(name, part - part.mean(axis=1, keepdims=True)) for name, part in whole.items())
        return cls(scores, tuple(parts), "evidence")


@dataclass(frozen=True, eq=False)
class Explanation:
    """The parts of HyCal's s_c = w_c Phi(-m_c) + (1 - w_c) Phi(cos_c), for each query and class."""

    # (n, C): cosine of the query and the class mean, and squared Mahalanobis distance.
    cosine: Doubles
    distance: Doubles
    # (n, C): the cosine, and minus the distance, as z-scores over the classes; under the literal rule the cosine as it
    # is, and the closeness in [0, 1].
    z_cosine: Floats
    z_closeness: Floats
    log_odds: Floats  # (n, C): the decision function: log-odds of s_c; under the literal rule s_c
    weight: Doubles  # (C,): w_c: how much the distance counts. The rest, 1 - w_c, is the cosine's.
    blend: Blend  # of the rule

    @cached_property
    def cosine_level(self) -> Doubles:
        """The cosine as a level among the classes, in [0, 1]: the Gaussian CDF of its z-score. Literal: the cosine."""
        return self.blend.level(self.z_cosine.astype(np.float64))

    @cached_property
    def distance_level(self) -> Doubles:
        """The distance as a level among the classes, in [0, 1], larger is nearer."""
        return self.blend.level(self.z_closeness.astype(np.float64))

    @property
    def score(self) -> Doubles:
        """s_c: `scipy.special.expit` of the decision function, or under the literal rule the decision function."""
        return self.weight * self.distance_level + (1.0 - self.weight) * self.cosine_level
