"""Encoders on a sample of images: `hycal encoders compare`, and `hycal methods` and `hycal advise` with `--images`."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hycal.commands._inputs import EncoderChoice, embed_images
from hycal.commands._output import counted, percent, plain, print_line, print_table, score_json
from hycal.embedding.sources import ImageFile
from hycal.encoders import load_encoder
from hycal.encoders.catalog import JOINED_BY, find_encoder, find_parts, list_encoders
from hycal.encoders.files import locate
from hycal.errors import HyCalError
from hycal.project import DEFAULT_METHOD, Project, State
from hycal.project.encoder import encoder_space
from hycal.project.encoder_trials import (
    EncoderTrial,
    Judged,
    SampleRows,
    TrialSample,
    join,
    judge,
    recommend,
    sample_labelled,
    sample_learned,
    seconds_for_each,
    singles_and_pairs,
    surpasses,
    try_encoder,
)
from hycal.project.inputs import to_learn
from hycal.validation import unit_views

_LABEL_FILES = {".csv", ".json", ".jsonl", ".xml", ".npz"}  # any other file is a model
_WORTH_TRYING = ("clip-vit-b16-w8", "dinov2-s")


def other_encoders(state: State) -> list[str]:
    """Return the encoders whose weights are here, but for the model's own."""
    return _installed(but=_parts_of(state))


def _installed(*, but: Collection[str] = ()) -> list[str]:
    return [spec.name for spec in list_encoders() if spec.name not in but and not locate(spec).missing]


def no_other_encoder(state: State) -> str:
    """Say that there is none to compare with, and how to get one."""
    return (
        f"No encoder but {state.space.name} is installed, so there is none to compare it with. `hycal encoders get "
        "clip-vit-b16-w8` gets a stronger one (90 MB); then run this again."
    )


def measure_encoders(
    state: State, folder: Path, names: Sequence[str], choice: EncoderChoice, *, quiet: bool
) -> list[EncoderTrial]:
    """Compare the model's encoder with others on a sample of the images in `folder` that it learned."""
    sample = sample_learned(state, [image.source for image in to_learn(folder)[0]])
    found = [embed_sample(sample, name, choice, quiet=quiet) for name in names]
    return [try_encoder(state, embedded.space, embedded.rows) for embedded in found]


def embed_sample(sample: TrialSample, name: str, choice: EncoderChoice, *, quiet: bool) -> SampleRows:
    """Return a sample embedded by the encoder `name`, through the cache, and the time that one image takes."""
    encoder = load_encoder(name, weights=choice.weights)
    result = embed_images(list(sample.sources.values()), encoder, choice.cache, summary=None, quiet=quiet)
    space = encoder_space(encoder)
    rows = dict(zip(result.keys, unit_views(result.rows, space.views), strict=True)) if len(result.rows) else {}
    return SampleRows(space, rows, seconds_for_each(encoder, sample.sources.values()))


def sample_of(source: Path, images: Path | None) -> tuple[TrialSample, State | None]:
    """Return a sample of the images in a folder, or of those that a model learned, and the model if it is one.

    Learned images are looked for in `images`, or where their names lead from this folder and from that of the model.
    """
    if not source.is_file() or source.suffix.lower() in _LABEL_FILES:
        if images is not None:
            raise HyCalError(f"--images says where the images of a model are, and {source} is no model. Leave it out.")
        return sample_labelled(to_learn(source)[0]), None
    state = Project(source).state
    if images is not None:
        return sample_learned(state, [image.source for image in to_learn(images)[0]]), state
    folders = (Path(), source.parent)
    named = [ImageFile(folder / example.name) for folder in folders for example in state.examples if example.name]
    return sample_learned(state, named), state


def compare(
    sample: TrialSample, state: State | None, names: Sequence[str], choice: EncoderChoice, *, quiet: bool
) -> tuple[list[Judged], list[str]]:
    """Judge each encoder and each pair on the same sample; also return what could not be tried, in sentences."""
    embedded, problems = [], []
    for name in names:
        try:
            embedded.append(embed_sample(sample, name, choice, quiet=quiet))
        except HyCalError as problem:
            problems.append(f"{name} was not tried: {problem}")
    method = DEFAULT_METHOD if state is None else type(state.classifier).__name__
    candidates = singles_and_pairs(embedded)
    own = [] if state is None else [part for part in embedded if part.space.name in _parts_of(state)]
    if len(own) > 2 and len(own) == len(_parts_of(state)):
        candidates.append(join(own))
    found = []
    for candidate in counted(candidates, "judging encoders", len(candidates), quiet=quiet):
        try:
            found.append(judge(candidate, sample.labels, method=method))
        except HyCalError as problem:
            problems.append(f"{candidate.space.name} was not tried: {problem}")
    return found, problems


def _parts_of(state: State | None) -> set[str]:
    return set() if state is None else {part.name for part in state.space.parts}


def names_to_compare(state: State | None, asked: Sequence[str]) -> list[str]:
    """Return the encoders that were asked for, or all that are installed; those of the model are always among them."""
    chosen = [spec.name for name in asked for spec in find_parts(name)]
    return list(dict.fromkeys([*sorted(_parts_of(state) - {""}), *(chosen or _installed())]))


def show_comparison(source: Path, state: State | None, found: Sequence[Judged], problems: Sequence[str]) -> None:
    """Print the table of encoders and the recommendation."""
    console, own = Console(), "" if state is None else state.space.name
    table = Table("encoder", "on left-out images", "on new images", "processor seconds", box=None)
    for judged in sorted(found, key=lambda judged: -judged.score.accuracy):
        name = f"{judged.encoder} (this model)" if judged.encoder == own else judged.encoder
        estimate = judged.estimate
        new = f"{estimate.low:.0%} to {estimate.high:.0%}"
        table.add_row(plain(name), percent(judged.score), new, f"{judged.seconds:.3f}")
    print_table(table)
    for problem in problems:
        print_line(console, problem, style="yellow")
    print_line(console, verdict(source, state, found))
    if len(found) == 1:
        here = [f"--encoder {name}" for name in _installed(but=found[0].encoder.split(JOINED_BY))]
        away = [f"hycal encoders get {name}" for name in _WORTH_TRYING if locate(find_encoder(name)).missing]
        more = [*([f"name others that are installed ({', '.join(here)})"] if here else []), *away]
        print_line(console, f"to compare more: {', '.join(more)}")


def comparison_json(
    source: Path, state: State | None, found: Sequence[Judged], problems: Sequence[str]
) -> dict[str, Any]:
    """Return the comparison as plain values."""
    return {
        "source": str(source),
        "encoder": None if state is None else state.space.name,
        "recommended": recommend(found).encoder,
        "verdict": verdict(source, state, found),
        "encoders": [
            {
                "encoder": judged.encoder,
                **score_json(judged.score),
                "low": judged.estimate.low,
                "high": judged.estimate.high,
                "seconds": judged.seconds,
            }
            for judged in found
        ],
        "problems": list(problems),
    }


def verdict(source: Path, state: State | None, found: Sequence[Judged]) -> str:
    """Return the recommendation in a sentence."""
    choice = recommend(found)
    quoted = shlex.quote(str(source))
    if state is None:
        return (
            f"{choice.encoder}: nothing else is better beyond chance, and of its equals it is the cheapest. To use it: "
            f"hycal learn NEW.hycal {quoted} --encoder {choice.encoder}"
        )
    own = next((judged for judged in found if judged.encoder == state.space.name), None)
    if own is None:
        return f"the model's own encoder {state.space.name} could not be tried, so nothing is recommended"
    if not surpasses(choice, own, groups=own.groups):
        return f"nothing is better beyond chance than {own.encoder}, which the model has"
    new = [part for part in choice.encoder.split(JOINED_BY) if part not in _parts_of(state)]
    grown = len(new) == 1 and set(choice.encoder.split(JOINED_BY)) == {*_parts_of(state), *new}
    change = (
        f"hycal views {quoted} --add {new[0]} --images FOLDER"
        if grown
        else f"hycal learn NEW.hycal FOLDER --encoder {choice.encoder}"
    )
    better = f"{choice.encoder} is better beyond chance than {own.encoder}, and the cheapest of its equals"
    return f"{better}. To use it: {change}"


def describe_trials(state: State, folder: Path, found: Sequence[EncoderTrial]) -> list[str]:
    """Return what was measured in sentences, and for an encoder that is better the command that changes to it."""
    method, said = type(state.classifier).__name__, []
    for trial in found:
        verdict = "better" if trial.better else "worse" if trial.worse else "not better"
        said.append(
            f"{trial.encoder} is {verdict} beyond chance than {state.space.name}: {percent(trial.other)} against "
            f"{percent(trial.own)} on learned images that were left out, by {method} without texts"
        )
        if trial.better:
            said.append(f"to change: hycal learn NEW.hycal {shlex.quote(str(folder))} --encoder {trial.encoder}")
    return said
