"""For mkdocstrings: the equations of docstrings, written for numpydoc, as blocks of code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EQUATION = re.compile(r"^( *)\.\. math::[ ]*(.*(?:\n\1 +.*|\n(?=\n\1 +))*)", re.MULTILINE)


def fenced(text: str) -> str:
    r"""Return `text` with each equation in a block of code.

    >>> print(fenced(".. math:: s_c = -x"))
    ```tex
    s_c = -x
    ```
    """

    def block(found: re.Match[str]) -> str:
        lines = [line.strip() for line in found[2].splitlines() if line.strip()]
        return "\n".join(found[1] + line for line in ["```tex", *lines, "```"])

    return _EQUATION.sub(block, text)


class Equations(griffe.Extension):
    """Change every docstring as it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
