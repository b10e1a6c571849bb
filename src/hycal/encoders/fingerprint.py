"""Which space an embedding lives in, as one string."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from hycal.encoders.preprocessing import Preprocessing
from hycal.errors import HyCalError


def file_hash(path: Path) -> str:
    """Return the sha256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(*, parts: Mapping[str, str], preprocessing: Preprocessing) -> str:
    """Return the hash of everything that decides where an image or a text lands.

    Parameters
    ----------
    parts : mapping of str to str
        Hash by role: weights of the towers, tokenizer.
    preprocessing : Preprocessing
    """
    content = {"parts": dict(parts), "preprocessing": preprocessing.to_json()}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def check_same_space(fingerprints: Iterable[str], *, owner: str) -> None:
    """Refuse embeddings of more than one encoder in one place.

    Parameters
    ----------
    fingerprints : iterable of str
    owner : str
        The model or cache that would hold them, for the message.

    Examples
    --------
    >>> check_same_space(["a1", "a1"], owner="cats.hycal")
    """
    found = sorted(set(fingerprints))
    if len(found) > 1:
        raise HyCalError(
            f"{owner} would mix embeddings of {len(found)} encoders (fingerprints {', '.join(found)}); distances "
            "between them mean nothing. Expected one. Embed all images with the same encoder and the same weights."
        )
