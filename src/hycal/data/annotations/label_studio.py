"""Label Studio: a JSON list of tasks with annotations of people and predictions of models.

A task names its image by a reference. A file below Label Studio's document root is `/data/local-files/?d=PATH`, and an
upload is `/data/upload/PROJECT/NAME`. Both are looked up in a folder here. Nothing is fetched from anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from hycal.data.annotations.image_label import MODEL, ImageLabel, by_image, known_split, one_class, probability
from hycal.errors import HyCalError
from hycal.escaping import html_text, json_text

MARK = b'[{"meta": {"written_by": "hycal labels"}'
IMAGE, CONTROL = "image", "choice"  # the names of the image and of its choices in tasks that are written
_LOCAL, _UPLOAD = "/data/local-files", "/data/upload/"
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_PREFIX = re.compile(r"^[0-9a-f]{8}-(?=.)")  # Label Studio puts this before the name of an upload


def is_tasks(content: Any) -> bool:
    """Whether JSON is a list of tasks."""
    return isinstance(content, list) and all(isinstance(task, dict) and "data" in task for task in content)


def read_tasks(path: Path, content: Any) -> list[ImageLabel]:
    """Return the labels in the content of an export: the ground truth of a task first, then its newest annotation."""
    labels: list[ImageLabel] = []
    try:
        for number, task in enumerate(content, start=1):
            labels += _labels(task, f"task {task.get('id', number)}")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HyCalError(
            f"{path}, task {number}: {type(error).__name__} {error}. Expected tasks as Label Studio exports them "
            "(JSON, not JSON-MIN): data, annotations with results of the type choices, predictions."
        ) from None
    return labels


def _labels(task: Mapping[str, Any], where: str) -> list[ImageLabel]:
    data = task["data"]
    about: dict[str, Any] = {"sha256": str(data.get("sha256") or ""), "split": known_split(data.get("split"))}
    about["where"] = where
    files, problem = image_files_of(_reference(data))
    about["elsewhere"] = files[1:]
    if problem:
        return [ImageLabel(files[0], problem=problem, **about)]
    given = [entry for entry in _entries(task, "annotations") if not entry.get("was_cancelled")]
    given.sort(key=lambda entry: (bool(entry.get("ground_truth")), str(entry.get("updated_at") or "")), reverse=True)
    found = [
        one_class(files[0], chosen(entry.get("result") or ()), by=_person(entry), when=_time(entry), **about)
        for entry in given
    ]
    for entry in _entries(task, "predictions"):
        score = entry.get("score")
        sure = None if score is None else probability(score)
        names = chosen(entry.get("result") or ())
        found.append(one_class(files[0], names, by=MODEL, confidence=sure, when=_time(entry), **about))
    return found or [ImageLabel(files[0], **about)]


def _entries(task: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the annotations or predictions of a task; of predictions an export may have the numbers alone."""
    return [entry for entry in task.get(name) or () if not isinstance(entry, int)]


def _reference(data: Mapping[str, Any]) -> str:
    """Return the reference to the image among the data of a task: `image`, or the only text that looks like one."""
    if isinstance(data.get(IMAGE), str):
        return str(data[IMAGE])
    texts = [text for text in data.values() if isinstance(text, str) and ("/" in text or Path(text).suffix)]
    if len(texts) != 1:
        raise ValueError(f"its data has {len(texts)} values that could be the image; expected one, or one called image")
    return texts[0]


def image_files_of(reference: str) -> tuple[tuple[str, ...], str]:
    """Return the paths that an image may have below the folder of the images, and why it cannot be there, or "".

    >>> image_files_of("/data/local-files/?d=birds/a%20b.jpg"), image_files_of("s3://bucket/1.jpg")[1]
    ((('birds/a b.jpg',), ''), 'is not in a folder here; hycal fetches no image from elsewhere')
    """
    try:
        parts = urlsplit(reference) if reference.startswith(("/", "http://", "https://")) else None
    except ValueError:  # a bracket without its other half
        return (reference[:200],), "is neither a file of a folder nor an address"
    path = "" if parts is None else parts.path
    if parts is not None and path.rstrip("/").endswith(_LOCAL):
        named = parse_qs(parts.query, errors="surrogateescape").get("d", [""])
        return (named[0],), "" if named[0] else "its reference names no file"
    if _UPLOAD in path:
        upload = unquote(path[path.index(_UPLOAD) + len("/data/") :], errors="surrogateescape")
        name = upload.rpartition("/")[2]
        return (upload, name, _PREFIX.sub("", name)), ""
    if _REMOTE.match(reference):
        return (reference[:200],), "is not in a folder here; hycal fetches no image from elsewhere"
    return (reference,), ""


def chosen(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names that the results of an annotation have: choices, labels of regions, paths of a taxonomy."""
    names: list[str] = []
    for result in results:
        kind = str(result.get("type") or "")
        values = result["value"].get(kind) if kind in ("choices", "taxonomy") or kind.endswith("labels") else None
        names += ["/".join(map(str, value)) if isinstance(value, list) else str(value) for value in values or ()]
    return [name.strip() for name in names if name.strip()]


def _person(entry: Mapping[str, Any]) -> str:
    who = entry.get("completed_by")
    found = who.get("email") or who.get("id") if isinstance(who, dict) else who
    return "" if found is None else f"user {found}" if isinstance(found, int) else str(found)


def _time(entry: Mapping[str, Any]) -> str:
    return str(entry.get("updated_at") or entry.get("created_at") or "")


def write_tasks(labels: Sequence[ImageLabel]) -> bytes:
    """Return labels as tasks: those of people as annotations, predictions as predictions."""
    about = {item.file: item for item in labels}
    tasks = []
    for file, own in by_image(labels).items():
        data = {IMAGE: local_reference(file), "sha256": about[file].sha256, "split": about[file].split}
        task: dict[str, Any] = {"meta": {"written_by": "hycal labels"}}
        task["data"] = {name: text for name, text in data.items() if text}
        task["annotations"] = [
            {"result": [choice_result(item.name)], **({"created_at": item.when} if item.when else {})}
            for item in own
            if not item.predicted
        ]
        task["predictions"] = [
            {"result": [choice_result(item.name)], "score": item.confidence, "model_version": "hycal"}
            for item in own
            if item.predicted
        ]
        tasks.append(task)
    return json_text(tasks).encode()


def local_reference(file: str) -> str:
    """Return the reference to a file below the document root."""
    return f"{_LOCAL}/?d={quote(file, errors='surrogateescape')}"


def choice_result(name: str, *, control: str = CONTROL, image: str = IMAGE) -> dict[str, Any]:
    """Return a choice as a result of an annotation or a prediction."""
    return {"from_name": control, "to_name": image, "type": "choices", "value": {"choices": [name]}}


def labeling_interface(names: Sequence[str]) -> str:
    """Return the labeling interface of a project for the tasks that `write_tasks` writes."""
    choices = "".join(f'<Choice value="{html_text(name)}"/>' for name in names)
    shown = f'<Image name="{IMAGE}" value="${IMAGE}"/>'
    return f'<View>{shown}<Choices name="{CONTROL}" toName="{IMAGE}">{choices}</Choices></View>'
