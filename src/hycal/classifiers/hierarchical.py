"""HierarchicalHyCal: several kinds of evidence for classes in domains, weighted by held-out likelihood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from hycal.algebra.cost import Addition
from hycal.algebra.evidence import ScoreParts
from hycal.algebra.hierarchy_covariance import covariance_operations
from hycal.algebra.hierarchy_fit import fit_hierarchy, identity_share
from hycal.algebra.hierarchy_groups import domain_candidates
from hycal.algebra.hierarchy_held_out import evidence_in_own_domain, held_out_evidence
from hycal.algebra.hierarchy_kernel import kernel_operations
from hycal.algebra.hierarchy_posterior import KINDS, Posterior, Sources, Weights, scaled_text
from hycal.algebra.softmax import log_softmax
from hycal.classifiers.hierarchy_weights import (
    HELD_OUT,
    HELD_OUT_OF_DOMAIN,
    domain_weight,
    fitted_domain,
    weighed_again,
)
from hycal.classifiers.sealed_hierarchy import SealedHierarchy
from hycal.estimator import Interval, StrOptions
from hycal.export.onnx_hierarchy import hierarchical_scores
from hycal.parallel.threads import map_parallel, one_blas_thread, run_in_chunks
from hycal.state.records import Records
from hycal.state.selection import Selection, spread
from hycal.state.snapshot import Snapshot
from hycal.validation import Doubles, Floats
from hycal.views.scorer import VIEWS

if TYPE_CHECKING:
    from hycal.encoders.onnx_graph import GraphBuilder


class HierarchicalHyCal(SealedHierarchy):
    r"""Classes as Gaussians shrunk through their domain to all data; a posterior over domains, then over classes.

    In the white space of a domain g, with s_c the posterior mean of class c, u_c the direction of its plain mean and
    r_g the typical length of s_c, the evidence is

    .. math::
        e_c = z^\top s_c - \tfrac12 |s_c|^2, \quad
        p(c \mid g, x) \propto \exp(\alpha_g e_c + \beta_g r_g z^\top u_c + \gamma_g f_c(x)
            + 100 \, \kappa_g x^\top t_c + \delta_g l_c(x)) \, K_c^{-\eta_g}, \quad
        p(g \mid x) \propto \exp(\omega (q_g + \max_c e_c))

    with q_g the log density of the domain's covariance, f_c a kernel regression on the samples of the domain, l_c
    the log density of the class under its own covariance, and K_c its number of samples: a class of more samples is
    not expected more often. The score is log p(g | x) + log p(c | g, x). The weights alpha, beta, gamma, kappa, delta,
    eta and omega maximise the likelihood of training samples left out one by one; nothing else is fitted.

    Parameters
    ----------
    strength : float, default=1.0
        What the covariance of all data is worth to a domain, in samples per dimension.
    ridge : float in (0, 1], default=0.5
        Share of the identity in the covariance of all data, from d/4 degrees of freedom on; it is larger below.
    text : {"auto", "none"}, default="auto"
        "auto" uses text in every domain of which all classes have one; "none" uses images alone.
    domains : {"named", "found"}, default="named"
        "named" takes the domains that were named; classes that were learned without a name are one domain or several
        groups of similar classes, whichever makes held-out samples more likely. "found" does so with all classes.
    views : tuple of int, optional
        Widths of the unit vectors of several encoders, side by side in a row; see `hycal.views`. None is one encoder.

    Notes
    -----
    `hycal.algebra.hierarchy` has the derivation, `hycal.algebra.hierarchy_kernel` the regression,
    `hycal.algebra.hierarchy_covariance` the covariances of classes, and `hycal.algebra.hierarchy_groups` the groups.
    Learning costs N d^2 + 18 d^3 operations at most, 2/3 d^3 for each of G domains, and 2/3 N_g^3 + 2 N_g^2 (d + C_g)
    for the regression of a domain of N_g samples. A domain of more than 1,024 samples has a regression if its classes
    have twelve or more on average; one of more than 4,096 has none. Covariances need d/8 samples of a class on average,
    and cost O(K^2 d) each. A query costs d (9/8 G d + 4 C), 2 N_g (d + C_g) for each regression, and 2 N_g d for the
    covariances of a domain. One d x d matrix is held per domain and some for all data.

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
        "domains": [StrOptions({"named", "found"})],
        "views": VIEWS,
    }
    fixed_temperature: ClassVar[float | None] = 1.0  # weights of evidence are fitted on held-out samples already
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "strength": (0.3, 0.5, 1.0, 2.0),
        "ridge": (0.2, 0.35, 0.5, 0.7),
    }

    rebuilt_because = ""
    kept_in_steps: ClassVar[str] = "how class means spread, groups of classes, the weight of domains"

    def __init__(
        self,
        *,
        strength: float = 1.0,
        ridge: float = 0.5,
        text: str = "auto",
        domains: str = "named",
        views: tuple[int, ...] | None = None,
    ) -> None:
        self.strength = strength
        self.ridge = ridge
        self.text = text
        self.domains = domains
        self.views = views

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count the scatter of all samples, the prior, and white space, regression and covariances of every domain."""
        N, C, d, G = addition.samples, addition.classes, addition.width, addition.domains
        spectrum = 9 * min(C, d) ** 3 + 4 * min(C, d) * d**2
        prior = (1 + 1) / 3 * d**3 + spectrum + 4 * d**3  # Cholesky and inverse, eigenvectors, two products
        means = 11 * C * d**2  # into the basis and back, and into the white space of their domain
        held_out = 2 * G * (HELD_OUT + HELD_OUT_OF_DOMAIN) * d**2
        more = kernel_operations(N // G, C // G, d) + covariance_operations(N // G, C // G, d, HELD_OUT)
        return N * d**2 + prior + means + G * (1 + 1) / 3 * d**3 + held_out + G * more

    def uses_texts(self, derived: Posterior) -> bool:
        """Whether every domain has texts."""
        return all(text is not None for text in derived.texts)

    def derive(self, records: Records, previous: Posterior | None) -> Posterior:
        """Return the hierarchy and the weights of evidence: those of `previous` after a small change, or a new fit."""
        with one_blas_thread():
            found = None if previous is None else previous.after(records, named=self.domains == "named")
            return self._fitted(records) if found is None or previous is None else weighed_again(found, previous)

    def _fitted(self, records: Records) -> Posterior:
        fits = [self._posterior(records, domain_of) for domain_of in domain_candidates(records, self.domains)]
        return fits[0] if len(fits) == 1 else max(fits, key=lambda fit: self._held_out_likelihood(fit, records))

    def _held_out_likelihood(self, fit: Posterior, records: Records) -> float:
        """Return the log likelihood of held-out samples of all classes."""
        samples = spread(records, np.arange(len(records.counts)), HELD_OUT)
        return float(np.sum(self.scores_without_each(fit, records, samples)[samples.each, samples.own]))

    def _posterior(self, records: Records, domain_of: npt.NDArray[np.intp]) -> Posterior:
        ridge = identity_share(records, self.ridge)
        hierarchy = fit_hierarchy(records, strength=self.strength, ridge=ridge, domain_of=domain_of)
        everything = Selection.of(records)

        def fit(number: int) -> tuple[Sources, Doubles]:
            text = self._texts(records, hierarchy.domains[number].columns)
            return fitted_domain(records, everything, hierarchy, number, text)

        fits = map_parallel(fit, range(len(hierarchy.domains)), hierarchy.sizes)
        sources, weights = zip(*fits, strict=True)
        weighted = Weights(np.stack(weights), domain_weight(records, everything, hierarchy))
        return Posterior(hierarchy, sources, weighted, records, self.with_parameters()._fitted)

    def _texts(self, records: Records, columns: npt.NDArray[np.intp]) -> Floats | None:
        classes = [records.ordered[column] for column in columns]
        if self.text == "none" or any(one.text is None for one in classes):
            return None
        return np.stack([scaled_text(one) for one in classes])

    def onnx_scores(self, graph: GraphBuilder, rows: str, snapshot: Snapshot) -> str:
        """Add the posterior over domains, then over their classes."""
        posterior: Posterior = snapshot.value.fitted
        return hierarchical_scores(
            graph,
            rows,
            posterior.hierarchy.domains,
            posterior.kernels,
            posterior.covariances,
            posterior.texts,
            posterior.count_evidence,
            class_weights=posterior.weights.classes,
            domain_weight=posterior.weights.domain,
        )

    def scores_without_each(self, derived: Posterior, records: Records, samples: Selection) -> npt.NDArray[Any]:
        """Groups of classes, weights of evidence and the global prior stay as they are."""
        derived = derived.fitted
        q, e = held_out_evidence(derived.hierarchy, samples)
        more = [_held_out_more(derived, number, samples) for number in range(len(derived.kernels))]
        return _log_posterior(derived, samples.X, q, e, more)

    def scores_inside(
        self, derived: Posterior, records: Records, samples: Selection, columns: npt.NDArray[np.intp]
    ) -> npt.NDArray[Any] | None:
        """Return the log posterior inside a domain that is one group of classes."""
        derived = derived.fitted
        number = int(derived.hierarchy.domain_of[columns[0]])
        domain = derived.hierarchy.domains[number]
        if not np.array_equal(domain.columns, columns):
            return None
        held_out = evidence_in_own_domain(derived.hierarchy.prior, domain, samples)
        e = np.stack([held_out.distance(), held_out.direction()])
        more = _held_out_more_inside(derived, number, samples)
        return log_softmax(_within(derived, samples.X, number, e, more))

    def parts_of(self, X: npt.ArrayLike) -> ScoreParts:
        """Return the evidence of each kind for the classes of a domain, and what their domain adds."""
        queries, derived = self.check_queries(X), self.snapshot().value
        q, e = derived.hierarchy.evidence(queries)
        more = [_more(derived, number, queries) for number in range(len(e))]
        scores = _log_posterior(derived, queries, q, e, more)
        parts = {name: np.zeros(scores.shape) for name in KINDS}
        for number, domain in enumerate(derived.hierarchy.domains):
            for name, part in _weighted(derived, queries, number, e[number], more[number]).items():
                parts[name][:, domain.columns] = part
        return ScoreParts.of_evidence(scores, {name: part for name, part in parts.items() if part.any()})

    def score_rows(self, derived: Posterior, X: Floats, columns: npt.NDArray[np.intp] | None) -> Floats:
        """Return the log posterior of every class."""
        hierarchy = derived.hierarchy
        scores = np.empty((len(X), len(hierarchy.domain_of)), np.float32)

        def score(rows: slice) -> None:
            more = [_more(derived, number, X[rows]) for number in range(len(hierarchy.domains))]
            scores[rows] = _log_posterior(derived, X[rows], *hierarchy.evidence(X[rows]), more)

        run_in_chunks(score, len(X), numbers_per_row=hierarchy.numbers_per_row)
        return scores if columns is None else scores[:, columns]


def _more(derived: Posterior, number: int, X: Floats) -> dict[str, Floats]:
    """Return the evidence by the kernel and by the covariances of one domain, (n, C_g) each, where it has them."""
    parts = {"kernel": derived.kernels[number], "covariance": derived.covariances[number]}
    return {kind: part(X) for kind, part in parts.items() if part is not None}


def _weighted(
    derived: Posterior, X: Floats, number: int, e: npt.NDArray[np.floating], more: Mapping[str, Floats]
) -> dict[str, npt.NDArray[Any]]:
    """Return each kind of evidence for the classes of one domain times its weight, (n, C_g); `e` is (2, n, C_g).

    Evidence by counts is the same for all rows, (1, C_g).
    """
    distance, direction = e
    found: dict[str, npt.NDArray[Any]] = {"distance": distance, "direction": direction, **more}
    text = derived.texts[number]
    if text is not None:
        found["text"] = X @ text.T
    found["count"] = derived.count_evidence[number][None].astype(e.dtype)
    weights = dict(zip(KINDS, derived.weights.classes[number].astype(e.dtype), strict=True))
    return {kind: weights[kind] * evidence for kind, evidence in found.items()}


def _within(
    derived: Posterior, X: Floats, number: int, e: npt.NDArray[np.floating], more: Mapping[str, Floats]
) -> npt.NDArray[Any]:
    """Return all evidence for the classes of one domain, (n, C_g)."""
    evidence, *rest = _weighted(derived, X, number, e, more).values()
    for part in rest:
        evidence += part
    return evidence


def _log_posterior(
    derived: Posterior,
    X: Floats,
    q: npt.NDArray[np.floating],
    e: Sequence[npt.NDArray[np.floating]],
    more: Sequence[Mapping[str, Floats]],
) -> npt.NDArray[Any]:
    """Return log p(g | x) + log p(c | g, x) from the evidence for domains and classes, in the precision of q."""
    energies, within = np.empty_like(q), []
    for number, (given, other) in enumerate(zip(e, more, strict=True)):
        inside = given.astype(q.dtype, copy=False)
        energies[:, number] = q[:, number] + inside[0].max(axis=1)
        within.append(log_softmax(_within(derived, X, number, inside, other)))
    domains = log_softmax(q.dtype.type(derived.weights.domain) * energies)
    scores = np.empty((len(X), len(derived.hierarchy.domain_of)), q.dtype)
    for number, domain in enumerate(derived.hierarchy.domains):
        scores[:, domain.columns] = within[number] + domains[:, number, None]
    return scores


def _held_out_more(derived: Posterior, number: int, samples: Selection) -> dict[str, Floats]:
    """Return the same as `_more` of samples, each without itself."""
    evidence = _more(derived, number, samples.X)
    own = np.flatnonzero(derived.hierarchy.domain_of[samples.own] == number)
    for kind, part in _held_out_more_inside(derived, number, samples.at(own)).items():
        evidence[kind][own] = part
    return evidence


def _held_out_more_inside(derived: Posterior, number: int, samples: Selection) -> dict[str, Floats]:
    """Return the same of samples of the domain itself."""
    parts = {"kernel": derived.kernels[number], "covariance": derived.covariances[number]}
    classes = np.searchsorted(derived.hierarchy.domains[number].columns, samples.own)
    return {kind: part.without_each(samples.X, classes) for kind, part in parts.items() if part is not None}
