"""The form of a setting file: the entries it may have, and the value that each must have."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hycal.errors import HyCalError

SAMPLING = ("own", "released")


@dataclass(frozen=True)
class _Field:
    """One entry of a file: its expected value in words, a test of it, and whether the entry may be missing."""

    words: str
    fits: Callable[[Any], bool]
    optional: bool = False


def check_form(where: str, content: Mapping[str, Any], form: Mapping[str, _Field]) -> None:
    """Raise an error if `content` lacks an entry of `form`, has another one, or a value that does not fit."""
    for key in content:
        if key not in form:
            raise HyCalError(f"{where} has the unknown entry {key!r}; expected {', '.join(form)}.")
    for key, entry in form.items():
        if key in content:
            check_entry(where, key, content[key], form)
        elif not entry.optional:
            raise HyCalError(f"{where} does not say {key!r}. Compare it with a setting of the package.")


def check_entry(where: str, key: str, value: object, form: Mapping[str, _Field]) -> None:
    """Raise an error if one value does not fit."""
    if not form[key].fits(value):
        raise HyCalError(f"{where} has {key} = {reprlib.repr(value)}; expected {form[key].words}.")


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _whole(value: object, least: int = 1) -> bool:
    return type(value) is int and value >= least  # True is an int to isinstance


def _list(value: object, of: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and bool(value) and all(map(of, value))


def _table(value: object, of: Callable[[str, Any], bool]) -> bool:
    return isinstance(value, dict) and all(of(key, part) for key, part in value.items())


def _different(values: list[Any]) -> bool:
    return all(values.count(value) == 1 for value in values)


def _seeds(value: Any) -> bool:
    return _list(value, lambda seed: _whole(seed, least=0)) and _different(value)


def _domains(value: Any) -> bool:
    return _list(value, lambda part: isinstance(part, dict)) and _different([part.get("name") for part in value])


def _shots(value: Any) -> bool:
    return _whole(value) or (bool(value) and _table(value, lambda seed, part: seed.isdecimal() and _list(part, _whole)))


def _base(value: Any) -> bool:
    return _table(value, lambda _, number: _whole(number)) and sorted(value) == ["classes", "shots"]


def _of_method(method: str, parameters: object) -> bool:
    from hycal.classifiers import METHODS  # late: `hycal bench --help` needs no method

    return method in METHODS and isinstance(parameters, dict)


def _one_of(*allowed: str, optional: bool = False) -> _Field:
    return _Field(f"one of {', '.join(allowed)}", lambda value: value in allowed, optional)


SETTING_FORM = {
    "title": _Field("a text", _text),
    "protocol": _one_of("CIL", "MTIL", "X-TAIL"),
    "source": _one_of("xd8", "embeddings"),
    "seeds": _Field("a list of different whole numbers such as [0, 1]", _seeds),
    "short": _one_of("with-replacement", "all-available"),
    "sampling": _one_of(*SAMPLING),
    "domains": _Field("[[domains]], at least one, each with a name of its own", _domains),
    "orders": _Field(
        'lists of domain names such as back = ["b", "a"]',
        lambda value: _table(value, lambda _, names: _list(names, _text)),
        optional=True,
    ),
    "parameters": _Field(
        "[parameters.METHOD] for methods of `hycal bench list`", lambda value: _table(value, _of_method), optional=True
    ),
    "views": _Field(
        "[views] with the width of each encoder, two or more, such as builtin = 512",
        lambda value: _table(value, lambda _, width: _whole(width)) and len(value) > 1,
        optional=True,
    ),
    "like": _Field("the name of a setting of the package", _text, optional=True),
    "tests": _one_of("every-step", "last-step", optional=True),
}
DOMAIN_FORM = {
    "name": _Field("a text", _text),
    "classes": _Field("a whole number, at least one class", _whole),
    "shots": _Field("a whole number, at least one shot, or [domains.shots] with a list for each seed", _shots),
    "draws": _one_of("random", "numpy", optional=True),
    "sessions": _Field("a whole number, at least one session", _whole, optional=True),
    "base": _Field("{ classes = 60, shots = 20 }, both at least one", _base, optional=True),
}
