"""Leases: which person has which images in hand, so that no two people are asked about the same one.

A lease lasts some minutes and is renewed whenever the person asks for more; what a person leaves behind goes to others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import islice

from hycal.errors import HyCalError

MINUTES = 5.0
MOST_PEOPLE = 64
MOST_LATER = 10_000  # images that people have put off, all together


@dataclass
class _Lease:
    person: str
    until: float


class Leases:
    """The images that people have in hand, by content hash; safe to share between threads.

    Examples
    --------
    >>> leases = Leases()
    >>> leases.take("anna", [b"1", b"2", b"3"], 2), leases.take("ben", [b"1", b"2", b"3"], 2)
    ([b'1', b'2'], [b'3'])
    >>> leases.put_off("anna", b"1"); leases.take("ben", [b"1", b"2", b"3"], 2)
    [b'3', b'1']
    """

    def __init__(self, *, seconds: float = 60 * MINUTES, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._lock = threading.Lock()
        self._held: dict[bytes, _Lease] = {}
        self._later: dict[tuple[str, bytes], None] = {}

    def take(self, person: str, order: Iterable[bytes], most: int, *, done: Collection[bytes] = ()) -> list[bytes]:
        """Return up to `most` images for a person: those in hand, then free ones of `order`, then those put off.

        `done` are images that nobody has to be asked about any more.
        """
        with self._lock:
            self._release(done)
            if person not in self._people() and len(self._people()) >= MOST_PEOPLE:
                raise HyCalError(f"{MOST_PEOPLE} people label this pile already. Try again in some minutes.")
            mine = [key for key, lease in self._held.items() if lease.person == person][:most]
            free = [key for key in order if key not in self._held and key not in done]
            first = (key for key in free if (person, key) not in self._later)
            mine += islice(first, most - len(mine))
            if not mine:
                mine = [key for key in self._put_off(person) if key in free][:most]
            until = self._clock() + self._seconds
            for key in mine:
                self._later.pop((person, key), None)
                self._held[key] = _Lease(person, until)
            return mine

    def put_off(self, person: str, key: bytes) -> None:
        """Put an image back: others may take it at once, this person gets it again at the end."""
        with self._lock:
            lease = self._held.get(key)
            if lease is not None and lease.person == person:
                del self._held[key]
            self._later.pop((person, key), None)
            self._later[person, key] = None
            while len(self._later) > MOST_LATER:
                del self._later[next(iter(self._later))]

    @property
    def held(self) -> int:
        """Number of images in hand."""
        with self._lock:
            self._release(())
            return len(self._held)

    @property
    def people(self) -> int:
        """Number of people who have images in hand."""
        with self._lock:
            self._release(())
            return len(self._people())

    def release_unless(self, wanted: Callable[[bytes], bool]) -> None:
        """Take back the images in hand that are not wanted any more."""
        with self._lock:
            self._held = {key: lease for key, lease in self._held.items() if wanted(key)}

    def clear(self) -> None:
        """Take everything back."""
        with self._lock:
            self._held.clear()
            self._later.clear()

    def _people(self) -> set[str]:
        return {lease.person for lease in self._held.values()}

    def _put_off(self, person: str) -> list[bytes]:
        return [key for who, key in self._later if who == person]

    def _release(self, done: Collection[bytes]) -> None:
        now = self._clock()
        self._held = {key: lease for key, lease in self._held.items() if lease.until > now and key not in done}
