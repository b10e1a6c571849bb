"""Weights of the evidence of HierarchicalHyCal: those that make held-out samples of a domain most likely."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.hierarchy import DomainGaussians, Hierarchy, Prior
from hycal.algebra.hierarchy_covariance import ClassCovariances, covariances_pay
from hycal.algebra.hierarchy_held_out import evidence_in_own_domain, held_out_energies
from hycal.algebra.hierarchy_kernel import MOST, KernelRegression, kernel_pays
from hycal.algebra.hierarchy_posterior import KINDS, Posterior, Sources, Weights, count_evidence
from hycal.state.records import Records
from hycal.state.selection import Selection, spread
from hycal.uncertainty.temperature import Penalty, classes_alike, fit_weights
from hycal.validation import Doubles, Floats

# Weights of evidence by distance, direction, kernel, text, covariance and count, and of that for a domain
CENTRES = np.array([0.05, 0.05, 5.0, 1.0, 0.05, 0.8])  # weights with few held-out samples are near these
ONE_SHOT = np.array([0.0, 0.1, 0.0, 0.0, 0.0, 0.0])  # where none can be held out; all one-shot means have length 1
ONE_SHOT_AND_TEXT = np.array([0.0, 0.05, 0.0, 1.0, 0.0, 0.0])
_LEAST = np.array([0.0, 0.0, 0.25, 0.0, 0.0025, 0.0])  # kernel and covariance evidence of a smaller weight is left out
_DOMAIN_WEIGHT = 0.025
_PENALTY = 10.0  # nats: twice the penalty for doubling a weight
HELD_OUT = 200  # samples of a domain that its weights are fitted on
HELD_OUT_OF_DOMAIN = 40  # samples of a domain that the weight of domains is fitted on


def fitted_domain(
    records: Records, everything: Selection, hierarchy: Hierarchy, number: int, text: Floats | None, most: int = MOST
) -> tuple[Sources, Doubles]:
    """Return the sources of evidence of a domain, a regression of `most` samples at most, and the weights."""
    domain = hierarchy.domains[number]
    if not np.any(records.counts[domain.columns] > 1):
        return Sources(None, None, text), ONE_SHOT if text is None else ONE_SHOT_AND_TEXT
    members = everything.at(np.flatnonzero(hierarchy.domain_of[everything.own] == number))
    kernel = covariances = None
    classes = np.searchsorted(domain.columns, members.own)
    if len(members.rows) <= most and kernel_pays(len(members.rows), len(domain.columns)):
        kernel = KernelRegression.fit(members.X, classes)
    if covariances_pay(records.counts[domain.columns], records.width):
        covariances = ClassCovariances.fit(members.X, classes)
    sources = Sources(kernel, covariances, text)
    return sources, class_weights(hierarchy.prior, domain, sources, records)


def class_weights(
    prior: Prior, domain: DomainGaussians, sources: Sources, records: Records, start: Doubles | None = None
) -> Doubles:
    """Return the weights of evidence, (6,), 0 where it is too little; `start` are weights that may be near.

    They maximise the likelihood of the classes of held-out samples, among the classes of their domain. Every class
    counts alike, however many of its samples are held out.
    """
    samples = spread(records, domain.columns, HELD_OUT)
    if not len(samples.rows):
        return ONE_SHOT if sources.text is None else ONE_SHOT_AND_TEXT
    own = np.searchsorted(domain.columns, samples.own)
    held_out = evidence_in_own_domain(prior, domain, samples)
    found: dict[str, npt.NDArray[Any]] = {"distance": held_out.distance(), "direction": held_out.direction()}
    if sources.kernel is not None:
        found["kernel"] = sources.kernel.without_each(samples.X, own)
    if sources.text is not None:
        found["text"] = samples.X @ sources.text.T
    if sources.covariances is not None:
        found["covariance"] = sources.covariances.without_each(samples.X, own)
    found["count"] = np.tile(count_evidence(records.counts[domain.columns]), (len(own), 1))
    kinds, weights = [KINDS.index(kind) for kind in found], np.zeros(len(KINDS))
    near = (
        None if start is None or not start[kinds].all() else start[kinds]
    )  # a weight left out was not zero in the fit
    penalty = Penalty(CENTRES[kinds], _PENALTY)
    weights[kinds] = fit_weights(np.stack(list(found.values())), own, penalty, near, classes_alike(own))
    return np.where(weights >= _LEAST, weights, 0.0)


def weighed_again(posterior: Posterior, before: Posterior) -> Posterior:
    """Return the posterior after a change with the weights of the domains that changed fitted again."""
    weights, prior = before.weights.classes.copy(), posterior.hierarchy.prior
    pairs = zip(posterior.hierarchy.domains, before.hierarchy.domains, posterior.sources, strict=True)
    for number, (domain, old, sources) in enumerate(pairs):
        if domain.scatter is not old.scatter:
            weights[number] = class_weights(prior, domain, sources, posterior.records, weights[number])
    return replace(posterior, weights=Weights(weights, before.weights.domain))


def domain_weight(records: Records, everything: Selection, hierarchy: Hierarchy) -> float:
    """Return the weight that maximises the likelihood of the domains of held-out samples."""
    if len(hierarchy.domains) == 1:
        return _DOMAIN_WEIGHT
    rows = [spread(records, domain.columns, HELD_OUT_OF_DOMAIN).rows for domain in hierarchy.domains]
    samples = everything.at(np.concatenate(rows))
    energies, own = held_out_energies(hierarchy, samples), hierarchy.domain_of[samples.own]
    return float(fit_weights(energies[None], own, Penalty(np.array([_DOMAIN_WEIGHT]), _PENALTY))[0])
