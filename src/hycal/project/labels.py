"""Labels `domain/class`: making and splitting them, checking names that people type, and looking up what a name means.

Folders may have any name. A typed name must be one that can be typed again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hycal.errors import HyCalError, did_you_mean
from hycal.project.examples import ClassExamples
from hycal.project.state import State
from hycal.validation import Label, normal_name

LONGEST_NAME = 200
TargetKind = Literal["class", "domain", "image"]
_SHORTEST_HASH = 8


def class_label(domain: str, name: str) -> str:
    """Return the label of a class: `domain/class`.

    Examples
    --------
    >>> class_label("flower", "rose")
    'flower/rose'
    """
    return f"{domain}/{name}"


def split_label(label: Label) -> tuple[str, str]:
    """Return domain and class of a label; the domain is "" if the label has none.

    >>> split_label("flower/rose"), split_label("rose")
    (('flower', 'rose'), ('', 'rose'))
    """
    domain, slash, name = str(label).partition("/")
    return (domain, name) if slash else ("", domain)


def check_class_name(label: str) -> None:
    """Refuse labels that are not `domain/class`, too long, or not printable."""
    if not all(map(_is_name, split_label(label))):
        raise HyCalError(f"{label!r} is not a class; expected domain/class, such as flower/tulip.")
    check_length(label)


def check_name(name: str) -> None:
    """Refuse a name that a domain, or a class without its domain, cannot have."""
    if not _is_name(name) or "/" in name:
        raise HyCalError(
            f"{name!r} cannot be a name; expected visible characters, no slash, and no space at either end."
        )


def check_length(label: str) -> None:
    """Refuse a label of more than `LONGEST_NAME` characters."""
    if len(label) > LONGEST_NAME:
        raise HyCalError(f"A class name has {len(label)} characters; expected {LONGEST_NAME} at most.")


def _is_name(text: str) -> bool:
    return bool(text) and text == text.strip() and text.isprintable()


@dataclass(frozen=True)
class Target:
    """What a name refers to: its kind, its full name, and its images, as identities by label.

    Examples
    --------
    >>> Target("class", "flower/rose", {"flower/rose": (b"12",)}).name
    'flower/rose'
    """

    kind: TargetKind
    name: str
    images: Mapping[Label, tuple[bytes, ...]]


def find(state: State, name: str) -> Target:
    """Return the class, domain or image called `name`.

    The name of a class is `domain/class`, or the class alone if nothing else has that name. The name of a domain may
    end in a slash. The name of an image is its content hash, at least 8 hexadecimal digits of it, or its file name.

    Examples
    --------
    >>> from hycal import HyCalError
    >>> from hycal.project import Space, empty_state
    >>> try:
    ...     find(empty_state(Space("builtin", None, 512), has_text=False), "rose")
    ... except HyCalError as error:
    ...     print("rose" in str(error))
    True
    """
    found = look_up(state, name)
    if found is None:
        raise HyCalError(f"There is no class, domain or image {name!r} in this model.{_guess(state, name)}")
    return found


def look_up(state: State, name: str) -> Target | None:
    """Return the class, domain or image called `name`, or None; as `find`."""
    found, domain = look_up_class(state, name), _domain(state, name.removesuffix("/"))
    if found is not None and domain is not None and found.name != name:
        raise HyCalError(
            f"{name!r} is a domain, and the class {found.name} has that name too. Write {f'{name}/'!r} for the domain, "
            f"or {found.name!r} for the class."
        )
    return found or domain or _image(state, name)


def find_class(state: State, name: str) -> Target:
    """Return the class called `name`.

    Examples
    --------
    >>> import numpy as np
    >>> from hycal.project import Arrival, Example, Space, empty_state
    >>> from hycal.project.changes import learn
    >>> arrival = Arrival("flower/rose", Example(np.array([1.0, 0.0], np.float32), name="1.jpg"))
    >>> state, _ = learn(empty_state(Space("mine", None, 2), has_text=False), [arrival])
    >>> find_class(state, "rose").name
    'flower/rose'
    """
    found = look_up_class(state, name)
    if found is None:
        raise HyCalError(f"There is no class {name!r} in this model.{_guess(state, name)}")
    return found


def image(state: State, identity: bytes) -> Target:
    """Return the image of this content hash, in every class that has it: in a model learned elsewhere, several may."""
    if identity not in state.label_of:
        raise HyCalError(f"The model does not know the image {identity.hex()[:12]}, so nothing was changed.")
    several = len(state.label_of) < state.n_images
    labels = [label for label in state.labels if several and _holds(state.classes[label], identity)]
    return Target("image", identity.hex(), dict.fromkeys(labels or [state.label_of[identity]], (identity,)))


def _holds(class_: ClassExamples, identity: bytes) -> bool:
    return any(example.identity == identity for example in class_.examples)


def own_labels(state: State, names: Iterable[Label]) -> dict[Label, Label]:
    """Return for each name the class that has it, compared in composed form; the composed form if it is new."""
    asked = dict.fromkeys(names)
    ascii_only = all(str(name).isascii() for name in asked)
    known: dict[str, Label] = {} if ascii_only else {normal_name(str(label)): label for label in state.labels}
    return {
        name: name
        if isinstance(name, int) or name in state.classes
        else known.get(normal_name(name), normal_name(name))
        for name in asked
    }


def look_alikes(state: State) -> list[list[str]]:
    """Return the classes, and the domains, whose names differ only in the form of their characters."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in (*(f"{domain}/" for domain in state.domains), *map(str, state.labels)):
        groups[normal_name(name)].append(name)
    return [group for group in groups.values() if len(group) > 1]


def look_up_class(state: State, name: str) -> Target | None:
    """Return the class called `name`, or None; as `find`."""
    by_name = {str(label): label for label in state.labels}
    own = str(own_labels(state, [name])[name])
    if own in by_name:
        return _whole("class", own, state, [by_name[own]])
    short = _short(state, name)
    if len(short) > 1:
        raise HyCalError(
            f"{name!r} is a class of {len(short)} domains: {', '.join(map(str, short))}. Use the whole label."
        )
    return _whole("class", str(short[0]), state, short) if short else None


def whole_label(state: State, name: str, *, ask: Callable[[Sequence[str]], str] | None = None) -> str:
    """Return the label of the class called `name`, or of a new one, which needs its domain.

    `name` is a label, or the class alone if only one domain has it. `ask` returns the domain of a new class, given the
    domains so far; without it, a new class without a domain is an error.
    """
    if name in state.classes:
        return name
    found = None if "/" in name else look_up_class(state, name)
    if found is not None:
        return found.name
    domains = [domain for domain in state.domains if domain]
    if "/" not in name and ask is None:
        raise HyCalError(
            f"{name!r} is no class of this model.{nearest_name(state, name)} For a new class name its domain too: "
            f"{class_label(domains[0] if domains else 'flower', name)}. Domains so far: {', '.join(domains) or 'none'}."
        )
    label = name if "/" in name or ask is None else class_label(ask(domains), name)
    check_class_name(label)
    return label


def class_called(state: State, name: str) -> Label | None:
    """Return the label of the only class of that name in any domain; None if there is none, or several."""
    found = _short(state, name)
    return found[0] if len(found) == 1 else None


def _short(state: State, name: str) -> list[Label]:
    same = normal_name(name)
    return [label for label in state.labels if name and normal_name(split_label(label)[1]) == same]


def _domain(state: State, name: str) -> Target | None:
    same = [domain for domain in state.domains if normal_name(domain) == normal_name(name)]
    own = name if name in same else next(iter(same), None)
    return None if own is None else _whole("domain", own, state, state.domains[own])


def _image(state: State, name: str) -> Target | None:
    same = normal_name(name)
    hashed = len(name) >= _SHORTEST_HASH and all(letter in "0123456789abcdef" for letter in name)
    found = {
        example.identity
        for example in state.examples
        if (hashed and example.identity.hex().startswith(name)) or normal_name(example.name) == same
    }
    if len(found) > 1:
        raise HyCalError(f"{name!r} means {len(found)} learned images. Use the content hash of the one you mean.")
    return image(state, found.pop()) if found else None


def _whole(kind: TargetKind, name: str, state: State, labels: list[Label]) -> Target:
    return Target(kind, name, {label: tuple(e.identity for e in state.classes[label].examples) for label in labels})


def nearest_name(state: State, name: str) -> str:
    """Ask for the label or domain that is written most like `name`, which may lack the domain, in any case."""
    written = {split_label(label)[1].lower(): str(label) for label in state.labels}
    written |= {known.lower(): known for known in (*map(str, state.labels), *state.domains)}
    return did_you_mean(name, written)


def _guess(state: State, name: str) -> str:
    known = [*map(str, state.labels), *state.domains]
    return nearest_name(state, name) or (
        f" It knows {', '.join(known[:5])}{', ...' if len(known) > 5 else ''}." if known else " It has no classes yet."
    )
