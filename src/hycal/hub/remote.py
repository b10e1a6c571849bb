"""To the hub and back, by the library `huggingface-hub`, which knows its own login, caches and mirrors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hycal.encoders.installation import probe_hub
from hycal.errors import HyCalError, load_extra
from hycal.hub.folder import FILES

_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_REPOSITORY = re.compile(rf"{_PART}/{_PART}")


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
