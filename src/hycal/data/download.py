"""Downloads of data sets: resumed after a broken connection, verified before they get their name, and unpacked."""

from __future__ import annotations

import hashlib
import http.client
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hycal._version import __version__
from hycal.data.archives import is_archive, unpack
from hycal.data.catalog import DataSetSpec, Download
from hycal.data.layouts.files import split_counts
from hycal.errors import HyCalError
from hycal.storage.atomic import check_replaceable, install

_PIECE = 2**18
_SECONDS_WITHOUT_A_BYTE = 60
_TRIES_WITHOUT_PROGRESS = 4
_PAUSE = 1.0

# Errors of a network. A full or write-protected disk raises other errors, for which trying again is useless.
_NETWORK_ERRORS = (urllib.error.URLError, ConnectionError, TimeoutError, ssl.SSLError, http.client.HTTPException)

Watch = Callable[[int, int | None], None]


def fetch(spec: DataSetSpec, folder: Path, *, say: Callable[[str], None], watch: Watch | None = None) -> None:
    """Download every file of a data set into `folder`, verify it, and unpack the archives; then CoOp's split.

    `say` is called with one line for each step, `watch` with the bytes so far and the total of the current download.
    """
    for item in spec.files:
        mark = folder / f".{item.filename}.unpacked"
        if mark.exists():
            say(f"{item.filename} was fetched and unpacked before; delete {mark} to do it again")
            continue
        say(item.url)
        path = download(item, folder, watch=watch)
        size = f"{path.stat().st_size:,} bytes"
        if item.checksum is None:
            say(f"{path}: {size}; its publisher states no checksum, so it cannot be verified")
        else:
            say(f"{path}: {size}, {item.checksum[0]} verified")
        if is_archive(path.name):
            count = _unpack(item, path, folder)
            mark.touch()  # last, so that a killed run unpacks again
            say(f"{path}: {count:,} files unpacked; the archive itself is no longer needed")
    if spec.split_url:
        _fetch_split(spec, folder, say, watch)
    if not spec.files:
        raise HyCalError(
            f"The images of {spec.title} are no longer published at an address that can be fetched. Get them by hand, "
            f"starting from {spec.home}, and check them with `hycal data check {spec.name} --root {folder}`."
        )


def _fetch_split(spec: DataSetSpec, folder: Path, say: Callable[[str], None], watch: Watch | None) -> None:
    """Download CoOp's split file; what it lists is compared with the table of data sets."""

    def difference(path: Path) -> str | None:
        try:
            found = split_counts(path)
        except HyCalError as error:
            return str(error)
        return None if found == spec.images else f"it lists {found} images; expected {dict(spec.images)}"

    say(spec.split_url)
    item = Download(spec.split_url, None, name=spec.split_file)
    path = download(item, folder, watch=watch, difference=difference)
    say(f"{path}: CoOp's split, {sum(spec.images.values()):,} images")


def _unpack(item: Download, path: Path, folder: Path) -> int:
    count = unpack(path, folder)
    if item.inside:
        inner = folder / item.inside
        count += unpack(inner, inner.parent)
    return count


def download(
    item: Download,
    folder: Path,
    *,
    watch: Watch | None = None,
    pause: float = _PAUSE,
    difference: Callable[[Path], str | None] | None = None,
) -> Path:
    """Download `item` into `folder` and return its path; a correct file that is there already is kept.

    The folder is made if it is missing; it keeps an unfinished download as NAME.part for the next call. `watch` is
    called with the bytes so far and the total, if the server states it. `pause` are the seconds before the first new
    try after a network error; they double each time. `difference` returns how a file differs from the published one, or
    None; by default its checksum is compared.
    """
    compare = difference or partial(_difference, item)
    if urlsplit(item.url).scheme not in ("http", "https"):
        raise HyCalError(f"Cannot fetch {item.url}: expected an http or https address.")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / item.filename
    if target.is_file():
        wrong = compare(target)
        if wrong:
            raise HyCalError(
                f"{target} is not the published file: {wrong}. It is left as it is; move it away to fetch {item.url}."
            )
        return target
    part = target.with_name(f"{target.name}.part")
    for path in (target, part):
        check_replaceable(path)
    _fetch_all(item, part, watch, pause)
    wrong = compare(part)
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
            error.close()  # it is the answer too
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and before:
                part.unlink()  # the file on the server changed, or ours is longer than it
                continue
            if error.code < 500:
                raise HyCalError(
                    f"{item.url} answered {error.code} {error.reason}. Look for the file at the publisher's page "
                    f"and save it as {part.with_name(item.filename)}."
                ) from None
            problem: Exception = error
        except _NETWORK_ERRORS as error:
            problem = error
        tries = 0 if _size(part) > before else tries + 1
        if tries >= _TRIES_WITHOUT_PROGRESS or (not _size(part) and _is_unreachable(problem)):
            came = f"the {_size(part):,} bytes that came are kept" if _size(part) else "nothing came"
            raise HyCalError(
                f"{item.url} cannot be fetched: {getattr(problem, 'reason', problem)}; {came}. Check the network and "
                f"run the command again to go on, or save the file as {part.with_name(item.filename)} yourself."
            ) from None
        time.sleep(pause * 2**tries)


def _is_unreachable(problem: Exception) -> bool:
    """Return whether the host is unknown or refuses the connection: waiting a few seconds does not help."""
    return isinstance(getattr(problem, "reason", problem), socket.gaierror | ConnectionRefusedError)


def _fetch_once(item: Download, part: Path, watch: Watch | None) -> None:
    tag = _tag_file(part)
    # Without a version tag, two halves may be of two versions; only a checksum would show it.
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
    """Keep the server's tag of this version of the file, so that halves of two versions are never joined."""
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
    """Return the difference of the checksum of `path` to the published one, or None."""
    if item.checksum is None:
        return None
    kind, expected = item.checksum
    with path.open("rb") as file:
        found = hashlib.file_digest(file, kind).hexdigest()
    return None if found == expected else f"its {kind} is {found}; expected {expected}"
