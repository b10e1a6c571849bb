"""Profiles: data that builds, and errors that list what exists."""

from __future__ import annotations

import pytest

from hycal import METHODS, HyCalError


def test_every_profile_builds_valid_parameters():
    for name, method in METHODS.items():
        for profile in method.profiles:
            classifier = METHODS.build(name, profile=profile)
            assert type(classifier) is method
            classifier.check_parameters()


def test_every_method_has_its_authors_parameters():
    assert all({"official", "robust"} <= set(method.profiles) for method in METHODS.values())


def test_robust_profiles_keep_every_law():
    assert not any(METHODS.build(method, profile="robust").broken_laws for method in METHODS)


def test_values_of_the_baseline_table():
    assert METHODS.build("RanPAC").n_components == 10000
    assert (
        METHODS.build("KLDA").get_params() | {"ensemble": 5, "mode": "faithful"} == METHODS.build("KLDA").get_params()
    )
    assert METHODS.build("KLDA", profile="hycal-paper").n_components == 1024
    assert METHODS.build("PrimalRAIL").ridge == 0.1
    assert METHODS.build("PrimalRAIL", n_components=64, zero_shot="none").n_components == 64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "Ranpack"}, "no method 'Ranpack'; expected one of HyCal, .*RanPAC"),
        ({"name": "RanPAC", "profile": "best"}, "no profile 'best'; expected one of official, hycal-paper, robust"),
        ({"name": "FeCAM", "profile": "hycal-paper"}, "expected one of official, robust"),
        ({"name": "RanPAC", "size": 3}, "no parameter 'size'; expected one of n_components"),
        ({"name": "ZeroShot", "size": 3}, "expected one of none"),
    ],
)
def test_unknown_names_list_what_exists(arguments, message):
    with pytest.raises(HyCalError, match=message):
        METHODS.build(**arguments)
