"""What fits no learned class is said to be unknown: flowers, asked of a model of textures."""

from __future__ import annotations

from hycal import HierarchicalHyCal
from hycal.data import load_xd8

disciplines = load_xd8()
texture, flower = disciplines["texture"], disciplines["flower"]
clf = HierarchicalHyCal().fit(texture.train_x, texture.train_y)
for error in (0.01, 0.05, 0.2):
    known, others = (clf.unknown(domain.test_x, error=error).mean() for domain in (texture, flower))
    print(f"error {error:4}: {100 * known:5.1f}% of textures and {100 * others:5.1f}% of flowers are called unknown")
