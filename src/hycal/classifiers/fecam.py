"""FeCAM: a covariance per class, shrunk and normalised to correlations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hycal.algebra.cost import Addition, covariance_factor
from hycal.algebra.covariance import covariance_factors, directions
from hycal.algebra.patched_forms import PatchedForms
from hycal.algebra.quadratic_forms import Quadratic, QuadraticBank
from hycal.base import IncrementalClassifier
from hycal.errors import HyCalError
from hycal.estimator import Interval, StrOptions
from hycal.state.records import Records
from hycal.state.samples import ClassSamples
from hycal.state.sealed import SealedRecords
from hycal.state.selection import Selection
from hycal.validation import Doubles, Floats
from hycal.views.scorer import VIEWS

_SMALLEST = 1e-6  # of the mean variance: least weight of the identity, where alpha2 makes it negative


@dataclass(frozen=True)
class _Shrunk:
    """S' = B'B + identity I + ones J, with B the deviations over sqrt(K - 1): the shrunk covariance, never built."""

    B: Doubles
    identity: float
    ones: float

    @property
    def variances(self) -> Doubles:
        """The diagonal of S'."""
        return np.sum(self.B**2, axis=0) + self.identity + self.ones

    def factors(self) -> Doubles:
        """Return W with orthogonal rows and (B'B + identity I)^{-1} = (I - W'W)/identity."""
        if not len(self.B):
            return self.B
        return covariance_factors(self.B[None] * np.sqrt(len(self.B) - 1), 1.0, self.identity)[0]


def _shrink(rows: Doubles, alpha1: float, alpha2: float, times: int) -> _Shrunk:
    """Return the covariance of `rows`, shrunk `times` over.

    Each time adds alpha1 times the mean variance to the diagonal and alpha2 times the mean of the non-zero covariances
    off it. One sample, or equal ones, have no covariance; the limit of ever smaller ones is the identity.
    """
    count, width = rows.shape
    B = (rows - rows.mean(axis=0)) / np.sqrt(max(count - 1, 1))
    variances = np.sum(B**2, axis=0)
    variance = float(variances.mean())
    if count == 1 or variance < 1e-20:
        return _Shrunk(np.empty((0, width)), 1.0, 0.0)
    active = int(np.count_nonzero(variances))
    off_sum = float(np.sum(B.sum(axis=1) ** 2) - variances.sum())
    entries = active * (active - 1)
    diagonal = ones = 0.0
    for _ in range(times):
        covariance = off_sum / entries if entries else 0.0
        diagonal += alpha1 * variance
        ones += alpha2 * covariance
        variance *= 1.0 + alpha1
        if alpha2 * covariance:
            entries = width * (width - 1)
            off_sum += alpha2 * covariance * entries
    return _Shrunk(B, max(diagonal - ones, _SMALLEST * diagonal), ones)


def _correlation_distance(centre: Doubles, shrunk: _Shrunk) -> Quadratic:
    """Return y'R^{-1}y with R the correlation matrix of S': with D² its diagonal, R^{-1} = D S'^{-1} D.

    S'^{-1} is Woodbury's for B'B + identity I, and Sherman and Morrison's for the ones on top.
    """
    scale = np.sqrt(shrunk.variances)
    W = shrunk.factors()
    rows, signs = [W / np.sqrt(shrunk.identity)], [-np.ones(len(W))]
    if shrunk.ones:
        ones = np.ones(len(centre))
        solved = (ones - (W @ ones) @ W) / shrunk.identity
        weight = shrunk.ones / (1.0 + shrunk.ones * solved.sum())
        rows.append(np.sqrt(abs(weight)) * solved[None])
        signs.append(-np.sign([weight]))
    return Quadratic(centre, scale**2 / shrunk.identity, np.concatenate(rows) * scale, np.concatenate(signs))


def _row_correlation_distance(centre: Doubles, shrunk: _Shrunk) -> Quadratic:
    """Return y'R⁺y with R the correlations between the rows of A = B'B + identity I, as published for few shots.

    R = D^{-1} A C A D^{-1} with C = I - 11'/d and D the lengths of the rows of A C. It has one null vector,
    v = D A^{-1} 1, so R⁺ = Q D A^{-1} C A^{-1} D Q with Q = I - vv'/|v|^2. With A^{-1} = (I - W'W)/identity that is a
    diagonal and a few squares again.
    """
    d, delta, B, W = len(centre), shrunk.identity, shrunk.B, shrunk.factors()
    covariance_sums = B.sum(axis=1) @ B
    squared_rows = np.einsum("kd,kd->d", B, (B @ B.T) @ B) + 2.0 * delta * np.sum(B**2, axis=0) + delta**2
    D = np.sqrt(squared_rows - (covariance_sums + delta) ** 2 / d)
    ones = np.ones(d)
    solved = (ones - (W @ ones) @ W) / delta  # A^{-1} 1
    v = D * solved
    v /= np.linalg.norm(v)
    # |A^{-1}u|² = (|u|² - sum (2 - |w|²)(w.u)²)/delta² for u = D Q y, and less (1'A^{-1}u)²/d.
    lengths = np.sum(W**2, axis=1)
    inner = np.concatenate([np.sqrt(2.0 - lengths)[:, None] * W / delta, solved[None] / np.sqrt(d)]) * D
    inner -= np.outer(inner @ v, v)
    # |D Q y|² = |D y|² - 2 (a.y)(v.y) + kappa (v.y)² with a = D²v: two more squares.
    a, kappa = D**2 * v, float(D**2 @ v**2)
    outer = np.stack([np.sqrt(kappa) * (v - a / kappa), a / np.sqrt(kappa)]) / delta
    signs = np.concatenate([-np.ones(len(inner)), [1.0, -1.0]])
    return Quadratic(centre, D**2 / delta**2, np.concatenate([inner, outer]), signs)


@dataclass(frozen=True)
class _Variant:
    """One published form: its shrinkage, how rows are transformed and how the class centre and distance are made."""

    alpha1: float
    alpha2: float
    times: int
    distance: Callable[[Doubles, _Shrunk], Quadratic]


_VARIANTS: Mapping[str, _Variant] = {
    "vit": _Variant(1.0, 0.0, 1, _correlation_distance),
    "few-shot": _Variant(100.0, 0.0, 1, _row_correlation_distance),
    "tukey": _Variant(1.0, 1.0, 2, _correlation_distance),
}


class FeCAM(IncrementalClassifier):
    r"""Mahalanobis distance to each class under its own covariance, shrunk and scaled to correlations.

    .. math::
        s_c = -(x - \mu_c)^\top R_c^{-1} (x - \mu_c), \quad R_{ij} = S'_{ij} / \sqrt{S'_{ii} S'_{jj}}, \quad
        S' = S + \alpha_1 \bar v I + \alpha_2 \bar c (J - I)

    with S the covariance of the class, v its mean variance, c the mean of its non-zero covariances and J all ones.

    Parameters
    ----------
    variant : {"vit", "few-shot", "tukey"}, default="vit"
        "vit": as above on unit embeddings, the authors' choice for frozen pre-trained features. "few-shot": a ridge of
        alpha1 mean variances on the diagonal only, correlations between the rows of the covariance, unit class means.
        "tukey": features raised to the power beta first, shrunk twice; for embeddings without negative entries.
    alpha1, alpha2 : float or None, default=None
        Shrinkage; None means the variant's published values: 1 and 0, 100 and 0, 1 and 1. alpha2 is at most alpha1, and
        the few-shot variant has none.
    beta : float in (0, 1], default=0.5
        Power of the Tukey transformation.
    views : tuple of int, optional
        Widths of the unit vectors of several encoders, side by side in a row; see `hycal.views`. None is one encoder.

    Notes
    -----
    A class of one sample, whose covariance is not defined, is given the limit of ever smaller ones: R = I. No d x d
    matrix is built for a class of at most d samples: a diagonal and K squares are all there is. The published ridge of
    the few-shot variant, 100, is meant for embeddings of length 100; here it counts mean variances. Learning costs
    O(K^2 d) per class; a query 2 d (sum of K + 2 C) operations.

    References
    ----------
    Goswami et al., FeCAM: Exploiting the heterogeneity of class distributions in exemplar-free continual learning,
    NeurIPS 2023.
    Goswami et al., Calibrating higher-order statistics for few-shot class-incremental learning with pre-trained vision
    transformers, CVPRW 2024.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import FeCAM
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(FeCAM().fit(X[:500], y[:500]).score(X[1000:], y[1000:]) > 0.85)
    True
    """

    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "variant": [StrOptions(set(_VARIANTS))],
        "alpha1": [Interval(Real, 0, None, closed="neither"), None],
        "alpha2": [Interval(Real, 0, None, closed="left"), None],
        "beta": [Interval(Real, 0, 1, closed="right")],
        "views": VIEWS,
    }
    seals: ClassVar[str] = "classes"
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"alpha1": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)}
    # The paper does not state its constants, and no published variant reproduces its numbers: no "hycal-paper".
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "official": {"variant": "vit", "alpha1": 1.0, "alpha2": 0.0},  # the authors' script for frozen features
        "robust": {"variant": "vit", "alpha1": 10.0, "alpha2": 0.0},
    }

    rebuilt_because = ""

    def __init__(
        self,
        *,
        variant: str = "vit",
        alpha1: float | None = None,
        alpha2: float | None = None,
        beta: float = 0.5,
        views: tuple[int, ...] | None = None,
    ) -> None:
        self.variant = variant
        self.alpha1 = alpha1
        self.alpha2 = alpha2
        self.beta = beta
        self.views = views

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count a covariance factor for every class."""
        return addition.classes * covariance_factor(addition.shots, addition.width)

    def check_parameters(self) -> None:
        """Refuse an alpha2 that the variant does not have."""
        super().check_parameters()
        alpha1, alpha2 = self._alphas
        if alpha2 > alpha1 or (alpha2 and self.variant == "few-shot"):
            allowed = "0 in the few-shot variant" if self.variant == "few-shot" else f"at most alpha1 = {alpha1}"
            raise HyCalError(f"The 'alpha2' parameter of FeCAM is {alpha2}; expected {allowed}. Lower it.")

    @property
    def _alphas(self) -> tuple[float, float]:
        published = _VARIANTS[self.variant]
        return (
            published.alpha1 if self.alpha1 is None else self.alpha1,
            published.alpha2 if self.alpha2 is None else self.alpha2,
        )

    def check_records(self, records: Records) -> None:
        """Refuse negative entries where the variant takes a root."""
        super().check_records(records)
        for label, record in records.by_label.items():
            self._check_signs(record.samples.rows, f"Class {label!r}")  # a sealed class has none

    def _check_signs(self, rows: Floats, what: str) -> None:
        if self.variant == "tukey" and np.any(rows < 0):
            raise HyCalError(
                f"{what} has negative embedding entries, of which the Tukey transformation takes a root; expected "
                'features after a ReLU. CLIP embeddings have both signs: use variant="vit".'
            )

    def derive(self, records: Records, previous: PatchedForms | None) -> PatchedForms:
        """Return the quadratic form of every class; only classes that changed are computed."""
        return PatchedForms.of(records, lambda record: self._form(record.samples), previous)

    def seal_rows(self, rows: Floats, text: Floats | None) -> npt.NDArray[np.floating]:
        """Return what covariances are computed on."""
        self._check_signs(rows, "X")
        return rows.astype(np.float64) ** self.beta if self.variant == "tukey" else rows

    def derive_sealed(self, table: SealedRecords) -> QuadraticBank:
        """Return the quadratic forms from the moments of each class."""
        moments = zip(table.ordered, table.moments, strict=True)
        return QuadraticBank.of([self._quadratic(own.rows(), record.mean) for record, own in moments])

    def _form(self, samples: ClassSamples) -> Quadratic:
        return self._quadratic(self.seal_rows(samples.rows, None).astype(np.float64), samples.mean)

    def _quadratic(self, rows: Doubles, centre: Doubles) -> Quadratic:
        """Return the form of a class from rows of its covariance, and the mean of its embeddings."""
        variant = _VARIANTS[self.variant]
        if self.variant == "tukey":
            centre = directions(centre[None] ** self.beta)[0]
        elif self.variant == "few-shot":
            centre = directions(centre[None])[0]
        return variant.distance(centre, _shrink(rows, *self._alphas, variant.times))

    def scores_without_each(self, derived: PatchedForms, records: Records, samples: Selection) -> Doubles:
        """Build the form of each sample's own class again without it; the others stay."""
        scores = -derived(self._transformed(samples.X))
        for row, (x, own) in enumerate(zip(samples.X, samples.own, strict=True)):
            without = records.ordered[own].samples.remove(x[None])
            scores[row, own] = -self._form(without).at(self._transformed(x[None])[0].astype(np.float64))
        return scores

    def _transformed(self, X: Floats) -> npt.NDArray[np.floating]:
        return directions(X.astype(np.float64) ** self.beta) if self.variant == "tukey" else X

    def score_rows(self, derived: PatchedForms, X: Floats, columns: npt.NDArray[np.intp] | None) -> Doubles:
        """Return minus the distances."""
        self._check_signs(X, "X")
        scores = -derived(self._transformed(X))
        return scores if columns is None else scores[:, columns]
