"""What hycal stands on: every package it needs, with version and licence, and known vulnerabilities of them.

    python tools/audit.py [--pip-audit PATH] [--need-service]

Ends with code 1 if a package has no licence on the list, if a dependency has no lowest version, or if a vulnerability
is known. The latter asks a service on the Internet; packages that could not be looked up are counted and named as not
checked, and with --need-service they are an error. `make audit` runs it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

EXTRAS = frozenset(
    {"bench", "clip", "data", "openvino", "serve"}
)  # what users install; the rest is for those who build hycal
PERMISSIVE = re.compile(r"MIT|BSD|Apache|PSF|Python Software Foundation|ISC|MPL|HPND|Unlicense|0BSD|Zlib|CC0", re.I)
_NAME = re.compile(r"^[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


def needed() -> dict[str, metadata.Distribution]:
    """Return hycal's dependencies, and theirs, as they are installed here."""
    found: dict[str, metadata.Distribution] = {}
    waiting = list(_requirements(metadata.distribution("hycal"), EXTRAS))
    while waiting:
        name = waiting.pop()
        if name in found or name == "hycal":
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # for another system or version of Python
        waiting += _requirements(found[name], frozenset())
    return dict(sorted(found.items()))


def _requirements(package: metadata.Distribution, extras: frozenset[str]) -> Iterator[str]:
    for line in package.requires or ():
        extra = _EXTRA.search(line)
        name = _NAME.match(line)
        if name is not None and (extra is None or extra[1] in extras):
            yield re.sub(r"[-_.]+", "-", name[0]).lower()


def licence(package: metadata.Distribution) -> str:
    """Return what a package says of its licence, in short."""
    facts = package.metadata
    classifiers = [line.rpartition(" :: ")[2] for line in facts.get_all("Classifier", []) if line.startswith("License")]
    told = [*facts.get_all("License-Expression", []), ", ".join(classifiers), *facts.get_all("License", []), "unknown"]
    return next(text for text in told if text).splitlines()[0][:60]


def unbounded() -> list[str]:
    """Return dependencies of hycal without a lowest version."""
    return [line for line in metadata.requires("hycal") or () if not re.search(r">=|==", line) and "hycal[" not in line]


@dataclass(frozen=True)
class Lookup:
    """Known vulnerabilities by package, and the packages that could not be looked up, with a reason."""

    found: dict[str, list[str]]
    unasked: list[str]
    why: str = ""


def look_up(program: Path, packages: dict[str, metadata.Distribution]) -> Lookup:
    """Ask for known vulnerabilities.

    pip-audit ends with "No known vulnerabilities found" and code 0 also when it could look up none of the packages, so
    its verdict is not believed: only a package that it does not list as skipped counts as looked up.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pins:
        pins.writelines(f"{name}=={package.version}\n" for name, package in packages.items())
        pins.flush()
        options = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
        try:
            command = [str(program), *options, "--requirement", pins.name]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            listed = json.loads(done.stdout)["dependencies"]
        except (OSError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
            return Lookup({}, list(packages), f"pip-audit gave no answer: {error}")
    answered = {entry["name"]: entry["vulns"] for entry in listed if "skip_reason" not in entry}
    reasons = [entry["skip_reason"] for entry in listed if "skip_reason" in entry]
    found = {name: [each["id"] for each in vulns] for name, vulns in answered.items() if vulns}
    return Lookup(found, [name for name in packages if name not in answered], reasons[0] if reasons else "")


def main() -> int:
    """Print the list and the verdicts."""
    parser = argparse.ArgumentParser(description="Dependencies, licences, known vulnerabilities.")
    parser.add_argument("--pip-audit", type=Path, default=Path("pip-audit"))
    parser.add_argument("--need-service", action="store_true", help="fail where vulnerabilities cannot be looked up")
    options = parser.parse_args()
    packages = needed()
    odd = [name for name, package in packages.items() if not PERMISSIVE.search(licence(package))]
    for name, package in packages.items():
        sys.stdout.write(f"{name:24}{package.version:14}{licence(package)}{'   <- not on the list' * (name in odd)}\n")
    loose = unbounded()
    sys.stdout.writelines(f"no lowest version: {line}\n" for line in loose)
    lookup = look_up(options.pip_audit, packages)
    sys.stdout.writelines(f"vulnerable: {name}: {', '.join(ids)}\n" for name, ids in lookup.found.items())
    sys.stdout.write(f"{len(packages) - len(lookup.unasked)} of {len(packages)} packages looked up")
    sys.stdout.write(f", {len(lookup.found)} with known vulnerabilities\n")
    if lookup.unasked:
        sys.stdout.write(f"VULNERABILITIES NOT CHECKED for {len(lookup.unasked)} packages: {lookup.why}\n")
    wrong = bool(odd or loose or lookup.found) or (bool(lookup.unasked) and options.need_service)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
