"""Studies: named lists of methods, as data in `studies.toml`.

>>> [variant.label for variant in find_study("metrics").variants][:2]
['HyCal[metric=cosine]', 'HyCal[metric=mahalanobis]']
>>> len(find_study("alpha-beta").variants)
18
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from hycal.bench.methods import Variant, parse_variant
from hycal.classifiers import METHODS
from hycal.errors import HyCalError

_PREFIX = "study:"
_WORDS = re.compile(r"(?:\[[^\]]*\]|\S)+")  # white space inside brackets ends no word


@dataclass(frozen=True)
class Study:
    """A list of methods.

    Attributes
    ----------
    name : str
    variants : tuple of Variant
    apart : bool
        Whether it has tables of its own and stays out of those of a setting.
    vary : mapping
        The values of each parameter, where the study is a grid of HyCal's parameters.
    """

    name: str
    variants: tuple[Variant, ...]
    apart: bool
    vary: Mapping[str, Sequence[Any]]

    @property
    def labels(self) -> tuple[str, ...]:
        """The variants as they are written."""
        return tuple(variant.label for variant in self.variants)


@cache
def studies() -> Mapping[str, Study]:
    """Return every study by its name."""
    text = (resources.files("hycal.bench") / "studies.toml").read_text(encoding="utf-8")
    return {name: _read(name, entry) for name, entry in tomllib.loads(text).items()}


def find_study(name: str) -> Study:
    """Return a study by its name."""
    if name not in studies():
        raise HyCalError(f"There is no study {name!r}; expected one of {', '.join(studies())}.")
    return studies()[name]


def parse_methods(text: str) -> list[Variant]:
    """Return the variants that a list names: "all", METHOD, METHOD:PROFILE, METHOD[parameter=value], study:NAME.

    >>> [variant.label for variant in parse_methods("NCM study:fusion NCM")]
    ['NCM', 'HyCal[fusion=concat]']
    >>> [variant.label for variant in parse_methods("HyCal[metric=cosine, alpha=20] NCM")]
    ['HyCal[alpha=20,metric=cosine]', 'NCM']
    """
    listed: dict[str, Variant] = {}
    for word in _WORDS.findall(text):
        for variant in _expand(word):
            listed.setdefault(variant.label, variant)
    if not listed:
        raise HyCalError("No methods were named; expected all, or a list such as 'HyCal NCM study:metrics'.")
    return list(listed.values())


def shown_apart(label: str) -> bool:
    """Return whether a variant is tuned, or belongs to a study that has tables of its own."""
    return parse_variant(label).tuned or any(label in study.labels for study in studies().values() if study.apart)


def _expand(word: str) -> Sequence[Variant]:
    if word == "all":
        return [Variant(method) for method in METHODS]
    if word.startswith(_PREFIX):
        return find_study(word.removeprefix(_PREFIX)).variants
    return [parse_variant(word)]


def _read(name: str, entry: Mapping[str, Any]) -> Study:
    vary: Mapping[str, Sequence[Any]] = entry.get("vary", {})
    grid = (dict(zip(vary, values, strict=True)) for values in itertools.product(*vary.values())) if vary else ()
    variants = [*map(parse_variant, entry.get("methods", [])), *(Variant("HyCal", overrides=each) for each in grid)]
    return Study(name, tuple(variants), entry["apart"], vary)
