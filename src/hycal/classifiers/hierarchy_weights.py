"""Weights of the evidence of HierarchicalHyCal: those that make held-out samples of a domain most likely."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.hierarchy import Hierarchy
from hycal.algebra.hierarchy_covariance import ClassCovariances, covariances_pay
from hycal.algebra.hierarchy_held_out import evidence_in_own_domain, held_out_energies
from hycal.algebra.hierarchy_kernel import MOST, KernelRegression, kernel_pays
from hycal.state.records import Records
from hycal.state.selection import Selection, spread_rows
from hycal.uncertainty.temperature import Penalty, fit_weights
from hycal.validation import Doubles, Floats

# Weights of evidence by distance, direction, kernel, text and covariance, and of that for a domain
KINDS = ("distance", "direction", "kernel", "text", "covariance")
CENTRES = np.array([0.05, 0.05, 5.0, 1.0, 0.05])  # weights with few held-out samples are near these
ONE_SHOT = np.array([0.0, 0.1, 0.0, 0.0, 0.0])  # where none can be held out; all one-shot means have length 1
ONE_SHOT_AND_TEXT = np.array([0.0, 0.05, 0.0, 1.0, 0.0])
_LEAST = np.array([0.0, 0.0, 0.25, 0.0, 0.0025])  # kernel and covariance evidence of a smaller weight is left out
_DOMAIN_WEIGHT = 0.025
_PENALTY = 10.0  # nats: twice the penalty for doubling a weight
HELD_OUT = 200  # samples of a domain that its weights are fitted on
HELD_OUT_OF_DOMAIN = 40  # samples of a domain that the weight of domains is fitted on

FittedDomain = tuple[KernelRegression | None, ClassCovariances | None, Floats | None, Doubles]


def members_of(hierarchy: Hierarchy, number: int, everything: Selection) -> Selection:
    """Return the samples of one domain."""
    return everything.at(np.flatnonzero(hierarchy.domain_of[everything.own] == number))


def fitted_domain(
    records: Records, everything: Selection, hierarchy: Hierarchy, number: int, text: Floats | None, most: int = MOST
) -> FittedDomain:
    """Return the regression, of `most` samples at most, and the covariances of a domain if they pay, text, and weights.

    The weights maximise the likelihood of the classes of held-out samples, among the classes of their domain.
    """
    domain = hierarchy.domains[number]
    samples = everything.at(spread_rows(records, domain.columns, HELD_OUT))
    if not len(samples.rows):
        return None, None, text, ONE_SHOT if text is None else ONE_SHOT_AND_TEXT
    held_out = evidence_in_own_domain(hierarchy.prior, domain, samples)
    members, kernel, covariances = members_of(hierarchy, number, everything), None, None
    classes, own = (np.searchsorted(domain.columns, part.own) for part in (members, samples))
    found: dict[str, npt.NDArray[Any]] = {"distance": held_out.distance(), "direction": held_out.direction()}
    if len(members.rows) <= most and kernel_pays(len(members.rows), len(domain.columns)):
        kernel = KernelRegression.fit(members.X, classes)
        found["kernel"] = kernel.without_each(np.searchsorted(members.rows, samples.rows))
    if text is not None:
        found["text"] = samples.X @ text.T
    if covariances_pay(records.counts[domain.columns], records.width):
        covariances = ClassCovariances.fit(members.X, classes)
    if covariances is not None:
        found["covariance"] = covariances.without_each(samples.X, own)
    kinds, weights = [KINDS.index(kind) for kind in found], np.zeros(len(KINDS))
    weights[kinds] = fit_weights(np.stack(list(found.values())), own, Penalty(CENTRES[kinds], _PENALTY))
    kept = weights >= _LEAST
    return kernel if kept[2] else None, covariances if kept[4] else None, text, np.where(kept, weights, 0.0)


def domain_weight(records: Records, everything: Selection, hierarchy: Hierarchy) -> float:
    """Return the weight that maximises the likelihood of the domains of held-out samples."""
    if len(hierarchy.domains) == 1:
        return _DOMAIN_WEIGHT
    rows = [spread_rows(records, domain.columns, HELD_OUT_OF_DOMAIN) for domain in hierarchy.domains]
    samples = everything.at(np.concatenate(rows))
    energies, own = held_out_energies(hierarchy, samples), hierarchy.domain_of[samples.own]
    return float(fit_weights(energies[None], own, Penalty(np.array([_DOMAIN_WEIGHT]), _PENALTY))[0])
