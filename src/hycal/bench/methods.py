"""Which methods a run compares: variants of methods, and studies, which are named lists of variants.

A variant is written METHOD, METHOD:PROFILE or METHOD[parameter=value, ...], then +one-domain if the method is told one
domain for all classes, then +tuned. METHOD is a name of the registry, or MODULE:CLASS. Studies are data in
`studies.toml`.

>>> parse_variant("HyCal[metric=cosine,alpha=20]")
Variant(method='HyCal', profile='', overrides={'metric': 'cosine', 'alpha': 20}, one_domain=False, tuned=False)
>>> parse_variant("KLDA:hycal-paper").label
'KLDA:hycal-paper'
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
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from hycal.base import IncrementalClassifier
from hycal.bench.settings import Setting, load_setting
from hycal.classifiers import METHODS
from hycal.classifiers.registry import Method, import_method, profile_parameters
from hycal.errors import HyCalError
from hycal.testing.streams import Stream, learn

_LABEL = re.compile(
    r"(?P<method>[\w.]+:[A-Za-z_]\w*|\w+)(:(?P<profile>[\w-]+))?(\[(?P<overrides>[^\[\]]*)\])?"
    r"(?P<one_domain>\+one-domain)?(?P<tuned>\+tuned)?"
)
_WORDS = re.compile(r"(?:\[[^\]]*\]|\S)+")  # white space inside brackets does not end a word
_STUDY = "study:"
RANDOM_STATE = "random_state"


@dataclass(frozen=True)
class Variant:
    """A method and how it is run."""

    # The profile is "" for none.
    method: str
    profile: str = ""
    overrides: Mapping[str, Any] = field(default_factory=dict)  # parameters that differ from those of the profile
    one_domain: bool = False  # whether the method is told one domain for all classes, instead of the domain of each
    tuned: bool = False  # whether it is tuned at each step

    @property
    def kind(self) -> Method:
        """The class of the method."""
        return import_method(self.method) if ":" in self.method else METHODS[self.method]

    @property
    def label(self) -> str:
        """The variant as it is written."""
        profile = f":{self.profile}" if self.profile else ""
        listed = ",".join(f"{name}={value}" for name, value in sorted(self.overrides.items()))
        how = ("+one-domain" if self.one_domain else "") + ("+tuned" if self.tuned else "")
        return f"{self.method}{profile}" + (f"[{listed}]" if listed else "") + how

    def parameters(self, setting: Setting, *, text: bool, seed: int = 0) -> dict[str, Any]:
        """Return all parameters in a setting: the method's defaults, the setting's, the profile's, the overrides.

        The seed draws the random features of methods that have them (`random_state`). Where there are no text
        embeddings, parameters that ask for them are set to use images alone.
        """
        method = self.kind
        known = method().get_params(deep=False)
        chosen = {
            **known,
            **({RANDOM_STATE: seed} if RANDOM_STATE in known else {}),
            **setting.parameters.get(self.method, {}),
            **(profile_parameters(method, self.profile) if self.profile else {}),
            **self.overrides,
        }
        if not text:
            chosen |= method.without_text or {}
        if setting.views and "views" in known:
            chosen["views"] = tuple(setting.views.values())
        elif chosen.get("views", ()) is None:
            del chosen["views"]  # as in model files
        unknown = sorted(set(chosen) - set(known))
        if unknown:
            raise HyCalError(
                f"{self.method} has no parameter {unknown[0]!r}; expected one of {', '.join(known) or 'none'}."
            )
        return chosen

    def build(self, setting: Setting, *, text: bool, seed: int = 0) -> IncrementalClassifier:
        """Return the unfitted classifier."""
        return self.kind(**self.parameters(setting, text=text, seed=seed))

    def why_not(self, setting: Setting, *, text: bool) -> str:
        """Return why the variant cannot run in a setting, or ""."""
        if not text and self.kind.without_text is None:
            return f"{self.method} needs text embeddings, and there are none"
        if setting.views and "views" not in self.kind().get_params(deep=False):
            return f"{self.method} takes one encoder: {self.kind.one_view_because}"
        return ""


def parse_variant(label: str) -> Variant:
    """Return the variant that `label` names, or raise an error that says what is wrong with it."""
    match = _LABEL.fullmatch(label.strip())
    if match is None:
        raise HyCalError(
            f"{label!r} is not a method; expected METHOD, MODULE:CLASS, METHOD:PROFILE or METHOD[parameter=value], "
            "then +one-domain, then +tuned."
        )
    name, profile = _name_and_profile(match["method"], match["profile"] or "")
    method = import_method(name) if ":" in name else METHODS.find(name)
    if profile:
        profile_parameters(method, profile)
    overrides = dict(_assignment(label, part) for part in (match["overrides"] or "").split(",") if part.strip())
    return Variant(
        name if ":" in name else method.__name__,
        profile,
        overrides,
        one_domain=bool(match["one_domain"]),
        tuned=bool(match["tuned"]),
    )


def _name_and_profile(name: str, profile: str) -> tuple[str, str]:
    """Tell METHOD:PROFILE from MODULE:CLASS: before the colon of the first stands a method of the registry.

    >>> _name_and_profile("RanPAC:paper", ""), _name_and_profile("mine:Mine", "robust")
    (('RanPAC', 'paper'), ('mine:Mine', 'robust'))
    """
    first, colon, second = name.partition(":")
    if colon and not profile and first.lower() in {known.lower() for known in METHODS}:
        return first, second
    return name, profile


def _assignment(label: str, text: str) -> tuple[str, Any]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not name or not equals or not value:
        raise HyCalError(f"{label!r}: {text.strip()!r} sets nothing; expected parameter=value.")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value


@dataclass(frozen=True)
class Study:
    """A named list of variants."""

    name: str
    variants: tuple[Variant, ...]
    apart: bool  # whether the report shows it in tables of its own, and not in those of a setting
    # The values of each parameter, where the study is a grid of the parameters of one method.
    vary: Mapping[str, Sequence[Any]]

    @property
    def labels(self) -> tuple[str, ...]:
        """The variants as they are written."""
        return tuple(variant.label for variant in self.variants)


@cache
def studies() -> Mapping[str, Study]:
    """Return every study by its name."""
    text = (resources.files("hycal.bench") / "studies.toml").read_text(encoding="utf-8")
    return {name: _read_study(name, entry) for name, entry in tomllib.loads(text).items()}


def _read_study(name: str, entry: Mapping[str, Any]) -> Study:
    vary: Mapping[str, Sequence[Any]] = entry.get("vary", {})
    variants = [parse_variant(method) for method in entry.get("methods", [])]
    if vary:
        grid = (dict(zip(vary, values, strict=True)) for values in itertools.product(*vary.values()))
        variants += [Variant(entry["method"], overrides=each) for each in grid]
    listed = {variant.method for variant in variants}
    for method in METHODS if entry.get("others") else ():
        if method not in listed:
            variants += [Variant(method), *([Variant(method, tuned=True)] if METHODS[method].tuning_grid else [])]
    if entry.get("tuned"):
        variants += [Variant(method, tuned=True) for method in METHODS if METHODS[method].tuning_grid]
    return Study(name, tuple(variants), entry["apart"], vary)


def find_study(name: str) -> Study:
    """Return a study by its name."""
    if name not in studies():
        raise HyCalError(f"There is no study {name!r}; expected one of {', '.join(studies())}.")
    return studies()[name]


def shown_apart(label: str) -> bool:
    """Return whether a variant is tuned or told one domain, or belongs to a study that has tables of its own."""
    variant = parse_variant(label)
    return (
        variant.tuned or variant.one_domain or any(label in study.labels for study in studies().values() if study.apart)
    )


@cache
def knows_domains(label: str) -> bool:
    """Return whether the scores of a variant depend on the domains that classes are learned under.

    A small stream is learned twice, under three domains and under one.

    >>> knows_domains("NCM"), knows_domains("HierarchicalHyCal"), knows_domains("HierarchicalHyCal+one-domain")
    (False, True, False)
    """
    variant = parse_variant(label)
    stream = Stream.synthetic(0, shots=[[4, 4, 4]] * 3, width=8)
    one = stream.map(lambda step: replace(step, domain="all"))
    untaught = variant.build(load_setting("xd8-high-scale"), text=True)
    named, unnamed = (
        learn(untaught.with_parameters(), each.steps).decision_function(stream.queries) for each in (stream, one)
    )
    return not variant.one_domain and not np.array_equal(named, unnamed)


def parse_methods(text: str) -> list[Variant]:
    """Return the variants that a list names, each once: "all", a variant, or study:NAME.

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


def _expand(word: str) -> Sequence[Variant]:
    if word == "all":
        return [Variant(method) for method in METHODS]
    if word.startswith(_STUDY):
        return find_study(word.removeprefix(_STUDY)).variants
    return [parse_variant(word)]
