"""A small benchmark: three domains of synthetic embeddings with text, in files, and a setting for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hycal.bench.domains import BenchDomain, write_domain
from hycal.bench.settings import Setting, read_setting
from hycal.validation import unit_rows

SETTING = """
title = "small"
protocol = "PROTOCOL"
source = "embeddings"
seeds = [0, 1, 2]
short = "all-available"
sampling = "own"
[orders]
back = ["c", "b", "a"]
[[domains]]
name = "a"
classes = 4
shots = 3
[[domains]]
name = "b"
classes = 3
shots = 20
[[domains]]
name = "c"
classes = 5
shots = 5
"""


def small_setting(protocol: str = "CIL") -> Setting:
    return read_setting("small", SETTING.replace("PROTOCOL", protocol))


def small_domains(*, text: bool = True, width: int = 24) -> dict[str, BenchDomain]:
    rng = np.random.default_rng(0)
    found = {}
    for domain in small_setting().domains:
        means = unit_rows(1.0 + rng.normal(size=(domain.classes, width)))
        train, test = np.repeat(np.arange(domain.classes), 12), np.repeat(np.arange(domain.classes), 8)
        found[domain.name] = BenchDomain(
            name=domain.name,
            train_x=unit_rows(means[train] + 0.2 * rng.normal(size=(len(train), width))),
            train_y=train,
            test_x=unit_rows(means[test] + 0.2 * rng.normal(size=(len(test), width))),
            test_y=test,
            class_names=tuple(f"class {number}" for number in range(domain.classes)),
            text=unit_rows(means + 0.1 * rng.normal(size=means.shape)) if text else None,
        )
    return found


def write_small(folder: Path, *, text: bool = True) -> tuple[Path, Path]:
    """Write the setting and the embeddings; returns where they are."""
    setting = folder / "small.toml"
    setting.write_text(SETTING.replace("PROTOCOL", "CIL"), encoding="utf-8")
    for domain in small_domains(text=text).values():
        write_domain(folder / "embeddings", domain)
    return setting, folder / "embeddings"
