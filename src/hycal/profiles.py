"""Named sets of parameters: the authors', the paper's, and ours. The sets are data, in `classifiers/profiles.toml`.

>>> from hycal.profiles import build, profiles
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


@cache
def _table() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    file = resources.files("hycal.classifiers") / "profiles.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


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
    if method not in METHODS:
        raise HyCalError(f"There is no method {method!r}; expected one of {', '.join(METHODS)}. Check the spelling.")
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
