"""Whether a query belongs to any learned class.

The similarity of a query is its largest cosine with a class mean, less a part of its cosine with the mean of all
classes: what is like everything is like nothing in particular. It needs no covariance, so it holds from the second
sample of a class on. Covariances add three more measures (`CovarianceMeasures`) as far as they are known: with v
degrees of freedom in d dimensions they have the share max(v - d/2, 0)/(v + d/2) of the familiarity.

Everything is standardised on held-out samples (mean 0, standard deviation 1). One sample of each group of
near-duplicates is used, because the others say nothing about new images. What is rejected is set by the held-out
samples: by a quantile of Student's t while they are few, by their quantile as they become many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hycal.algebra.covariance import directions
from hycal.errors import HyCalError
from hycal.parallel.threads import run_in_chunks
from hycal.state.changes import Changes
from hycal.state.records import Records
from hycal.state.selection import Selection, spread
from hycal.uncertainty.covariance_measures import CovarianceMeasures
from hycal.uncertainty.leave_one_out import held_out_limit
from hycal.uncertainty.near_duplicates import Distinct
from hycal.validation import Doubles, Floats

_LEAST_SPREAD = 1e-9
_COMMON = 0.44  # of the cosine with the mean of all classes, where classes have many samples
_MANY = 10.0  # held-out samples below a quantile at which it counts as much as that of Student's t
_BISECTIONS = 55  # to the last bit of an angle


@dataclass(frozen=True, eq=False)
class ClassSimilarity:
    """The largest cosine with a class mean, less `common` times that with the mean of all; `means` are (C, d)."""

    means: Doubles
    common: float

    @classmethod
    def of(cls, records: Records) -> ClassSimilarity:
        """Return the similarity to the classes of `records`; the fewer samples of a class, the less is common."""
        K = float(records.counts.mean())
        return cls(np.stack([record.mean for record in records.ordered]), _COMMON * (1.0 - 1.0 / K**2))

    def after(self, changes: Changes) -> ClassSimilarity:
        """Return the similarity to the classes after `changes`; what is common stays."""
        fresh = [changes.after.ordered[column].samples.mean for column in changes.fresh]
        return ClassSimilarity(changes.carried(self.means, fresh), self.common)

    def __call__(self, X: Doubles) -> Doubles:
        """Return the similarity of queries, (n,)."""
        similarity: Doubles = (X @ directions(self.means).T).max(axis=1)
        similarity -= self.common * (X @ directions(self.means.sum(axis=0, keepdims=True))[0])
        return similarity

    def held_out(self, samples: Selection) -> Doubles:
        """Return the similarity of learned samples, (n,), each without itself in either mean."""
        X, means = samples.X.astype(np.float64), self.means
        moves = (means[samples.own] - X) / (samples.counts - 1.0)[:, None]
        cosines = X @ directions(means).T
        cosines[samples.each, samples.own] = np.einsum("nd,nd->n", X, directions(means[samples.own] + moves))
        centres = directions(means.sum(axis=0) + moves)
        return cosines.max(axis=1) - self.common * np.einsum("nd,nd->n", X, centres)


@dataclass(frozen=True, eq=False)
class Familiarity:
    """How well queries fit the learned classes.

    Attributes
    ----------
    similarity : ClassSimilarity
    centre, spread : float
        Mean and standard deviation of the similarity of held-out samples.
    covariances : CovarianceMeasures or None
        None while there are too few samples for a covariance.
    share : float
        Share of the covariances in the familiarity.
    held_out : ndarray of shape (n,)
        Familiarity of held-out samples, sorted; empty if no class has two samples that are not near-duplicates.
    distinct : Distinct or None
        The samples that count; None if it cannot follow a change.
    """

    similarity: ClassSimilarity
    centre: float
    spread: float
    covariances: CovarianceMeasures | None
    share: float
    held_out: Doubles
    distinct: Distinct | None = None

    @classmethod
    def of(cls, learned: Records, *, most: float = 1.0) -> Familiarity:
        """Measure held-out samples, spread evenly over classes; every class must have samples.

        `most` is the largest share that covariances may have: 0 where only means are kept.
        """
        if not learned.by_label:
            raise HyCalError("No class has images yet, so no image can be called known or unknown. Learn images first.")
        distinct = Distinct.of(learned)
        records = distinct.records
        samples = spread(records, np.arange(len(records.counts)), held_out_limit(len(records.counts)))
        known, familiarity = cls.fitted(records, samples, most=most)
        return replace(known, held_out=np.sort(familiarity), distinct=distinct)

    @classmethod
    def fitted(cls, records: Records, samples: Selection, *, most: float = 1.0) -> tuple[Familiarity, Doubles]:
        """Fit to records without near-duplicates; return also the familiarity of held-out `samples`, in their order."""
        similarity = ClassSimilarity.of(records)
        if not len(samples.rows):
            return cls(similarity, 0.0, 1.0, None, 0.0, np.empty(0)), np.empty(0)
        found = similarity.held_out(samples)
        centre, spread = float(found.mean()), max(float(found.std(ddof=1)), _LEAST_SPREAD)
        familiarity, share = (found - centre) / spread, min(_covariance_share(records), most)
        if not share:
            return cls(similarity, centre, spread, None, 0.0, np.empty(0)), familiarity
        covariances, measured = CovarianceMeasures.fitted(records, samples)
        familiarity = (1.0 - share) * familiarity + share * measured
        return cls(similarity, centre, spread, covariances, share, np.empty(0)), familiarity

    def after(self, changes: Changes) -> Familiarity | None:
        """Return the familiarity after `changes` of all samples; None if it has to be fitted anew.

        The class means and the covariances of domains follow. Thresholds, shares, the standardisation of the measures,
        the distance of near-duplicates and the covariances of all data stay.
        """
        distinct = None if self.distinct is None else self.distinct.after(changes)
        if self.distinct is None or distinct is None:
            return None
        changed = Changes.between(self.distinct.records, distinct.records)
        covariances = None if self.covariances is None else self.covariances.after(changed)
        if self.covariances is not None and covariances is None:
            return None
        return replace(self, distinct=distinct, similarity=self.similarity.after(changed), covariances=covariances)

    def __call__(self, X: Floats) -> Doubles:
        """Return the familiarity of queries: 0 is that of a typical sample, -1 one standard deviation less."""
        familiarity = np.empty(len(X))

        def fill(rows: slice) -> None:
            part = X[rows].astype(np.float64)
            familiarity[rows] = (self.similarity(part) - self.centre) / self.spread
            if self.covariances is not None:
                familiarity[rows] *= 1.0 - self.share
                familiarity[rows] += self.share * self.covariances(part)

        of_domains = 0 if self.covariances is None else self.covariances.hierarchy.numbers_per_row
        run_in_chunks(fill, len(X), numbers_per_row=4 * len(self.similarity.means) + of_domains)
        return familiarity

    def threshold(self, error: float) -> float:
        """Return the familiarity below which a query is unknown, so that a share of `error` of the known ones is."""
        return lowest_familiarity(self.held_out, error)


def lowest_familiarity(held_out: Doubles, error: float) -> float:
    """Return the value that a share of `error` of known queries lies below, from values of held-out samples.

    Of normal samples with mean m and deviation s, known from n held-out ones, about `error` lie below m - t s, with
    t the quantile of n degrees of freedom; n - 1 would allow for the error of m too, but a query is compared with
    means of one sample more than a held-out sample is, which makes up for it. The quantile of the held-out samples
    needs no normal ones, but many: it has the weight n error/(n error + 10).
    """
    n = len(held_out)
    if not n:
        raise HyCalError(
            "No class has two samples that differ, so none can be held out to set a threshold. Learn a second "
            "image of a class that is not a near-duplicate of the first. A model that is sealed holds none out: learn "
            "that image before sealing."
        )
    normal = held_out.mean() - student_quantile(n, 1.0 - error) * held_out.std(ddof=1)
    weight = n * error / (n * error + _MANY)
    return float((1.0 - weight) * normal + weight * np.quantile(held_out, error))


def student_quantile(freedom: int, share: float) -> float:
    """Return the t of which Student's distribution has `share` below it.

    With t = sqrt(v) tan a, the share between -t and t is a sum of powers of cos a (Abramowitz and Stegun, 26.7.3 and
    26.7.4). It grows with a, which is found by bisection. SciPy's `stdtrit` takes longer to import than an answer.

    >>> round(student_quantile(3, 0.95), 4)
    2.3534
    """
    powers = np.arange(freedom % 2, freedom - 1, 2, dtype=np.float64)
    factors = np.cumprod(np.append(1.0, (powers[:-1] + 1.0) / (powers[:-1] + 2.0)))[: len(powers)]
    low, high = -0.5 * np.pi, 0.5 * np.pi
    for _ in range(_BISECTIONS):
        a = 0.5 * (low + high)
        between = np.sin(a) * float(factors @ np.cos(a) ** powers)
        if freedom % 2:
            between = (a + between) * 2.0 / np.pi
        low, high = (a, high) if 0.5 * (1.0 + between) < share else (low, a)
    return float(np.sqrt(freedom) * np.tan(0.5 * (low + high)))


def _covariance_share(records: Records) -> float:
    """Return the share of the measures that rest on covariances."""
    v, half = int(records.counts.sum()) - len(records.counts), records.width / 2.0
    return max(v - half, 0.0) / (v + half)


def check_share(name: str, share: float) -> None:
    """Raise unless `share` is between 0 and 1."""
    if not 0.0 < share < 1.0:
        raise HyCalError(f"{name} is {share:g}; expected a share between 0 and 1, such as 0.05 or 0.9.")


def rejected(familiarity: Doubles, threshold: float) -> npt.NDArray[np.bool_]:
    """Return which queries are unknown."""
    return np.asarray(familiarity < threshold)
