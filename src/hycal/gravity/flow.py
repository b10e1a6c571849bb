"""The flow between domains: how often images of one domain are classified into another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from hycal.validation import Doubles

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DomainFlow:
    """Images by the domain they belong to (rows) and the domain of the class they were given (columns).

    Examples
    --------
    >>> flow = DomainFlow.of(["art", "art", "digit"], ["art", "digit", "digit"], ("art", "digit"))
    >>> flow.counts.tolist(), flow.net.tolist()
    ([[1, 1], [0, 1]], [-1, 1])
    """

    domains: tuple[str, ...]
    counts: Counts

    @classmethod
    def of(cls, truth: Sequence[str], answers: Sequence[str], domains: Sequence[str]) -> Self:
        """Count images of the domains `truth` that were answered with classes of the domains `answers`."""
        place = {domain: number for number, domain in enumerate(domains)}
        counts = np.zeros((len(place), len(place)), np.int64)
        rows, columns = ([place[domain] for domain in side] for side in (truth, answers))
        np.add.at(counts, (rows, columns), 1)
        return cls(tuple(domains), counts)

    @property
    def asked(self) -> Counts:
        """Images of each domain."""
        return self._sum(axis=1)

    @property
    def outflow(self) -> Counts:
        """Images that each domain lost to others."""
        return self.asked - np.diag(self.counts)

    @property
    def inflow(self) -> Counts:
        """Images of others that each domain took."""
        return self._sum(axis=0) - np.diag(self.counts)

    @property
    def net(self) -> Counts:
        """Images taken less images lost; the sum over domains is zero."""
        return self.inflow - self.outflow

    @property
    def rates(self) -> Doubles:
        """Each row as shares of its domain's images; NaN for a domain that was not asked about."""
        asked = self.asked[:, None].astype(np.float64)
        return np.divide(self.counts, asked, out=np.full(self.counts.shape, np.nan), where=asked > 0)

    @property
    def loss(self) -> Doubles:
        """Share of its images that each domain lost."""
        loss: Doubles = 1.0 - np.diag(self.rates)
        return loss

    @property
    def taken(self) -> Doubles:
        """Share of the images of all other domains that each domain took; NaN where there were none."""
        others = (self.asked.sum() - self.asked).astype(np.float64)
        return np.divide(self.inflow, others, out=np.full(len(others), np.nan), where=others > 0)

    @property
    def crossing(self) -> float:
        """Share of all images that were given to another domain."""
        return float(self.outflow.sum() / self.counts.sum())

    def pull(self, shares: npt.ArrayLike) -> Doubles:
        """Return each domain's share of the images that crossed, less the share it would have had by chance.

        By chance a lost image goes to each other domain in proportion to `shares`. A positive pull means that the
        domain takes more than its part; the sum over domains is zero. Without crossings every pull is zero.

        Parameters
        ----------
        shares : array-like of shape (T,)
            Positive, such as the number of classes: a wrong answer drawn at random among the other domains' classes.
        """
        parts = np.asarray(shares, dtype=np.float64) / np.sum(shares)
        crossed = self.outflow.sum()
        if not crossed:
            return np.zeros(len(parts))
        per_part = np.divide(self.outflow, 1.0 - parts, out=np.zeros(len(parts)), where=self.outflow > 0)
        expected = parts * (per_part.sum() - per_part)
        pull: Doubles = (self.inflow - expected) / crossed
        return pull

    def _sum(self, *, axis: int) -> Counts:
        return np.asarray(self.counts.sum(axis=axis), dtype=np.int64)
