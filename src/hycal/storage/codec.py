"""From the records of a model to the content of a model file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.errors import HyCalError, ModelFileError
from hycal.state.records import ClassRecord, Records
from hycal.state.samples import ClassSamples
from hycal.storage.model_file import Content
from hycal.validation import Floats, Label, check_label, check_one_kind

_UNIT_TOLERANCE = 1e-3


def content_of(
    records: Records, method: str, parameters: Mapping[str, Any], encoder: str | None, *, width: int | None = None
) -> Content:
    """Return the content of the model file of these records; `width` is needed if there are no classes."""
    ordered = records.ordered
    if ordered:
        width = records.width
    if width is None:
        raise HyCalError("The model has no classes, so there is nothing to save. Learn a class first.")
    nothing = np.empty((0, width), np.float32)
    texts = [record.text for record in ordered if record.text is not None]
    memo = {"memo": dict(records.memo)} if records.memo else {}
    return Content(
        manifest={
            **memo,
            "method": method,
            "parameters": {k: v.item() if isinstance(v, np.generic) else v for k, v in parameters.items()},
            "encoder": encoder,
            "labels": list(records.labels),
            "domains": [record.domain for record in ordered],
        },
        tensors={
            "samples": np.concatenate([nothing, *(record.samples.rows for record in ordered)]),
            "counts": records.counts,
            "texts": np.stack(texts) if texts else nothing,
            "has_text": np.array([record.text is not None for record in ordered], dtype=np.uint8),
        },
    )


def records_of(content: Content) -> Records:
    """Return the records in the content of a model file; every field is checked."""
    manifest, tensors = content.manifest, content.tensors
    labels = _labels(manifest.get("labels"))
    domains: Any = manifest.get("domains")
    _expect(_is_list_of(domains, str, len(labels)), "one domain name per class")
    samples = unit_matrix(tensors.get("samples"), "samples")
    texts = unit_matrix(tensors.get("texts"), "texts", width=samples.shape[1])
    counts, has_text = _integers(tensors, "counts", np.int64), _integers(tensors, "has_text", np.uint8)
    _expect(len(counts) == len(has_text) == len(labels), "one count and one text mark per class")
    _expect(bool(np.all((counts >= 0) & (counts <= len(samples)))), "counts between none and all of the samples")
    _expect(bool(np.all((counts > 0) | (has_text == 1))), "a positive count for each class without a text")
    _expect(int(counts.sum()) == len(samples), "as many samples as the counts add up to")
    _expect(bool(np.all(has_text <= 1)) and int(has_text.sum()) == len(texts), "as many texts as classes marked")
    memo = manifest.get("memo", {})
    _expect(isinstance(memo, dict), "a memo that is an object")
    ends = np.cumsum(counts)
    in_order = _in_order(samples, counts, ends)
    by_class = [
        (ClassSamples if sound else ClassSamples.of)(samples[end - count : end])
        for end, count, sound in zip(ends.tolist(), counts.tolist(), in_order.tolist(), strict=True)
    ]
    next_text = iter(texts)
    own_texts = [next(next_text) if marked else None for marked in has_text.tolist()]
    return Records(dict(zip(labels, map(ClassRecord, by_class, domains, own_texts), strict=True)), memo)


def _in_order(samples: Floats, counts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which classes have their rows in canonical order: those are neither sorted nor copied.

    Files that hycal wrote have them all in order. Rows are ordered by their bytes. Only the first four bytes are
    compared; a class with two equal starts counts as out of order, and is sorted.
    """
    heads = np.ascontiguousarray(samples[:, :1]).view(">u4")[:, 0]
    follows = np.ones(len(samples), dtype=np.bool_)
    follows[1:] = heads[1:] > heads[:-1]
    follows[(ends - counts)[counts > 0]] = True
    faults = np.concatenate([[0], np.cumsum(~follows)])
    return faults[ends] == faults[ends - counts]


def _expect(condition: bool, expected: str) -> None:
    if not condition:
        raise ModelFileError(f"The model file is malformed: expected {expected}. Restore it from a copy.")


def _is_list_of(value: Any, kind: type, length: int) -> bool:
    return isinstance(value, list) and len(value) == length and all(type(item) is kind for item in value)


def _labels(value: Any) -> list[Label]:
    _expect(isinstance(value, list), "a list of labels")
    try:
        labels = [check_label(label) for label in value]
        check_one_kind(labels)
    except HyCalError as error:
        raise ModelFileError(f"The model file is malformed: {error}") from None
    _expect(labels == sorted(set(labels)), "labels in order, no two of them equal")
    return labels


def unit_matrix(array: npt.NDArray[Any] | None, name: str, *, width: int | None = None) -> Floats:
    """Return an array of a file that must be a matrix of finite unit rows, of this width if one is given."""
    _expect(array is not None and array.dtype == np.float32 and array.ndim == 2, f"a float32 matrix {name!r}")
    assert array is not None
    _expect(width in (None, array.shape[1]), f"{name!r} to be {width} numbers wide")
    lengths = np.einsum("nd,nd->n", array, array)
    _expect(bool(np.all(np.abs(lengths - 1.0) <= _UNIT_TOLERANCE)), f"finite unit rows in {name!r}")
    return array


def _integers(tensors: Mapping[str, npt.NDArray[Any]], name: str, dtype: Any) -> npt.NDArray[np.int64]:
    array = tensors.get(name)
    _expect(
        array is not None and array.dtype == dtype and array.ndim == 1,
        f"a vector {name!r} of {dtype.__name__}",
    )
    assert array is not None
    return array.astype(np.int64)
