r"""How far one method leads another, and whether that is more than chance.

Both methods learn the same samples and answer the same test images, so the difference of their hits is taken image by
image: what is hard for both cancels. Two draws are chance, that of the training samples and that of the test images,
and the interval has a variance for each:

.. math:: \frac{s^2_{seeds}}S + \frac1{T^2} \sum_j \frac{s_j^2}{n_j}

with the variance over S seeds of the difference in Last accuracy, and for each of T domains the variance over its n_j
test images of the difference, averaged over seeds. The factor is that of Student's t with the degrees of freedom of
Welch and Satterthwaite. What varies with both draws at once is counted in both, so the interval is rather too wide. One
seed, or seeds that drew the same samples, leave the second variance alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from hycal.bench.cells import CellResult
from hycal.validation import Doubles

Hits = Sequence[npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class Lead:
    """The difference of two methods in Last accuracy, in points, and the half width of its 95% interval."""

    mean: float
    interval: float
    seeds: int

    @property
    def beyond_chance(self) -> bool:
        """Whether the interval leaves zero out."""
        return abs(self.mean) > self.interval


def paired_lead(ours: Sequence[Hits], theirs: Sequence[Hits]) -> Lead:
    """Return the lead of one method over another.

    `ours` and `theirs` say for each seed which test images of each domain are right.

    >>> lead = paired_lead([[np.array([True, True, True, False])]], [[np.array([True, False, True, False])]])
    >>> lead.mean, round(lead.interval, 1), lead.beyond_chance
    (25.0, 79.6, False)
    """
    pairs = zip(ours, theirs, strict=True)
    gaps = [[100.0 * (a.astype(np.float64) - b) for a, b in zip(mine, other, strict=True)] for mine, other in pairs]
    by_seed = np.array([np.mean([gap.mean() for gap in domains]) for domains in gaps])
    by_image = [np.mean(seeds, axis=0) for seeds in zip(*gaps, strict=True)]
    seeds, images = len(by_seed), sum(gap.size - 1 for gap in by_image)
    drawn = by_seed.var(ddof=1) / seeds if seeds > 1 else 0.0
    asked = sum(_squared_error(gap) for gap in by_image) / len(by_image) ** 2
    if drawn + asked == 0.0:
        return Lead(float(by_seed.mean()), 0.0, seeds)
    freedom = (drawn + asked) ** 2 / (drawn**2 / max(1, seeds - 1) + asked**2 / max(1, images))
    half = student.ppf(0.975, freedom) * np.sqrt(drawn + asked)
    return Lead(float(by_seed.mean()), float(half), seeds)


def _squared_error(gap: Doubles) -> float:
    """Return the squared standard error of a mean; 0 for a single value."""
    return float(gap.var(ddof=1) / gap.size) if gap.size > 1 else 0.0


def lead_of_runs(ours: Sequence[CellResult], theirs: Sequence[CellResult]) -> Lead | None:
    """Return the lead over the seeds that both methods ran; None if there are none, or older runs without hits."""
    by_seed = {run.seed: run.right for run in theirs if run.right}
    pairs = [(run.right, by_seed[run.seed]) for run in ours if run.right and run.seed in by_seed]
    return paired_lead([mine for mine, _ in pairs], [other for _, other in pairs]) if pairs else None
