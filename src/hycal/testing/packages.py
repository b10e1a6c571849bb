"""New packages for methods: copies of the template under another name."""

from __future__ import annotations

import keyword
import re
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

from hycal.classifiers import METHODS
from hycal.errors import HyCalError

_NAME = re.compile(r"[A-Z][A-Za-z0-9]{1,59}")
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "method.py": "src/{package}/__init__.py",
    "test_method.py": "tests/test_{package}.py",
}


def package_of(name: str) -> str:
    """Return the name of the package of a method.

    >>> package_of("NearestMedian"), package_of("MyKLDA2")
    ('nearest_median', 'my_klda2')
    """
    return _WORD.sub("_", name).lower()


def write_method_package(name: str, folder: Path | None = None) -> Path:
    """Write a package with a method, its test and its README; return its folder.

    `name` is that of the class, such as "NearestMedian". The folder must not exist; it is "nearest-median" in the
    working directory by default.
    """
    package = package_of(name)
    _check_name(name, package)
    target = folder or Path(package.replace("_", "-"))
    if target.exists():
        raise HyCalError(f"{target} exists, so nothing was written. Name another folder with --folder.")
    words = {
        "hycal.testing.template.method": package,
        "NearestMedian": name,
        "nearest_median": package,
        "nearest-median": package.replace("_", "-"),
    }
    template = resources.files("hycal.testing") / "template"
    for source, place in _FILES.items():
        text = (template / source).read_text(encoding="utf-8")
        for word, new in words.items():
            text = text.replace(word, new)
        path = target / place.format(package=package)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return target


def _check_name(name: str, package: str) -> None:
    """Refuse a name that Python or hycal could not use, or that is taken."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or keyword.iskeyword(package):
        raise HyCalError(f"{name!r} is not the name of a class; expected letters and digits such as NearestMedian.")
    taken = next((known for known in METHODS if known.lower() == name.lower()), None)
    if taken:
        raise HyCalError(f"There is a method {taken} already; expected a name of its own. Choose another.")
    if find_spec(package) is not None:
        raise HyCalError(f"There is a module {package} already, which this package would hide. Choose another name.")
