"""A model as a folder in the hub's layout: model.safetensors, README.md (its card), config.json."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hycal._version import __version__
from hycal.errors import HyCalError
from hycal.escaping import json_text
from hycal.hub.card import CardFacts, model_card
from hycal.project import Project, State
from hycal.project.sealed import describe

MODEL, CARD, CONFIG = "model.safetensors", "README.md", "config.json"
FILES = (MODEL, CARD, CONFIG)


def save_folder(state: State, folder: Path, facts: CardFacts) -> Path:
    """Write a model with its card to a new folder, all of it or nothing; return the folder.

    Examples
    --------
    >>> import numpy as np
    >>> from hycal.project import Arrival, Example, Space, empty_state
    >>> from hycal.project.changes import learn
    >>> pets = [Arrival("pets/cat", Example(np.float32([1, 0]))), Arrival("pets/dog", Example(np.float32([0, 1])))]
    >>> state, receipt = learn(empty_state(Space("none", None, 2), has_text=False), pets)
    >>> with tempfile.TemporaryDirectory() as room:
    ...     folder = save_folder(state, Path(room) / "pets", CardFacts("pets", "mit"))
    ...     sorted(file.name for file in folder.iterdir()), open_folder(folder).labels
    (['README.md', 'config.json', 'model.safetensors'], ('pets/cat', 'pets/dog'))
    """
    card = model_card(state, facts)
    if folder.exists():
        raise HyCalError(f"{folder} exists, so nothing was written. Choose another folder, or remove it.")
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.absolute().parent))
    try:
        Project.create(draft / MODEL, state)
        (draft / CARD).write_text(card, encoding="utf-8")
        (draft / CONFIG).write_text(json_text(_config(state), indent=2) + "\n", encoding="utf-8")
        draft.chmod(0o755)  # a folder made by mkdtemp is for its owner alone
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return folder


def _config(state: State) -> dict[str, Any]:
    """Return what programs read before they fetch the model; the model file itself does not need it."""
    return {
        "library_name": "hycal",
        "hycal_version": __version__,
        "method": type(state.classifier).__name__,
        "encoder": state.space.name,
        "dimension": state.space.dimension,
        "sealed": describe(state) != "no",
        "id2label": {number: str(label) for number, label in enumerate(state.labels)},
    }


def open_folder(folder: Path) -> State:
    """Return the model in a folder; only the model file is read, every claim of it is checked, nothing is executed.

    Examples
    --------
    >>> open_folder(Path("nowhere"))
    Traceback (most recent call last):
    hycal.errors.HyCalError: nowhere has no model.safetensors; expected a folder that `hycal hub save` wrote.
    """
    path = folder / MODEL
    if not path.is_file():
        raise HyCalError(f"{folder} has no {MODEL}; expected a folder that `hycal hub save` wrote.")
    return Project(path).state
