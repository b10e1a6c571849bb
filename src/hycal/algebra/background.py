"""One Gaussian of everything learned: how far a query lies from all that is known.

A class that was only announced has no distance of its own. Under the relative Mahalanobis distance, background less
class, it stands at 0: neither nearer nor farther than what is known as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.algebra.bank import Shape
from hycal.algebra.fusion import pair_length
from hycal.state.records import ClassRecord
from hycal.validation import Doubles, Floats


@dataclass(frozen=True, eq=False)
class Background:
    r"""delta (z - m)' R^{-1} (z - m), averaged over the candidates that the query is fused with.

    m is the mean and S the covariance of all fused samples, R = a S + delta I. A fused query is z = (E v + e_c)/n_c, so
    with P = delta R^{-1} a candidate adds (v'E'PEv + 2 v'E'Pe_c + e_c'Pe_c)/n_c^2 - 2 (m'PEv + m'Pe_c)/n_c + m'Pm: one
    matrix for all classes, and one row for each.

    Attributes
    ----------
    texts : ndarray of shape (C, d)
    quadratic : ndarray of shape (d, d)
        E'PE.
    linear : ndarray of shape (d,)
        E'Pm.
    cross : ndarray of shape (C, d)
        E'Pe_c.
    own, shift : ndarrays of shape (C,)
        e_c'Pe_c and m'Pe_c.
    base : float
        m'Pm.
    """

    fixed_length: float | None
    texts: Doubles
    quadratic: Doubles
    linear: Doubles
    cross: Doubles
    own: Doubles
    shift: Doubles
    base: float

    @classmethod
    def of(cls, records: Sequence[ClassRecord], shape: Shape) -> Background | None:
        """Return the background of all samples in `records`, every class with text; None if there are no samples."""
        texts = np.stack([np.asarray(record.text, dtype=np.float64) for record in records])
        fusion, counts = shape.fusion, [record.count for record in records]
        if not any(counts):
            return None
        samples = np.concatenate([record.samples.rows for record in records]).astype(np.float64)
        fused = fusion.fuse(samples, np.repeat(texts, counts, axis=0))
        mean = fused.mean(axis=0)
        D = (fused - mean) / np.sqrt(max(len(fused) - 1, 1))
        P = shape.ridge * np.linalg.inv(shape.scale * (D.T @ D) + shape.ridge * np.eye(len(mean)))
        towards = texts @ fusion.text_part(P).T  # P e_c of every class
        return cls(
            fixed_length=fusion.fixed_length,
            texts=texts,
            quadratic=fusion.image_part(fusion.image_part(P).T),
            linear=fusion.image_part(P @ mean),
            cross=fusion.image_part(towards),
            own=fusion.constant(towards, texts),
            shift=towards @ mean,
            base=float(mean @ P @ mean),
        )

    def __call__(self, queries: Floats, columns: npt.NDArray[np.intp] | None) -> Doubles:
        """Return the distance of every query, shape (n,), over the candidates at `columns`."""
        chosen = slice(None) if columns is None else columns
        v, texts = queries.astype(np.float64), self.texts[chosen]
        length = pair_length(v @ texts.T) if self.fixed_length is None else self.fixed_length
        images = np.einsum("nd,nd->n", v @ self.quadratic, v)[:, None]
        squares = images + 2.0 * (v @ self.cross[chosen].T) + self.own[chosen]
        lines = (v @ self.linear)[:, None] + self.shift[chosen]
        distances: Doubles = (squares / length**2 - 2.0 * lines / length).mean(axis=1) + self.base
        return distances
