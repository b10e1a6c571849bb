"""One Gaussian of all learned samples: the distance of a query from everything that is known.

A class that has a text but no samples yet has no distance of its own. Under the relative Mahalanobis distance,
background minus class, its value is 0.

The background is delta (z - m)' R^-1 (z - m), averaged over the candidate classes with whose texts the query is fused.
A fused query is z = (E v + e_c)/n_c, so with P = delta R^-1 a candidate adds

    (v'E'PE v + 2 v'E'P e_c + e_c'P e_c)/n_c^2 - 2 (m'PE v + m'P e_c)/n_c + m'P m:

one matrix for all classes, and one row for each class.

    symbol      array      shape    meaning (C candidates, embeddings of width d, fused pairs of width D)
    t_c         texts      (C, d)   text embeddings
    E           -          (D, d)   the map by which v enters z
    e_c         -          (C, D)   the part of z that depends on t_c
    n_c         -          (n, C)   lengths; |v + t_c|, or a constant
    m, R        -          (D,)     mean of all fused samples; R = a S + delta I with S their covariance
    E'PE        quadratic  (d, d)
    E'Pm        linear     (d,)
    E'P e_c     cross      (C, d)
    e_c'P e_c   own        (C,)
    m'P e_c     shift      (C,)
    m'P m       base       scalar
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.algebra.fusion import pair_length
from hycal.algebra.gaussians import GaussianOptions
from hycal.state.records import ClassRecord, texts_of
from hycal.validation import Doubles, Floats


@dataclass(frozen=True, eq=False)
class Background:
    """The Gaussian of all samples, opened up by candidate. The table above describes the arrays."""

    fixed_length: float | None
    texts: Doubles
    quadratic: Doubles
    linear: Doubles
    cross: Doubles
    own: Doubles
    shift: Doubles
    base: float

    @classmethod
    def of(cls, records: Sequence[ClassRecord], options: GaussianOptions) -> Background | None:
        """Return the background of all samples in `records`, or None if there are none; every class has a text."""
        texts = texts_of(records)
        fusion, counts = options.fusion, [record.count for record in records]
        if not any(counts):
            return None
        samples = np.concatenate([record.samples.rows for record in records]).astype(np.float64)
        z = fusion.fuse(samples, np.repeat(texts, counts, axis=0))
        m = z.mean(axis=0)
        D = (z - m) / np.sqrt(max(len(z) - 1, 1))
        P = options.delta * np.linalg.inv(options.a * (D.T @ D) + options.delta * np.eye(len(m)))
        P_e = texts @ fusion.text_part(P).T
        return cls(
            fixed_length=fusion.fixed_length,
            texts=texts,
            quadratic=fusion.image_part(fusion.image_part(P).T),
            linear=fusion.image_part(P @ m),
            cross=fusion.image_part(P_e),
            own=fusion.constant(P_e, texts),
            shift=P_e @ m,
            base=float(m @ P @ m),
        )

    def __call__(self, queries: Floats, columns: npt.NDArray[np.intp] | None) -> Doubles:
        """Return the distance of each query, shape (n,), averaged over the candidates at `columns`."""
        chosen = slice(None) if columns is None else columns
        v, texts = queries.astype(np.float64), self.texts[chosen]
        length = pair_length(v @ texts.T) if self.fixed_length is None else self.fixed_length
        images = np.einsum("nd,nd->n", v @ self.quadratic, v)[:, None]
        squares = images + 2.0 * (v @ self.cross[chosen].T) + self.own[chosen]
        lines = (v @ self.linear)[:, None] + self.shift[chosen]
        return (squares / length**2 - 2.0 * lines / length).mean(axis=1) + self.base
