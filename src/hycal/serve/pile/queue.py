"""The queue of a pile: which images people are asked about next, who has which in hand, and how far the pile is.

`hycal.suggest` gives the order. It is computed again in the background whenever something was learned or many more
images are embedded; meanwhile people go on with the last order. A lease lasts some minutes and is renewed whenever the
person asks for more, so that no two people are asked about the same image; what a person leaves behind goes to others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from itertools import islice

from hycal.errors import HyCalError
from hycal.parallel.threads import one_blas_thread, thread_pool
from hycal.pile.progress import LabelCurve, estimate_rest
from hycal.pile.suggestion import suggest
from hycal.project import State
from hycal.serve.pile.images import ImagePile, PileView
from hycal.uncertainty.cross_validation import Estimate

MINUTES = 5.0  # of a lease
MOST_PEOPLE = 64
MOST_LATER = 10_000  # images that people have put off, all together
FIRST = 100  # embedded images before the first suggestion, or all
AHEAD = 24  # suggestions beside the images in hand
_GROWTH = 1.25  # times as many embedded images make a new order
_SECONDS = 3.0  # between two orders, if a few more images are embedded


@dataclass
class _Lease:
    person: str
    until: float


class Leases:
    """The images that people have in hand, by content hash; safe to share between threads.

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
                mine = [key for who, key in self._later if who == person and key in free][:most]
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

    def _release(self, done: Collection[bytes]) -> None:
        now = self._clock()
        self._held = {key: lease for key, lease in self._held.items() if lease.until > now and key not in done}


@dataclass(frozen=True, eq=False)
class Order:
    """Suggestions for one model and some images, the most useful first, and the accuracy to expect of the rest."""

    model: int
    images: int
    made: float
    keys: tuple[bytes, ...]
    rest: Estimate | None


class LabelQueue:
    """The queue of one pile; safe to share between threads."""

    def __init__(self, pile: ImagePile) -> None:
        self.pile = pile
        self.leases = Leases()
        self._lock = threading.Lock()
        self._order: Order | None = None
        self._coming: Future[Order] | None = None
        self._curve = LabelCurve()

    def take(self, state: State, person: str, most: int, *, first: Sequence[bytes] = ()) -> list[bytes]:
        """Return images to ask a person about, by content hash; none if nothing is left, or nothing is ready.

        `first` are asked about before all others that nobody has in hand.
        """
        order = self.order(state)
        self.leases.release_unless(self._has)
        found = self._lease(state, person, (*first, *(order.keys if order else ())), most)
        if len(found) < most and (newer := self._wait(order)) is not None:
            found = self._lease(state, person, newer.keys, most)
        return found

    def _lease(self, state: State, person: str, keys: Sequence[bytes], most: int) -> list[bytes]:
        """Lease images of the pile; it may have lost some since they were suggested."""
        return self.leases.take(person, filter(self._has, keys), most, done=state.label_of)

    def _has(self, key: bytes) -> bool:
        return self.pile.get(key) is not None

    def order(self, state: State) -> Order | None:
        """Return the last order, and let a new one be computed if that is out of date; None before the first."""
        view = self.pile.view()
        with self._lock:
            ready = len(view.images) >= FIRST or (view.complete and len(view.images) > 0)
            idle = self._coming is None or self._coming.done()
            if ready and idle and _is_old(self._order, view, state):
                self._coming = thread_pool(1, "hycal-queue").submit(self._compute, state, view)
            return self._order

    def _wait(self, order: Order | None) -> Order | None:
        """Return an order that is newer than `order`, once it is computed; None if none is coming."""
        with self._lock:
            coming = self._coming
        if coming is None:
            return None
        newer = coming.result()
        return newer if newer is not order else None

    def _compute(self, state: State, view: PileView) -> Order:
        alone = not state.classes or state.classifier.sealed_  # a sealed model leaves none of its images out
        classifier = None if alone else state.classifier
        with one_blas_thread():
            rows = suggest(view.rows, AHEAD + self.leases.held, classifier)
            left = [row for row, image in enumerate(view.images) if image.key not in state.label_of]
            rest = None if classifier is None or not left else estimate_rest(classifier, view.rows[left])
        keys = tuple(dict.fromkeys(view.images[row].key for row in rows))
        order = Order(state.version, len(view.images), time.monotonic(), keys, rest)
        labelled = len(view.images) - len(left)
        with self._lock:
            self._order = order
            if rest is not None:
                self._curve.add(labelled, 1.0 - rest.accuracy)
        return order

    def more_labels(self, target: float) -> int | None:
        """Return about how many more labels make the rest as accurate as `target`; None if that cannot be said."""
        with self._lock:
            return self._curve.more_labels(1.0 - target)

    def stop(self) -> None:
        """Wait for the order that is being computed."""
        with self._lock:
            coming = self._coming
        if coming is not None:
            wait([coming])

    def clear(self) -> None:
        """Forget the order, and who has what."""
        with self._lock:
            self._order, self._curve = None, LabelCurve()
        self.leases.clear()


def _is_old(order: Order | None, view: PileView, state: State) -> bool:
    if order is None or order.model != state.version or len(view.images) < order.images:
        return True
    more = view.complete and len(view.images) > order.images and time.monotonic() > order.made + _SECONDS
    return more or len(view.images) >= _GROWTH * order.images
