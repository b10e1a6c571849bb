from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hycal import HyCalError
from hycal.bench.domains import load_domains, read_domain, write_domain
from tests.bench.small import small_domains, small_setting

LABELS = small_domains()["a"].train_y
ROWS = small_domains()["a"].train_x


def changed(row: int, value: float) -> Any:
    rows = ROWS.copy()
    rows[row] = value
    return rows


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_y": None}, "train_y is missing; expected whole numbers"),
        ({"train_y": LABELS[:, None]}, r"train_y is of shape \(48, 1\) and type int64; expected whole numbers"),
        ({"train_y": LABELS + 0.5}, "type float64; expected whole numbers"),
        ({"train_y": LABELS.astype(str)}, "expected whole numbers"),
        ({"train_y": LABELS[1:]}, r"train_x has shape \(48, 24\); expected \(47, 24\)"),
        ({"train_y": LABELS - 1}, "goes from -1 to 2; expected 0 to 3"),
        ({"train_y": LABELS % 3}, "no image of class 'class 3'"),
        ({"train_x": changed(5, np.nan)}, "row 5 is not finite"),
        ({"train_x": changed(5, 0.0)}, "row 5 is not finite or all zeros"),
        ({"train_x": ROWS[0]}, r"train_x is of shape \(24,\)"),
        ({"test_x": np.ones((32, 8))}, r"test_x has shape \(32, 8\); expected \(32, 24\)"),
        ({"class_names": np.array(["x", "y", "x", "z"])}, "class_names has 'x' twice"),
        ({"class_names": np.array("x")}, "expected names of shape"),
        ({"text": np.ones((3, 24))}, r"expected \(4, 24\)"),
        ({"text": np.full((4, 24), np.inf)}, "text: row 0 is not finite"),
    ],
)
def test_a_faulty_file_says_what_was_expected(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = write_domain(tmp_path, small_domains()["a"])
    with np.load(path) as file:
        arrays = {**file, **changes}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(HyCalError, match=message) as failed:
        read_domain(tmp_path, "a")
    assert str(path) in str(failed.value)


def test_the_documentation_lists_every_array(tmp_path: Path) -> None:
    path = write_domain(tmp_path, replace(small_domains()["a"], space="tiny"))
    text = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text(encoding="utf-8")
    table = text[text.index("| array |") :].split("\n\n")[0]
    with np.load(path) as file:
        assert set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines()))) == set(file)


def test_domains_of_different_width_are_not_learned_together(tmp_path: Path) -> None:
    for name, domain in small_domains().items():
        write_domain(tmp_path, small_domains(width=8)["b"] if name == "b" else domain)
    with pytest.raises(HyCalError, match=r"different widths: a\.npz of 24, b\.npz of 8, c\.npz of 24"):
        load_domains(small_setting(), tmp_path)
