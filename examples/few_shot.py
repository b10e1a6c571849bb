"""Accuracy as the images of a class grow from one to twenty, on bundled CLIP embeddings of textures."""

from __future__ import annotations

import numpy as np

from hycal import NCM, HierarchicalHyCal
from hycal.data import load_xd8

texture = load_xd8()["texture"]
numbers = np.arange(len(texture.train_y))
print("images  HierarchicalHyCal   NCM")
for shots in (1, 2, 5, 10, 20):
    few = np.concatenate([numbers[texture.train_y == c][:shots] for c in range(len(texture.class_names))])
    ours, theirs = (
        method().fit(texture.train_x[few], texture.train_y[few]).score(texture.test_x, texture.test_y)
        for method in (HierarchicalHyCal, NCM)
    )
    print(f"{shots:6}{100 * ours:18.1f}%{100 * theirs:6.1f}%")
