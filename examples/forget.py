"""Forgetting is exact: a model that forgot a class is the model that never learned it, to the byte."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hycal import HyCal
from hycal.data import load_xd8

texture = load_xd8()["texture"]
others = texture.train_y != 3
forgot = HyCal(fusion="image").fit(texture.train_x, texture.train_y).forget(3)
never = HyCal(fusion="image").fit(texture.train_x[others], texture.train_y[others])
with tempfile.TemporaryDirectory() as folder:
    one, other = Path(folder, "forgot.safetensors"), Path(folder, "never.safetensors")
    forgot.save(one)
    never.save(other)
    print("the same bytes:", one.read_bytes() == other.read_bytes())
