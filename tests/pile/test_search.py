"""Search in a pile: images that fit no learned class are found."""

from __future__ import annotations

import numpy as np

from hycal import NCM
from hycal.pile.search import unlike_anything
from tests.pile.test_suggestion import pile


def test_images_of_another_class_are_unlike_anything() -> None:
    X, y = pile(30, 30, 30, spread=0.5)
    learned = NCM().fit(X[y < 2][::2], y[y < 2][::2])
    strange = unlike_anything(X, learned)
    assert strange[y == 2].mean() > 0.9 and strange[y < 2].mean() < 0.2


def test_one_image_of_each_class_says_nothing() -> None:
    X, _ = pile(1, 1)
    assert not unlike_anything(X, NCM().fit(X, np.arange(2))).any()
