"""What is kept of one state, and for how long."""

from __future__ import annotations

from hycal.project import Project, empty_state
from hycal.serve.caches import CachedResult, mostly_unchanged, same_labels
from tests.support.projects import SPACE, arrivals, example


def test_kept_while_the_model_is_mostly_unchanged(tmp_path):
    project = Project(tmp_path / "m.hycal", empty_state(SPACE, has_text=False))
    project.learn([arrival for number in range(20) for arrival in arrivals(f"d/c{number:02d}", number, number + 50)])
    computed = []
    exact, rough, strict = (
        CachedResult(lambda state: computed.append(state.version) or state.version, **options)
        for options in ({}, {"valid": mostly_unchanged}, {"valid": same_labels})
    )

    def ask():
        computed.clear()
        return [kept(project.state) for kept in (exact, rough, strict)]

    assert ask() == [1, 1, 1]
    assert ask() == [1, 1, 1] and not computed
    project.correct(example("d/c00", 900), "d/c00")
    assert ask() == [2, 1, 1]
    project.undo()
    assert ask() == [3, 1, 1]
    project.correct(example("d/new", 901), "d/new")
    assert ask() == [4, 1, 4]
    project.learn(arrivals("d/c01", 902) + arrivals("d/c02", 903))
    assert rough.last(project.state) == 1
    assert ask() == [5, 5, 4]  # three of 21 since the first one, two of 21 since the other
    project.forget("d/c05")
    assert ask() == [6, 5, 6]
