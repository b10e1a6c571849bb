"""The scores of HierarchicalHyCal as nodes of an ONNX graph: a posterior over domains, then over their classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hycal.algebra.hierarchy import DomainGaussians, Reals
from hycal.algebra.hierarchy_covariance import ClassCovariances
from hycal.algebra.hierarchy_kernel import KernelRegression
from hycal.validation import Doubles, Floats

if TYPE_CHECKING:
    from hycal.encoders.onnx_graph import GraphBuilder


def hierarchical_scores(
    build: GraphBuilder,
    rows: str,
    domains: Sequence[DomainGaussians],
    kernels: Sequence[KernelRegression | None],
    covariances: Sequence[ClassCovariances | None],
    texts: Sequence[Floats | None],
    count_evidence: Sequence[Doubles],
    *,
    class_weights: Doubles,
    domain_weight: float,
) -> str:
    """Add the nodes that score unit rows; the classes come in the order of the model."""
    given = zip(domains, kernels, covariances, texts, count_evidence, class_weights, strict=True)
    parts = [_domain(build, rows, *part) for part in given]
    energies = build.node("Concat", *(energy for energy, _ in parts), axis=1)
    of_domains = build.node("LogSoftmax", build.node("Mul", energies, build.number(domain_weight)), axis=1)
    scores = [
        build.node("Add", within, build.node("Gather", of_domains, build.ints(number), axis=1))
        for number, (_, within) in enumerate(parts)
    ]
    order = np.argsort(np.concatenate([domain.columns for domain in domains]))
    return build.node("Gather", build.node("Concat", *scores, axis=1), build.ints(*order.tolist()), axis=1)


def _domain(
    build: GraphBuilder,
    rows: str,
    domain: DomainGaussians,
    kernel: KernelRegression | None,
    covariances: ClassCovariances | None,
    text: Floats | None,
    by_count: Doubles,
    weights: Reals,
) -> tuple[str, str]:
    """Return the log density of the best class, (n, 1), and the log posterior of classes within the domain."""
    white = build.affine(rows, domain.whitening.T, -domain.centre @ domain.whitening)
    (by_distance, by_direction), (offset, _) = domain.linear
    squares = build.node("ReduceSumSquare", white, axes=[1], keepdims=1)
    density = build.node("Sub", build.node("Mul", squares, build.number(-0.5)), build.number(domain.log_det))
    best = build.node("ReduceMax", build.affine(white, by_distance, offset), axes=[1], keepdims=1)
    alpha, beta, gamma, kappa, delta, eta = weights
    evidence = build.affine(white, alpha * by_distance + beta * by_direction, alpha * offset + eta * by_count)
    if kernel is not None:
        scale = 2.0 / kernel.variance
        exponents = build.affine(rows, scale * kernel.samples, np.full(len(kernel.samples), -scale))
        weighted = gamma * kernel.coefficients.T
        by_kernel = build.affine(build.node("Exp", exponents), weighted, np.zeros(len(weighted)))
        evidence = build.node("Add", evidence, by_kernel)
    if text is not None:
        evidence = build.node("Add", evidence, build.affine(rows, kappa * text, np.zeros(len(text))))
    if covariances is not None:
        evidence = build.node("Add", evidence, _by_covariance(build, rows, covariances, delta))
    return build.node("Add", density, best), build.node("LogSoftmax", evidence, axis=1)


def _by_covariance(build: GraphBuilder, rows: str, covariances: ClassCovariances, weight: float) -> str:
    """Return the weighted covariance evidence: the squares of each class are added by a product with ones."""
    forms, share = covariances.forms, -0.5 * weight
    factors = build.affine(rows, forms.factors, -forms.offsets)
    sizes = np.diff([*forms.starts, len(forms.factors)])
    of_class = np.repeat(np.eye(len(forms.bases)), sizes, axis=1) * (share * forms.signs)
    squares = build.affine(build.node("Mul", factors, factors), of_class, np.zeros(len(of_class)))
    constant = share * (forms.diagonals[:, 0] + forms.bases + covariances.log_dets)  # unit rows: |x|^2 = 1
    return build.node("Add", squares, build.affine(rows, share * forms.slopes, constant))
