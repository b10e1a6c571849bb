"""Results that belong to one state of the model, and are worth keeping until there is another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from hycal.project import State

T = TypeVar("T")


class Latest(Generic[T]):
    """A function of a state whose last result is kept; whoever asks while it is computed waits for it."""

    def __init__(self, function: Callable[[State], T]) -> None:
        self._function = function
        self._last: tuple[str, T] | None = None
        self._computing = threading.Lock()

    def __call__(self, state: State) -> T:
        """Return the result for `state`."""
        with self._computing:
            if self._last is None or self._last[0] != state.hash:
                self._last = state.hash, self._function(state)
            return self._last[1]
