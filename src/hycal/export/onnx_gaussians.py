"""HyCal's scores as nodes of an ONNX graph, term by term as `hycal.algebra.bank` has them.

Where the library leaves the logarithm of the Gaussian CDF's odds to float64 beyond eight standard deviations, the graph
takes the asymptotic series, which is right to 1e-6 from there on.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from hycal.algebra.bank import GaussianBank
from hycal.algebra.fusion import SHORTEST
from hycal.algebra.logit_phi import LOGIT_PHI_P, LOGIT_PHI_Q, SHALLOW, SMALLEST_SPREAD
from hycal.validation import Doubles, Floats

if TYPE_CHECKING:
    from hycal.encoders.onnx_graph import GraphBuilder

_NOTHING = -1e30  # the logarithm of a weight of 0


def gaussian_scores(build: GraphBuilder, rows: str, bank: GaussianBank, weights: Doubles) -> str:
    """Add the nodes that score unit rows; bank and weights are those of all classes."""
    return _GaussianScores(build, bank, weights).scores(rows)


class _GaussianScores:
    """HyCal's scores; every result has the classes in the order of the bank, as columns."""

    def __init__(self, build: GraphBuilder, bank: GaussianBank, weights: Doubles) -> None:
        self.build = build
        self.bank = bank
        self.weights = weights[bank.order]

    def scores(self, rows: str) -> str:
        """Add the nodes that score unit rows; the classes come in the order of the model."""
        cosine, closeness = self._measures(rows)
        blended = self._blend(self._standardise(cosine), self._standardise(closeness))
        return self.build.node("Gather", blended, self.build.ints(*np.argsort(self.bank.order).tolist()), axis=1)

    def _measures(self, rows: str) -> tuple[str, str]:
        build, bank = self.build, self.bank
        along_mean, inverse = self._products(rows, bank.means), self._inverse_length(rows)
        energy, along_first = self._factors(rows)
        base, slope, curve, spread = (build.constant(term) for term in bank.terms[:, :, 0].T)
        along_h = self._mul(self._sub(along_mean, self._mul(along_first, spread)), inverse)
        quadratic = self._mul(self._add(slope, self._mul(curve, along_h)), along_h)
        spread_part = self._mul(energy, self._mul(inverse, inverse))
        return self._mul(along_mean, inverse), self._sub(self._add(spread_part, quadratic), base)

    def _products(self, rows: str, extended: Floats) -> str:
        return self.build.affine(rows, extended[:, :-1], extended[:, -1])

    def _inverse_length(self, rows: str) -> str:
        build, fixed = self.build, self.bank.options.fusion.fixed_length
        if fixed is not None:
            return build.number(1.0 / fixed)
        squares = build.node("Max", self._products(rows, self.bank.lengths), build.number(SHORTEST))
        return build.node("Reciprocal", build.node("Sqrt", squares))

    def _factors(self, rows: str) -> tuple[str, str]:
        """Return |W z|^2 and the first entry of W z of every class: one product for each run of equal rank."""
        build, bank = self.build, self.bank
        energies, firsts = [], []
        ranks = np.diff(bank.starts)
        edges = [0, *(np.flatnonzero(np.diff(ranks)) + 1).tolist(), len(ranks)]
        for first, last in pairwise(edges):
            rows_of_run, rank = bank.factors[bank.starts[first] : bank.starts[last]], int(ranks[first])
            if rank == 0:  # a row of zeros stands for a class without spread
                rows_of_run, rank = np.zeros((last - first, bank.factors.shape[1]), np.float32), 1
            shape = build.ints(-1, last - first, rank)
            products = build.node("Reshape", self._products(rows, rows_of_run), shape)
            energies.append(build.node("ReduceSumSquare", products, axes=[2], keepdims=0))
            firsts.append(build.node("Gather", products, build.constant(np.array(0, np.int64)), axis=2))
        return build.node("Concat", *energies, axis=1), build.node("Concat", *firsts, axis=1)

    def _standardise(self, x: str) -> str:
        build, classes = self.build, len(self.weights)
        for _ in range(2):  # the second time takes what rounding left of the mean
            x = self._sub(x, build.node("ReduceMean", x, axes=[1], keepdims=1))
        if classes == 1:
            return x
        squares = build.node("ReduceSumSquare", x, axes=[1], keepdims=1)
        spread = build.node("Sqrt", self._scaled(squares, 1.0 / (classes - 1), 0.0))
        return build.node("Div", x, build.node("Max", spread, build.number(SMALLEST_SPREAD)))

    def _blend(self, z_cosine: str, z_distance: str) -> str:
        """Return the log-odds of w Phi(z_distance) + (1 - w) Phi(z_cosine)."""
        with np.errstate(divide="ignore"):
            logs = [np.maximum(np.log(w), _NOTHING) for w in (self.weights, 1.0 - self.weights)]
        odds = self._logit_phi(z_distance), self._logit_phi(z_cosine)
        above = self._log_add(*(self._weighted(log, odd, sign=-1.0) for log, odd in zip(logs, odds, strict=True)))
        below = self._log_add(*(self._weighted(log, odd, sign=1.0) for log, odd in zip(logs, odds, strict=True)))
        return self._sub(above, below)

    def _weighted(self, log_weight: Doubles, odds: str, *, sign: float) -> str:
        """Return log w + log sigma(-sign odds), and log sigma(x) = -softplus(-x)."""
        soft = self.build.node("Softplus", self._scaled(odds, sign, 0.0))
        return self._sub(self.build.constant(log_weight.astype(np.float32)), soft)

    def _log_add(self, a: str, b: str) -> str:
        build = self.build
        apart = build.node("Neg", build.node("Abs", self._sub(a, b)))
        return self._add(build.node("Max", a, b), build.node("Softplus", apart))

    def _logit_phi(self, z: str) -> str:
        """Return log(Phi(z)/(1 - Phi(z))): the library's fit within its range, the asymptotic series beyond."""
        build = self.build
        size = build.node("Abs", z)
        shallow = build.node("Min", size, build.number(SHALLOW))
        u = self._mul(shallow, shallow)
        fit = build.node("Div", self._mul(shallow, self._polynomial(LOGIT_PHI_P, u)), self._polynomial(LOGIT_PHI_Q, u))
        deep = build.node("Max", size, build.number(SHALLOW))
        squares = self._mul(deep, deep)
        series = self._polynomial((1.0, -1.0, 3.0, -15.0, 105.0), build.node("Reciprocal", squares))
        tail = self._sub(
            self._scaled(squares, 0.5, 0.5 * math.log(2.0 * math.pi)),
            build.node("Log", build.node("Div", series, deep)),
        )
        inside = build.node("LessOrEqual", size, build.number(SHALLOW))
        return self._mul(build.node("Where", inside, fit, tail), build.node("Sign", z))

    def _polynomial(self, coefficients: tuple[float, ...], u: str) -> str:
        *lower, last = coefficients
        total = self.build.number(last)
        for coefficient in reversed(lower):
            total = self._add(self._mul(total, u), self.build.number(coefficient))
        return total

    def _scaled(self, x: str, factor: float, offset: float) -> str:
        return self._add(self._mul(x, self.build.number(factor)), self.build.number(offset))

    def _add(self, a: str, b: str) -> str:
        return self.build.node("Add", a, b)

    def _sub(self, a: str, b: str) -> str:
        return self.build.node("Sub", a, b)

    def _mul(self, a: str, b: str) -> str:
        return self.build.node("Mul", a, b)
