"""Search in a pile: the nearest images in the views of a query, and images that fit no learned class."""

from __future__ import annotations

import numpy as np
import pytest

from hycal import NCM
from hycal.pile.search import nearest_rows, unlike_anything
from tests.pile.test_suggestion import pile


def in_two_views(*angles: tuple[float | None, float | None]) -> np.ndarray:
    """Rows of a view of 2 numbers and one of 3, each a direction at an angle; None is a view that lacks."""
    rows = np.zeros((len(angles), 5), np.float32)
    for row, own in zip(rows, angles, strict=True):
        for view, angle in zip((row[:2], row[2:]), own, strict=True):
            if angle is not None:
                view[:2] = np.cos(angle), np.sin(angle)
    return rows


VIEWS = (slice(0, 2), slice(2, 5))


def test_the_nearest_in_two_views_are_by_the_mean_of_both_cosines() -> None:
    rows = in_two_views((0.0, 1.5), (0.6, 0.6), (1.5, 0.0), (0.1, 0.2))
    (query,) = in_two_views((0.0, 0.0))
    best, cosines = nearest_rows(rows, query, 3, VIEWS)
    assert best.tolist() == [3, 1, 0]
    expected = [(np.cos(0.1) + np.cos(0.2)) / 2, np.cos(0.6), (1.0 + np.cos(1.5)) / 2]
    np.testing.assert_allclose(cosines, expected, atol=1e-6)


@pytest.mark.parametrize(("query", "best"), [((0.0, None), [0, 1, 2]), ((None, 0.0), [2, 1, 0])])
def test_a_view_that_the_query_lacks_does_not_count(query: tuple[float | None, float | None], best: list[int]) -> None:
    """The cosine is that within the view alone: 1 for the same direction, whatever the other view has."""
    rows = in_two_views((0.0, 1.5), (0.6, 0.6), (1.5, 0.0))
    found, cosines = nearest_rows(rows, in_two_views(query)[0], 3, VIEWS)
    assert found.tolist() == best
    np.testing.assert_allclose(cosines, np.cos([0.0, 0.6, 1.5]), atol=1e-6)


def test_images_of_another_class_are_unlike_anything() -> None:
    X, y = pile(30, 30, 30, spread=0.5)
    learned = NCM().fit(X[y < 2][::2], y[y < 2][::2])
    strange = unlike_anything(X, learned)
    assert strange[y == 2].mean() > 0.9 and strange[y < 2].mean() < 0.2


def test_one_image_of_each_class_says_nothing() -> None:
    X, _ = pile(1, 1)
    assert not unlike_anything(X, NCM().fit(X, np.arange(2))).any()
