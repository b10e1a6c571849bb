from __future__ import annotations

import numpy as np
import pytest

from hycal import TipAdapter
from tests.classifiers.problems import PROBLEMS, assert_agree


def textbook(problem, alpha, beta):
    votes = np.exp(-beta * (1 - problem.queries @ problem.X.T)) @ problem.targets
    return 100 * problem.queries @ problem.texts.T + alpha * votes


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 5.5), (3.0, 0.5)])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_is_textbook(problem, alpha, beta):
    assert_agree(problem.scores(TipAdapter(alpha=alpha, beta=beta)), textbook(problem, alpha, beta))


def test_an_announced_class_has_a_name_and_no_votes():
    problem = PROBLEMS[0]
    seen = problem.y != 1
    model = TipAdapter().fit(problem.X[seen], problem.y[seen], text=dict(enumerate(problem.texts)))
    model.announce({1: problem.texts[1]})
    expected = textbook(problem, 1.0, 5.5)
    expected[:, 1] = 100 * problem.queries @ problem.texts[1]
    assert_agree(model.class_scores(problem.queries), expected)
