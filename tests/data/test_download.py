"""Downloads from a real HTTP server on the loopback interface."""

import hashlib
import io
import json
import socket
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hycal.data.catalog import DataSetSpec, Download, find_dataset, list_datasets
from hycal.data.download import download, fetch
from hycal.errors import HyCalError
from tests.support.data import DATA, needs

CONTENT = bytes(range(256)) * 4000


class Server(ThreadingHTTPServer):
    """Serves `files`; `breaks` are the lengths after which it drops the line, one for each request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {"/data.bin": CONTENT}
        self.breaks: list[int] = []
        self.resumes = True
        self.tag = '"1"'
        self.ranges: list[str | None] = []

    def url(self, name: str = "data.bin") -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Stay quiet."""

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.ranges.append(wanted)
        if self.path not in self.server.files:
            self.send_error(404)
            return
        content = self.server.files[self.path]
        start = 0
        fresh = self.headers.get("If-Range") in (None, self.server.tag)
        if wanted and self.server.resumes and fresh:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        body = content[start:]
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", self.server.tag)
        self.end_headers()
        if self.server.breaks:
            body = body[: self.server.breaks.pop(0)]
            self.close_connection = True
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def item(server: Server, name: str = "data.bin", content: bytes = CONTENT) -> Download:
    return Download(server.url(name), ("sha256", hashlib.sha256(content).hexdigest()))


def test_a_file_arrives_and_is_not_fetched_twice(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path = download(item(server), tmp_path, watch=lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == CONTENT and seen[-1] == (len(CONTENT), len(CONTENT))
    download(item(server), tmp_path)
    assert len(server.ranges) == 1 and [p.name for p in tmp_path.iterdir()] == ["data.bin"]


def test_a_broken_line_is_taken_up_again(server: Server, tmp_path: Path) -> None:
    server.breaks = [100_000, 0, 300_000, 1]
    assert download(item(server), tmp_path, pause=0).read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=100000-", "bytes=100000-", "bytes=400000-", "bytes=400001-"]


def test_an_interrupted_download_goes_on_in_the_next_call(server: Server, tmp_path: Path) -> None:
    server.breaks = [5000] + [0] * 9
    with pytest.raises(HyCalError, match="run the command again"):
        download(item(server), tmp_path, pause=0)
    assert (tmp_path / "data.bin.part").stat().st_size == 5000
    server.breaks = []
    assert download(item(server), tmp_path).read_bytes() == CONTENT
    assert server.ranges[-1] == "bytes=5000-"


def test_a_server_that_cannot_resume_starts_over(server: Server, tmp_path: Path) -> None:
    server.breaks, server.resumes = [1000], False
    assert download(item(server), tmp_path, pause=0).read_bytes() == CONTENT


def test_halves_of_two_versions_are_never_joined(server: Server, tmp_path: Path) -> None:
    server.breaks = [1000] + [0] * 9
    with pytest.raises(HyCalError):
        download(item(server), tmp_path, pause=0)
    other = CONTENT[::-1]
    server.files["/data.bin"], server.tag, server.breaks = other, '"2"', []
    assert download(item(server, content=other), tmp_path).read_bytes() == other


@pytest.mark.parametrize("tag", ['W/"1"', ""])
def test_halves_of_versions_without_a_name_are_not_joined_either(server: Server, tmp_path: Path, tag: str) -> None:
    server.breaks, server.tag = [1000] + [0] * 9, tag
    unsigned = Download(server.url(), None)
    with pytest.raises(HyCalError):
        download(unsigned, tmp_path, pause=0)
    server.files["/data.bin"], server.breaks = CONTENT[::-1], []
    assert download(unsigned, tmp_path).read_bytes() == CONTENT[::-1]


def test_a_part_longer_than_the_file_starts_over(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(bytes(len(CONTENT) + 5))
    assert download(item(server), tmp_path).read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_nothing_kept(server: Server, tmp_path: Path) -> None:
    server.files["/data.bin"] = b"something else"
    with pytest.raises(HyCalError, match="expected"):
        download(item(server), tmp_path)
    assert not list(tmp_path.iterdir())


def test_missing_files_and_strange_addresses(server: Server, tmp_path: Path) -> None:
    with pytest.raises(HyCalError, match="404"):
        download(Download(server.url("nothing"), None), tmp_path)
    with pytest.raises(HyCalError, match="expected an http"):
        download(Download("file:///etc/passwd", None), tmp_path)


def test_no_server_is_an_error_that_says_so(server: Server, tmp_path: Path) -> None:
    url = server.url()
    server.shutdown()
    server.server_close()
    with pytest.raises(HyCalError, match="cannot be fetched"):
        download(Download(url, None), tmp_path, pause=0)


def archive(*names: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as file:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 3
            file.addfile(info, io.BytesIO(b"abc"))
    return buffer.getvalue()


def spec(*files: Download) -> DataSetSpec:
    return DataSetSpec(name="toy", title="Toy", layout="dtd", classes=1, images={}, text="{}", home="home", files=files)


def test_fetch_verifies_then_unpacks_once(server: Server, tmp_path: Path) -> None:
    server.files["/x.tar.gz"] = archive("a/1.jpg", "a/2.jpg")
    said: list[str] = []
    toy = spec(item(server, "x.tar.gz", server.files["/x.tar.gz"]), Download(server.url(), None))
    fetch(toy, tmp_path, say=said.append)
    assert (tmp_path / "a" / "2.jpg").read_bytes() == b"abc"
    assert any("sha256 verified" in line for line in said)
    assert any("states no checksum" in line for line in said)
    (tmp_path / "x.tar.gz").unlink()
    fetch(toy, tmp_path, say=said.append)
    assert not (tmp_path / "x.tar.gz").exists() and "before" in "".join(said)


def test_fetch_of_a_hostile_archive_writes_nothing(server: Server, tmp_path: Path) -> None:
    server.files["/x.tar.gz"] = archive("good", "../evil")
    with pytest.raises(HyCalError, match="not safe"):
        fetch(spec(Download(server.url("x.tar.gz"), None)), tmp_path / "in", say=lambda line: None)
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["x.tar.gz"]
    assert not (tmp_path / "evil").exists()


def test_an_archive_inside_the_archive(server: Server, tmp_path: Path) -> None:
    inner = archive("cats/1.jpg")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        info = tarfile.TarInfo("top/inner.tar.gz")
        info.size = len(inner)
        file.addfile(info, io.BytesIO(inner))
    server.files["/x.tar"] = buffer.getvalue()
    fetch(spec(Download(server.url("x.tar"), None, "top/inner.tar.gz")), tmp_path, say=lambda line: None)
    assert (tmp_path / "top" / "cats" / "1.jpg").is_file()


def test_images_that_are_not_published_any_more_are_to_be_had_by_hand(tmp_path: Path) -> None:
    with pytest.raises(HyCalError, match="by hand"):
        fetch(replace(find_dataset("cars"), split_url=""), tmp_path, say=lambda line: None)


def test_the_split_of_coop_is_fetched_after_the_images(server: Server, tmp_path: Path) -> None:
    entry = [["a.jpg", 0, "a"]]
    server.files["/uc?id=7"] = json.dumps({"train": entry * 2, "val": entry, "test": entry}).encode()
    dtd = replace(find_dataset("dtd"), files=(item(server),), split_url=server.url("uc?id=7"))
    fetch(replace(dtd, images={"train": 2, "val": 1, "test": 1}), tmp_path, say=lambda line: None)
    assert (tmp_path / dtd.split_file).read_bytes() == server.files["/uc?id=7"]
    other = tmp_path / "other"
    with pytest.raises(HyCalError, match=r"lists \{'train': 2, 'val': 1, 'test': 1\} images; expected \{'train': 2820"):
        fetch(dtd, other, say=lambda line: None)
    assert [path.name for path in other.iterdir()] == ["data.bin"]


@pytest.mark.parametrize("page", [b"<html>Quota exceeded</html>", b"[]", b'{"train": [], "val": 3, "test": []}'])
def test_a_page_of_the_server_is_no_split(server: Server, tmp_path: Path, page: bytes) -> None:
    server.files["/split"] = page
    eurosat = replace(find_dataset("eurosat"), files=(), split_url=server.url("split"))
    with pytest.raises(HyCalError, match="gave another file than the published one: The split file"):
        fetch(eurosat, tmp_path, say=lambda line: None)
    assert not list(tmp_path.iterdir())


def test_every_split_has_an_address() -> None:
    splits = [spec for spec in list_datasets() if spec.split_file]
    assert {spec.name for spec in splits} == {
        "dtd", "eurosat", "flowers", "caltech101", "food101", "pets", "cars", "sun397",
    }  # fmt: skip
    assert len({spec.split_url for spec in splits}) == len(splits)
    assert all(spec.split_url.startswith("https://") for spec in splits)


@needs("splits")
@pytest.mark.parametrize("name", ["caltech101", "dtd", "eurosat", "flowers", "pets", "cars"])
def test_the_published_split_is_accepted(name: str, server: Server, tmp_path: Path) -> None:
    spec = replace(find_dataset(name), files=(item(server),), split_url=server.url("split"))
    server.files["/split"] = (DATA / "splits" / spec.split_file).read_bytes()
    fetch(spec, tmp_path, say=lambda line: None)
    assert (tmp_path / spec.split_file).is_file()


def test_organs_are_fetched_with_224_pixels() -> None:
    (file,) = find_dataset("organ").files
    assert file.filename == "organamnist_224.npz" and file.checksum == ("md5", "50747347e05c87dd3aaf92c49f9f3170")


def test_a_file_that_a_user_put_there_is_never_deleted(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"another edition")
    with pytest.raises(HyCalError, match="left as it is; move it away"):
        download(item(server), tmp_path)
    assert (tmp_path / "data.bin").read_bytes() == b"another edition" and not server.ranges


def test_nobody_listens_is_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = Download(f"http://127.0.0.1:{closed.getsockname()[1]}/x.tar", None)
        with pytest.raises(HyCalError, match=r"refused; nothing came"):
            download(nobody, tmp_path, pause=1000)


def test_a_disk_that_refuses_is_not_tried_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part.tag").mkdir()
    with pytest.raises(IsADirectoryError):
        download(item(server), tmp_path, pause=1000)


def test_what_is_no_file_is_not_replaced(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin").mkdir()
    with pytest.raises(HyCalError, match="not an ordinary file"):
        download(item(server), tmp_path)
    assert not server.ranges
