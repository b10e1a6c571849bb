"""The kernel regression against dense matrices in float64, and against regressions without the sample."""

from __future__ import annotations

import numpy as np
import pytest

from hycal.algebra.hierarchy_kernel import KernelRegression, kernel_operations, kernel_pays
from hycal.validation import unit_rows

OWN = np.repeat(np.arange(3), [5, 2, 8])


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(4)
    return unit_rows(rng.normal(size=(3, 6))[OWN] + 0.7 * rng.normal(size=(len(OWN), 6)))


def dense(samples, own, X, variance, ridges):
    """f of X as the module states it, with t and r D given."""
    S, Q = samples.astype(float), X.astype(float)
    K, k = (np.exp(-((A[:, None] - S) ** 2).sum(axis=2) / variance) for A in (S, Q))
    return k @ np.linalg.inv(K + np.diag(ridges)) @ np.eye(3)[own]


RIDGES = 0.2 * np.array([5, 2, 8])[OWN] / 5  # five samples of a class on average


def test_regression_is_that_of_the_dense_matrices(samples):
    regression = KernelRegression.fit(samples, OWN)
    variance = np.mean(np.sum((samples - samples.mean(axis=0)) ** 2, axis=1))
    X = unit_rows(np.random.default_rng(5).normal(size=(7, 6)))
    np.testing.assert_allclose(regression(X), dense(samples, OWN, X, variance, RIDGES), atol=1e-5)


def test_left_out_samples_are_predicted_by_a_regression_without_them(samples):
    held_out = np.array([0, 5, 6, 14])
    regression = KernelRegression.fit(samples, OWN)
    f = regression.without_each(samples[held_out], OWN[held_out])
    for row, at in enumerate(held_out):
        rest = np.arange(len(OWN)) != at
        again = dense(samples[rest], OWN[rest], samples[at : at + 1], regression.variance, RIDGES[rest])
        np.testing.assert_allclose(f[row], again[0], atol=1e-5)


def test_equal_samples_have_a_regression():
    """The product of a unit vector with itself is 1 up to rounding."""
    rows = unit_rows(np.random.default_rng(0).normal(size=(300, 50)))
    longest = rows[np.einsum("nd,nd->n", rows, rows).argmax()]
    same, own = np.tile(longest, (4, 1)), np.array([0, 0, 1, 1])
    regression = KernelRegression.fit(same, own)
    assert np.abs(regression(rows)).max() < 2.0 and np.abs(regression.without_each(same, own)).max() < 2.0


@pytest.mark.parametrize(
    ("count", "classes", "pays"),
    [
        (5, 1, False),
        (2, 2, True),
        (1024, 1000, True),
        (1985, 397, False),
        (3136, 196, True),
        (1960, 196, False),
        (5000, 10, False),
    ],
)
def test_large_domains_need_many_images_of_a_class(count, classes, pays):
    assert kernel_pays(count, classes) == pays
    assert (kernel_operations(count, classes, 512) > 0) == pays
