"""Downloads that survive a broken line: resumed where they stopped, checked before they get their name."""

from __future__ import annotations

import hashlib
import http.client
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hycal._version import __version__
from hycal.data.catalog import Download
from hycal.errors import HyCalError
from hycal.storage.atomic import install

_PIECE = 2**18
_SECONDS_WITHOUT_A_BYTE = 60
_TRIES_WITHOUT_PROGRESS = 4
_PAUSE = 1.0

# What a network does; a disk that is full or may not be written raises other errors, and trying again is no use.
_BROKEN_LINE = (urllib.error.URLError, ConnectionError, TimeoutError, ssl.SSLError, http.client.HTTPException)

Watch = Callable[[int, int | None], None]


def download(item: Download, folder: Path, *, watch: Watch | None = None, pause: float = _PAUSE) -> Path:
    """Fetch `item` into `folder` and return its path; a file that is already there and right is left alone.

    Parameters
    ----------
    item : Download
    folder : Path
        Made if missing. An unfinished download waits there as NAME.part for the next call.
    watch : callable, optional
        Called with the bytes so far and the total, if the server tells it.
    pause : float
        Seconds before the first new try after a broken line; doubled each time.
    """
    if urlsplit(item.url).scheme not in ("http", "https"):
        raise HyCalError(f"Cannot fetch {item.url}: expected an http or https address.")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / item.filename
    if target.is_file():
        wrong = _difference(item, target)
        if wrong:
            raise HyCalError(
                f"{target} is not the published file: {wrong}. It is left as it is; move it away to fetch {item.url}."
            )
        return target
    part = target.with_name(f"{target.name}.part")
    _fetch_all(item, part, watch, pause)
    wrong = _difference(item, part)
    if wrong:
        part.unlink()
        _tag_file(part).unlink(missing_ok=True)
        raise HyCalError(
            f"{item.url} gave another file than the published one: {wrong}. What came was deleted: it was damaged on "
            "the way, or was changed. Fetch it again; if that does not help, ask its publisher."
        )
    install(part, target)
    _tag_file(part).unlink(missing_ok=True)
    return target


def _fetch_all(item: Download, part: Path, watch: Watch | None, pause: float) -> None:
    tries = 0
    while True:
        before = _size(part)
        try:
            _fetch_once(item, part, watch)
            return
        except urllib.error.HTTPError as error:
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and before:
                part.unlink()  # the file on the server changed, or ours is longer than it
                continue
            if error.code < 500:
                raise HyCalError(
                    f"{item.url} answered {error.code} {error.reason}. Look for the file at the publisher's page "
                    f"and put it in {part.parent}."
                ) from None
            problem: Exception = error
        except _BROKEN_LINE as error:
            problem = error
        tries = 0 if _size(part) > before else tries + 1
        if tries >= _TRIES_WITHOUT_PROGRESS or (not _size(part) and _is_unreachable(problem)):
            came = f"the {_size(part):,} bytes that came are kept" if _size(part) else "nothing came"
            raise HyCalError(
                f"{item.url} cannot be fetched: {getattr(problem, 'reason', problem)}; {came}. Check the network and "
                f"run the command again to go on, or put the file in {part.parent} yourself."
            ) from None
        time.sleep(pause * 2**tries)


def _is_unreachable(problem: Exception) -> bool:
    """Return whether there is no such host, or nobody listens: waiting a few seconds does not help."""
    return isinstance(getattr(problem, "reason", problem), socket.gaierror | ConnectionRefusedError)


def _fetch_once(item: Download, part: Path, watch: Watch | None) -> None:
    tag = _tag_file(part)
    # Of a version that has no name the rest is not asked for, unless a checksum tells what belongs together.
    done = _size(part) if tag.is_file() or item.checksum is not None else 0
    headers = {"User-Agent": f"hycal/{__version__}", "Accept-Encoding": "identity"}
    if done:
        headers["Range"] = f"bytes={done}-"
        if tag.is_file():
            headers["If-Range"] = tag.read_text(encoding="utf-8")
    request = urllib.request.Request(item.url, headers=headers)
    with urllib.request.urlopen(request, timeout=_SECONDS_WITHOUT_A_BYTE) as answer:
        if done and answer.status != http.client.PARTIAL_CONTENT:
            done = 0  # the server cannot resume, or has another file now
        _remember_tag(part, answer)
        length = answer.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        with part.open("ab" if done else "wb") as file:
            while piece := answer.read(_PIECE):
                file.write(piece)
                done += len(piece)
                if watch is not None:
                    watch(done, total)
    if total is not None and done < total:
        raise http.client.IncompleteRead(b"", total - done)


def _remember_tag(part: Path, answer: Any) -> None:
    """Keep the server's name for this version of the file, so that halves of two versions are never joined."""
    tags = answer.headers.get("ETag", "W/"), answer.headers.get("Last-Modified")
    strong = next((tag for tag in tags if tag and not tag.startswith("W/")), None)
    if strong is None:
        _tag_file(part).unlink(missing_ok=True)
    else:
        _tag_file(part).write_text(strong, encoding="utf-8")


def _tag_file(part: Path) -> Path:
    return part.with_name(f"{part.name}.tag")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _difference(item: Download, path: Path) -> str | None:
    """Return how the checksum of `path` differs from the published one, or None."""
    if item.checksum is None:
        return None
    kind, expected = item.checksum
    with path.open("rb") as file:
        found = hashlib.file_digest(file, kind).hexdigest()
    return None if found == expected else f"its {kind} is {found}; expected {expected}"
