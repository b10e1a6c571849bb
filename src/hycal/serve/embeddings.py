"""Embeddings as clients send them: JSON for convenience, .npy for speed. Nothing in them is executed."""

from __future__ import annotations

import io

import numpy as np
from pydantic import ValidationError

from hycal.errors import HyCalError
from hycal.serve.shapes import Rows
from hycal.validation import Floats

NPY = "application/octet-stream"


def rows_of(body: bytes, kind: str, *, most: int) -> Floats:
    """Return the rows in a request body; `kind` is its media type."""
    rows = _from_npy(body) if kind.partition(";")[0].strip() == NPY else _from_json(body)
    if rows.ndim != 2 or not len(rows):
        raise HyCalError(f"The embeddings have shape {rows.shape}; expected (n, d), one row for each image.")
    if len(rows) > most:
        raise HyCalError(f"{len(rows):,} embeddings in one request; the limit is {most:,}. Send them in several.")
    return rows


def _from_npy(body: bytes) -> Floats:
    try:
        rows = np.lib.format.read_array(io.BytesIO(body), allow_pickle=False, max_header_size=10_000)
    except Exception as error:  # numpy parses the header as Python does, with as many kinds of errors
        raise HyCalError(f"The body is no .npy file: {error} Send what numpy.save writes.") from None
    if rows.dtype != np.float32:
        raise HyCalError(f"The embeddings are {rows.dtype}; expected float32. Convert them with astype('float32').")
    return np.ascontiguousarray(rows)


def _from_json(body: bytes) -> Floats:
    try:
        rows = Rows.model_validate_json(body).rows
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and the classifier refuses it
            return np.array(rows, dtype=np.float32)
    except ValidationError as error:
        first = error.errors()[0]
        raise HyCalError(f'Expected JSON {{"rows": [[...], ...]}}: {first["msg"]}.') from None
    except ValueError:
        raise HyCalError("The rows differ in length; expected one embedding for each image, all as wide.") from None
