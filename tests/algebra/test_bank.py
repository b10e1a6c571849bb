"""The packed Gaussians against one dense inverse for each class."""

from __future__ import annotations

import numpy as np
import pytest

from hycal.algebra.bank import GaussianBank
from hycal.algebra.fusion import FUSIONS
from hycal.algebra.gaussians import GaussianOptions
from hycal.state.records import ClassRecord
from hycal.state.samples import ClassSamples
from hycal.validation import unit_rows

WIDTH, LAMBDA = 12, 0.05


@pytest.fixture(params=sorted(FUSIONS))
def options(request):
    return GaussianOptions(FUSIONS[request.param], a=1 - LAMBDA, delta=LAMBDA)


@pytest.fixture(scope="module")
def members():
    """Classes of 1 to 30 samples: fewer than dimensions, as many, and more."""
    rng = np.random.default_rng(3)
    return [
        ClassRecord(
            ClassSamples.of(unit_rows(1.0 + rng.normal(size=(count, WIDTH)))),
            "",
            unit_rows(rng.normal(size=(1, 12)))[0],
        )
        for count in (5, 1, 12, 2, 30, 5, 13, 1)
    ]


@pytest.fixture(scope="module")
def queries():
    return unit_rows(1.0 + np.random.default_rng(4).normal(size=(9, WIDTH)))


def dense(members, queries, options):
    """Cosine and delta times the squared distance from R^-1, shape (C, n) each."""
    cosines, distances = [], []
    for member in members:
        text = member.text.astype(float)
        z = options.fusion.fuse(member.samples.rows.astype(float), text)
        mu = z.mean(axis=0) / np.linalg.norm(z.mean(axis=0))
        S = (z - mu).T @ (z - mu) / max(len(z) - 1, 1) if len(z) > 1 else np.zeros((z.shape[1], z.shape[1]))
        precision = np.linalg.inv(options.a * S + options.delta * np.eye(z.shape[1]))
        q = options.fusion.fuse(queries.astype(float), text)
        cosines.append(q @ mu)
        distances.append(options.delta * np.einsum("nd,de,ne->n", q - mu, precision, q - mu))
    return np.array(cosines), np.array(distances)


def check(bank, members, queries):
    cosines, closeness = bank.evaluate(queries)
    expected_cosines, expected_distances = dense(members, queries, bank.options)
    np.testing.assert_allclose(cosines, expected_cosines[bank.order], atol=1e-6)
    np.testing.assert_allclose(closeness, -expected_distances[bank.order], atol=2e-6)


def test_measures_are_those_of_the_dense_inverse(members, queries, options):
    check(GaussianBank.build(members, options), members, queries)


def test_a_subset_in_any_order(members, queries, options):
    chosen = np.array([6, 0, 3, 4])
    check(GaussianBank.build(members, options).subset(chosen), [members[i] for i in chosen], queries)


def test_known_classes_are_copied_to_the_bit(members, options):
    changed = [members[7], *members[:3], *members[4:]]
    previous = GaussianBank.build(members[1:], options)
    copied, fresh = GaussianBank.build(changed, options, previous=previous), GaussianBank.build(changed, options)
    for name in ("order", "starts", "means", "lengths", "terms", "factors"):
        assert getattr(copied, name).tobytes() == getattr(fresh, name).tobytes()


def test_a_bank_of_other_options_is_not_copied(members, queries, options):
    other = GaussianOptions(options.fusion, a=0.5, delta=0.5)
    check(GaussianBank.build(members, options, previous=GaussianBank.build(members, other)), members, queries)
