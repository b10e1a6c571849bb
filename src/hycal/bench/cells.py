"""One cell of the grid: a setting, an order, a seed and a method, with its result as a small JSON file.

A file holds counts rather than percentages, the calibration error, and which test images are right. It holds nothing
that changes from run to run, so equal inputs give equal bytes; the seconds that the cell took are in another file, in
`timing`. The manifest lists everything that the result depends on. A cell runs only if there is no file with the
manifest that it would write.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal._version import __version__
from hycal.bench.domains import BenchDomain, have_text
from hycal.bench.methods import Variant
from hycal.bench.protocol import Outcome
from hycal.bench.sampling import SampleList, sample_hash
from hycal.bench.settings import Setting
from hycal.errors import HyCalError
from hycal.escaping import file_name
from hycal.gravity import Gravity
from hycal.validation import Doubles

CELL_MARK = b'{\n "a'  # how the file of a cell begins, in every version: "alone", or "asked"
FORMAT = 4
ONE_DOMAIN = "all"  # what a variant with one domain for all classes is told
_DIGITS = 6  # of the calibration error


@dataclass(frozen=True)
class Cell:
    """What is run: one method on one setting, in one order, with one seed."""

    setting: Setting
    order: str
    seed: int
    variant: Variant

    @property
    def place(self) -> str:
        """Path of its file below the folder of cells."""
        name = f"{self.order}.{self.setting.protocol}.{self.variant.label}.{self.seed}.json"
        return f"{file_name(self.setting.label)}/{file_name(name)}"

    def domains(self, embedded: Mapping[str, BenchDomain]) -> list[BenchDomain]:
        """Return the domains in the order of learning; with text only if all have it, as the manifest says."""
        domains = [embedded[domain.name] for domain in self.setting.in_order(self.order)]
        if self.variant.one_domain:
            domains = [replace(domain, told=ONE_DOMAIN) for domain in domains]
        if have_text(domains):
            return domains
        return [replace(domain, text=None) for domain in domains]


@dataclass(frozen=True, eq=False)
class CellResult:
    """The content of a cell's file."""

    setting: str
    order: str
    protocol: str
    method: str
    seed: int
    domains: tuple[str, ...]  # in the order of learning
    samples: tuple[int, ...]  # training images of each domain
    A: Doubles  # (T, T): accuracy in percent, NaN where it was not measured
    Z: Doubles  # (T,): zero-shot accuracy, NaN where there is no text
    classes: Mapping[str, tuple[int, float]]  # by label: images learned, and accuracy after the last step
    shortages: int  # classes that had fewer images than shots
    nbytes: int
    asked: tuple[int, ...] = ()  # test images of each domain
    # (T,): accuracy on each domain of the method that learned it alone, NaN where it was not measured.
    alone: Doubles = field(default_factory=lambda: np.array([np.nan]))
    # Whether each test image of each domain is right after the last step; () where it was not kept.
    right: tuple[npt.NDArray[np.bool_], ...] = ()
    calibration_error: float = float("nan")  # after the last step, in percent; NaN where it was not measured
    gravity: Gravity | None = None  # None where it was not measured
    versions: Mapping[str, str] = field(default_factory=dict)  # of hycal, Python and libraries that made it
    # Everything that the result depends on; the function `manifest` makes it.
    manifest: Mapping[str, Any] = field(default_factory=dict)


@cache
def _versions() -> dict[str, str]:
    compiled = ["numba"] if find_spec("numba") else []
    libraries = {name: version(name) for name in ["numpy", "scipy", "scikit-learn", *compiled]}
    return {"hycal": __version__, "python": platform.python_version(), **libraries}


def manifest(
    cell: Cell, domains: Sequence[BenchDomain], samples: Mapping[str, SampleList], digests: Mapping[str, str]
) -> dict[str, Any]:
    """Return everything that the result of a cell depends on, as JSON values."""
    text = have_text(domains)
    return {
        "format": FORMAT,
        "versions": _versions(),
        "setting": cell.setting.label,
        "title": cell.setting.title,
        "protocol": cell.setting.protocol,
        "order": cell.order,
        "seed": cell.seed,
        "method": cell.variant.label,
        "parameters": cell.variant.parameters(cell.setting, text=text, seed=cell.seed),
        "text": text,
        "short": cell.setting.short,
        "tests": cell.setting.tests,
        "sampling": cell.setting.sampling,
        "domains": [domain.name for domain in domains],
        "embeddings": {domain.name: digests[domain.name] for domain in domains},
        "samples": {domain.name: len(samples[domain.name].rows) for domain in domains},
        "sample_list": sample_hash(list(samples.values())),
        "shortages": [
            {"domain": domain.name, **asdict(shortage)}
            for domain in domains
            for shortage in samples[domain.name].shortages
        ],
    }


def encode(
    content: Mapping[str, Any], outcome: Outcome, zero_shot: list[int | None], domains: Sequence[BenchDomain]
) -> bytes:
    """Return the bytes of a cell's file."""
    totals = {label: int(n) for domain in domains for label, n in zip(domain.labels, _per_class(domain), strict=True)}
    classes = {
        label: [outcome.class_shots[label], right, totals[label]] for label, right in outcome.class_correct.items()
    }
    document = {
        "manifest": content,
        "correct": outcome.correct,
        "asked": [len(domain.test_y) for domain in domains],
        "zero_shot": zero_shot,
        "alone": outcome.alone,
        "right": [pack_hits(hits) for hits in outcome.right],
        "classes": classes,
        "calibration_error": round(outcome.calibration_error, _DIGITS),
        "state_bytes": outcome.nbytes,
        "gravity": None if outcome.gravity is None else outcome.gravity.as_json(),
    }
    return (json.dumps(document, sort_keys=True, ensure_ascii=False, indent=1) + "\n").encode()


def _per_class(domain: BenchDomain) -> list[int]:
    return np.bincount(domain.test_y, minlength=len(domain.class_names)).tolist()


def read_manifest(path: Path) -> dict[str, Any] | None:
    """Return the manifest of a finished cell or of figure data, or None if there is no complete file."""
    try:
        return json.loads(path.read_bytes())["manifest"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_cell(path: Path) -> CellResult:
    """Return the content of a cell's file; this is the one place that reads it."""
    try:
        document = json.loads(path.read_bytes())
        about = document["manifest"]
        asked = np.array(document["asked"], dtype=np.float64)
        return CellResult(
            setting=about["setting"],
            order=about["order"],
            protocol=about["protocol"],
            method=about["method"],
            seed=about["seed"],
            domains=tuple(about["domains"]),
            samples=tuple(about["samples"][name] for name in about["domains"]),
            A=_percent(document["correct"]) / asked,
            Z=_percent(document["zero_shot"]) / asked,
            asked=tuple(document["asked"]),
            alone=_percent(document.get("alone", [None] * len(asked))) / asked,
            right=tuple(map(unpack_hits, document.get("right", []), document["asked"])),
            classes={
                k: (shots, 100.0 * right / total if total else np.nan)
                for k, (shots, right, total) in document["classes"].items()
            },
            shortages=len(about["shortages"]),
            nbytes=document["state_bytes"],
            calibration_error=float(document.get("calibration_error", "nan")),
            gravity=None if document.get("gravity") is None else Gravity.from_json(document["gravity"]),
            versions=about["versions"],
            manifest=about,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HyCalError(f"{path} is not a result of `hycal bench run`: {error!r}. Delete it and run again.") from None


def pack_hits(hits: npt.NDArray[np.bool_]) -> str:
    """Return which test images are right as hexadecimal digits, eight images to a byte.

    >>> pack_hits(np.array([True, False, False, False, False, False, False, True, True]))
    '8180'
    """
    return np.packbits(hits).tobytes().hex()


def unpack_hits(packed: str, asked: int) -> npt.NDArray[np.bool_]:
    """Return the hits that `pack_hits` packed, by the number of images."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(packed), dtype=np.uint8), count=asked).astype(np.bool_)


def _percent(counts: Any) -> Doubles:
    """Return 100 times the counts, None as NaN."""
    return 100.0 * np.array(counts, dtype=object).astype(np.float64)
