"""Profiles: data that builds, and errors that list what exists."""

from __future__ import annotations

import pytest

from hycal import METHODS, HyCalError
from hycal.classifiers.profiles import build, profiles


def test_every_profile_builds_valid_parameters():
    for method, names in profiles().items():
        for name in names:
            classifier = build(method, profile=name)
            assert type(classifier) is METHODS[method]
            classifier._check_params()


def test_every_method_has_its_authors_parameters():
    assert all("official" in names and "robust" in names for names in profiles().values())


def test_robust_profiles_keep_every_law():
    assert not any(build(method, profile="robust").broken_laws for method in METHODS)


def test_values_of_the_baseline_table():
    assert build("RanPAC").n_components == 10000
    assert build("KLDA").get_params() | {"ensemble": 5, "mode": "faithful"} == build("KLDA").get_params()
    assert build("KLDA", profile="hycal-paper").n_components == 1024
    assert build("PrimalRAIL").ridge == 0.1
    assert build("PrimalRAIL", n_components=64, zero_shot="none").n_components == 64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "Ranpac"}, "no method 'Ranpac'; expected one of HyCal, .*RanPAC"),
        ({"method": "RanPAC", "profile": "best"}, "no profile 'best'; expected one of official, hycal-paper, robust"),
        ({"method": "FeCAM", "profile": "hycal-paper"}, "expected one of official, robust"),
        ({"method": "RanPAC", "size": 3}, "no parameter 'size'; expected one of n_components"),
        ({"method": "ZeroShot", "size": 3}, "expected one of none"),
    ],
)
def test_unknown_names_list_what_exists(arguments, message):
    with pytest.raises(HyCalError, match=message):
        build(**arguments)
