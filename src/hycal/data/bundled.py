"""Real CLIP embeddings that come with the package, so that everything can be tried without a download."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.data.packing import pack, read_packed, unpack, write_packed
from hycal.errors import HyCalError
from hycal.storage.atomic import write_whole
from hycal.validation import Floats

PROVENANCE = "provenance.json"
_MOST_LABELS = 2**16


@dataclass(frozen=True, eq=False)
class EmbeddedDomain:
    """The embeddings of one domain.

    Attributes
    ----------
    name : str
    train_x, test_x : ndarray of shape (n, d)
        Unit float32 rows.
    train_y, test_y : ndarray of shape (n,)
        Positions in `class_names`.
    class_names : tuple of str
    """

    name: str
    train_x: Floats
    train_y: npt.NDArray[np.int64]
    test_x: Floats
    test_y: npt.NDArray[np.int64]
    class_names: tuple[str, ...]


def load_xd8() -> dict[str, EmbeddedDomain]:
    """Return the bundled embeddings of eight visual disciplines, by domain name in alphabetical order.

    OpenAI's CLIP ViT-B/16 (encoder `clip-vit-b16-w8`) on 223 classes of aircraft, art, digit, flower,
    galaxy, medical, satellite and texture images; 7371 to learn from, 4449 to test on, 512 dimensions, stored
    in half precision. `xd8_provenance` says exactly what was embedded, and how.

    Examples
    --------
    >>> xd8 = load_xd8()
    >>> xd8["digit"].train_x.shape[1], len(xd8["flower"].class_names)
    (512, 102)
    """
    return read_domains(_folder())


def xd8_provenance() -> dict[str, Any]:
    """Return where the bundled embeddings come from: encoder, images, versions, licence."""
    return _provenance(_folder())


def _folder() -> Path:
    return Path(str(resources.files("hycal.data"))) / "xd8"


def _provenance(folder: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HyCalError(
            f"The bundled embeddings in {folder} are missing or damaged: {error}. Install hycal again; in a "
            "source tree, make them with tools/build_xd8.py."
        ) from None
    return content


def read_domains(folder: Path) -> dict[str, EmbeddedDomain]:
    """Return the domains that `write_domains` wrote."""
    return {name: _read_domain(folder, name) for name in sorted(_provenance(folder)["domains"])}


def _read_domain(folder: Path, name: str) -> EmbeddedDomain:
    arrays = read_packed(folder / f"{name}.npz")
    return EmbeddedDomain(
        name=name,
        train_x=unpack("train_x", arrays),
        train_y=arrays["train_y"].astype(np.int64),
        test_x=unpack("test_x", arrays),
        test_y=arrays["test_y"].astype(np.int64),
        class_names=tuple(str(label) for label in arrays["class_names"]),
    )


def write_domains(folder: Path, domains: Mapping[str, EmbeddedDomain], *, provenance: dict[str, Any]) -> None:
    """Write `domains` and their provenance; what is written last makes the folder readable."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PROVENANCE).unlink(missing_ok=True)
    counts = {}
    for name, domain in domains.items():
        if len(domain.class_names) > _MOST_LABELS:
            raise HyCalError(f"Domain {name!r} has {len(domain.class_names)} classes; 65,536 fit the format.")
        arrays: dict[str, npt.NDArray[Any]] = {
            **pack("train_x", domain.train_x),
            **pack("test_x", domain.test_x),
            "train_y": domain.train_y.astype(np.uint16),
            "test_y": domain.test_y.astype(np.uint16),
            "class_names": np.array(domain.class_names),
        }
        write_packed(folder / f"{name}.npz", arrays)
        counts[name] = {
            "classes": len(domain.class_names),
            "train": len(domain.train_y),
            "test": len(domain.test_y),
        }
    text = json.dumps({**provenance, "domains": counts}, indent=2, sort_keys=True, ensure_ascii=False)
    write_whole(folder / PROVENANCE, (text + "\n").encode())
