"""A real Chromium in front of a real server, by `make test-browser`, which says where the browser is."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.pictures import draw_folders
from tests.support.data import DATA

collect_ignore_glob = [] if os.environ.get("HYCAL_BROWSER") else ["test_*.py"]

#: The camera is a green picture that changes with time, and needs no permission.
ARGUMENTS = ["--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
REAL = DATA / "xd8-images"


class Server:
    """`hycal serve` as a process of its own, which can be stopped and started again on the same file and port."""

    def __init__(self, model: Path, *options: str) -> None:
        self.model = model
        self._options = options
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        code = "from hycal.cli import app; app()"
        command = [sys.executable, "-c", code, "serve", str(self.model), "--port", str(self.port), *self._options]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for _ in range(600):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}api/health", timeout=1):
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"the server did not start: {self.stop()}")

    def stop(self, how: int = signal.SIGTERM) -> str:
        """End the server; return what it said."""
        self._process.send_signal(how)
        return self._process.communicate(timeout=60)[1]


@contextlib.contextmanager
def serving(model: Path, *options: str) -> Iterator[Server]:
    server = Server(model, *options)
    server.start()
    try:
        yield server
    finally:
        server.stop(signal.SIGKILL)


class Visit:
    """One page, with what a person does there."""

    def __init__(self, browser, url: str, **options) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1100, "height": 800}, **options})
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda line: self._hear(line.type, line.text))
        self.open(url)

    def _hear(self, kind: str, text: str) -> None:
        if kind == "error" and not text.startswith("Failed to load resource"):  # the server is stopped on purpose
            self.complaints.append(text)

    def open(self, url: str) -> None:
        self.page.goto(url)
        self.page.wait_for_selector("body[data-ready]")

    def go(self, view: str) -> None:
        self.page.click(f"nav a[href='#{view}']")
        self.page.wait_for_selector(f"#{view}:not([hidden])")

    def drop(self, *paths: Path) -> None:
        """Drop files or folders on the page, as the system's file manager does."""
        devtools = self.context.new_cdp_session(self.page)
        data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            devtools.send("Input.dispatchDragEvent", {"type": kind, "x": 300, "y": 400, "data": data})
        devtools.detach()

    def teach(self, folder: Path) -> str:
        """Drop a folder to learn, agree, and return what the page reports."""
        self.go("teach")
        self.drop(folder)
        self.page.click(".plan form button.main")
        self.page.wait_for_selector(".report h3")
        return self.page.inner_text(".report h3")

    def ask(self, *paths: Path, count: int) -> list[str]:
        """Drop images, and return the best label of each card once `count` are there."""
        self.go("ask")
        self.drop(*paths)
        self.page.wait_for_function("count => document.querySelectorAll('.card').length === count", arg=count)
        return self.answers()

    def answers(self) -> list[str]:
        return self.page.eval_on_selector_all(".card .best strong", "all => all.map(one => one.textContent)")

    def facts(self) -> str:
        return self.page.inner_text("#facts")

    def wait_for_facts(self, text: str) -> None:
        self.page.wait_for_function("text => document.getElementById('facts').textContent.startsWith(text)", arg=text)

    def wait_for_message(self, text: str) -> None:
        script = "text => document.getElementById('toast').textContent.startsWith(text)"
        self.page.wait_for_function(script, arg=text)

    def classes(self) -> list[str]:
        self.go("classes")
        return self.page.eval_on_selector_all("tr[data-label]", "rows => rows.map(row => row.dataset.label)")


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=os.environ["HYCAL_BROWSER"], args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def visit(browser):
    visits = []

    def new(url: str, **options) -> Visit:
        visits.append(Visit(browser, url, **options))
        return visits[-1]

    yield new
    for one in visits:
        one.context.close()
    for one in visits:
        assert not one.complaints


@pytest.fixture(scope="session")
def drawn(tmp_path_factory) -> Path:
    """Folders of drawn images, two domains of three classes."""
    root = tmp_path_factory.mktemp("drawn")
    draw_folders(root, train=8, test=3)
    return root


@pytest.fixture(scope="session")
def photographs(tmp_path_factory, drawn) -> Path:
    """Two domains of real images, three classes each; the drawn ones where there are none."""
    if not REAL.is_dir():
        return drawn
    root = tmp_path_factory.mktemp("photographs")
    wanted = {"flower": ["anthurium", "azalea", "camellia"], "satellite": ["beach", "forest", "freeway"]}
    for domain, names in wanted.items():
        for split, count in (("train", 8), ("test", 3)):
            for name in names:
                target = root / domain / split / name
                target.mkdir(parents=True)
                for path in sorted((REAL / domain / split / name).iterdir())[:count]:
                    shutil.copy(path, target)
    return root
