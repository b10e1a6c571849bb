"""What takes changes back: undo, redo, and forgetting for good, after which nothing can be taken back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hycal.errors import HyCalError, MovedOnError
from hycal.project.changes import Change, Receipt, changed, describe_counts, forget, size_of
from hycal.project.labels import Target, find, look_up
from hycal.project.state import (
    HistoryEntry,
    State,
    Undo,
    drop_all_undo,
    drop_undo,
    last_redoable,
    last_undoable,
    without_remark,
)
from hycal.state.sealed import refuse
from hycal.storage.model_file import expect, unit_matrix


def undo(state: State, *, expected: str | None = None, when: str = "") -> Change:
    """Reverse the last change that can be reversed: the model is the earlier one, to the byte.

    If `expected` is given, only if it names that change; so an undo that is sent again reverses nothing else.
    """
    entry = last_undoable(state.history)
    if state.sealed:
        refuse("undo a change")
    if entry is None or entry.undo is None:
        raise HyCalError("There is nothing to undo: no change was made, all were undone, or the undo data is gone.")
    _check_expected(entry, expected, "undo")
    _check_data(state, entry.undo)
    earlier = state.with_classes(
        entry.undo.classes, memo=entry.undo.memo, method=entry.undo.method, space=entry.undo.space
    )
    if earlier.hash != entry.before:
        raise HyCalError(
            f"The undo data of {entry.action!r} is damaged: it does not lead to {entry.before}. Nothing changed."
        )
    what = f"{entry.action}: {without_remark(entry.action, entry.what)}"
    counts = {label: size_of(class_) for label, class_ in entry.undo.classes.items()}
    method = None if entry.undo.method is None else state.method
    space = None if entry.undo.space is None else state.space
    redo = Undo({label: state.classes.get(label) for label in counts}, state.memo, method, space)
    before = state.with_history(drop_undo(state.history, entry), version=state.version)
    following = before.noted(earlier, "undo", what, undo=redo, when=when)
    left = last_undoable(following.history) is not None
    receipt = Receipt("undo", what, state.hash, earlier.hash, counts, undoable=left, touched=tuple(counts))
    return following, replace(receipt, change=following.history[-1].id)


def redo(state: State, *, expected: str | None = None) -> Change:
    """Make the change again that the last undo took back; only undos and redos may have been made since.

    If `expected` is given, only if it names that undo.
    """
    entry = last_redoable(state.history)
    if entry is None or entry.undo is None:
        raise HyCalError("There is nothing to redo: the last change was no undo, or its data was removed.")
    _check_expected(entry, expected, "redo")
    counts = {label: size_of(class_) for label, class_ in entry.undo.classes.items()}
    back = entry.undo
    _check_data(state, back)
    following, receipt = changed(
        state, back.classes, "redo", entry.what, counts, memo=back.memo, method=back.method, space=back.space
    )
    if receipt.after != entry.before:
        raise HyCalError(f"The data of the last undo is damaged: it does not lead to {entry.before}. Nothing changed.")
    return following, receipt


def _check_expected(entry: HistoryEntry, expected: str | None, action: str) -> None:
    if expected not in (None, entry.id):
        raise MovedOnError(
            f"The next {action} would take back {entry.id} ({entry.action}: {entry.what}), not {expected}, so nothing "
            "was taken back. Look at the history: it was taken back already, or the model was changed since."
        )


def _check_data(state: State, back: Undo) -> None:
    """Refuse undo data that a forged file may have: rows that do not fit the space would end in a file nobody reads."""
    space, method = back.space or state.space, back.method or state.classifier
    classes = [class_ for class_ in back.classes.values() if class_ is not None]
    rows = [example.row for class_ in classes for example in class_.examples]
    rows += [class_.text for class_ in classes if class_.text is not None]
    whole = back.space is None or state.classes.keys() <= back.classes.keys()
    expect(whole and method.views == space.views, "undo data of every class, with the views of its space")
    expect(all(row.shape == (space.dimension,) for row in rows), f"undo data of {space.dimension} numbers in a row")
    if rows:
        unit_matrix(np.stack(rows), "undo data", views=space.views)


def forget_for_good(state: State, name: str) -> Change:
    """Forget a class, a domain or an image, also one that is only in the undo data because it was forgotten before.

    All undo data is removed. The history keeps the hashes of earlier models.
    """
    former = None if look_up(state, name) else _find_in_undo(state, name)
    following, receipt = forget(state, find(state, name)) if former is None else _record_erasure(state, former)
    following.classifier.refresh()  # what was derived may hold what was forgotten
    return following.with_history(drop_all_undo(following.history), version=following.version), replace(
        receipt, undoable=False
    )


def _find_in_undo(state: State, name: str) -> Target | None:
    """Return the class, domain or image of that name in the latest undo data that has it."""
    for undo in [entry.undo for entry in reversed(state.history) if entry.undo is not None]:
        before = {label: class_ for label, class_ in undo.classes.items() if class_ is not None}
        found = look_up(replace(state, classes={**state.classes, **before}), name)
        if found is not None:
            return found
    return None


def _record_erasure(state: State, former: Target) -> Change:
    """Return the same model with a history entry about images that were forgotten before."""
    counts = {
        label: sum(identity not in state.label_of for identity in identities)
        for label, identities in former.images.items()
    }
    what = f"{describe_counts(counts)}, forgotten before"
    following = state.noted(state, "forget", what)
    return following, Receipt("forget", what, state.hash, state.hash, counts, change=following.history[-1].id)
