"""The embeddings that come with the package, for trying everything without a download, and their file format.

A domain is one .npz file. Embeddings are float16, as two planes of bytes, deflated. The high bytes of unit rows (sign,
exponent, two bits of mantissa) are alike and deflate well; the low bytes are noise. Interleaved, as numpy stores them,
neither would shrink.

The same images by another encoder are a view: views/ENCODER.npz has the rows of all domains in 8 bits, scaled by their
largest entry, which unit length makes unnecessary to store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.data.embedded import EmbeddedDomain
from hycal.errors import HyCalError
from hycal.storage.npz import load_arrays
from hycal.validation import Floats, unit_rows

PROVENANCE = "provenance.json"
VIEWS = "views"

_Arrays = Mapping[str, npt.NDArray[Any]]


def load_xd8(encoders: Sequence[str] = ()) -> dict[str, EmbeddedDomain]:
    """Return the bundled embeddings of eight visual disciplines, by domain name in alphabetical order.

    By default OpenAI's CLIP ViT-B/16 (encoder `clip-vit-b16-w8`) on 223 classes of aircraft, art, digit, flower,
    galaxy, medical, satellite and texture images; 7371 for training, 4449 for testing, 512 dimensions, stored in half
    precision. `xd8_provenance` says exactly what was embedded, and how. With names of encoders, a row has the unit
    vectors of all of them side by side, in their order; `xd8_encoders` lists them.

    Examples
    --------
    >>> xd8 = load_xd8()
    >>> xd8["digit"].train_x.shape[1], len(xd8["flower"].class_names)
    (512, 102)
    """
    folder, domains = _folder(), read_domains(_folder())
    if not encoders:
        return domains
    first, known = xd8_provenance()["encoder"], xd8_encoders()
    missing = [name for name in encoders if name not in known]
    if missing:
        raise HyCalError(f"The package has no embeddings by {missing[0]!r}; expected some of {', '.join(known)}.")
    views = [domains if name == first else read_view(folder, name, domains) for name in encoders]
    return {
        name: replace(
            domain,
            train_x=np.hstack([view[name].train_x for view in views]),
            test_x=np.hstack([view[name].test_x for view in views]),
        )
        for name, domain in domains.items()
    }


def xd8_encoders() -> tuple[str, ...]:
    """Return the names of the encoders whose embeddings come with the package.

    >>> xd8_encoders()[:2]
    ('clip-vit-b16-w8', 'builtin')
    """
    provenance = xd8_provenance()
    return provenance["encoder"], *sorted(provenance.get("views", {}))


def xd8_provenance() -> dict[str, Any]:
    """Return the origin of the bundled embeddings: encoder, images, versions, licence.

    Examples
    --------
    >>> xd8_provenance()["encoder"]
    'clip-vit-b16-w8'
    """
    return _provenance(_folder())


def _folder() -> Path:
    return Path(str(resources.files("hycal.data"))) / "xd8"


def _provenance(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HyCalError(
            f"The bundled embeddings in {folder} are missing or damaged: {error}. Install hycal again; in a "
            "source tree, make them with tools/build_xd8.py."
        ) from None


def read_domains(folder: Path) -> dict[str, EmbeddedDomain]:
    """Return the domains that `tools/build_xd8.py` wrote."""
    return {name: _read_domain(folder, name) for name in sorted(_provenance(folder)["domains"])}


def _read_domain(folder: Path, name: str) -> EmbeddedDomain:
    path = folder / f"{name}.npz"
    try:
        arrays = load_arrays(path)
    except ValueError as error:
        raise HyCalError(f"{path.name} of the bundled data is damaged: {error}. Install hycal again.") from None
    return EmbeddedDomain(
        name=name,
        train_x=_join_planes("train_x", arrays),
        train_y=arrays["train_y"].astype(np.int64),
        test_x=_join_planes("test_x", arrays),
        test_y=arrays["test_y"].astype(np.int64),
        class_names=tuple(str(label) for label in arrays["class_names"]),
    )


def read_view(folder: Path, encoder: str, domains: Mapping[str, EmbeddedDomain]) -> dict[str, EmbeddedDomain]:
    """Return `domains` with the rows that `tools/build_xd8.py` wrote for an encoder."""
    path = folder / VIEWS / f"{encoder}.npz"
    try:
        arrays = load_arrays(path)
        return {
            name: replace(
                domain,
                train_x=_as_many(arrays[f"{name}.train_x"], domain.train_x),
                test_x=_as_many(arrays[f"{name}.test_x"], domain.test_x),
            )
            for name, domain in domains.items()
        }
    except (ValueError, KeyError) as error:
        raise HyCalError(f"{path.name} of the bundled data is damaged: {error}. Install hycal again.") from None


def _as_many(codes: npt.NDArray[Any], rows: Floats) -> Floats:
    if len(codes) != len(rows):
        raise ValueError(f"it has {len(codes)} rows in place of {len(rows)}")
    return unit_rows(codes.astype(np.float32))


def _join_planes(name: str, arrays: _Arrays) -> Floats:
    """Return the rows of two byte planes, as unit float32 rows."""
    low, high = arrays[f"{name}_low"], arrays[f"{name}_high"]
    rows: npt.NDArray[np.float16] = np.stack([low, high], axis=-1).view("<f2")[..., 0]
    return unit_rows(rows)
