"""Every law for every method, on streams that hypothesis draws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hycal import METHODS, HyCal
from hycal.base import IncrementalClassifier
from hycal.laws import LAWS, BrokenLawError, check_laws
from hycal.streams import Stream

VARIANTS: dict[str, IncrementalClassifier] = {
    **{name: method() for name, method in METHODS.items()},
    "HyCal concat released": HyCal(fusion="concat", rule="released", alpha=4),
    "HyCal image step": HyCal(fusion="image", alpha=4, beta=0),
    "HyCal average": HyCal(metric="average", reg=1e-2, gamma=0.1),
}


@st.composite
def streams(draw):
    shots = draw(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=1, max_size=3))
    if sum(map(len, shots)) < 2:
        shots = [*shots, [2, 1]]
    if draw(st.booleans()):
        shots[0][0] = 40  # more samples than dimensions
    return Stream.synthetic(draw(st.integers(0, 2**31)), shots=shots, width=draw(st.sampled_from([4, 8, 24])))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_law(variant, law):
    classifier = VARIANTS[variant]
    if law in classifier.broken_laws:
        pytest.skip(f"declared broken: {classifier.broken_laws[law]}")

    @given(streams())
    def check(stream):
        LAWS[law](classifier, stream)

    check()


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


def test_declared_laws_exist():
    for method in METHODS.values():
        assert set(method.broken_laws) <= set(LAWS)
        assert all(method.broken_laws.values()), "say why"


def test_check_laws_runs_them_all():
    check_laws(HyCal(metric="cosine"))
