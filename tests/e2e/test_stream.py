"""What the methods must show on real embeddings; `python -m benchmarks.stream` prints the whole table."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.domains import learn_in_order, missing, stream
from hycal import GDA, KLDA, NCM, SLDA, DualRAIL, PrimalRAIL, RanPAC, TipAdapter, ZeroShot

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "the data are there")


@pytest.fixture(scope="module")
def cars():
    return stream(["cars"])


@pytest.fixture(scope="module")
def domains():
    return stream(["aircraft", "dtd", "flowers"], shots=8, queries=400)


@pytest.fixture(scope="module")
def nearest_mean(domains):
    return mean_accuracy(NCM(), domains)


def mean_accuracy(classifier, domains):
    learn_in_order(classifier, domains)
    return float(np.mean([domain.accuracy(classifier) for domain in domains]))


def test_zero_shot_on_cars(cars):
    assert mean_accuracy(ZeroShot(), cars) == pytest.approx(58.9, abs=0.2)


def test_text_and_images_together_beat_either():
    shots = stream(["cars"], shots=4)
    zero_shot = mean_accuracy(ZeroShot(), shots)
    for fused, alone in (
        (GDA(), GDA(zero_shot="none")),
        (TipAdapter(), TipAdapter(zero_shot="none")),
        (DualRAIL(), DualRAIL(zero_shot="none")),
    ):
        assert mean_accuracy(fused, shots) > max(zero_shot, mean_accuracy(alone, shots)), fused


@pytest.mark.parametrize(
    "classifier",
    [
        RanPAC(n_components=2000),
        PrimalRAIL(n_components=2000, zero_shot="none"),
        DualRAIL(zero_shot="none"),
        KLDA(n_components=1000),
        SLDA(),
        GDA(zero_shot="none"),
    ],
    ids=str,
)
def test_above_the_nearest_mean(classifier, domains, nearest_mean):
    assert mean_accuracy(classifier, domains) > nearest_mean + 1.0


def test_the_pseudo_inverse_collapses_while_samples_are_scarce(domains):
    """N - C = 700 of aircraft, 1029 with dtd: below 1100 features, and the regularised mode does not mind."""
    scarce = domains[:2]
    assert sum(len(domain.y) - len(set(domain.y)) for domain in scarce) < 1100
    for seen in (scarce[:1], scarce):
        assert mean_accuracy(KLDA(n_components=1100, mode="faithful"), seen) < 10.0
        assert mean_accuracy(KLDA(n_components=1100), seen) > 30.0


def test_the_pseudo_inverse_recovers_where_samples_are_plenty(domains):
    assert mean_accuracy(KLDA(n_components=300, mode="faithful"), domains) > 35.0
