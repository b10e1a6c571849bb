"""Random damage to sound inputs: what runs where there is no atheris, and in every `make test`."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

_NUMBERS = (b"0", b"-1", b"1e999", b"NaN", b"99999999999999999999", b"null", b"true", b"[]", b"{}", b'""', b'"\\ud800"')
_NAMES = (b"../", b"/etc/passwd", b"\x00", b"\x1b[2J", b"\\", b"\xff\xfe", b'"', b"\n", "\u202e".encode(), b"a" * 300)
_TOKEN = re.compile(rb'-?\d+(?:\.\d+)?|"[^"]*"|true|null')


def mutations(seeds: Sequence[bytes], count: int, chance: random.Random) -> Iterator[bytes]:
    """Yield `count` damaged inputs; the same ones for the same seed."""
    for _ in range(count):
        content = chance.choice(seeds)
        for _ in range(chance.choice((1, 1, 1, 2, 4, 8))):
            content = chance.choice(_DAMAGES)(content, chance)
        yield content


def _flip(content: bytes, chance: random.Random) -> bytes:
    if not content:
        return b"\x00"
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


def _set(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    new = chance.choice((b"\x00", b"\xff", b"\x7f", b"\xff\xff\xff\xff", b"\xff" * 8, bytes(8), b"\x80"))
    return content[:at] + new + content[at + len(new) :]


def _cut(content: bytes, chance: random.Random) -> bytes:
    first, last = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:first] + content[last:] if chance.random() < 0.5 else content[:first]


def _repeat(content: bytes, chance: random.Random) -> bytes:
    first, last = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:last] + content[first : min(last, first + 400)] * chance.choice((1, 2, 50)) + content[last:]


def _insert(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.choice(_NAMES) + content[at:]


def _retype(content: bytes, chance: random.Random) -> bytes:
    """Put another kind of value where a number or a text was."""
    tokens = list(_TOKEN.finditer(content))
    if not tokens:
        return _flip(content, chance)
    token = chance.choice(tokens)
    return content[: token.start()] + chance.choice(_NUMBERS) + content[token.end() :]


def _nest(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.choice((b"[", b'{"a":', b"(")) * chance.choice((3, 100_000)) + content[at:]


_DAMAGES = (_flip, _flip, _set, _cut, _repeat, _insert, _retype, _retype, _nest)
