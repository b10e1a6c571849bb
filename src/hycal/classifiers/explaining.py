"""Why HyCal answers as it does: what the direction says, what the distance says, and how much each counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from hycal.classifiers import HyCal
from hycal.validation import Doubles, Floats


@dataclass(frozen=True, eq=False)
class Explanation:
    """The parts of s_c = w_c Phi(-m_c) + (1 - w_c) Phi(cos_c), for each query and class.

    Attributes
    ----------
    cosine : ndarray of shape (n, C)
        Cosine of the query and the class mean.
    distance : ndarray of shape (n, C)
        Squared Mahalanobis distance.
    cosine_level, distance_level : ndarrays of shape (n, C)
        Both as levels among the classes, in [0, 1], larger is better: the z-score's Gaussian CDF.
    weight : ndarray of shape (C,)
        w_c: how much the distance counts. The rest, 1 - w_c, is the cosine's.
    log_odds : ndarray of shape (n, C)
        The decision function: log-odds of s_c.
    """

    cosine: Doubles
    distance: Doubles
    cosine_level: Doubles
    distance_level: Doubles
    weight: Doubles
    log_odds: Floats

    @property
    def score(self) -> Doubles:
        """s_c, in [0, 1]: `scipy.special.expit` of the decision function."""
        return self.weight * self.distance_level + (1.0 - self.weight) * self.cosine_level


def explain(classifier: HyCal, X: npt.ArrayLike) -> Explanation:
    """Return what `classifier.decision_function(X)` is made of.

    Examples
    --------
    >>> from hycal import HyCal
    >>> clf = HyCal(fusion="image").fit([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], ["a", "a", "b"])
    >>> parts = explain(clf, [[1.0, 0.2]])
    >>> parts.cosine.round(2), bool(parts.score[0, 0] > parts.score[0, 1])
    (array([[0.99, 0.2 ]]), True)
    """
    parts = classifier.breakdown(X)
    levels = _level(parts.z_cosine), _level(parts.z_closeness)
    return Explanation(parts.cosine, parts.distance, *levels, classifier.weights(classifier.counts_), parts.scores)


def _level(z: Floats) -> Doubles:
    level: Doubles = ndtr(z.astype(np.float64))
    return level
