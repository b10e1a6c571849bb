"""The examples of CONTRIBUTING.md, which tests run."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


def table_entry(heading: str) -> dict[str, Any]:
    """Return the TOML example below `heading`."""
    section = CONTRIBUTING.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    (example,) = re.findall(r"```toml\n(.*?)```", section, flags=re.DOTALL)
    return tomllib.loads(example)
