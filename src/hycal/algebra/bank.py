"""Every class's Gaussian, packed so that a batch of queries meets all classes in matrix products.

A class has the unit mean mu and the covariance S around it; m is the plain mean, rho its length, S_m the covariance
around m. As S = S_m + kappa mu mu' with kappa = K/(K-1) (1 - rho)^2, only S_m needs a factor W, of rank K - 1. With z
the query fused with the text of the class, b = W mu and h = mu - W'b,

    cos           = z . mu
    delta * maha  = |z - mu|^2 - |W (z - mu)|^2 - g (h . (z - mu))^2,        g = t/(1 + t h . mu), t = a kappa/delta,
                  = 1 + |mu|^2 - |b|^2 - 2 h . z - |W z|^2 - g (h . z - h . mu)^2,

and every inner product with z is (v . x + constant) / length (see `hycal.algebra.fusion`), that is a product of [v, 1]
with [x, constant]. As h . z = mu . z - b . W z, a class costs one or two such rows as "heads" (mu, and t where the
length depends on it) and one for each rank of S_m: (C + sum of K) rows in all, instead of C matrices of d x d. Any
rotation of W's rows serves as well as W: they are turned so that b lies along the first, and b . W z is one number
times one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hycal.algebra.covariance import covariance_factors, directions
from hycal.algebra.fusion import Fusion, root_length
from hycal.parallel.threads import scratch, side_by_side
from hycal.state.records import ClassRecord
from hycal.validation import Doubles, Floats

_NUMBERS_AT_ONCE = (
    100_000  # of float64 in one batch while learning: small enough that the allocator keeps and reuses it
)
_ROWS_AT_ONCE = 4096  # factor rows in one matrix product: with 1024 queries, a 16 MB result


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
    means : ndarray of shape (C, d + 1), float32
        Each mu: what meets the image embedding, and in the last column what the text adds.
    lengths : ndarray of shape (C, d + 1) or (0, d + 1), float32
        [2 t, 2], whose product with [v, 1] is |v + t|^2; none where every length is the same.
    terms : ndarray of shape (C, 4, 1), float32
        delta * maha = term 0 - |W z|^2 - (term 1 + term 2 h . z) h . z, and term 3 is the first entry of b = W mu.
    factors : ndarray of shape (R, d + 1), float32
        The rows of every W likewise, class after class; those of class i are `starts[i]` to `starts[i + 1]`.
    """

    members: tuple[ClassRecord, ...]
    shape: Shape
    order: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp]
    means: Floats
    lengths: Floats
    terms: Floats
    factors: Floats
    _rows: Mapping[int, int] = field(repr=False)

    @classmethod
    def build(
        cls, members: Sequence[ClassRecord], shape: Shape, *, previous: GaussianBank | None = None
    ) -> GaussianBank:
        """Pack `members`; those that `previous` packed in the same shape are copied, not computed."""
        counts = np.array([member.count for member in members], dtype=np.intp)
        order = np.argsort(counts, kind="stable")
        width = members[0].samples.rows.shape[1]
        fused_width = width if shape.fusion.fixed_length in (None, 1.0) else 2 * width
        ranks = np.clip(counts - 1, 0, fused_width)[order]
        starts = np.concatenate([[0], np.cumsum(ranks)])
        classes = len(members)
        ordered = tuple(members[i] for i in order)
        bank = cls(
            members=ordered,
            shape=shape,
            order=order,
            starts=starts,
            means=np.empty((classes, width + 1), np.float32),
            lengths=np.empty((classes if shape.fusion.fixed_length is None else 0, width + 1), np.float32),
            terms=np.empty((classes, 4, 1), np.float32),
            factors=np.empty((starts[-1], width + 1), np.float32),
            _rows={id(member): row for row, member in enumerate(ordered)},
        )
        fresh: defaultdict[int, list[int]] = defaultdict(list)
        for row in bank._copied(previous if previous is not None and previous.shape == shape else None):
            fresh[ordered[row].count].append(row)
        batches = [
            rows[start : start + size]
            for count, rows in fresh.items()
            for size in [max(1, _NUMBERS_AT_ONCE // (max(count, 1) * fused_width))]
            for start in range(0, len(rows), size)
        ]
        side_by_side(bank._learn, batches)
        return bank

    def subset(self, indices: npt.NDArray[np.intp]) -> GaussianBank:
        """Return the bank of the members that were passed to `build` at `indices`."""
        rows = self._row_of[indices]
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        ranks = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(ranks)])
        members = tuple(self.members[row] for row in rows.tolist())
        return GaussianBank(
            members=members,
            shape=self.shape,
            order=order,
            starts=starts,
            means=self.means[rows],
            lengths=self.lengths[rows] if len(self.lengths) else self.lengths,
            terms=self.terms[rows],
            factors=self.factors[np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], ranks)],
            _rows={id(member): row for row, member in enumerate(members)},
        )

    @cached_property
    def _row_of(self) -> npt.NDArray[np.intp]:
        """Where each member that was passed to `build` is."""
        return np.argsort(self.order)

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """Samples of each class, in `order`."""
        return np.array([member.count for member in self.members], dtype=np.int64)

    @property
    def whole(self) -> GaussianBank:
        """All members in one bank: this one."""
        return self

    @property
    def nbytes(self) -> int:
        """Bytes held for scoring."""
        return self.means.nbytes + self.lengths.nbytes + self.terms.nbytes + self.factors.nbytes

    def evaluate(self, queries: Floats) -> tuple[Floats, Floats]:
        """Return cosine and -delta times the squared Mahalanobis distance, both of shape (C, n), in `order`.

        The results live in this thread's work space: copy them before the next call.
        """
        shape = len(self.terms), len(queries)
        cosines, closeness = scratch("cosines", shape), scratch("closeness", shape)
        self.evaluate_into(cosines, closeness, queries)
        return cosines, closeness

    def evaluate_into(self, cosines: Floats, closeness: Floats, queries: Floats) -> None:
        """Write what `evaluate` returns."""
        extended = scratch("queries", (len(queries), queries.shape[1] + 1))
        extended[:, :-1], extended[:, -1] = queries, 1.0
        for block in self._blocks():
            self._evaluate_block(extended, block, cosines[block], closeness[block])

    def _blocks(self) -> Iterator[slice]:
        """Yield runs of classes whose factors fill one matrix product."""
        stop, classes = 0, len(self.terms)
        while stop < classes:
            start = stop
            fits = np.searchsorted(self.starts, self.starts[start] + _ROWS_AT_ONCE, side="right") - 1
            stop = min(max(int(fits), start + 1), start + _ROWS_AT_ONCE, classes)
            yield slice(start, stop)

    def _evaluate_block(self, queries: Floats, block: slice, cosines: Floats, closeness: Floats) -> None:
        along_mean = self._products("means", self.means[block], queries)
        inverse = self._inverse_lengths(queries, block)
        np.multiply(along_mean, inverse, out=cosines)
        along_h = along_mean
        self._factor_products(queries, block, closeness, along_h)
        along_h *= inverse
        terms = self.terms[block]
        quadratic = np.multiply(along_h, terms[:, 2], out=scratch("work", along_h.shape))
        quadratic += terms[:, 1]
        quadratic *= along_h
        closeness *= inverse
        closeness *= inverse
        closeness += quadratic
        closeness -= terms[:, 0]

    def _inverse_lengths(self, queries: Floats, block: slice) -> Floats | np.float32:
        """Return 1/|v + t| for every class and query, or the one number that it is for all."""
        fixed = self.shape.fusion.fixed_length
        if fixed is not None:
            return np.float32(1.0 / fixed)
        lengths = root_length(self._products("lengths", self.lengths[block], queries))
        return np.reciprocal(lengths, out=lengths)

    def _factor_products(self, queries: Floats, block: slice, energy: Floats, along_h: Floats) -> None:
        """Write |W z|^2 of each class to `energy`, and take b . W z from `along_h`."""
        first, last = self.starts[block.start], self.starts[block.stop]
        products = self._products("factors", self.factors[first:last], queries)
        for run in self._runs_of_equal_rank(block):
            rows, classes = slice(self.starts[run.start] - first, self.starts[run.stop] - first), run.stop - run.start
            stacked = products[rows].reshape(classes, -1, len(queries))
            inside = slice(run.start - block.start, run.stop - block.start)
            np.einsum("crn,crn->cn", stacked, stacked, out=energy[inside])
            if stacked.size:
                along_first = scratch("work", (classes, len(queries)))
                along_h[inside] -= np.multiply(stacked[:, 0], self.terms[run, 3], out=along_first)

    @staticmethod
    def _products(name: str, rows: Floats, queries: Floats) -> Floats:
        return np.matmul(rows, queries.T, out=scratch(name, (len(rows), len(queries))))

    def _runs_of_equal_rank(self, block: slice) -> Iterator[slice]:
        ranks = np.diff(self.starts[block.start : block.stop + 1])
        edges = np.concatenate([[0], np.flatnonzero(np.diff(ranks)) + 1, [len(ranks)]]) + block.start
        for start, stop in pairwise(edges):
            yield slice(int(start), int(stop))

    def _factor_slice(self, row: int) -> slice:
        return slice(int(self.starts[row]), int(self.starts[row + 1]))

    def _copied(self, source: GaussianBank | None) -> list[int]:
        """Copy the classes that `source` has, run after run of neighbours; return the rows that are still to learn."""
        known = {} if source is None else source._rows
        rows = np.array([known.get(id(member), -1) for member in self.members], dtype=np.intp)
        edges = np.flatnonzero((np.diff(rows) != 1) | (rows[:-1] < 0)) + 1
        for start, stop in pairwise([0, *edges.tolist(), len(rows)]):
            if source is not None and rows[start] >= 0:
                self._copy(slice(start, stop), source, slice(int(rows[start]), int(rows[start]) + stop - start))
        return np.flatnonzero(rows < 0).tolist()

    def _copy(self, rows: slice, source: GaussianBank, source_rows: slice) -> None:
        self.means[rows] = source.means[source_rows]
        if len(self.lengths):
            self.lengths[rows] = source.lengths[source_rows]
        self.terms[rows] = source.terms[source_rows]
        first, last = source.starts[source_rows.start], source.starts[source_rows.stop]
        self.factors[self.starts[rows.start] : self.starts[rows.stop]] = source.factors[first:last]

    def _learn(self, rows: list[int]) -> None:
        """Compute the Gaussians of `rows`, classes of equal sample count, in float64."""
        members = [self.members[row] for row in rows]
        samples = np.stack([member.samples.rows for member in members]).astype(np.float64)
        text = np.zeros((len(rows), 1, samples.shape[2]))
        if self.shape.fusion.needs_text:
            text[:, 0] = [member.text for member in members]
        if not samples.size:
            samples = text  # a class that was only announced: its name stands for its image
        fusion = self.shape.fusion
        fused = fusion.fuse(samples, text)
        plain = fused.mean(axis=1)
        lengths = np.linalg.norm(plain, axis=1)
        means = directions(plain)
        factors = covariance_factors(fused - plain[:, None], self.shape.scale, self.shape.ridge)
        factors, along_first = _turned(factors, means)
        h = means - (along_first[:, None] * factors[:, 0] if factors.shape[1] else 0.0)
        self.means[rows] = self._extended(means, text[:, 0])
        if len(self.lengths):
            self.lengths[rows, :-1], self.lengths[rows, -1] = 2.0 * text[:, 0], 2.0
        self.terms[rows, :, 0] = self._terms(samples.shape[1], lengths, means, along_first, h).T
        for row, extended in zip(rows, self._extended(factors, text), strict=True):
            self.factors[self._factor_slice(row)] = extended

    def _terms(self, count: int, lengths: Doubles, means: Doubles, along_first: Doubles, h: Doubles) -> Doubles:
        """Return the coefficients of delta * maha as a polynomial in h . z, and b, for classes of `count` samples."""
        shift = count / max(count - 1, 1) * (1.0 - lengths) ** 2
        t = self.shape.scale * shift / self.shape.ridge if count > 1 else np.zeros_like(lengths)
        at_mean = np.sum(h * means, axis=1)
        g = t / (1.0 + t * at_mean)
        base = 1.0 + np.sum(means**2, axis=1) - along_first**2
        return np.stack([base - g * at_mean**2, 2.0 - 2.0 * g * at_mean, g, along_first])

    def _extended(self, x: Doubles, text: Doubles) -> Doubles:
        """Return [image part, constant]: what [v, 1] is multiplied with."""
        fusion = self.shape.fusion
        return np.concatenate([fusion.image_part(x), fusion.constant(x, text)[..., None]], axis=-1)


def _turned(factors: Doubles, means: Doubles) -> tuple[Doubles, Doubles]:
    """Reflect the rows of each W so that W mu lies along the first; return them and that first entry."""
    spread = (factors @ means[:, :, None])[:, :, 0]
    if not spread.shape[1]:
        return factors, np.zeros(len(means))
    first = -np.copysign(np.linalg.norm(spread, axis=1), spread[:, 0])  # of the sign that cannot cancel
    mirror = spread.copy()
    mirror[:, 0] -= first
    squares = np.maximum(np.sum(mirror**2, axis=1), np.finfo(np.float64).tiny)
    along = (mirror[:, None] @ factors)[:, 0]
    turned: Doubles = factors - (2.0 / squares)[:, None, None] * mirror[:, :, None] * along[:, None]
    return turned, first
