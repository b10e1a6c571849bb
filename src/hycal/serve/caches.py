"""Results that belong to one state of the model, and are worth keeping until there is another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from hycal.parallel.threads import one_blas_thread
from hycal.project import Shelf, State
from hycal.validation import Label

T = TypeVar("T")
Shelves = Mapping[Label, Shelf]

_SHARE = 10


def unchanged(before: Shelves, now: Shelves) -> bool:
    """Whether every class is what it was."""
    return _changed(before, now) == 0


def much_the_same(before: Shelves, now: Shelves) -> bool:
    """Whether nine of ten classes are what they were."""
    return _SHARE * _changed(before, now) <= len(now)


def same_classes(before: Shelves, now: Shelves) -> bool:
    """Whether there are the same classes, nine of ten of them what they were."""
    return before.keys() == now.keys() and much_the_same(before, now)


def _changed(before: Shelves, now: Shelves) -> int:
    return sum(now.get(label) is not before.get(label) for label in {**before, **now})


class Latest(Generic[T]):
    """A function of a state whose last result is kept; whoever asks while it is computed waits for it.

    Parameters
    ----------
    function : callable
    still : callable
        Whether a result for the first shelves will do for the second.
    """

    def __init__(
        self, function: Callable[[State], T], *, still: Callable[[Shelves, Shelves], bool] = unchanged
    ) -> None:
        self._function = function
        self._still = still
        self._last: tuple[Shelves, T] | None = None
        self._checked: Shelves | None = None  # for which the last result will do: many ask of one state
        self._computing = threading.Lock()

    def __call__(self, state: State) -> T:
        """Return the result for `state`."""
        with self._computing:
            if self._last is None or not self._will_do(self._last[0], state.shelves):
                with one_blas_thread():  # a product on all cores would hold up the answers that others wait for
                    self._last = state.shelves, self._function(state)
            self._checked = state.shelves
            return self._last[1]

    def _will_do(self, before: Shelves, now: Shelves) -> bool:
        return now is self._checked or self._still(before, now)

    def at_hand(self, state: State) -> T:
        """Return the last result, however old it is; the one for `state` only if there is none at all."""
        last = self._last
        return self(state) if last is None else last[1]
