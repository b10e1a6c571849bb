"""Projects of synthetic embeddings, for tests of everything but the images."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from hycal.project import Arrival, Example, Project, Space, State, empty_state

WIDTH = 12
SPACE = Space("tiny", "tiny-space", WIDTH)


def example(label: str, number: int) -> Example:
    """Image `number` of a class: the same one at every call."""
    name = f"{label}-{number}"
    direction = np.random.default_rng(list(label.encode())).normal(size=WIDTH)
    row = direction + 0.3 * np.random.default_rng(list(name.encode())).normal(size=WIDTH)
    unit = (row / np.linalg.norm(row)).astype(np.float32)
    return Example(unit, hashlib.sha256(name.encode()).digest(), f"{name}.png", f"picture of {name}".encode())


def arrivals(label: str, *numbers: int) -> list[Arrival]:
    return [Arrival(label, example(label, number)) for number in numbers]


def new_project(path: Path, **options: object) -> Project:
    return Project(path, empty_state(SPACE, has_text=False, **options))  # type: ignore[arg-type]


def pets_and_cars(path: Path, **options: object) -> Project:
    project = new_project(path, **options)
    project.learn([*arrivals("pets/cat", 1, 2, 3), *arrivals("pets/dog", 1, 2)])
    project.learn([*arrivals("cars/mini", 1, 2, 3, 4), *arrivals("cars/cat", 1, 2)])
    return project


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["learn", "correct", "forget", "rename", "method", "view", "undo", "redo"]),
        st.integers(0, 9),
        st.integers(0, 3),
    ),
    max_size=10,
)


def view_rows(state: State, dimension: int) -> dict[bytes, np.ndarray]:
    """The embeddings of another encoder of two thirds of the learned images, by content hash."""
    keys = [e.key for e in state.examples if e.key[0] % 3]
    rows = {key: np.random.default_rng(list(key)).normal(size=dimension) for key in keys}
    return {key: (row / np.linalg.norm(row)).astype(np.float32) for key, row in rows.items()}


def change_view(target: Project, kind: int) -> None:
    """Drop the view `kind` if the project has it, else add it; its name stands before or behind that of the first."""
    part = Space(("aux", "zoom")[kind % 2], f"space-{kind % 2}", 5 + kind % 2)
    if part.name in target.state.space.name.split("+"):
        target.drop_view(part.name)
    else:
        target.add_view(part, view_rows(target.state, part.dimension))


def fitting(target: Project, one: Example) -> Example:
    """An image for a project that may have views: it lacks all but the first."""
    space = target.state.space
    return one if space.views is None else replace(one, row=space.widened(one.row[None], SPACE.name)[0])


def apply(target: Project, action: str, number: int, kind: int) -> None:
    label = f"d{kind % 2}/c{kind}"
    if action == "learn":
        target.learn(
            [replace(one, example=fitting(target, one.example)) for one in arrivals(label, number, number + 1)]
        )
    elif action == "correct":
        target.correct(fitting(target, example("d0/c0", number)), label)
    elif action == "view":
        change_view(target, kind)
    elif action == "forget":
        target.forget(label if number % 2 else f"d{kind % 2}")
    elif action == "rename":
        target.rename(label, f"n{number}")
    elif action == "method":
        target.change_method(("HyCal", "NCM", "RanPAC", "HierarchicalHyCal")[kind])
    elif action == "redo":
        target.redo()
    else:
        target.undo()


def assert_same(one: State, other: State) -> None:
    """Two states have the same classes, and these the same images."""
    assert one.hash == other.hash and one.labels == other.labels
    for label in one.labels:
        mine, theirs = one.classes[label], other.classes[label]
        assert [e.key for e in mine.examples] == [e.key for e in theirs.examples]
        assert [(e.name, e.thumbnail) for e in mine.examples] == [(e.name, e.thumbnail) for e in theirs.examples]
        np.testing.assert_array_equal(mine.record.samples.rows, np.stack([e.row for e in mine.examples]))
