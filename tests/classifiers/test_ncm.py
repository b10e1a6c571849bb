from __future__ import annotations

import numpy as np
import pytest

from hycal import NCM, HyCalError
from tests.classifiers.problems import PROBLEMS, assert_agree


@pytest.mark.parametrize("problem", PROBLEMS)
def test_cosine_is_textbook(problem):
    means = problem.means / np.linalg.norm(problem.means, axis=1, keepdims=True)
    assert_agree(problem.scores(NCM()), problem.queries @ means.T)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_euclidean_is_textbook_up_to_what_all_classes_share(problem):
    distances = ((problem.queries[:, None] - problem.means) ** 2).sum(axis=2)
    assert_agree(problem.scores(NCM(metric="euclidean")), np.sum(problem.queries**2, axis=1, keepdims=True) - distances)


def test_a_mean_without_direction_scores_zero():
    model = NCM().fit([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [0, 0, 1])
    np.testing.assert_array_equal(model.class_scores([[1.0, 0.0]]), [[0.0, 0.0]])


def test_has_no_use_for_announced_classes():
    with pytest.raises(HyCalError, match="NCM recognises classes by their images, and 'cow' has none yet"):
        NCM().fit([[1.0, 0.0]], ["cat"]).announce({"cow": [0.0, 1.0]})
