"""HierarchicalHyCal: directional and covariance evidence of classes in domains, weighted by held-out likelihood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax
from sklearn.utils._param_validation import Interval, StrOptions

from hycal.algebra.cost import Addition
from hycal.algebra.hierarchy import Hierarchy
from hycal.algebra.hierarchy_fit import fit_hierarchy
from hycal.algebra.hierarchy_held_out import evidence_in_own_domain, held_out_energies, held_out_evidence
from hycal.base import IncrementalClassifier
from hycal.classifiers.families import LOGIT_SCALE
from hycal.export.onnx_hierarchy import hierarchical_scores
from hycal.parallel.threads import map_parallel, one_blas_thread, run_in_chunks
from hycal.state.records import Records
from hycal.state.selection import Selection, spread_rows
from hycal.state.snapshot import Snapshot
from hycal.uncertainty.temperature import Pull, fit_weights
from hycal.validation import Doubles, Floats

if TYPE_CHECKING:
    from hycal.encoders.onnx_graph import GraphBuilder

_CLASS_WEIGHT = 0.05  # of either evidence for a class, where no sample can be held out
_DOMAIN_WEIGHT = 0.025  # of that for a domain
_PULL = 10.0  # nats: what doubling a weight costs, half of it
_HELD_OUT = 200  # samples of a domain that its weights are fitted on
_HELD_OUT_OF_DOMAIN = 40  # samples of a domain that the weight of domains is fitted on


@dataclass(frozen=True, eq=False)
class _Weights:
    """Weights of evidence: in each domain of distance, direction and text, shape (G, 3); and that of domains."""

    classes: Doubles
    domain: float


@dataclass(frozen=True, eq=False)
class Posterior:
    """Domains and their classes, scaled text embeddings by domain, and the weights of all evidence."""

    hierarchy: Hierarchy
    texts: tuple[Floats | None, ...]
    weights: _Weights


class HierarchicalHyCal(IncrementalClassifier):
    r"""Classes as Gaussians shrunk through their domain to all data; a posterior over domains, then over classes.

    In the white space of a domain g, with s_c the posterior mean of class c, u_c the direction of its plain mean and
    r_g the typical length of s_c, the evidence is

    .. math::
        e_c = z^\top s_c - \tfrac12 |s_c|^2, \quad
        p(c \mid g, x) \propto \exp(\alpha_g e_c + \beta_g r_g z^\top u_c + 100 \, \kappa_g x^\top t_c), \quad
        p(g \mid x) \propto \exp(\omega (q_g + \max_c e_c))

    with q_g the log density of the domain's covariance. The score is log p(g | x) + log p(c | g, x). The weights alpha,
    beta, kappa and omega maximise the likelihood of training samples left out one by one; nothing else is fitted.

    Parameters
    ----------
    strength : float, default=1.0
        What the covariance of all data is worth to a domain, in samples per dimension.
    ridge : float in (0, 1], default=0.5
        Share of the identity in the covariance of all data.
    text : {"auto", "none"}, default="auto"
        "auto" uses text in every domain of which all classes have one; "none" uses images alone.

    Notes
    -----
    `hycal.algebra.hierarchy` has the derivation. Learning costs N d^2 + 14 d^3 operations, and 2/3 d^3 for each of G
    domains; a query costs 2 d (G d + 2 C). One d x d matrix is held per domain and some for all data.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import HierarchicalHyCal
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(HierarchicalHyCal().fit(X[:500], y[:500]).score(X[1000:], y[1000:]) > 0.85)
    True
    """

    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "strength": [Interval(Real, 0, None, closed="neither")],
        "ridge": [Interval(Real, 0, 1, closed="right")],
        "text": [StrOptions({"auto", "none"})],
    }
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "strength": (0.3, 0.5, 1.0, 2.0),
        "ridge": (0.2, 0.35, 0.5, 0.7),
    }

    def __init__(self, *, strength: float = 1.0, ridge: float = 0.5, text: str = "auto") -> None:
        self.strength = strength
        self.ridge = ridge
        self.text = text

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count the scatter of all samples, the basis of the global prior, and the white space of every domain."""
        N, C, d, G = addition.samples, addition.classes, addition.width, addition.domains
        prior = (1 + 1) / 3 * d**3 + 9 * d**3 + 4 * d**3  # Cholesky and inverse, eigendecomposition, two products
        means = 11 * C * d**2  # into the basis and back, and into the white space of their domain
        held_out = 2 * G * (_HELD_OUT + _HELD_OUT_OF_DOMAIN) * d**2
        return N * d**2 + prior + means + G * (1 + 1) / 3 * d**3 + held_out

    @property
    def fixed_temperature(self) -> float:
        """1: the weights of evidence are fitted on held-out samples already."""
        return 1.0

    def derive(self, records: Records, previous: Any) -> Posterior:
        """Return the hierarchy and the weights of evidence."""
        with one_blas_thread():
            return self._fitted(records)

    def _fitted(self, records: Records) -> Posterior:
        hierarchy = fit_hierarchy(records, strength=self.strength, ridge=self.ridge)
        texts = tuple(self._texts(records, domain.columns) for domain in hierarchy.domains)
        everything = Selection.of(records)
        weights = _Weights(
            _class_weights(records, everything, hierarchy, texts), _domain_weight(records, everything, hierarchy)
        )
        return Posterior(hierarchy, texts, weights)

    def _texts(self, records: Records, columns: npt.NDArray[np.intp]) -> Floats | None:
        texts = [records.ordered[column].text for column in columns]
        if self.text == "none" or any(text is None for text in texts):
            return None
        return np.stack([np.float32(LOGIT_SCALE) * text for text in texts if text is not None])

    def onnx_scores(self, graph: GraphBuilder, rows: str, snapshot: Snapshot) -> str:
        """Add the posterior over domains, then over their classes."""
        posterior: Posterior = snapshot.value
        return hierarchical_scores(
            graph,
            rows,
            posterior.hierarchy.domains,
            posterior.texts,
            class_weights=posterior.weights.classes,
            domain_weight=posterior.weights.domain,
        )

    def scores_without_each(self, derived: Posterior, records: Records, samples: Selection) -> npt.NDArray[Any]:
        """Weights of evidence and what all data say stay as they are."""
        q, e = held_out_evidence(derived.hierarchy, samples)
        return _log_posterior(derived, samples.X, q, e)

    def score_rows(self, derived: Posterior, X: Floats, columns: npt.NDArray[np.intp] | None) -> Floats:
        """Return the log posterior of every class."""
        classes = len(derived.hierarchy.domain_of)
        scores = np.empty((len(X), classes), np.float32)

        def score(rows: slice) -> None:
            q = np.empty((rows.stop - rows.start, len(derived.hierarchy.domains)), np.float32)
            e = np.empty((2, len(q), classes), np.float32)
            for number, domain in enumerate(derived.hierarchy.domains):
                q[:, number], e[:, :, domain.columns] = domain.evidence(X[rows])
            scores[rows] = _log_posterior(derived, X[rows], q, e)

        run_in_chunks(score, len(X), numbers_per_row=3 * classes + X.shape[1])
        return scores if columns is None else scores[:, columns]


def _log_posterior(
    derived: Posterior, X: Floats, q: npt.NDArray[np.floating], e: npt.NDArray[np.floating]
) -> npt.NDArray[Any]:
    """Return log p(g | x) + log p(c | g, x) from the evidence for domains and classes."""
    energies = np.empty_like(q)
    scores = np.empty_like(e[0])
    weights = derived.weights
    for number, (domain, text) in enumerate(zip(derived.hierarchy.domains, derived.texts, strict=True)):
        distance, direction = e[:, :, domain.columns]
        energies[:, number] = q[:, number] + distance.max(axis=1)
        alpha, beta, kappa = weights.classes[number].astype(q.dtype)
        evidence = alpha * distance + beta * direction
        if text is not None:
            evidence += kappa * (X @ text.T)
        scores[:, domain.columns] = log_softmax(evidence, axis=1)
    domains = log_softmax(q.dtype.type(weights.domain) * energies, axis=1)
    for number, domain in enumerate(derived.hierarchy.domains):
        scores[:, domain.columns] += domains[:, number, None]
    return scores


def _class_weights(
    records: Records, everything: Selection, hierarchy: Hierarchy, texts: Sequence[Floats | None]
) -> Doubles:
    """Return the weights in each domain under which held-out samples are most likely to be told from its classes."""

    def fit(number: int) -> Doubles:
        domain, vectors = hierarchy.domains[number], texts[number]
        samples = everything.at(spread_rows(records, domain.columns, _HELD_OUT))
        held_out = evidence_in_own_domain(hierarchy.prior, domain, samples)
        evidence = [held_out.distance(), held_out.direction()]
        if vectors is not None:
            evidence.append((samples.X @ vectors.T).astype(np.float64))
        centre = np.array([_CLASS_WEIGHT, _CLASS_WEIGHT, 1.0][: len(evidence)])
        own = np.searchsorted(domain.columns, samples.own)
        fitted = fit_weights(np.stack(evidence), own, Pull(centre, _PULL))
        return np.concatenate([fitted, np.zeros(3 - len(fitted))])

    return np.stack(map_parallel(fit, range(len(texts)), hierarchy.sizes))


def _domain_weight(records: Records, everything: Selection, hierarchy: Hierarchy) -> float:
    """Return the weight under which held-out samples are most likely to be told to be of their domain."""
    if len(hierarchy.domains) == 1:
        return _DOMAIN_WEIGHT
    rows = [spread_rows(records, domain.columns, _HELD_OUT_OF_DOMAIN) for domain in hierarchy.domains]
    samples = everything.at(np.concatenate(rows))
    energies = held_out_energies(hierarchy, samples)
    own = hierarchy.domain_of[samples.own]
    return float(fit_weights(energies[None], own, Pull(np.array([_DOMAIN_WEIGHT]), _PULL))[0])
