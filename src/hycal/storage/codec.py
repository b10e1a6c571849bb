"""From the records of a model to the content of a model file, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.errors import HyCalError, ModelFileError
from hycal.state.records import ClassRecord, Records
from hycal.state.samples import ClassSamples
from hycal.state.sealed import SealedRecords
from hycal.storage.model_file import Content, expect, integers, is_list_of, unit_matrix
from hycal.storage.sealed_codec import sealed_manifest, sealed_records, sealed_tensors
from hycal.validation import Floats, Label, check_label, check_one_kind


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
    more: dict[str, Any] = {"memo": dict(records.memo)} if records.memo else {}
    sealed = records if isinstance(records, SealedRecords) and ordered else None
    if sealed is not None:
        more["sealed"] = sealed_manifest(sealed)
    return Content(
        manifest={
            **more,
            "method": method,
            "parameters": {k: v.item() if isinstance(v, np.generic) else v for k, v in parameters.items()},
            "encoder": encoder,
            "labels": list(records.labels),
            "domains": [record.domain for record in ordered],
        },
        tensors={
            "samples": np.concatenate([nothing, *(record.samples.rows for record in ordered)]),
            **({} if sealed is None else sealed_tensors(sealed)),
            "counts": records.counts,
            "texts": np.stack(texts) if texts else nothing,
            "has_text": np.array([record.text is not None for record in ordered], dtype=np.uint8),
        },
    )


def records_of(content: Content, views: Sequence[int] | None = None) -> Records:
    """Return the records in the content of a model file; every field is checked. `views` are those of the method."""
    manifest, tensors = content.manifest, content.tensors
    labels = _labels(manifest.get("labels"))
    domains: Any = manifest.get("domains")
    expect(is_list_of(domains, str, len(labels)), "one domain name per class")
    samples = unit_matrix(tensors.get("samples"), "samples", views=views)
    texts = unit_matrix(tensors.get("texts"), "texts", width=samples.shape[1], views=views)
    counts, has_text = integers(tensors, "counts"), integers(tensors, "has_text", np.uint8)
    expect(len(counts) == len(has_text) == len(labels), "one count and one text mark per class")
    expect(bool(np.all(has_text <= 1)) and int(has_text.sum()) == len(texts), "as many texts as classes marked")
    memo = manifest.get("memo", {})
    expect(isinstance(memo, dict), "a memo that is an object")
    next_text = iter(texts)
    own_texts = [next(next_text) if marked else None for marked in has_text.tolist()]
    if "sealed" in manifest:
        expect(not len(samples), "no samples in a sealed model")
        table = sealed_records(content, labels, domains, own_texts, views)
        expect(table.width == samples.shape[1], "means of embeddings as wide as the samples were")
        return table
    expect(bool(np.all((counts >= 0) & (counts <= len(samples)))), "counts between none and all of the samples")
    expect(bool(np.all((counts > 0) | (has_text == 1))), "a positive count for each class without a text")
    expect(int(counts.sum()) == len(samples), "as many samples as the counts add up to")
    ends = np.cumsum(counts)
    in_order = _in_order(samples, counts, ends)
    by_class = [
        (ClassSamples if sound else ClassSamples.of)(samples[end - count : end])
        for end, count, sound in zip(ends.tolist(), counts.tolist(), in_order.tolist(), strict=True)
    ]
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


def _labels(value: Any) -> list[Label]:
    expect(isinstance(value, list), "a list of labels")
    try:
        labels = [check_label(label) for label in value]
        check_one_kind(labels)
    except HyCalError as error:
        raise ModelFileError(f"The model file is malformed: {error}") from None
    expect(labels == sorted(set(labels)), "labels in order, no two of them equal")
    return labels


def rounded(content: Content, precision: str) -> Content:
    """Return the content with numbers of "single" precision as they are, or rounded to "half".

    Rounding changes the order of the bytes of rows, so the rows of a class are sorted again: what is read back and
    written again is the same file.
    """
    if precision == "single":
        return content
    if precision != "half":
        raise HyCalError(f'The precision is {precision!r}; expected "single" or "half".')
    tensors = {name: _half(array) if array.dtype == np.float32 else array for name, array in content.tensors.items()}
    samples, counts = tensors["samples"], tensors["counts"]
    if len(samples):
        parts = np.split(samples.astype(np.float32), np.cumsum(counts)[:-1])
        tensors["samples"] = np.concatenate([ClassSamples.of(part).rows for part in parts]).astype(np.float16)
    return Content({**content.manifest, "precision": "half"}, tensors)


def _half(array: npt.NDArray[Any]) -> npt.NDArray[np.float16]:
    with np.errstate(over="ignore"):
        half = array.astype(np.float16)
    if not np.isfinite(half).all():
        raise HyCalError("The model has numbers above 65,504, which half precision cannot hold. Save it in single.")
    return half
