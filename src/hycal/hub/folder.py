"""A model as a folder in the layout of the hub, model.safetensors, its card and config.json; to the hub and back.

The library `huggingface-hub` knows its own login, caches and mirrors.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hycal._version import __version__
from hycal.encoders.installation import probe_hub
from hycal.errors import HyCalError, load_extra
from hycal.escaping import json_text
from hycal.hub.card import CardFacts, model_card
from hycal.project import Project, State
from hycal.project.sealed import describe

MODEL, CARD, CONFIG = "model.safetensors", "README.md", "config.json"
FILES = (MODEL, CARD, CONFIG)

_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_REPOSITORY = re.compile(rf"{_PART}/{_PART}")


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


def push(folder: Path, repository: str, *, public: bool = False) -> str:
    """Upload the files of a folder to a repository of the hub, a new one if there is none; return its address.

    Parameters
    ----------
    folder : path
        Made by `hycal.hub.folder.save_folder`.
    repository : str
        "OWNER/NAME".
    public : bool
        Whether a new repository may be seen by everyone; one that exists stays as it is.

    Examples
    --------
    >>> push(Path("pets"), "pets")  # "me/pets" would do
    Traceback (most recent call last):
    hycal.errors.HyCalError: 'pets' is neither a folder nor a repository of the hub; expected OWNER/NAME.
    """
    check_repository(repository)
    api = _hub().HfApi(library_name="hycal")
    try:
        probe_hub(api.endpoint)
        api.create_repo(repository, private=not public, exist_ok=True)
        api.upload_folder(
            repo_id=repository, folder_path=folder, allow_patterns=list(FILES), commit_message="Upload a hycal model"
        )
    except Exception as error:  # of the library, of its HTTP client, of the system
        raise HyCalError(
            f"{repository} could not be uploaded: {_reason(error)}. Check the name and the network, and log in with "
            "`hf auth login`."
        ) from None
    return f"{api.endpoint}/{repository}"


def fetch(repository: str, *, revision: str | None = None) -> Path:
    """Return a local folder with the files of a model on the hub; other files of the repository are not fetched.

    Examples
    --------
    >>> fetch("pets")  # "me/pets" would do
    Traceback (most recent call last):
    hycal.errors.HyCalError: 'pets' is neither a folder nor a repository of the hub; expected OWNER/NAME.
    """
    check_repository(repository)
    hub = _hub()
    try:
        probe_hub(hub.HfApi().endpoint)
        return Path(hub.snapshot_download(repository, revision=revision, allow_patterns=list(FILES)))
    except Exception as error:
        raise HyCalError(
            f"{repository} could not be fetched: {_reason(error)}. Check the name and the network; for a private one, "
            "log in with `hf auth login`."
        ) from None


def check_repository(name: str) -> None:
    """Refuse what cannot be the name of a repository."""
    if not _REPOSITORY.fullmatch(name):
        raise HyCalError(f"{name!r} is neither a folder nor a repository of the hub; expected OWNER/NAME.")


def _hub() -> Any:
    return load_extra("huggingface_hub", extra="hub", why="The Hugging Face hub")


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
