"""A classifier's head as one ONNX graph: embeddings in, scores and labels out, the same answers without hycal.

HyCal's graph follows `hycal.bank` term by term. Where the library leaves the logarithm of the Gaussian CDF's odds to
float64 beyond eight standard deviations, the graph takes the asymptotic series, which is right to 1e-6 from there on.
"""

from __future__ import annotations

import json
import math
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.atomic import replacing
from hycal.bank import GaussianBank
from hycal.base import IncrementalClassifier
from hycal.classifiers import HyCal
from hycal.encoders.graph import GraphBuilder
from hycal.errors import HyCalError
from hycal.features import Identity, LinearHead
from hycal.fusion import SHORTEST
from hycal.scoring import LOGIT_PHI_P, LOGIT_PHI_Q, SHALLOW, SMALLEST_SPREAD
from hycal.validation import Doubles, Floats

_NOTHING = -1e30  # the logarithm of a weight of 0
_MOST_BYTES = 2**31 - 2**20  # a protobuf holds 2 GB


def export_onnx(classifier: IncrementalClassifier, path: str | os.PathLike[str]) -> None:
    """Write the head of `classifier` to `path`, replacing what was there in one step.

    The graph takes `embeddings`, float32 (n, d) of any length, and gives `scores` (n, C) as `decision_function` does,
    `probabilities` (n, C) as `predict_proba`, and the best `label` (n,) as text. Its properties name the classes and
    the encoder.
    """
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise HyCalError(f"Cannot write {target}: the folder {target.parent} does not exist. Make it first.")
    content = onnx_head(classifier)
    with replacing(target) as file:
        file.write(content)


def onnx_head(classifier: IncrementalClassifier) -> bytes:
    """Return the serialised graph of `classifier`'s head."""
    current = classifier._current()
    labels, width, nbytes = current.records.labels, current.records.width, classifier.nbytes_
    if nbytes > _MOST_BYTES:
        raise HyCalError(f"The model has {nbytes:,} bytes of state, and an ONNX file holds 2 GB. Export fewer classes.")
    build = GraphBuilder("Exporting to ONNX")
    rows = _unit(build, "embeddings")
    if type(classifier) is HyCal:
        if current.records.unseen:
            raise HyCalError(
                "Classes that were only announced have no Gaussian to export. Learn images of them, or forget them."
            )
        scores = _Gaussians(build, current.value.bank.whole, classifier.weights(current.records.counts)).scores(rows)
    elif isinstance(current.value, LinearHead) and isinstance(current.value.features, Identity):
        scores = _linear(build, rows, current.value.weights, current.value.bias)
    else:
        raise HyCalError(
            f"{type(classifier).__name__} cannot be exported to ONNX; HyCal and the linear methods (NCM, SLDA, GDA, "
            "ZeroShot) can. Learn a model with one of them."
        )
    best = build.node("ArgMax", scores, axis=1, keepdims=0)
    label = build.node("Gather", build.constant(np.array([str(label) for label in labels], dtype=object)), best)
    tempered = build.node("Div", scores, build.number(classifier.temperature_))
    kinds = build.onnx.TensorProto
    return build.model(
        "hycal",
        given=build.onnx.helper.make_tensor_value_info("embeddings", kinds.FLOAT, ["batch", width]),
        outputs={
            "scores": (scores, kinds.FLOAT, ["batch", len(labels)]),
            "probabilities": (build.node("Softmax", tempered, axis=1), kinds.FLOAT, ["batch", len(labels)]),
            "label": (label, kinds.STRING, ["batch"]),
        },
        properties={
            "method": type(classifier).__name__,
            "encoder": classifier.encoder_ or "",
            "labels": json.dumps(list(labels), ensure_ascii=False),
        },
    )


def _unit(build: GraphBuilder, rows: str) -> str:
    return build.node("Div", rows, build.node("ReduceL2", rows, axes=[1], keepdims=1))


def _linear(build: GraphBuilder, rows: str, weights: npt.NDArray[Any], bias: npt.NDArray[Any]) -> str:
    product = build.node("MatMul", rows, build.constant(np.ascontiguousarray(weights.T, np.float32)))
    return build.node("Add", product, build.constant(bias.astype(np.float32)))


class _Gaussians:
    """HyCal's scores; every result has the classes in the order of the bank, as columns."""

    def __init__(self, build: GraphBuilder, bank: GaussianBank, weights: Doubles) -> None:
        self.build = build
        self.bank = bank
        self.weights = weights[bank.order]

    def scores(self, rows: str) -> str:
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
        return _linear(self.build, rows, extended[:, :-1], extended[:, -1])

    def _inverse_length(self, rows: str) -> str:
        build, fixed = self.build, self.bank.shape.fusion.fixed_length
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
