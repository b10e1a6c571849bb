"""Build wheel and sdist into dist/, check both, install the wheel into an empty environment, and try it there.

    python tools/dist.py

It needs the packages build and twine; `make dist` has them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
MOST_BYTES = 35_000_000  # of each file: the bundled encoder has 12 MB, the bundled embeddings at most 25
_NEEDED = (
    "hycal/py.typed",
    "hycal/serve/page/index.html",
    "hycal/encoders/weights/builtin.onnx",
    "hycal/encoders/catalog.toml",
)


def main() -> None:
    """Do all of it; end with the reason where something is wrong."""
    shutil.rmtree(DIST, ignore_errors=True)
    call("-m", "build", "--outdir", DIST, ROOT)  # the wheel is built from the sdist, so that one is complete
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    call("-m", "twine", "check", "--strict", wheel, sdist)
    check_wheel(wheel)
    check_sdist(sdist)
    for path in (wheel, sdist):
        size = path.stat().st_size
        say(f"{path.name}: {size / 1e6:.1f} MB of {MOST_BYTES / 1e6:.0f}")
        if size > MOST_BYTES:
            raise SystemExit(f"{path.name} is larger than that. Bundle less, or raise the bound in tools/dist.py.")
    try_wheel(wheel)


def call(*command: str | Path, python: Path | str = sys.executable) -> None:
    """Run Python; end with its code if it fails."""
    done = subprocess.run([str(python), *map(str, command)])
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} ended with code {done.returncode}.")


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def check_wheel(wheel: Path) -> None:
    """Refuse a wheel that installs more than the package, or less."""
    names = zipfile.ZipFile(wheel).namelist()
    strange = [name for name in names if not name.startswith(("hycal/", "hycal-")) or "__pycache__" in name]
    missing = [name for name in _NEEDED if name not in names]
    if strange or missing:
        raise SystemExit(f"{wheel.name} has {strange[:5]}, which do not belong there, and lacks {missing}.")


def check_sdist(sdist: Path) -> None:
    """Refuse an sdist with files that are not in the repository, where there is one to ask."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if name.partition("/")[2]}
        files = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    needed = {"LICENSE", "NOTICE", "README.md", "pyproject.toml", "src/hycal/__init__.py", "PKG-INFO"}
    if not needed <= names:
        raise SystemExit(f"{sdist.name} lacks {sorted(needed - names)}.")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    known = set(listed.stdout.splitlines()) | {"PKG-INFO"}
    if not listed.returncode and files - known:
        raise SystemExit(f"{sdist.name} has files that git does not know: {sorted(files - known)[:10]}.")


def try_wheel(wheel: Path) -> None:
    """Install the wheel with its server into an empty environment, and run the smoke test there."""
    with tempfile.TemporaryDirectory(prefix="hycal-dist-") as place:
        venv.create(place, with_pip=True)
        python = Path(place, "Scripts", "python.exe") if sys.platform == "win32" else Path(place, "bin", "python")
        call("-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[serve]", python=python)
        call("-m", "pip", "check", python=python)
        call(ROOT / "tools" / "smoke.py", python=python)


if __name__ == "__main__":
    main()
