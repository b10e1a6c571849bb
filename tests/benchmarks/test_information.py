"""The estimators of mutual information on data whose information is known, and the paper's independence statement."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, spearmanr

from benchmarks.information import between, between_given, with_label
from benchmarks.theory import directions_and_norms, noisy_pairs

N = 4000
TOLERANCE = 0.03  # nats; the estimators' standard deviation at N is below 0.012 here


def two_classes(a, b, seed=0):
    """L fair, C and M Gaussian around a L and b L with unit variance, independent given L."""
    rng = np.random.default_rng(seed)
    label = np.arange(N) % 2 == 1
    return label, a * label + rng.normal(size=N), b * label + rng.normal(size=N)


def known(separation):
    """I(L; X) for two unit Gaussians so far apart, by integration."""

    def density(x):
        return 0.5 * (norm.pdf(x) + norm.pdf(x - separation))

    entropy = quad(lambda x: -density(x) * np.log(density(x)), -10, 10 + separation, limit=200)[0]
    return entropy - 0.5 * np.log(2 * np.pi * np.e)


@pytest.mark.parametrize(("a", "b"), [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (2.0, 1.0), (3.0, 2.0)])
def test_information_with_a_label_is_the_known_one(a, b):
    label, C, M = two_classes(a, b)
    assert with_label(label, C) == pytest.approx(known(a), abs=TOLERANCE)
    assert with_label(label, M) == pytest.approx(known(b), abs=TOLERANCE)
    assert with_label(label, C, M) == pytest.approx(known(np.hypot(a, b)), abs=TOLERANCE)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_information_between_gaussians_is_the_known_one(rho):
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, N))
    assert between(x, rho * x + np.sqrt(1 - rho**2) * noise) == pytest.approx(-0.5 * np.log(1 - rho**2), abs=TOLERANCE)


def test_the_pair_tells_at_least_as_much_as_each_alone():
    for a, b in [(1.0, 1.0), (2.0, 0.5), (0.3, 2.0)]:
        label, C, M = two_classes(a, b)
        assert with_label(label, C, M) > max(with_label(label, C), with_label(label, M)) - TOLERANCE


def test_chain_rule_in_its_symmetric_form():
    """I(L; C, M) = I(L; C) + I(L; M) + I(C; M | L) - I(C; M), every term estimated apart."""
    label, C, M = two_classes(2.0, 1.5)
    both = with_label(label, C) + with_label(label, M) + between_given(C, M, label) - between(C, M)
    assert with_label(label, C, M) == pytest.approx(both, abs=2 * TOLERANCE)


def test_what_repeats_or_is_noise_adds_nothing():
    label, C, noise = two_classes(1.5, 0.0)
    alone = with_label(label, C)
    assert with_label(label, C, np.exp(C)) == pytest.approx(alone, abs=TOLERANCE)
    assert with_label(label, C, noise) == pytest.approx(alone, abs=TOLERANCE)


def test_monotone_maps_change_nothing():
    label, C, M = two_classes(1.0, 1.0)
    assert with_label(label, np.exp(C), M**3) == pytest.approx(with_label(label, C, M), abs=1e-9)


def test_shuffled_labels_carry_nothing():
    label, C, M = two_classes(2.0, 2.0)
    shuffled = np.random.default_rng(1).permutation(label)
    assert with_label(shuffled, C, M) == pytest.approx(0.0, abs=TOLERANCE)


@pytest.mark.parametrize("d", [2, 16, 512])
def test_direction_and_norm_of_an_isotropic_gaussian_are_independent(d):
    """R and any coordinate of U, and its square: no correlation, no information. |rho| < 3.5/sqrt(N) by chance."""
    R, U = directions_and_norms(N, d, seed=0)
    for of_direction in (U, U**2):
        assert abs(spearmanr(R, of_direction).statistic) < 3.5 / np.sqrt(N)
        assert between(R, of_direction) == pytest.approx(0.0, abs=TOLERANCE)


def test_direction_and_norm_of_another_gaussian_are_not():
    """The check can fail: with one direction longer than the others, the norm tells the direction."""
    R, U = directions_and_norms(N, 16, seed=0, stretch=4.0)
    assert between(R, U**2) > 0.1


def test_cosine_and_mahalanobis_are_not_functions_of_direction_and_norm_alone():
    """The theorem's premise C = f(U), M = g(R) fails under its own model: C falls with M, the more the noise."""
    weak, strong = (noisy_pairs(N, 64, noise=noise, seed=0) for noise in (0.25, 1.0))
    assert spearmanr(*weak).statistic < -0.3
    assert between(*strong) > 0.05


def test_unit_embeddings_make_isotropic_mahalanobis_a_function_of_the_cosine():
    C, M = noisy_pairs(N, 64, noise=0.5, seed=0, unit=True)
    np.testing.assert_allclose(M**2, (2 - 2 * C) * 64 / 0.25, rtol=1e-9)
    assert spearmanr(C, M).statistic == pytest.approx(-1.0)
