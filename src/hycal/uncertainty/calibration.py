"""Probabilities of classes: softmax(scores/T), with a floor under the error, and prediction sets.

T maximises the likelihood of held-out samples times a prior. The prior is centred on what many small problems need:

    T0 = level * margin * separation^a * K^b

It is the whole answer where nothing can be held out, and yields to the likelihood as samples come: a sample that is
held out of K judges a class of K - 1, so its log likelihood counts (K - 1)/K. The three numbers were fitted on training
embeddings of the bundled disciplines by `python -m benchmarks.small_prior`; they hold for any scale of the scores.

A method whose scores are log probabilities has a temperature of its own, to which log T goes as n^2/(n^2 + 300^2), with
n held-out samples: it was fitted to many samples, and so to more than one number can mend. Where nothing is held out
and scores use the text of every class, that temperature is used as it is: the small problems have no texts. It was
fitted to learned images, and new ones may differ from them in ways that no held-out sample shows. So, as far as
held-out samples stand behind it, log T is taken to deviate from it as it does from log T0 in the small problems, and
probabilities are averaged over T: three temperatures, by the Gauss-Hermite rule.

No number of right answers makes an error impossible. After n in a row, Jeffreys' estimate of the error is
1/(2 (n + 1)): this share of every answer is spread evenly over the classes, with n the number of learned samples.

    symbol      shape   meaning (C classes)
    margin      scalar  best minus second score of a class mean, averaged over classes
    separation  scalar  1 - the cosine of a class mean to the nearest other, averaged over classes
    K           scalar  samples of a class: the geometric mean
    floor       scalar  1/(2 (n + 1))
    deviation   scalar  standard deviation of log T; 0 where T is the fitted one, or nothing is held out
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.covariance import directions
from hycal.algebra.softmax import log_softmax
from hycal.state.changes import Changes
from hycal.state.records import Records
from hycal.state.selection import by_first_sample, spread
from hycal.uncertainty.leave_one_out import (
    HeldOutScores,
    ScoringMethod,
    held_out_limit,
    leaves_out_quickly,
    score_held_out,
)
from hycal.uncertainty.likelihood import LEAST_MARGIN, HeldOut, Likelihood, score_margins
from hycal.uncertainty.minimum import smallest
from hycal.validation import Doubles

_DERIVED_AGAIN = 30  # samples, where a model is derived for each
_MEANS = 200  # class means that are scored
_AT_ONCE = 2000  # class means that they are compared with at once
_MANY = 300.0  # held-out samples at which a method's own temperature counts as much as the fitted one
_LEAST_SEPARATION = 1e-3
_NODES = ((0.0, 2 / 3), (-(3**0.5), 1 / 6), (3**0.5, 1 / 6))  # of a normal distribution, with their weights
_WIDEST = 5.0  # log of the largest factor between T and T0
_CLOSE = 1e-7  # of log T


@dataclass(frozen=True)
class TemperaturePrior:
    """The prior of log T: normal around log T0, with the precision `strength`."""

    level: float = 0.0605
    separation: float = -0.476
    shots: float = -0.245
    strength: float = 20.0

    def centre(self, method: ScoringMethod, derived: Any, records: Records) -> float:
        """Return T0; 1 where class means have equal scores."""
        seen = [column for column, record in enumerate(records.ordered) if record.count]
        if len(seen) > _MEANS:
            seen = by_first_sample(records, seen)
        some = _mean_directions(records, seen[:_MEANS])
        margin = float(np.mean(score_margins(method, derived, some.astype(np.float32))))
        if margin <= LEAST_MARGIN:
            return 1.0
        nearest = np.full(len(some), -1.0)
        for start in range(0, len(seen), _AT_ONCE):
            cosines = some @ _mean_directions(records, seen[start : start + _AT_ONCE]).T
            if not start:
                np.fill_diagonal(cosines, -1.0)  # of a class with itself
            nearest = np.maximum(nearest, cosines.max(axis=1))
        separation = max(float(np.mean(1.0 - nearest)), _LEAST_SEPARATION)
        shots = float(np.exp(np.mean(np.log(records.counts[seen]))))
        return float(self.level * margin * separation**self.separation * shots**self.shots)


@dataclass(frozen=True, eq=False)
class Calibration:
    """A temperature, a floor, and the probabilities that held-out samples give to their own class.

    Attributes
    ----------
    temperature : float
        Scores are divided by it. 1 where there is one class.
    floor : float
        Share of every answer that is spread evenly over the classes.
    own : ndarray of shape (n,)
        The probabilities, sorted; empty where nothing can be held out.
    likelihood : Likelihood or None
        What lets the temperature follow a change; None where nothing is held out, or samples are not kept.
    deviation : float
        Standard deviation of log T, over which probabilities are averaged.
    """

    temperature: float
    floor: float
    own: Doubles
    likelihood: Likelihood | None = None
    deviation: float = 0.0

    @classmethod
    def of(cls, method: ScoringMethod, derived: Any, records: Records, fixed: float | None = None) -> Calibration:
        """Calibrate on held-out samples, spread evenly over classes; `fixed` is the method's own temperature."""
        n = int(records.counts.sum())
        floor = _floor(n)
        if len(records.counts) == 1 or not n:
            return cls(1.0, floor, np.empty(0))
        found, most = _held_out_scores(method, derived, records)
        if fixed is not None and not len(found.samples.rows) and method.uses_texts(derived):
            return cls(fixed, floor, np.empty(0))
        fitted, centre = fit_temperature(method, derived, records, found)
        judged = len(found.samples.rows)
        known = cls(_with_own(fitted, fixed, judged), floor, np.empty(0), deviation=_deviation(fixed, judged))
        own = found.of_own(lambda scores, entries: known.probabilities(scores)[entries])
        margins = partial(score_margins, method, derived)
        held_out = HeldOut.of(found.samples, records, most)
        likelihood = Likelihood.of(found, held_out, fitted, (TemperaturePrior.strength, centre), margins)
        return replace(known, own=np.sort(own), likelihood=likelihood)

    def after(self, changes: Changes, method: ScoringMethod, derived: Any, fixed: float | None) -> Calibration | None:
        """Return the calibration after a few changes; None if it has to be fitted anew."""
        records = changes.after
        floor = _floor(int(records.counts.sum()))
        if self.likelihood is None:
            return replace(self, floor=floor)
        found = self.likelihood.after(method, derived, changes)
        if found is None:
            return None
        judged = len(found.values)
        temperature = _with_own(found.temperature, fixed, judged)
        known = replace(self, temperature=temperature, floor=floor, deviation=_deviation(fixed, judged))
        own = found.chances(known.temperatures, floor, len(records.counts))
        return replace(known, own=own, likelihood=found)

    @classmethod
    def known(cls, temperature: float, own: Doubles, records: Records, fixed: float | None) -> Calibration:
        """Return a calibration that was fitted before, with the floor of as many samples as there are now."""
        return cls(temperature, _floor(int(records.counts.sum())), own, deviation=_deviation(fixed, len(own)))

    @property
    def temperatures(self) -> tuple[tuple[float, float], ...]:
        """The temperatures over which probabilities are averaged, with their weights."""
        if not self.deviation:
            return ((self.temperature, 1.0),)
        return tuple((self.temperature * float(np.exp(node * self.deviation)), weight) for node, weight in _NODES)

    def probabilities(self, scores: npt.NDArray[Any]) -> Doubles:
        """Return the probabilities of scores, (n, C)."""
        below = np.subtract(scores, scores.max(axis=1, keepdims=True), dtype=np.float64)
        chances: Any = self.floor / scores.shape[1]
        for temperature, weight in self.temperatures:
            part = below / temperature
            np.exp(part, out=part)
            part *= weight * (1.0 - self.floor) / part.sum(axis=1, keepdims=True)
            part += chances
            chances = part
        return chances

    def threshold(self, coverage: float) -> float:
        """Return the probability that a class needs to be in a prediction set; 0 where the samples are too few.

        If n held-out samples and a query are exchangeable, the probability of the query's own class has any rank among
        them with equal chance. So it reaches the k-th smallest, k = floor((n + 1)(1 - coverage)), with a chance of
        `coverage` or more.
        """
        k = min(int(np.floor((len(self.own) + 1) * (1.0 - coverage) + 1e-9)), len(self.own))
        return float(self.own[k - 1]) if k else 0.0

    def sets(self, chances: Doubles, coverage: float) -> npt.NDArray[np.bool_]:
        """Return which classes are in the prediction set of each query, (n, C); the most probable one always is."""
        chosen = chances >= self.threshold(coverage)
        chosen[np.arange(len(chances)), chances.argmax(axis=1)] = True
        return np.asarray(chosen)


def _mean_directions(records: Records, columns: list[int]) -> Doubles:
    """Return the direction of the mean of each class at `columns`."""
    return directions(np.stack([records.ordered[column].mean for column in columns]))


def _with_own(fitted: float, fixed: float | None, held_out: int) -> float:
    """Return the temperature between the fitted one and that of the method, if it has its own."""
    return fitted if fixed is None else float(fitted * (fixed / fitted) ** _share_of_own(held_out))


def _deviation(fixed: float | None, held_out: int) -> float:
    """Return the standard deviation of log T: that of the prior, as far as the temperature is the method's own."""
    return 0.0 if fixed is None or not held_out else _share_of_own(held_out) / float(np.sqrt(TemperaturePrior.strength))


def _share_of_own(held_out: int) -> float:
    """Return how much a method's own temperature counts beside the fitted one."""
    return 1.0 / (1.0 + (_MANY / max(held_out, 1)) ** 2)


def _floor(n: int) -> float:
    """Return the share of an answer of n samples that is spread evenly."""
    return 1.0 / (2.0 * (n + 1.0))


def fit_temperature(method: ScoringMethod, derived: Any, records: Records, found: HeldOutScores) -> tuple[float, float]:
    """Return the most probable temperature, given held-out scores, and T0, the centre of its prior."""
    prior, samples = TemperaturePrior(), found.samples
    centre = prior.centre(method, derived, records)
    if not len(samples.rows):
        return centre, centre
    weights = (samples.counts - 1.0) / samples.counts

    def loss(step: float) -> float:
        likely = found.of_own(lambda scores, own: log_softmax(scores / centre * np.exp(-step))[own])
        return float(0.5 * prior.strength * step**2 - weights @ likely)

    return centre * float(np.exp(smallest(loss, -_WIDEST, _WIDEST, tolerance=_CLOSE))), centre


def _held_out_scores(method: ScoringMethod, derived: Any, records: Records) -> tuple[HeldOutScores, int]:
    """Hold out as many samples as the method can afford; return their scores, and how many there may be."""
    columns, most = np.arange(len(records.counts)), held_out_limit(len(records.counts))
    samples = spread(records, columns, most)
    if len(samples.rows) and not leaves_out_quickly(method, derived, records, samples.at(np.arange(1))):
        most = _DERIVED_AGAIN
        samples = spread(records, columns, most)
    return score_held_out(method, derived, records, samples), most
