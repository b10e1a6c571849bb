"""Factors and their inverses by blocks agree with LAPACK's, at sizes around whole numbers of blocks."""

import numpy as np
import pytest
from scipy.linalg.lapack import dtrtri

from hycal.algebra.cholesky import factorise, inverse_factor, times_upper

SIZES = (1, 63, 64, 65, 200)


def positive_definite(size: int) -> np.ndarray:
    rows = np.random.default_rng(size).standard_normal((size, size))
    return rows @ rows.T / size + 0.1 * np.eye(size)


@pytest.mark.parametrize("size", SIZES)
def test_the_factor_is_that_of_lapack(size):
    A = positive_definite(size)
    expected = np.linalg.cholesky(A)
    L = factorise(A)
    assert L is A
    np.testing.assert_allclose(L, expected, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_the_inverse_of_the_factor_is_that_of_lapack(size):
    L = np.linalg.cholesky(positive_definite(size))
    np.testing.assert_allclose(inverse_factor(L), dtrtri(L, lower=1)[0], atol=1e-11)


def test_single_precision_stays_single():
    A = positive_definite(100).astype(np.float32)
    inverse = inverse_factor(factorise(A.copy()))
    assert inverse.dtype == np.float32
    np.testing.assert_allclose(inverse.T @ inverse, np.linalg.inv(A.astype(np.float64)), atol=1e-3)


def test_a_matrix_that_is_not_positive_definite_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        factorise(positive_definite(100) - 0.5 * np.eye(100))


@pytest.mark.parametrize("size", SIZES)
def test_a_product_with_a_triangle_is_the_whole_product(size):
    rng = np.random.default_rng(size)
    X, U = rng.standard_normal((7, size)), np.triu(rng.standard_normal((size, size)))
    np.testing.assert_allclose(times_upper(X, U), X @ U, atol=1e-12)
    assert times_upper(X.astype(np.float32), U.astype(np.float32)).dtype == np.float32
