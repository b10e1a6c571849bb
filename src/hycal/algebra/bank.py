"""Gaussians of many classes, packed in float32: a batch of queries meets all classes in matrix products.

`hycal.algebra.gaussians` derives the Gaussian of a class. For a unit query z, fused from an image embedding v and the
text of the class, the bank evaluates

    cosine             = mu.z
    delta * distance^2 = c0 - |W z|^2 - (c1 + c2 h.z) h.z,      h.z = mu.z - b (W z)_1.

An inner product with z is [v, 1].[x, constant] / length (`hycal.algebra.fusion`). So a class needs one row for mu, one
for its text where the length depends on the text, and one for each row of W: about C + sum of K rows in all, instead of
C matrices of d x d. Classes are sorted by sample count, so that classes of equal rank are neighbours.

    symbol         array    shape                     meaning (C classes, n queries, embeddings of width d)
    mu             means    (C, d + 1)                mean direction, extended by its constant
    2 t            lengths  (C, d + 1) or (0, d + 1)  [2 t, 2], whose product with [v, 1] is |v + t|^2; empty where
                                                      all lengths are equal
    c0, c1, c2, b  terms    (C, 4, 1)                 coefficients of the distance
    W              factors  (R, d + 1)                factor rows of all classes, extended; those of class i are
                                                      starts[i] to starts[i + 1]
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hycal.algebra.fusion import root_length
from hycal.algebra.gaussians import ClassGaussians, GaussianOptions
from hycal.algebra.loops import compiled_loops
from hycal.parallel.threads import run_parallel, scratch
from hycal.state.records import ClassRecord
from hycal.validation import Floats

_NUMBERS_PER_BATCH = 100_000  # float64 numbers in one batch of learning: the allocator keeps and reuses such blocks
_ROWS_PER_PRODUCT = 4096  # factor rows in one matrix product: with 1024 queries, a result of 16 MB


@dataclass(frozen=True, eq=False)
class GaussianBank:
    """The packed Gaussians of `members`, which are sorted by sample count. The table above describes the arrays."""

    members: tuple[ClassRecord, ...]  # row i of every array belongs to `members[i]`
    options: GaussianOptions
    order: npt.NDArray[np.intp]  # (C,): `members[i]` was passed to `build` at position `order[i]`
    starts: npt.NDArray[np.intp]
    means: Floats
    lengths: Floats
    terms: Floats
    factors: Floats
    _rows: Mapping[int, int] = field(repr=False)

    @classmethod
    def build(
        cls, members: Sequence[ClassRecord], options: GaussianOptions, *, previous: GaussianBank | None = None
    ) -> GaussianBank:
        """Pack `members`. Gaussians that `previous` holds with the same options are copied, not computed."""
        bank = cls._empty(members, options)
        known = previous if previous is not None and previous.options == options else None
        run_parallel(bank._learn, bank._batches(bank._copy_known(known)))
        return bank

    @classmethod
    def _empty(cls, members: Sequence[ClassRecord], options: GaussianOptions) -> GaussianBank:
        """Allocate the arrays of `members`."""
        counts = np.array([member.count for member in members], dtype=np.intp)
        order = np.argsort(counts, kind="stable")
        d, classes = members[0].samples.rows.shape[1], len(members)
        starts = _starts(np.clip(counts - 1, 0, options.fusion.width(d))[order])
        ordered = tuple(members[i] for i in order)
        return cls(
            members=ordered,
            options=options,
            order=order,
            starts=starts,
            means=np.empty((classes, d + 1), np.float32),
            lengths=np.empty((classes if options.fusion.fixed_length is None else 0, d + 1), np.float32),
            terms=np.empty((classes, 4, 1), np.float32),
            factors=np.empty((starts[-1], d + 1), np.float32),
            _rows=_row_by_identity(ordered),
        )

    def _copy_known(self, source: GaussianBank | None) -> list[int]:
        """Copy the classes that `source` holds, one run of neighbours at a time; return the rows still to learn."""
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
        self.factors[self._factor_rows(rows)] = source.factors[source._factor_rows(source_rows)]

    def _batches(self, rows: Sequence[int]) -> list[list[int]]:
        """Group rows into batches of equal sample count and bounded size."""
        by_count: defaultdict[int, list[int]] = defaultdict(list)
        for row in rows:
            by_count[self.members[row].count].append(row)
        width = self.options.fusion.width(self.means.shape[1] - 1)
        return [
            group[start : start + size]
            for count, group in by_count.items()
            for size in [max(1, _NUMBERS_PER_BATCH // (max(count, 1) * width))]
            for start in range(0, len(group), size)
        ]

    def _learn(self, rows: list[int]) -> None:
        """Compute the Gaussians of `rows`, which are classes of equal sample count."""
        fusion = self.options.fusion
        gaussians = ClassGaussians.of([self.members[row] for row in rows], self.options)
        t = gaussians.t[:, 0]
        self.means[rows] = fusion.extended(gaussians.mu, t)
        if len(self.lengths):
            self.lengths[rows, :-1], self.lengths[rows, -1] = 2.0 * t, 2.0
        self.terms[rows, :, 0] = gaussians.terms
        for row, W in zip(rows, fusion.extended(gaussians.W, gaussians.t), strict=True):
            self.factors[self._factor_rows(slice(row, row + 1))] = W

    def subset(self, indices: npt.NDArray[np.intp]) -> GaussianBank:
        """Return the bank of the members that were passed to `build` at `indices`."""
        rows = self._row_of[indices]
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        ranks = np.diff(self.starts)[rows]
        starts = _starts(ranks)
        members = tuple(self.members[row] for row in rows.tolist())
        return GaussianBank(
            members=members,
            options=self.options,
            order=order,
            starts=starts,
            means=self.means[rows],
            lengths=self.lengths[rows] if len(self.lengths) else self.lengths,
            terms=self.terms[rows],
            factors=self.factors[np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], ranks)],
            _rows=_row_by_identity(members),
        )

    @cached_property
    def _row_of(self) -> npt.NDArray[np.intp]:
        """The row of each member, in the order in which members were passed to `build`."""
        return np.argsort(self.order)

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """K of each class, row by row."""
        return np.array([member.count for member in self.members], dtype=np.int64)

    @property
    def whole(self) -> GaussianBank:
        """This bank; a `PatchedBank` returns its members in one bank."""
        return self

    @property
    def nbytes(self) -> int:
        """Bytes held for scoring."""
        return self.means.nbytes + self.lengths.nbytes + self.terms.nbytes + self.factors.nbytes

    def evaluate(self, queries: Floats) -> tuple[Floats, Floats]:
        """Return cosine and -delta times the squared Mahalanobis distance, both of shape (C, n), row by row.

        The results live in the work space of this thread: copy them before the next call.
        """
        shape = len(self.terms), len(queries)
        cosines, closeness = scratch("cosines", shape), scratch("closeness", shape)
        self.evaluate_into(cosines, closeness, queries)
        return cosines, closeness

    def evaluate_into(self, cosines: Floats, closeness: Floats, queries: Floats) -> None:
        """Write the results of `evaluate` to `cosines` and `closeness`."""
        extended = scratch("queries", (len(queries), queries.shape[1] + 1))
        extended[:, :-1], extended[:, -1] = queries, 1.0
        for block in self._blocks():
            self._evaluate_block(extended, block, cosines[block], closeness[block])

    def _blocks(self) -> Iterator[slice]:
        """Yield runs of classes whose factors fill one matrix product."""
        stop, classes = 0, len(self.terms)
        while stop < classes:
            start = stop
            fits = np.searchsorted(self.starts, self.starts[start] + _ROWS_PER_PRODUCT, side="right") - 1
            stop = min(max(int(fits), start + 1), start + _ROWS_PER_PRODUCT, classes)
            yield slice(start, stop)

    def _evaluate_block(self, queries: Floats, block: slice, cosines: Floats, closeness: Floats) -> None:
        """Evaluate the classes of one block for extended queries [v, 1].

        Products with [v, 1] are products with z times the length |v + t|, so the inverse length is applied last.
        """
        mu_z = _products("means", self.means[block], queries)
        loops = compiled_loops(mu_z.size)
        if loops is not None:
            lengths = _products("lengths", self.lengths[block], queries)
            W_z = _products("factors", self.factors[self._factor_rows(block)], queries)
            starts = self.starts[block.start : block.stop + 1]
            fixed = np.float32(1.0 / (self.options.fusion.fixed_length or 1.0))
            loops.measure(mu_z, lengths, fixed, W_z, starts, self.terms[block], cosines, closeness)
            return
        inverse = self._inverse_lengths(queries, block)
        np.multiply(mu_z, inverse, out=cosines)
        h_z = mu_z  # in place
        self._apply_factors(queries, block, closeness, h_z)
        h_z *= inverse
        c0, c1, c2 = (self.terms[block, number] for number in range(3))
        polynomial = np.multiply(h_z, c2, out=scratch("work", h_z.shape))
        polynomial += c1
        polynomial *= h_z
        closeness *= inverse
        closeness *= inverse
        closeness += polynomial
        closeness -= c0

    def _inverse_lengths(self, queries: Floats, block: slice) -> Floats | np.float32:
        """Return 1/|v + t| for each class and query, or the one number that it is for all."""
        fixed = self.options.fusion.fixed_length
        if fixed is not None:
            return np.float32(1.0 / fixed)
        lengths = root_length(_products("lengths", self.lengths[block], queries))
        return np.reciprocal(lengths, out=lengths)

    def _apply_factors(self, queries: Floats, block: slice, squares: Floats, h_z: Floats) -> None:
        """Write |W z|^2 of each class to `squares`, and subtract b (W z)_1 from `h_z`, which holds mu.z."""
        products = _products("factors", self.factors[self._factor_rows(block)], queries)
        for run in self._runs_of_equal_rank(block):
            classes = run.stop - run.start
            first, last = self.starts[[run.start, run.stop]] - self.starts[block.start]
            W_z = products[first:last].reshape(classes, -1, len(queries))
            inside = slice(run.start - block.start, run.stop - block.start)
            np.einsum("crn,crn->cn", W_z, W_z, out=squares[inside])
            if W_z.size:
                b_W_z = scratch("work", (classes, len(queries)))
                h_z[inside] -= np.multiply(W_z[:, 0], self.terms[run, 3], out=b_W_z)

    def _runs_of_equal_rank(self, block: slice) -> Iterator[slice]:
        ranks = np.diff(self.starts[block.start : block.stop + 1])
        edges = np.concatenate([[0], np.flatnonzero(np.diff(ranks)) + 1, [len(ranks)]]) + block.start
        for start, stop in pairwise(edges):
            yield slice(int(start), int(stop))

    def _factor_rows(self, classes: slice) -> slice:
        return slice(int(self.starts[classes.start]), int(self.starts[classes.stop]))


def _starts(ranks: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the first factor row of each class, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(ranks)])


def _row_by_identity(members: Sequence[ClassRecord]) -> dict[int, int]:
    return {id(member): row for row, member in enumerate(members)}


def _products(name: str, rows: Floats, queries: Floats) -> Floats:
    return np.matmul(rows, queries.T, out=scratch(name, (len(rows), len(queries))))
