from __future__ import annotations

import pytest

from hycal import HyCalError, ZeroShot, load
from tests.classifiers.problems import PROBLEMS, assert_agree


@pytest.mark.parametrize("problem", PROBLEMS)
def test_is_the_nearest_text(problem):
    assert_agree(problem.scores(ZeroShot()), 100 * problem.queries @ problem.texts.T)


def test_names_are_enough(tmp_path):
    problem = PROBLEMS[0]
    named = ZeroShot().announce(dict(enumerate(problem.texts)), domain="any")
    assert named.counts_.tolist() == [0, 0, 0]
    assert_agree(named.class_scores(problem.queries), 100 * problem.queries @ problem.texts.T)
    named.save(tmp_path / "named.safetensors")
    loaded = load(tmp_path / "named.safetensors")
    assert loaded.counts_.tolist() == [0, 0, 0]
    assert_agree(loaded.class_scores(problem.queries), 100 * problem.queries @ problem.texts.T)


def test_needs_text():
    with pytest.raises(HyCalError, match=r"ZeroShot needs a text embedding for every class.*'cat'.*NCM"):
        ZeroShot().fit([[1.0, 0.0]], ["cat"])
