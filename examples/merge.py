"""Two people learn apart and merge: the model is that of one person who learned everything."""

from __future__ import annotations

import numpy as np

from hycal import HyCal
from hycal.data import load_xd8

texture = load_xd8()["texture"]
rows, labels = texture.train_x, texture.train_y
mine = HyCal(fusion="image").fit(rows[::2], labels[::2])
yours = HyCal(fusion="image").fit(rows[1::2], labels[1::2])
together = HyCal(fusion="image").fit(rows, labels)
scores = mine.merge(yours).decision_function(texture.test_x)
print("the same scores:", bool(np.array_equal(scores, together.decision_function(texture.test_x))))
