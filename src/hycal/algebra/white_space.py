"""The classes of one domain in its white space, and that space as a sample sees it that is taken away.

`hycal.algebra.hierarchy` defines the evidence; here it is computed for queries, and for learned samples, each without
itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.covariance import directions

Reals = npt.NDArray[np.floating[Any]]  # float32 where samples are scored

_SHORTEST = 1e-10  # squared length of a mean that has a direction
LEAST_LEFT = 0.05  # of a precision's denominator once a sample is taken away


@dataclass(frozen=True, eq=False)
class DomainGaussians:
    """The classes of one domain in its white space.

    Attributes
    ----------
    columns : ndarray of shape (C_g,)
        Columns of the classes.
    centre : ndarray of shape (d,)
        m_g.
    whitening : ndarray of shape (d, d)
        W_g^{-1/2}.
    log_det : float
        Half of log|W_g|.
    weight : float
        v_g + tau.
    offsets : ndarray of shape (C_g, d)
        Class means less the centre.
    plain, posterior : ndarrays of shape (C_g, d)
        White means less the centre, as they are and shrunk.
    radius : float
        r.
    """

    columns: npt.NDArray[np.intp]
    centre: Reals
    whitening: Reals
    log_det: float
    weight: float
    offsets: Reals
    plain: Reals
    posterior: Reals
    radius: float

    def white(self, X: npt.NDArray[np.floating]) -> Reals:
        """Return z of the rows of X."""
        return (X - self.centre) @ self.whitening

    def evidence(self, X: npt.NDArray[np.floating]) -> tuple[Reals, Reals]:
        """Return q, (n,), and the evidence for classes, (2, n, C_g), of queries."""
        Z, (A, c) = self.white(X), self.linear
        return -0.5 * np.einsum("nd,nd->n", Z, Z) - self.log_det, Z @ A.transpose(0, 2, 1) + c[:, None]

    @cached_property
    def linear(self) -> tuple[Reals, Reals]:
        """A, (2, C_g, d), and c, (2, C_g), with evidence A z + c."""
        squares = np.sum(self.posterior**2, axis=1)
        A = np.stack([self.posterior, self.radius * directions(self.plain.astype(np.float64)).astype(self.plain.dtype)])
        return A, np.stack([-0.5 * squares, np.zeros_like(squares)])


@dataclass(frozen=True, eq=False)
class OwnMeans:
    """Where the class of each sample is in its domain, and its plain and posterior mean without the sample."""

    places: npt.NDArray[np.intp]
    plain: Reals
    posterior: Reals


@dataclass(frozen=True, eq=False)
class WithoutEach:
    """Samples Z in the white space of a domain, with the inner product that each of them leaves behind."""

    domain: DomainGaussians
    form: InnerProduct
    Z: Reals
    own: OwnMeans | None

    def log_density(self) -> Reals:
        """Return q, (n,)."""
        form, d = self.form, self.Z.shape[1]
        log_det = self.domain.log_det - 0.5 * (d * np.log(form.scale) - np.log(form.left))
        density: Reals = -0.5 * form.pairs(self.Z, self.Z) - log_det
        return density

    def distance(self) -> Reals:
        """Return the evidence by distance, (n, C_g)."""
        along, squares = self._products(self.domain.posterior, None if self.own is None else self.own.posterior)
        squares *= 0.5
        along -= squares
        return along

    def direction(self) -> Reals:
        """Return the evidence by direction, (n, C_g)."""
        along, squares = self._products(self.domain.plain, None if self.own is None else self.own.plain)
        along *= self.domain.radius / np.sqrt(np.maximum(squares, _SHORTEST))
        return along

    def _products(self, means: Reals, own_means: Reals | None) -> tuple[Reals, Reals]:
        """Return the products of each sample with all class means, and those of the means with themselves."""
        along, squares = self.form.with_rows(self.Z, means)
        if self.own is not None and own_means is not None:
            at = np.arange(len(self.Z)), self.own.places
            along[at], squares[at] = self.form.pairs(self.Z, own_means), self.form.pairs(own_means, own_means)
        return along, squares


@dataclass(frozen=True, eq=False)
class InnerProduct:
    """White space without a sample: inner products scale (x.y + k (g.x)(g.y)), by Sherman and Morrison, for each.

    Attributes
    ----------
    scale : float
    k, left : ndarrays of shape (n,)
        `left` is what is left of the determinant, but for the scale.
    g : ndarray of shape (n, d)
        The white sample less the mean of its class.
    """

    scale: float
    k: Reals
    g: Reals
    left: Reals

    @classmethod
    def of(
        cls, gap: Reals, counts: npt.NDArray[np.int64], influence: float, weight: float, after: float
    ) -> InnerProduct:
        """Take n/(n-1) `influence` gg' from a scatter that was divided by `weight`, and divide by `after`."""
        a = (counts / (counts - 1.0) * influence / weight).astype(gap.dtype)
        left = np.maximum(1.0 - a * np.einsum("nd,nd->n", gap, gap), LEAST_LEFT)
        return cls(after / weight, a / left, gap, left)

    def pairs(self, X: Reals, Y: Reals) -> Reals:
        """Return that of each row of X with the row of Y."""
        along = np.einsum("nd,nd->n", self.g, X) * np.einsum("nd,nd->n", self.g, Y)
        product: Reals = self.scale * (np.einsum("nd,nd->n", X, Y) + self.k * along)
        return product

    def with_rows(self, X: Reals, rows: Reals) -> tuple[Reals, Reals]:
        """Return that of each row of X with all `rows`, and that of all `rows` with themselves, as each X sees it."""
        along = self.g @ rows.T
        squares = along**2
        squares *= self.k[:, None]
        squares += np.einsum("cd,cd->c", rows, rows)
        squares *= self.scale
        along *= (self.k * np.einsum("nd,nd->n", self.g, X))[:, None]
        along += X @ rows.T
        along *= self.scale
        return along, squares
