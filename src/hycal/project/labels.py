"""Labels `domain/class`: making and splitting them, and checking the names that people type.

Folders may have any name. A typed name must be one that can be typed again.
"""

from __future__ import annotations

from hycal.errors import HyCalError
from hycal.validation import Label

LONGEST_NAME = 200


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
