"""Packed quadratic forms against their dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

from hycal.algebra.quadratic_forms import Quadratic, QuadraticBank

WIDTH = 7


def form(rng, rank):
    return Quadratic(
        centre=rng.normal(size=WIDTH),
        diagonal=rng.uniform(0.1, 2.0, WIDTH),
        factors=rng.normal(size=(rank, WIDTH)),
        signs=rng.choice([-1.0, 1.0], rank),
    )


def dense(form):
    """The matrix of a form, (d, d)."""
    return np.diag(form.diagonal) + (form.factors.T * form.signs) @ form.factors


@pytest.mark.parametrize("ranks", [[0], [3], [0, 2, 0, 9, 1]])
def test_values_are_those_of_the_dense_matrices(ranks):
    rng = np.random.default_rng(0)
    forms = [form(rng, rank) for rank in ranks]
    X = rng.normal(size=(11, WIDTH))
    expected = np.stack([np.einsum("nd,de,ne->n", X - f.centre, dense(f), X - f.centre) for f in forms], axis=1)
    np.testing.assert_allclose(QuadraticBank.of(forms)(X), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose([[f.at(x) for f in forms] for x in X], expected, rtol=1e-9, atol=1e-9)
