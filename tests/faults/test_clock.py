"""A clock that goes back: changes keep their order, readers see them, and undo reverses the last one."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hycal.project import Project
from hycal.project import state as project_state
from hycal.project.journal import journal_of
from tests.support.projects import arrivals, example, pets_and_cars


class Clock(datetime):
    """A clock whose every reading is a day earlier than the last."""

    readings = 0

    @classmethod
    def now(cls, tz=None):  # type: ignore[no-untyped-def]
        cls.readings += 1
        return datetime(2020, 1, 28 - cls.readings, tzinfo=UTC)


def age(*paths: Path) -> None:
    for path in paths:
        os.utime(path, (0, 0))


def test_a_clock_that_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_state, "datetime", Clock)
    path = tmp_path / "p.hycal"
    reader = pets_and_cars(path)
    writer = Project(path, journal=True)
    learned = writer.learn(arrivals("pets/cow", 1, 2))
    age(path, journal_of(path))
    assert reader.refresh().hash == learned.after
    corrected = writer.correct(example("pets/cow", 1), "pets/cat")
    age(path, journal_of(path))
    assert reader.refresh().hash == corrected.after
    state = Project(path).state
    times = [entry.when for entry in state.history]
    assert times == sorted(times, reverse=True) and len(set(times)) == 4, "the clock did go back"
    assert [entry.before for entry in state.history[1:]] == [entry.after for entry in state.history[:-1]]
    assert writer.undo().after == learned.after
    assert writer.undo().after == learned.before == Project(path).state.hash
