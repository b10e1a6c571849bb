"""The relative Mahalanobis distance against dense inverses, for queries and for learned samples without themselves."""

from __future__ import annotations

import numpy as np
import pytest

from hycal.algebra.relative_distance import RelativeDistance
from hycal.validation import unit_rows


@pytest.fixture(scope="module")
def relative(hierarchy):
    return RelativeDistance.of(hierarchy, ridge=0.05, hierarchy_ridge=0.5)


def dense_relative(records, x, left_out=None):
    """The relative distance from W = 0.95 S/v + 0.05 t I; `left_out` is the class of x and its count."""
    rows = [record.samples.rows.astype(float) for record in records.ordered]
    scatter = sum((r - r.mean(axis=0)).T @ (r - r.mean(axis=0)) for r in rows)
    v = sum(map(len, rows)) - len(rows)
    W = 0.95 * scatter / v + 0.05 * np.trace(scatter) / v / len(x) * np.eye(len(x))
    means = np.stack([r.mean(axis=0) for r in rows])
    if left_out is not None:
        own, count = left_out
        gap = x - means[own]
        W = W - count / (count - 1) * 0.95 / v * np.outer(gap, gap)
        means[own] = (count * means[own] - x) / (count - 1)
    middle, total = means.mean(axis=0), W + np.cov(means, rowvar=False)
    squares = np.einsum("cd,de,ce->c", x - means, np.linalg.inv(W), x - means)
    return 0.5 * ((x - middle) @ np.linalg.inv(total) @ (x - middle) - squares.min())


def test_relative_distance_of_queries(records, relative):
    X = unit_rows(np.random.default_rng(5).normal(size=(20, records.width))).astype(float)
    expected = [dense_relative(records, x) for x in X]
    np.testing.assert_allclose(relative(X), expected, rtol=1e-4, atol=1e-4)


def test_relative_distance_of_left_out_samples(records, relative, samples):
    expected = [
        dense_relative(records, x, (own, count))
        for x, own, count in zip(samples.X.astype(float), samples.own, samples.counts, strict=True)
    ]
    np.testing.assert_allclose(relative.held_out(samples), expected, rtol=1e-4, atol=1e-4)
