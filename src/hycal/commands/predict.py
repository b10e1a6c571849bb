"""`hycal predict`: what images show, one answer after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from hycal.commands import _options as opt
from hycal.commands._inputs import check_share, embedding_cache, model_encoder, open_project
from hycal.commands._output import FOUND_SOMETHING, class_text, print_json, print_line, report_errors, working
from hycal.errors import HyCalError
from hycal.escaping import csv_line

if TYPE_CHECKING:
    from hycal.project.answers import Candidate, Evidence, EvidencePart, Prediction


@report_errors
def predict_command(
    model: opt.Model,
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE|FOLDER...", help="Images, or folders of images.")],
    top: Annotated[int, typer.Option(min=1, help="How many classes to name for each image.")] = 5,
    why: Annotated[bool, typer.Option("--explain", help="Show the evidence: shares, weight, nearest images.")] = False,
    error: Annotated[
        float | None,
        typer.Option(
            "--unknown",
            metavar="ERROR",
            callback=check_share,
            help="Mark images that fit no learned class. ERROR is the share of known images that may be marked by "
            "mistake, 0.05 by default; 0 marks none.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line and image.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: one line per image and class.")] = False,
    encoder: opt.ModelEncoder = None,
    weights: opt.Weights = None,
    cache: opt.CacheFolder = None,
    quiet: opt.Quiet = False,
    strict: opt.StrictSkips = False,
) -> None:
    """Say what images show. Answers appear as they come; memory does not grow with the number of images.

    An image that fits no learned class is said to be unlike anything learned, before the nearest classes are named.

    A file that cannot be read as an image gets the reason instead of an answer. Embeddings of folders are cached.

    Ends with 0, with 1 if no file could be answered, with 3 under --strict if any could not.

    Example: hycal predict photos.hycal new/ --top 3
    """
    if as_json and as_csv:
        raise HyCalError("--json and --csv exclude each other. Choose one.")
    from hycal.project.answers import ERROR, Predictor  # here, so that --help does not wait for it

    error = ERROR if error is None else error
    project = open_project(model)
    for path in images:
        if not path.exists():
            raise HyCalError(f"There is no file or folder {path}. Check the path.")
    loaded = model_encoder(project.state, encoder, weights)
    predictor = Predictor(project.state, top, why, error or None)
    people = _people_writer(why, len(project.state.labels))
    write = _write_json if as_json else _csv_writer(marks=bool(error)) if as_csv else people
    done = skipped = 0
    cached = any(path.is_dir() for path in images)
    with embedding_cache(loaded, cache) if cached else nullcontext() as store:
        found = predictor.predict(_files(images), loaded, store=store)
        with working("preparing the model", quiet=quiet):
            first = list(islice(found, 1))
        for item in chain(first, found):
            done, skipped = done + 1, skipped + (item.problem is not None)
            write(item)
    if not done:
        raise HyCalError(f"There are no files in {', '.join(map(str, images))}. Expected images.")
    if skipped == done or (skipped and strict):
        raise typer.Exit(1 if skipped == done else FOUND_SOMETHING)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    from hycal.embedding.sources import image_files

    for path in paths:
        yield from image_files(path) if path.is_dir() else [path]


def _write_json(item: Prediction) -> None:
    if item.problem is not None:
        print_json({"file": item.file, "error": item.problem})
        return
    answers = [
        {"label": candidate.label, "probability": candidate.probability, "score": candidate.score}
        | ({} if candidate.evidence is None else {"evidence": _evidence_json(candidate.evidence)})
        for candidate in item.answer
    ]
    print_json({"file": item.file, "unknown": item.unknown, "answers": answers})


def _evidence_json(evidence: Evidence) -> dict[str, Any]:
    nearest = [
        {"file": near.example.name, "image": near.example.identity.hex(), "similarity": near.similarity}
        for near in evidence.nearest
    ]
    parts = {part.name: {key: value for key, value in vars(part).items() if key != "name"} for part in evidence.parts}
    return {"images": evidence.shots, "quantity": evidence.quantity, "parts": parts, "nearest": nearest}


def _csv_writer(*, marks: bool) -> Callable[[Prediction], None]:
    def write_row(row: list[Any]) -> None:
        typer.echo(csv_line(row).encode())

    more = ["unknown"] if marks else []
    write_row(["file", "rank", "label", "probability", "score", "error", *more])

    def write(item: Prediction) -> None:
        if item.problem is not None:
            write_row([item.file, "", "", "", "", item.problem, *("" for _ in more)])
        for rank, candidate in enumerate(item.answer, start=1):
            numbers = f"{candidate.probability:.6f}", f"{candidate.score:.6f}"
            marked = [] if not marks else ["" if item.unknown is None else str(item.unknown).lower()]
            write_row([item.file, rank, candidate.label, *numbers, "", *marked])

    return write


def _people_writer(why: bool, classes: int) -> Callable[[Prediction], None]:
    console, errors = Console(), Console(stderr=True)

    def text(candidate: Candidate) -> str:
        return class_text(candidate.label, candidate.probability, classes)

    def write(item: Prediction) -> None:
        mark = ": unlike anything learned" if item.unknown else ""
        if item.problem is not None:
            print_line(errors, f"{item.file}: {item.problem}", label="skipped", style="yellow")
        elif why:
            print_line(console, item.file + mark)
            for candidate in item.answer:
                print_line(console, f"  {text(candidate)}")
                for line in _evidence_lines(candidate.evidence):
                    print_line(console, f"    {line}")
        else:
            print_line(console, f"{item.file}{mark}{'; nearest' if mark else ''}: {', '.join(map(text, item.answer))}")

    return write


def _part_text(part: EvidencePart, share: float) -> str:
    text = f"{share:.3f} by {part.name}"
    return text if part.measure is None else f"{text} ({part.measure:.4g}, weight {part.weight:.2f})"


def _evidence_lines(evidence: Evidence | None) -> Iterator[str]:
    if evidence is None:
        return
    if evidence.parts:
        total = sum(part.share for part in evidence.parts)
        first, *others = evidence.parts
        signed = (f" {'-' if part.share < 0 else '+'} {_part_text(part, abs(part.share))}" for part in others)
        yield f"{evidence.quantity} {total:.3f} = {_part_text(first, first.share)}{''.join(signed)}"
    named = [
        f"{near.example.name or near.example.identity.hex()[:12]} {near.similarity:.3f}" for near in evidence.nearest
    ]
    if named:  # a sealed model has no images to name
        yield f"nearest of {evidence.shots:,} learned: {', '.join(named)}"
