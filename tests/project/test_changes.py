"""Changes of a project: forgetting for good what was forgotten before."""

from __future__ import annotations

import pytest

from hycal import HyCalError
from hycal.project import Project
from tests.support.projects import example, pets_and_cars


@pytest.mark.parametrize("name", ["pets/dog", "dog", "pets/", example("pets/dog", 1).key])
def test_what_was_forgotten_before_can_be_forgotten_for_good(tmp_path, name):
    path = tmp_path / "p.hycal"
    project = pets_and_cars(path)
    project.forget("pets/" if name == "pets/" else "pets/dog")
    model, lost = project.state.hash, []
    receipt = project.forget_for_good(name, lost.append)
    (lost,) = lost
    assert receipt.before == receipt.after == model and not receipt.undoable
    assert example("pets/dog", 1).identity in lost and example("cars/cat", 1).identity not in lost
    assert example("pets/dog", 1).thumbnail not in path.read_bytes()
    with pytest.raises(HyCalError, match="nothing to undo"):
        Project(path).undo()
    with pytest.raises(HyCalError, match="There is no"):
        project.forget_for_good("pets/dog")
