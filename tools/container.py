"""Carry out the steps of deploy/Dockerfile in an empty folder, where no container engine runs, and try the result.

    python -m tools.container

It reads the Dockerfile itself: an environment of Python in the folder stands for the base image, absolute paths lie
below the folder, `RUN` is carried out with the wheel of `make dist`, and `CMD` and `HEALTHCHECK` as the user that the
file names, where we may choose one. A step that it does not know, or that would reach beyond the folder, is an error.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools import smoke

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
_MOUNT = re.compile(r"--mount=type=bind,source=(?P<source>[\w./-]+),target=(?P<target>/[\w./-]+)\s+")
_BEYOND = re.compile(r"(?<![\w.$}])/\w|\.\./")
_PATIENCE = 120


def steps(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile: name and arguments, continued lines joined.

    >>> steps("# why\\nRUN a \\\\\\n  b\\nUSER 1")
    [('RUN', 'a b'), ('USER', '1')]
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(name.upper(), rest.strip()) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


@dataclass
class Image:
    """What the steps have made so far.

    Attributes
    ----------
    root : Path
        The folder that stands for the root of the file system.
    """

    root: Path
    folder: str = "/"
    environment: dict[str, str] = field(default_factory=dict)
    user: int | None = None
    entry: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)

    def inside(self, path: str) -> str:
        """Return an absolute path below the folder; other texts as they are."""
        return str(self.root / path.lstrip("/")) if path.startswith("/") else path

    def carry_out(self, name: str, rest: str) -> None:
        """Carry out one instruction."""
        step = getattr(self, f"do_{name.lower()}", None)
        if step is None:
            raise SystemExit(f"{DOCKERFILE} has the step {name}, which tools/container.py does not know. Teach it.")
        sys.stdout.write(f"{name} {rest}\n")
        sys.stdout.flush()
        step(rest)

    def do_arg(self, rest: str) -> None:
        """An argument chooses the base image, and that is the Python here."""

    def do_expose(self, rest: str) -> None:
        """Ports need not be opened."""

    def do_from(self, rest: str) -> None:
        """Make an environment of Python, which is all that the base image has of interest."""
        if not re.fullmatch(r"python:\S+-slim", rest):
            raise SystemExit(f"The base image is {rest}; expected a slim one of Python.")
        venv.create(self.root / "usr" / "local", with_pip=True)

    def do_workdir(self, rest: str) -> None:
        """Make the folder in which the next steps run."""
        self.folder = rest
        Path(self.inside(rest)).mkdir(parents=True, exist_ok=True)

    def do_env(self, rest: str) -> None:
        """Set variables."""
        self.environment |= dict(part.split("=", 1) for part in shlex.split(rest))

    def do_user(self, rest: str) -> None:
        """Take the user of the next steps; root is refused."""
        self.user = int(rest.partition(":")[0])
        if self.user == 0:
            raise SystemExit("The container would run as root.")

    def do_run(self, rest: str) -> None:
        """Run a command, with the folders that it mounts linked meanwhile."""
        links = []
        while found := _MOUNT.match(rest):
            rest = rest[found.end() :]
            links.append(Path(self.inside(found["target"])))
            links[-1].symlink_to(ROOT / found["source"])
        if _BEYOND.search(rest):
            raise SystemExit(f"RUN {rest}: a path would reach beyond the folder. Use paths below WORKDIR.")
        done = subprocess.run(["sh", "-c", rest], **self.options())
        for link in links:
            link.unlink()
        if done.returncode:
            raise SystemExit(f"RUN ended with code {done.returncode}.")

    def do_entrypoint(self, rest: str) -> None:
        """Take the program."""
        self.entry = json.loads(rest)

    def do_cmd(self, rest: str) -> None:
        """Take its arguments."""
        self.command = json.loads(rest)

    def do_healthcheck(self, rest: str) -> None:
        """Take the command that says whether the server is well."""
        self.health = json.loads(rest.partition(" CMD ")[2])

    def options(self, **more: str) -> dict[str, Any]:
        """Return what every process gets: environment, folder, and the user where we may choose one."""
        given = {name: self.inside(value) for name, value in self.environment.items()}
        found: dict[str, Any] = {
            "cwd": self.inside(self.folder),
            "env": {
                **_kept(),
                "PATH": f"{self.root}/usr/local/bin:/usr/bin:/bin",
                "HOME": f"{self.root}/tmp",
                **given,
                **more,
            },
        }
        if self.user is not None and self.can_change_user():
            found |= {"user": self.user, "group": self.user, "extra_groups": []}
        return found

    def can_change_user(self) -> bool:
        """Whether this process may, and that user may run our Python."""
        python = [str(self.root / "usr/local/bin/python"), "-c", ""]
        try:
            return not subprocess.run(python, user=self.user, group=self.user, extra_groups=[]).returncode
        except OSError:
            return False


def _kept() -> dict[str, str]:
    """Return the variables of this process that say where pip finds packages."""
    return {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "http", "HTTP"))}


def try_image(image: Image) -> None:
    """Start the container's command on a small model, wait until it is healthy, ask it, and end it."""
    shared, port = image.root / "models", smoke.free_port()
    picture = smoke.draw(shared / "pictures")
    hycal, cache = image.root / "usr/local/bin/hycal", str(image.root / "first-cache")
    environment = {**os.environ, "HYCAL_CACHE": cache}
    smoke.run(hycal, "learn", shared / "model.hycal", shared / "pictures", "--yes", environment=environment)
    before = (shared / "model.hycal").read_bytes()
    options = image.options(HYCAL_TOKEN=smoke.TOKEN, HYCAL_PORT=str(port))
    command = [*image.entry, *map(image.inside, image.command)]
    server = subprocess.Popen(command, **options, stderr=subprocess.PIPE, text=True)
    with smoke.running(server):
        until = time.monotonic() + _PATIENCE
        while subprocess.run(image.health, **options, stderr=subprocess.DEVNULL).returncode:
            if server.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"the container is not healthy after {_PATIENCE} s (code {server.poll()})")
            time.sleep(0.2)
        smoke.check_server(port, picture, read_only=True)
    smoke.expect(
        "the model on its read-only volume is as before", (shared / "model.hycal").read_bytes() == before, True
    )
    if not subprocess.run(image.health, **options, stderr=subprocess.DEVNULL).returncode:
        raise SystemExit("the health check succeeds though the server has ended")


def main() -> None:
    """Make the image and try it."""
    if not list((ROOT / "dist").glob("hycal-*.whl")):
        raise SystemExit("There is no wheel in dist/. Run `make dist` first.")
    root = Path(tempfile.mkdtemp(prefix="hycal-container-"))
    try:
        root.chmod(0o755)
        image = Image(root)
        for name, rest in steps(DOCKERFILE.read_text()):
            image.carry_out(name, rest)
        (root / "tmp").mkdir(exist_ok=True)
        (root / "tmp").chmod(0o1777)
        if not image.can_change_user():
            sys.stdout.write(
                f"note: the server runs as the present user, because {image.user} cannot run this Python\n"
            )
        try_image(image)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    sys.stdout.write("the steps of the Dockerfile make a server that is healthy, answers, and changes nothing\n")


if __name__ == "__main__":
    main()
