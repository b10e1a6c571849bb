"""Evidence of several views: one log posterior for each, added with weights that make held-out samples most likely.

A view is what one encoder says of an image. The log posterior of a view is split into that of the domains and that of
the classes inside each, because views differ in what they tell apart: with D_v = log p_v(g | x) and
W_v = log p_v(c | g, x),

    p(g | x) ~ exp(sum_v u_v D_v),    p(c | g, x) ~ exp(sum_v w_gv W_v),    score = log p(g | x) + log p(c | g, x)

The weights w of all domains together are fitted first, then those of each domain, shrunk towards them. Both problems
are convex (`hycal.uncertainty.temperature`).

A class that a view does not know is neither better nor worse there than the classes of its domain are on average: it
has the log of their mean probability. A row that lacks a view is answered by the others, whose weights keep their sum;
a row of one view is answered as by the model of that view alone.

    symbol    shape      meaning (V views, n rows, G domains, C classes)
    L         (n, C)     log posterior of a view; NaN for a class that it does not know
    D         (V, n, G)  log posterior of domains
    W         (V, n, C)  log posterior of classes inside their domain
    w, u      (G, V), (V,)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hycal.algebra.softmax import log_softmax
from hycal.uncertainty.temperature import Penalty, fit_weights
from hycal.validation import Doubles

_SHARED = 1.0  # nats: twice the penalty for doubling the weight of a view in all domains
_OWN = 3.0  # nats: the same for the weight in one domain
_NATS = 2.0  # what a view proves on all held-out samples where its share g/(g + 2) is one half
_LEAST = 0.01  # weight in all domains that a weight in one domain is shrunk towards
_LEAST_OF_ALL = 1e-6  # weight, and nats that a view proves: no sum of those that are present is zero
_NONE = -1e4  # evidence of a class that does not exist

HeldOutInside = tuple[Doubles, npt.NDArray[np.intp]]


@dataclass(frozen=True, eq=False)
class DomainColumns:
    """Classes by domain: the names of domains, and the columns of the classes of each."""

    names: tuple[str, ...]
    columns: tuple[npt.NDArray[np.intp], ...]

    @classmethod
    def of(cls, domains: npt.NDArray[np.str_]) -> DomainColumns:
        """Group the classes by the name of their domain, (C,)."""
        names, groups = np.unique(domains, return_inverse=True)
        return cls(tuple(names.tolist()), tuple(np.flatnonzero(groups == number) for number in range(len(names))))

    @cached_property
    def numbers(self) -> npt.NDArray[np.intp]:
        """The number of the domain of each class, (C,)."""
        numbers = np.empty(sum(map(len, self.columns)), np.intp)
        for number, columns in enumerate(self.columns):
            numbers[columns] = number
        return numbers

    def split(self, L: Doubles) -> tuple[Doubles, Doubles]:
        """Return D, (n, G), and W, (n, C), of one view; what it does not know is neutral."""
        D, W = np.empty((len(L), len(self.names))), np.empty(L.shape)
        for number, columns in enumerate(self.columns):
            D[:, number], W[:, columns] = log_shares(L[:, columns])
        return log_shares(D)[1], W


def log_shares(L: Doubles) -> tuple[Doubles, Doubles]:
    """Return log sum exp of each row, NaN if all is unknown, and the log shares; the unknown has the mean share."""
    if not np.isnan(L).any():
        shares = log_softmax(L)
        return L[:, 0] - shares[:, 0], shares
    unknown = np.isnan(L)
    known = np.where(unknown, -np.inf, L)
    highest = np.where(unknown.all(axis=1), 0.0, known.max(axis=1))
    with np.errstate(divide="ignore"):
        totals = highest + np.log(np.exp(known - highest[:, None]).sum(axis=1))
    average = -np.log(np.maximum((~unknown).sum(axis=1), 1.0))
    shares = np.where(unknown, average[:, None], known - np.where(np.isinf(totals), 0.0, totals)[:, None])
    return np.where(np.isinf(totals), np.nan, totals), shares


@dataclass(frozen=True, eq=False)
class ViewWeights:
    """Weights of views: for the classes of each domain, (G, V), for all domains, (V,), and for telling domains, (V,).

    `names` are those of the domains.
    """

    names: tuple[str, ...]
    classes: Doubles
    shared: Doubles
    domains: Doubles

    @classmethod
    def even(cls, groups: DomainColumns, views: int) -> ViewWeights:
        """Return equal weights, whose sum is 1: those where nothing can be held out."""
        each = np.full(views, 1.0 / views)
        return cls(groups.names, np.tile(each, (len(groups.names), 1)), each, each)

    @classmethod
    def fit(
        cls, groups: DomainColumns, D: Doubles, own: npt.NDArray[np.intp], inside: Sequence[HeldOutInside]
    ) -> ViewWeights:
        """Maximise the likelihood of held-out samples that have all views.

        D (V, n, G) is of samples of all domains, whose classes have the columns `own`. `inside` has for each domain W
        of its own samples for its own classes, (V, n, C_g), and the place of the class of each.
        """
        none = cls.even(groups, len(D))
        total = sum(len(place) for _, place in inside)
        if not total:
            return none
        shared = _proven(*_together(inside), none.shared)
        towards, classes = Penalty(np.maximum(shared, _LEAST), _OWN), np.tile(shared, (len(groups.names), 1))
        for number, (W, place) in enumerate(inside):
            if len(place) and W.shape[2] > 1:
                classes[number] = fit_weights(W, place, towards)
        told = len(groups.names) > 1 and len(own)
        domains = _proven(D, groups.numbers[own], none.shared) if told else none.domains
        return cls(groups.names, classes, shared, domains)

    def scaled(self, gains: Doubles) -> ViewWeights:
        """Return the weights times those of each domain, (G,), and on average for telling domains."""
        return replace(self, classes=self.classes * gains[:, None], domains=self.domains * float(gains.mean()))

    def by_presence(self, has: npt.NDArray[np.bool_]) -> Iterator[tuple[npt.NDArray[np.intp], ViewWeights]]:
        """Yield rows that have the same views, and their weights; `has` is (V, n)."""
        kinds, which = np.unique(has, axis=1, return_inverse=True)
        for number, present in enumerate(kinds.T):
            yield np.flatnonzero(which.ravel() == number), self.of_present(present)

    def of_present(self, present: npt.NDArray[np.bool_]) -> ViewWeights:
        """Return the weights for rows that have the views that are `present`, (V,)."""
        if present.all():
            return self
        return replace(self, classes=_renormalised(self.classes, present), domains=_renormalised(self.domains, present))

    def combined(self, groups: DomainColumns, D: Doubles, W: Doubles) -> Doubles:
        """Return the scores of rows, (n, C)."""
        scores = np.empty(W.shape[1:])
        domains = log_softmax(np.tensordot(self.domains, D, axes=1))
        for number, columns in enumerate(groups.columns):
            inside = log_softmax(np.tensordot(self.classes[number], W[:, :, columns], axes=1))
            scores[:, columns] = inside + domains[:, number, None]
        return scores


def _proven(E: Doubles, own: npt.NDArray[np.intp], even: Doubles) -> Doubles:
    """Return weights of views, (V,), each reduced where the view proves little.

    A view without which held-out samples are g nats less likely keeps a share in proportion to g/(g + 2); that which
    proves most keeps its weight, since views that agree prove nothing beside each other.
    """
    weights = fit_weights(E, own, Penalty(even, _SHARED))

    def likelihood(tried: Doubles) -> float:
        return float(log_softmax(np.tensordot(tried, E, axes=1))[np.arange(len(own)), own].sum())

    whole = likelihood(weights)
    gains = np.array(
        [max(whole - likelihood(np.where(np.arange(len(E)) == view, 0.0, weights)), 0.0) for view in range(len(E))]
    )
    shares = (gains + _LEAST_OF_ALL) / (gains + _NATS)
    return np.maximum(weights * shares / shares.max(), _LEAST_OF_ALL)


def _renormalised(weights: Doubles, present: npt.NDArray[np.bool_]) -> Doubles:
    """Return weights, (..., V), that are zero where a view is missing and keep their sum; 1 for a view alone."""
    if present.sum() <= 1:
        return np.broadcast_to(present.astype(np.float64), weights.shape)
    kept = weights * present
    scaled: Doubles = kept * (weights.sum(axis=-1) / kept.sum(axis=-1))[..., None]
    return scaled


def _together(inside: Sequence[HeldOutInside]) -> HeldOutInside:
    """Return the samples of all domains as those of one, which has as many classes as the largest."""
    widest = max(W.shape[2] for W, _ in inside)
    padded = [np.pad(W, ((0, 0), (0, 0), (0, widest - W.shape[2])), constant_values=_NONE) for W, _ in inside]
    return np.concatenate(padded, axis=1), np.concatenate([place for _, place in inside])
