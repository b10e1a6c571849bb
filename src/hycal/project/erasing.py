"""Forgetting for good: what is forgotten leaves the undo too, so that nothing of it is in the file any more."""

from __future__ import annotations

from dataclasses import replace

from hycal.project.changes import Outcome, Receipt, forget, told
from hycal.project.history import Entry, appended, now, purged
from hycal.project.lookup import Target, find, look_up
from hycal.project.state import State


def forget_for_good(state: State, name: str) -> Outcome:
    """Forget a class, a domain or an image, also one that was forgotten before and that the undo could bring back.

    The undo is emptied: of earlier models only the hashes stay.
    """
    former = None if look_up(state, name) else _former(state, name)
    following, receipt = forget(state, find(state, name)) if former is None else _noted(state, former)
    return following.noted(purged(following.history), version=following.version), replace(receipt, undoable=False)


def _former(state: State, name: str) -> Target | None:
    """Return the class, domain or image of that name that the latest undo would bring back."""
    for undo in [entry.undo for entry in reversed(state.history) if entry.undo is not None]:
        before = {label: shelf for label, shelf in undo.shelves.items() if shelf is not None}
        found = look_up(replace(state, shelves={**state.shelves, **before}), name)
        if found is not None:
            return found
    return None


def _noted(state: State, former: Target) -> Outcome:
    """Return the same model with an entry about what was forgotten before."""
    counts = {
        label: sum(identity not in state.label_of for identity in identities)
        for label, identities in former.images.items()
    }
    what = f"{told(counts)}, forgotten before"
    history = appended(state.history, Entry(now(), "forget", what, state.hash, state.hash))
    following = state.noted(history, version=state.version + 1)
    return following, Receipt("forget", what, state.hash, state.hash, counts)
