"""HierarchicalHyCal, sealed: class means, the scatter of each domain, and the weights of evidence as numbers.

The regression of a domain compares a query with every sample, so a sealed model has none: its answers are those of a
model that never used one. Weights are fitted again without it, while there are samples to hold out. The covariances of
classes are kept where they have weight. A domain that is new to a sealed model gets the weights that few samples get.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.hierarchy_covariance import ClassCovariances
from hycal.algebra.hierarchy_fit import fit_hierarchy, identity_share
from hycal.algebra.hierarchy_posterior import KINDS, Posterior, Sources, Weights
from hycal.base import IncrementalClassifier
from hycal.classifiers.hierarchy_weights import CENTRES, ONE_SHOT, ONE_SHOT_AND_TEXT, fitted_domain
from hycal.errors import HyCalError
from hycal.parallel.threads import one_blas_thread
from hycal.sealing import Sealing, SealPlan
from hycal.state.records import Records
from hycal.state.sealed import SealedRecords, found_key
from hycal.state.selection import Selection
from hycal.validation import Doubles, Floats, Label

_LEFT_OUT = (
    "answers may change slightly, 2 to 4 in 100 where it was measured (docs/explanation/seal.md): the regressions of "
    "domains are left out, as they compare an image with every learned one"
)

_WITHOUT_COUNT = KINDS.index("count")  # kinds of evidence in files from before the last was added
_LARGEST = 1e6  # weight; the penalty keeps those of a fit within some hundred times of their centres


class SealedHierarchy(IncrementalClassifier):
    """What HierarchicalHyCal says about sealing."""

    @property
    def sealing(self) -> Sealing:
        """The scatter of each domain; the regressions of domains are left out."""
        return Sealing("groups", _LEFT_OUT)

    def seal_plan(self, value: Posterior, records: Records) -> SealPlan:
        """Return the plan of the model without regressions: domains as they were found, and weights of evidence."""
        with one_blas_thread():
            value = value.fitted
            kept = _without_kernels(value, records)
        keys = _keys(records, value.hierarchy.domain_of)
        names = {number: keys[label] for label, number in zip(records.labels, value.hierarchy.domain_of, strict=True)}
        own = frozenset(names[number] for number, part in enumerate(kept.covariances) if part is not None)
        weights = {names[number]: each for number, each in enumerate(kept.weights.classes)}
        return SealPlan(kept, keys, own, weights, {"domain": np.array([kept.weights.domain])})

    def check_sealed(self, table: SealedRecords) -> None:
        """Refuse weights of another number of kinds, and weights that no fit can give."""
        super().check_sealed(table)
        kinds = {len(each) for each in table.weights.values()}
        if len(table.numbers.get("domain", ())) != 1 or not kinds <= {len(KINDS), _WITHOUT_COUNT}:
            raise HyCalError("It has no weight of domains, or weights of evidence that do not fit the method.")
        weights = np.concatenate([table.numbers["domain"], *table.weights.values()])
        if not np.all((weights >= 0.0) & (weights <= _LARGEST)):
            raise HyCalError(f"It has weights of evidence that are negative, or above {_LARGEST:,.0f}.")

    def derive_sealed(self, table: SealedRecords) -> Posterior:
        """Return the hierarchy from moments, with the weights that are kept."""
        model: Any = self
        ridge = identity_share(table, model.ridge)
        with one_blas_thread():
            hierarchy = fit_hierarchy(table, strength=model.strength, ridge=ridge, domain_of=table.grouping)
            groups = zip(table.keys, hierarchy.domains, strict=True)
            covariances = tuple(_covariances(table, key, domain.columns) for key, domain in groups)
        texts = tuple(model._texts(table, domain.columns) for domain in hierarchy.domains)
        new = [
            _weights_of_new(table.counts[domain.columns], text)
            for domain, text in zip(hierarchy.domains, texts, strict=True)
        ]
        kept = {key: np.pad(each, (0, len(KINDS) - len(each))) for key, each in table.weights.items()}
        weights = np.stack([kept.get(key, few) for key, few in zip(table.keys, new, strict=True)])
        fitted = Weights(weights, float(table.numbers["domain"][0]))
        sources = tuple(Sources(None, part, text) for part, text in zip(covariances, texts, strict=True))
        return Posterior(hierarchy, sources, fitted, table, model.derive_sealed)


def _weights_of_new(counts: npt.NDArray[np.int64], text: Floats | None) -> Doubles:
    """Return the weights of a domain that a sealed model learned: nothing was held out of it."""
    if counts.max() == 1:
        return ONE_SHOT if text is None else ONE_SHOT_AND_TEXT
    return CENTRES * np.array([1.0, 1.0, 0.0, 0.0 if text is None else 1.0, 0.0, 1.0])


def _without_kernels(value: Posterior, records: Records) -> Posterior:
    """Return the posterior with the weights of domains that had a regression fitted without it."""
    if not any(kernel is not None for kernel in value.kernels):
        return value
    everything, weights, sources = Selection.of(records), value.weights.classes.copy(), list(value.sources)
    for number, kernel in enumerate(value.kernels):
        if kernel is not None:
            text = value.texts[number]
            sources[number], weights[number] = fitted_domain(records, everything, value.hierarchy, number, text, most=0)
    return replace(value, sources=tuple(sources), weights=Weights(weights, value.weights.domain))


def _keys(records: Records, domain_of: npt.NDArray[np.intp]) -> dict[Label, str]:
    """Return the key of the group of each class: the name of its domain where that is one group, else with a number."""
    names, numbers = records.domains.tolist(), domain_of.tolist()
    names_of, numbers_of = defaultdict[int, set[str]](set), defaultdict[str, set[int]](set)
    for name, number in zip(names, numbers, strict=True):
        names_of[number].add(name)
        numbers_of[name].add(number)

    def key(name: str, number: int) -> str:
        if len(names_of[number]) > 1:
            return found_key("", number)
        return name if len(numbers_of[name]) == 1 else found_key(name, number)

    return dict(zip(records.labels, map(key, names, numbers), strict=True))


def _covariances(table: SealedRecords, key: str, columns: npt.NDArray[np.intp]) -> ClassCovariances | None:
    """Return the covariances of the classes of a group that keep their own."""
    if key in table.spreads or key not in table.weights:
        return None
    moments = [table.moments[column] for column in columns]
    parts = [np.append(each.factor.astype(np.float64), np.zeros((1, table.width)), axis=0) for each in moments]
    return ClassCovariances.of(table.counts[columns], table.means[columns], parts)
