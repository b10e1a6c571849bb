"""Parameters by the likelihood of held-out training images; the most likely are not always the most accurate."""

from __future__ import annotations

from hycal import HyCal
from hycal.data import load_xd8

texture = load_xd8()["texture"]
rows, labels = texture.train_x[::4], texture.train_y[::4]
clf = HyCal(fusion="image").fit(rows, labels)
print(f"as published: {100 * clf.score(texture.test_x, texture.test_y):.1f}%")
clf.tune()
print(f"tuned:        {100 * clf.score(texture.test_x, texture.test_y):.1f}% with alpha {clf.alpha}, reg {clf.reg}")
