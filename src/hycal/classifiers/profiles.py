"""Named sets of parameters: the authors', the paper's, and ours. The sets are data, in `classifiers/profiles.toml`.

>>> from hycal.classifiers.profiles import build, profiles
>>> profiles()["RanPAC"]
('official', 'hycal-paper', 'robust')
>>> build("RanPAC", profile="hycal-paper").n_components
1024
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from hycal.base import IncrementalClassifier
from hycal.classifiers import METHODS
from hycal.errors import HyCalError

_IMAGES_ALONE = {"fusion": "image", "zero_shot": "none"}


@cache
def _table() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    file = resources.files("hycal.classifiers") / "profiles.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def check_method(name: str) -> None:
    """Refuse a method that does not exist."""
    if name not in METHODS:
        raise HyCalError(f"There is no method {name!r}; expected one of {', '.join(METHODS)}. Check the spelling.")


def profiles() -> dict[str, tuple[str, ...]]:
    """Return the names of the profiles that each method has."""
    return {method: tuple(profile for profile, methods in _table().items() if method in methods) for method in METHODS}


def profile_parameters(method: str, profile: str) -> dict[str, Any]:
    """Return the parameters that a profile sets; the others keep the method's defaults.

    Examples
    --------
    >>> profile_parameters("HyCal", "official")
    {'rule': 'released'}
    """
    check_method(method)
    known = profiles()[method]
    if profile not in known:
        raise HyCalError(
            f"{method} has no profile {profile!r}; expected one of {', '.join(known)}. Choose one of these, or pass "
            "parameters to the class itself."
        )
    return dict(_table()[profile][method])


def build(method: str, *, profile: str = "official", **overrides: Any) -> IncrementalClassifier:
    """Return an unfitted classifier.

    Parameters
    ----------
    method : str
        One of `hycal.METHODS`.
    profile : str, default="official"
        One of `profiles()[method]`.
    **overrides
        Parameters that differ from the profile's.

    Raises
    ------
    HyCalError
        There is no such method, profile or parameter; it says which there are.
    """
    chosen = profile_parameters(method, profile)
    expected = METHODS[method]().get_params()
    unknown = sorted(set(overrides) - set(expected))
    if unknown:
        raise HyCalError(f"{method} has no parameter {unknown[0]!r}; expected one of {', '.join(expected) or 'none'}.")
    return METHODS[method](**{**chosen, **overrides})


def images_alone(method: str) -> dict[str, Any]:
    """Return the parameters with which a method that can use texts beside images does without.

    >>> images_alone("HyCal"), images_alone("GDA"), images_alone("NCM")
    ({'fusion': 'image'}, {'zero_shot': 'none'}, {})
    """
    known = METHODS[method]().get_params()
    return {name: value for name, value in _IMAGES_ALONE.items() if name in known}
