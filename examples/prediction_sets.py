"""Sets of labels that hold the right one as often as you ask: small where the model is sure."""

from __future__ import annotations

import numpy as np

from hycal import HierarchicalHyCal
from hycal.data import load_xd8

art = load_xd8()["art"]
clf = HierarchicalHyCal().fit(art.train_x, art.train_y)
for coverage in (0.5, 0.8, 0.9, 0.95):
    sets = clf.predict_set(art.test_x, coverage=coverage)
    held = np.mean([label in labels for label, labels in zip(art.test_y, sets, strict=True)])
    size = np.mean([len(one) for one in sets])
    print(f"asked {coverage:4}: right in {100 * held:5.1f}% of sets, {size:.1f} labels each")
