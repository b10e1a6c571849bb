"""Every class's Gaussian, packed so that a batch of queries meets all classes in matrix products.

With z the query fused with the text of class c, mu the unit mean, W the covariance factor and b = W mu,

    cos            = z . mu
    delta * maha   = |z - mu|^2 - |W (z - mu)|^2
                   = 1 + |mu|^2 - |b|^2 - 2 z . (mu - W'b) - |W z|^2,

and every inner product with z is (v . x + constant) / length (see `hycal.fusion`), that is a product of [v, 1] with
[x, constant]. So a class costs two or three such rows as "heads" (mu, mu - W'b, and t where the length depends on
it) and one for each rank of its covariance: (3C + sum of K) rows in all, instead of C matrices of d x d.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hycal.fusion import Fusion, pair_length
from hycal.records import ClassRecord
from hycal.statistics import covariance_factors, directions
from hycal.validation import Doubles, Floats

_NUMBERS_AT_ONCE = 4_000_000  # float64 work space while learning: 32 MB
_ROWS_AT_ONCE = 8192  # factor rows in one matrix product: with 256 queries, an 8 MB result


@dataclass(frozen=True)
class Shape:
    """How the Gaussians are built: the same for all members of a bank."""

    fusion: Fusion
    scale: float
    ridge: float


@dataclass(frozen=True, eq=False)
class GaussianBank:
    """The packed Gaussians of `members`, ordered by sample count.

    Attributes
    ----------
    order : ndarray of shape (C,)
        Row i of every array is the class `members[order[i]]` that was passed to `build`.
    heads : ndarray of shape (C, 2 or 3, d + 1), float32
        mu, mu - W'b, and t: what meets the image embedding, and in the last column what the text adds.
    bases : ndarray of shape (C, 1), float32
        1 + |mu|^2 - |b|^2.
    factors : ndarray of shape (R, d + 1), float32
        The rows of every W likewise, class after class; those of class i are `starts[i]` to `starts[i + 1]`.
    """

    members: tuple[ClassRecord, ...]
    shape: Shape
    order: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp]
    heads: Floats
    bases: Floats
    factors: Floats
    _rows: Mapping[int, int] = field(repr=False)

    @classmethod
    def build(
        cls, members: Sequence[ClassRecord], shape: Shape, *, previous: GaussianBank | None = None
    ) -> GaussianBank:
        """Pack `members`; those that `previous` packed in the same shape are copied, not computed."""
        counts = np.array([member.count for member in members], dtype=np.intp)
        order = np.argsort(counts, kind="stable")
        width = members[0].statistics.samples.shape[1]
        fused_width = width if shape.fusion.fixed_length in (None, 1.0) else 2 * width
        ranks = np.where(counts == 1, 0, np.minimum(counts, fused_width))[order]
        starts = np.concatenate([[0], np.cumsum(ranks)])
        classes, heads = len(members), 3 if shape.fusion.fixed_length is None else 2
        ordered = tuple(members[i] for i in order)
        bank = cls(
            members=ordered,
            shape=shape,
            order=order,
            starts=starts,
            heads=np.empty((classes, heads, width + 1), np.float32),
            bases=np.empty((classes, 1), np.float32),
            factors=np.empty((starts[-1], width + 1), np.float32),
            _rows={id(member): row for row, member in enumerate(ordered)},
        )
        known = previous._rows if previous is not None and previous.shape == shape else {}
        fresh: defaultdict[int, list[int]] = defaultdict(list)
        for row, member in enumerate(ordered):
            if id(member) in known:
                assert previous is not None
                bank._copy(row, previous, known[id(member)])
            else:
                fresh[member.count].append(row)
        for count, rows in fresh.items():
            step = max(1, _NUMBERS_AT_ONCE // (count * fused_width))
            for start in range(0, len(rows), step):
                bank._learn(rows[start : start + step])
        return bank

    def subset(self, indices: npt.NDArray[np.intp]) -> GaussianBank:
        """Return the bank of the members that were passed to `build` at `indices`."""
        rows = np.argsort(self.order)[indices]
        return GaussianBank.build([self.members[row] for row in rows], self.shape, previous=self)

    @property
    def nbytes(self) -> int:
        """Bytes held for scoring."""
        return self.heads.nbytes + self.bases.nbytes + self.factors.nbytes

    def evaluate(self, queries: Floats) -> tuple[Floats, Floats]:
        """Return cosine and -delta times the squared Mahalanobis distance, both of shape (C, n), in `order`."""
        extended = np.concatenate([queries, np.ones((len(queries), 1), np.float32)], axis=1)
        cosines = np.empty((len(self.bases), len(queries)), np.float32)
        closeness = np.empty_like(cosines)
        for block in self._blocks():
            self._evaluate_block(extended, block, cosines[block], closeness[block])
        return cosines, closeness

    def _blocks(self) -> Iterator[slice]:
        """Yield runs of classes whose factors fill one matrix product."""
        stop, classes = 0, len(self.bases)
        while stop < classes:
            start = stop
            fits = np.searchsorted(self.starts, self.starts[start] + _ROWS_AT_ONCE, side="right") - 1
            stop = min(max(int(fits), start + 1), start + _ROWS_AT_ONCE, classes)
            yield slice(start, stop)

    def _evaluate_block(self, queries: Floats, block: slice, cosines: Floats, closeness: Floats) -> None:
        heads = self.heads[block]
        products = (heads.reshape(-1, heads.shape[2]) @ queries.T).reshape(*heads.shape[:2], -1)
        fixed = self.shape.fusion.fixed_length
        inverse = np.reciprocal(pair_length(products[:, 2])) if fixed is None else np.float32(1.0 / fixed)
        np.multiply(products[:, 0], inverse, out=cosines)
        self._factor_energy(queries, block, closeness)
        closeness *= inverse
        closeness += products[:, 1]
        closeness += products[:, 1]
        closeness *= inverse
        closeness -= self.bases[block]

    def _factor_energy(self, queries: Floats, block: slice, out: Floats) -> None:
        """Write the sum of squared products with each class's factor rows to `out`."""
        first, last = self.starts[block.start], self.starts[block.stop]
        products = self.factors[first:last] @ queries.T
        for run in self._runs_of_equal_rank(block):
            rows = products[self.starts[run.start] - first : self.starts[run.stop] - first]
            stacked = rows.reshape(run.stop - run.start, -1, len(queries))
            np.einsum("crn,crn->cn", stacked, stacked, out=out[run.start - block.start : run.stop - block.start])

    def _runs_of_equal_rank(self, block: slice) -> Iterator[slice]:
        ranks = np.diff(self.starts[block.start : block.stop + 1])
        edges = np.concatenate([[0], np.flatnonzero(np.diff(ranks)) + 1, [len(ranks)]]) + block.start
        for start, stop in pairwise(edges):
            yield slice(int(start), int(stop))

    def _factor_slice(self, row: int) -> slice:
        return slice(int(self.starts[row]), int(self.starts[row + 1]))

    def _copy(self, row: int, source: GaussianBank, source_row: int) -> None:
        self.heads[row] = source.heads[source_row]
        self.bases[row] = source.bases[source_row]
        self.factors[self._factor_slice(row)] = source.factors[source._factor_slice(source_row)]

    def _learn(self, rows: list[int]) -> None:
        """Compute the Gaussians of `rows`, classes of equal sample count, in float64."""
        members = [self.members[row] for row in rows]
        samples = np.stack([member.statistics.samples for member in members]).astype(np.float64)
        text = np.zeros((len(rows), 1, samples.shape[2]))
        if self.shape.fusion.needs_text:
            text[:, 0] = [member.text for member in members]
        fusion = self.shape.fusion
        fused = fusion.fuse(samples, text)
        means = directions(fused.mean(axis=1))
        factors = covariance_factors(fused - means[:, None], self.shape.scale, self.shape.ridge)
        spread = (factors @ means[:, :, None])[:, :, 0]
        centres = means - (spread[:, None] @ factors)[:, 0]
        self.heads[rows, 0] = self._extended(means, text[:, 0])
        self.heads[rows, 1] = self._extended(centres, text[:, 0])
        if fusion.fixed_length is None:
            self.heads[rows, 2, :-1], self.heads[rows, 2, -1] = text[:, 0], 0.0
        self.bases[rows, 0] = 1.0 + np.sum(means**2, axis=1) - np.sum(spread**2, axis=1)
        for row, extended in zip(rows, self._extended(factors, text), strict=True):
            self.factors[self._factor_slice(row)] = extended

    def _extended(self, x: Doubles, text: Doubles) -> Doubles:
        """Return [image part, constant]: what [v, 1] is multiplied with."""
        fusion = self.shape.fusion
        return np.concatenate([fusion.image_part(x), fusion.constant(x, text)[..., None]], axis=-1)
