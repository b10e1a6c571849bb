"""Every law for every method, on streams that hypothesis draws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hycal import (
    GDA,
    KLDA,
    METHODS,
    NCM,
    SLDA,
    TEEN,
    DualRAIL,
    FeCAM,
    HyCal,
    LoRanPAC,
    PrimalRAIL,
    ProKeR,
    RanPAC,
    TipAdapter,
)
from hycal.base import IncrementalClassifier
from hycal.testing.laws import LAWS, BrokenLawError, check_laws
from hycal.testing.streams import Stream

SMALL = {
    "RanPAC": {"n_components": 64},
    "KLDA": {"n_components": 48},
    "PrimalRAIL": {"n_components": 64},
    "AnaCP": {"n_components": 32, "replay": 5},
    "LoRanPAC": {"n_components": None},
}
VARIANTS: dict[str, IncrementalClassifier] = {
    **{name: method(**SMALL.get(name, {})) for name, method in METHODS.items()},
    "HyCal concat released": HyCal(fusion="concat", rule="released", alpha=4),
    "HyCal image step": HyCal(fusion="image", alpha=4, beta=0),
    "HyCal average": HyCal(metric="average", reg=1e-2, gamma=0.1),
    "HyCal literal": HyCal(rule="literal", alpha=4),
    "NCM euclidean": NCM(metric="euclidean"),
    "TEEN others": TEEN(base="others", shift=0.5),
    "TEEN covariances": TEEN(base="others", metric="mahalanobis", ridge=1.0),
    "SLDA by domain": SLDA(covariance="domain", strength=5.0),
    "GDA alone": GDA(zero_shot="none"),
    "GDA by domain": GDA(covariance="domain", strength=5.0),
    "FeCAM shrunk off the diagonal": FeCAM(alpha1=10, alpha2=10),
    "FeCAM few-shot": FeCAM(variant="few-shot", alpha1=1),
    "RanPAC first task": RanPAC(n_components=2048, ridge="first-task"),
    "RanPAC joint": RanPAC(n_components=16, ridge="joint"),
    "RanPAC fixed": RanPAC(n_components=16, ridge=10.0),
    "LoRanPAC narrow": LoRanPAC(n_components=16),
    "LoRanPAC wide": LoRanPAC(n_components=64),
    "KLDA ensemble": KLDA(n_components=16, ensemble=3, reg=1e-2),
    "KLDA faithful": KLDA(n_components=48, mode="faithful"),
    "PrimalRAIL alone": PrimalRAIL(n_components=16, zero_shot="none"),
    "DualRAIL alone": DualRAIL(zero_shot="none"),
    "TipAdapter alone": TipAdapter(zero_shot="none"),
    "ProKeR alone": ProKeR(zero_shot="none", weight=1.0),
}


@st.composite
def streams(draw):
    shots = draw(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=1, max_size=3))
    if sum(map(len, shots)) < 2:
        shots = [*shots, [2, 1]]
    if draw(st.booleans()):
        shots[0][0] = 40  # more samples than dimensions
    return Stream.synthetic(draw(st.integers(0, 2**31)), shots=shots, width=draw(st.sampled_from([4, 8, 24])))


KEPT = [(variant, law) for variant, one in VARIANTS.items() for law in LAWS if law not in one.broken_laws]
BROKEN = [(variant, law) for variant, one in VARIANTS.items() for law in one.broken_laws]


@pytest.mark.parametrize(("variant", "law"), KEPT)
@given(stream=streams())
def test_law(variant, law, stream):
    LAWS[law](VARIANTS[variant], stream)


class _LastWins(HyCal):
    """A classifier with the faults the laws are there to find: a class seen again is overwritten."""

    def partial_fit(self, X, y, *, domain=None, text=None):
        if self._records is not None:
            known = [label for label in dict.fromkeys(y) if label in self._records.by_label]
            if known:
                self.forget(known)
        return super().partial_fit(X, y, domain=domain, text=text)


@pytest.mark.parametrize("law", ["split_invariance", "small_cases", "forgetting"])
def test_laws_find_a_class_that_is_overwritten(law):
    with pytest.raises((BrokenLawError, ValueError)):
        LAWS[law](_LastWins(), Stream.synthetic(0, shots=[[3, 4], [2]], width=8))


@pytest.mark.parametrize("variant", VARIANTS)
def test_declared_laws_exist_and_have_a_reason(variant):
    broken = VARIANTS[variant].broken_laws
    assert set(broken) <= set(LAWS)
    assert all(broken.values()), "say why"


@pytest.mark.parametrize(("variant", "law"), BROKEN)
def test_a_law_declared_broken_is_broken(variant, law):
    """A declaration that no stream bears out is as wrong as one that is missing."""
    shapes = ([[3, 5, 4, 6], [2, 9]], [[3, 1, 4], [2, 6]], [[7, 6, 8]], [[9] * 6, [1] * 4, [2] * 3], [[9] * 3])
    tries = [
        Stream.synthetic(seed, shots=shots, width=width) for seed in range(6) for shots in shapes for width in (4, 24)
    ]
    assert any(_breaks(VARIANTS[variant], law, stream) for stream in tries), f"{law} is kept after all"


def _breaks(classifier, law, stream):
    try:
        LAWS[law](classifier, stream)
    except BrokenLawError:
        return True
    return False


@pytest.mark.parametrize("law", LAWS)
def test_laws_can_be_checked_on_steps_of_one_sample(law):
    LAWS[law](HyCal(), Stream.synthetic(0, shots=[[1], [1]], width=8))


def test_check_laws_runs_them_all():
    check_laws(HyCal(metric="cosine"))
