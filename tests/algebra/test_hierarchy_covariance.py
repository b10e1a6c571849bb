"""The covariances of classes against dense log densities, and against densities without the sample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from hycal.algebra.hierarchy_covariance import ClassCovariances, covariances_pay
from hycal.validation import unit_rows

COUNTS = np.array([5, 1, 12, 2])
OWN = np.repeat(np.arange(4), COUNTS)


@pytest.fixture(scope="module", params=[6, 20], ids=["more samples than dimensions", "fewer"])
def samples(request):
    rng = np.random.default_rng(4)
    spread = rng.uniform(0.1, 0.9, size=(4, request.param))[OWN]
    return unit_rows(rng.normal(size=(4, request.param))[OWN] + spread * rng.normal(size=(len(OWN), request.param)))


def scatter(rows):
    return (rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0))


def mean_variance(samples, own):
    classes = [samples[own == c].astype(float) for c in range(4)]
    return sum(np.trace(scatter(rows)) for rows in classes) / (len(own) - 4) / samples.shape[1]


def dense(samples, own, X, t):
    """Log densities of the classes, (n, 4), as the module states them with t given."""
    d = samples.shape[1]
    tau, densities = 1 + 0.1 * d, []
    for c in range(4):
        rows = samples[own == c].astype(float)
        W = (scatter(rows) + tau * t * np.eye(d)) / (len(rows) - 1 + tau)
        densities.append(multivariate_normal(rows.mean(axis=0), W).logpdf(X.astype(float)).reshape(-1))
    return np.stack(densities, axis=1) + 0.5 * d * np.log(2 * np.pi * t)


def test_evidence_is_the_log_density_of_each_class(samples):
    X = unit_rows(np.random.default_rng(5).normal(size=(7, samples.shape[1])))
    expected = dense(samples, OWN, X, mean_variance(samples, OWN))
    np.testing.assert_allclose(ClassCovariances.fit(samples, OWN)(X), expected, rtol=1e-5, atol=1e-4)


def test_left_out_samples_leave_the_mean_and_the_covariance_of_their_class(samples):
    held_out = np.flatnonzero(COUNTS[OWN] > 1)
    evidence = ClassCovariances.fit(samples, OWN).without_each(samples[held_out], OWN[held_out])
    for row, at in enumerate(held_out):
        rest, t = np.arange(len(OWN)) != at, mean_variance(samples, OWN)
        again = dense(samples[rest], OWN[rest], samples[at : at + 1], t)
        np.testing.assert_allclose(evidence[row], again[0], rtol=1e-5, atol=1e-4)


def test_equal_samples_have_no_covariances():
    rows = unit_rows(np.random.default_rng(0).normal(size=(2, 6))).repeat(3, axis=0)
    assert ClassCovariances.fit(rows, np.array([0, 0, 0, 1, 1, 1])) is None


@pytest.mark.parametrize(
    ("shots", "classes", "width", "pay"),
    [
        (8, 10, 64, True),
        (7, 10, 64, False),
        (8, 1, 64, False),
        (1, 10, 4, False),
        (50, 10, 512, False),
        (64, 65, 512, True),
        (64, 66, 512, False),  # 4,158 rows
        (5000, 10, 64, True),
    ],
)
def test_covariances_need_many_samples_for_the_dimensions(shots, classes, width, pay):
    assert covariances_pay(np.full(classes, shots), width) == pay
