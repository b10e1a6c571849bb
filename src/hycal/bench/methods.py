"""Methods as the benchmark names them: METHOD, METHOD:PROFILE, METHOD[parameter=value, ...], any of them +tuned.

>>> parse_variant("HyCal[metric=cosine,alpha=20]")
Variant(method='HyCal', profile='', overrides={'metric': 'cosine', 'alpha': 20}, tuned=False)
>>> parse_variant("KLDA:hycal-paper").label
'KLDA:hycal-paper'
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hycal.base import IncrementalClassifier
from hycal.bench.settings import Setting
from hycal.classifiers import METHODS
from hycal.classifiers.profiles import check_method, images_alone, profile_parameters
from hycal.errors import HyCalError

_LABEL = re.compile(r"(?P<method>\w+)(:(?P<profile>[\w-]+))?(\[(?P<overrides>[^\[\]]*)\])?(?P<tuned>\+tuned)?")
NEEDS_TEXT = ("ZeroShot",)


@dataclass(frozen=True)
class Variant:
    """A method, a profile of it ("" for none), parameters that differ from it, and whether it is tuned at each step."""

    method: str
    profile: str = ""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    tuned: bool = False

    @property
    def label(self) -> str:
        """The variant as it is written."""
        profile = f":{self.profile}" if self.profile else ""
        listed = ",".join(f"{name}={value}" for name, value in sorted(self.overrides.items()))
        return f"{self.method}{profile}" + (f"[{listed}]" if listed else "") + ("+tuned" if self.tuned else "")

    def parameters(self, setting: Setting, *, text: bool) -> dict[str, Any]:
        """Return all parameters in a setting: the method's defaults, the setting's, the profile's, the overrides.

        Where there are no text embeddings, parameters that ask for them are set to use images alone.
        """
        known = METHODS[self.method]().get_params(deep=False)
        chosen = {
            **known,
            **setting.parameters.get(self.method, {}),
            **(profile_parameters(self.method, self.profile) if self.profile else {}),
            **self.overrides,
        }
        if not text:
            chosen |= images_alone(self.method)
        unknown = sorted(set(chosen) - set(known))
        if unknown:
            raise HyCalError(
                f"{self.method} has no parameter {unknown[0]!r}; expected one of {', '.join(known) or 'none'}."
            )
        return chosen

    def build(self, setting: Setting, *, text: bool) -> IncrementalClassifier:
        """Return the unfitted classifier."""
        return METHODS[self.method](**self.parameters(setting, text=text))

    def why_not(self, *, text: bool) -> str:
        """Return why the variant cannot run, or ""."""
        if not text and self.method in NEEDS_TEXT:
            return f"{self.method} needs text embeddings, and there are none"
        return ""


def parse_variant(label: str) -> Variant:
    """Return the variant that `label` names, or say what is wrong with it."""
    match = _LABEL.fullmatch(label.strip())
    if match is None:
        raise HyCalError(
            f"{label!r} is not a method; expected METHOD, METHOD:PROFILE or METHOD[parameter=value], and +tuned."
        )
    check_method(match["method"])
    if match["profile"]:
        profile_parameters(match["method"], match["profile"])
    overrides = dict(_assignment(label, part) for part in (match["overrides"] or "").split(",") if part.strip())
    return Variant(match["method"], match["profile"] or "", overrides, tuned=bool(match["tuned"]))


def _assignment(label: str, text: str) -> tuple[str, Any]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not name or not equals or not value:
        raise HyCalError(f"{label!r}: {text.strip()!r} sets nothing; expected parameter=value.")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value
