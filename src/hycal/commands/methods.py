"""`hycal methods` and `hycal remake`: which method suits a model, and the model made again with it."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hycal.classifiers import METHODS
from hycal.commands import _options as opt
from hycal.commands._encoder_trials import describe_trials, measure_encoders, no_other_encoder, other_encoders
from hycal.commands._inputs import EncoderChoice
from hycal.commands._output import (
    counted,
    plain,
    print_json,
    print_line,
    print_receipt,
    print_table,
    report_errors,
    score_json,
)
from hycal.errors import HyCalError
from hycal.project import Project, State
from hycal.project.methods import Trial, better_method, remake, trials

_NAMES = ", ".join(METHODS)


@report_errors
def methods_command(
    model: opt.Model,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help=f"Try this method; again for more. One of {_NAMES}.",
            autocompletion=opt.complete_method,
        ),
    ] = None,
    images: Annotated[
        Path | None, typer.Option("--images", help="The learned folder: try encoders on a sample of it, not methods.")
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            help="With --images, the encoder to try; by default every other one that is installed.",
            autocompletion=opt.complete_encoder,
        ),
    ] = None,
    weights: opt.Weights = None,
    cache: opt.CacheFolder = None,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Try every method on a model's own images, each judged by a model that never saw it. The file stays as it is.

    A method is learned again in at most five rounds, each without some images of every class, which it then judges.
    Prints the accuracy of each method with the 90% interval to expect on new images, and its time. Recommends a change
    only where another method is better beyond chance, and the cheapest of equals.

    With --images it compares encoders instead, by the model's method, on up to 200 learned images of that folder.

    Example: hycal methods photos.hycal --only HyCal --only HierarchicalHyCal
    """
    state = Project(model).state
    if images is not None:
        _try_encoders(model, state, images, EncoderChoice(encoder, weights, cache), quiet=quiet, as_json=as_json)
        return
    names = list(dict.fromkeys(METHODS.find(name).__name__ for name in only or METHODS))
    steps = counted(trials(state, names), "trying methods", len(names), quiet=quiet)
    found = sorted(steps, key=lambda trial: -1.0 if trial.problem else trial.left_out.accuracy, reverse=True)
    own = type(state.classifier).__name__
    if as_json:
        print_json(
            {
                "model": str(model),
                "method": own,
                "better": better_method(found, own),
                "methods": [_trial_json(trial) for trial in found],
            }
        )
    else:
        _show(model, own, found)


@report_errors
def remake_command(
    model: opt.Model,
    method: Annotated[
        str, typer.Argument(metavar="METHOD", help=f"One of {_NAMES}.", autocompletion=opt.complete_method)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="A new file, whose history begins anew; by default MODEL is changed.")
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Change the method of a model: the same images, and nothing is embedded again. `hycal undo` takes it back.

    With --out the model stays as it is, and the new file has its images, their names and thumbnails.

    Example: hycal remake photos.hycal HierarchicalHyCal
    """
    project = Project(model)
    if not project.state.classes:
        raise HyCalError(f"{model} has no classes yet, so there is nothing to make anew. Learn a folder first.")
    if out is None:
        print_receipt(project, project.change_method(method), as_json=as_json)
        return
    following, receipt = remake(project.state, method)
    print_receipt(Project.create(out, following), receipt, as_json=as_json)


def _try_encoders(
    model: Path, state: State, folder: Path, choice: EncoderChoice, *, quiet: bool, as_json: bool
) -> None:
    """Compare the model's encoder with others, and print the result."""
    names = [choice.name] if choice.name else other_encoders(state)
    if not names:
        raise HyCalError(no_other_encoder(state))
    found = measure_encoders(state, folder, names, choice, quiet=quiet)
    if as_json:
        print_json({"model": str(model), "encoder": state.space.name, "encoders": [asdict(trial) for trial in found]})
        return
    for line in describe_trials(state, folder, found):
        print_line(Console(), line)


def _trial_json(trial: Trial) -> dict[str, Any]:
    if trial.judged is None:
        return {"method": trial.method, "problem": trial.problem}
    estimate = trial.judged.estimate()
    more = {"low": estimate.low, "high": estimate.high, "seconds": trial.seconds}
    return {"method": trial.method, **score_json(trial.left_out), **more}


def _show(model: Path, own: str, found: list[Trial]) -> None:
    console = Console()
    table = Table("method", "on left-out images", "on new images", "seconds", box=None)
    for trial in found:
        name = f"{trial.method} (this model)" if trial.method == own else trial.method
        if trial.judged is not None:
            estimate, right = trial.judged.estimate(), f"{trial.left_out.accuracy:.1%}"
            table.add_row(plain(name), right, f"{estimate.low:.0%} to {estimate.high:.0%}", f"{trial.seconds:.1f}")
    print_table(table)
    reasons: dict[str, list[str]] = {}
    for trial in found:
        if trial.problem:
            reasons.setdefault(trial.problem.removeprefix(f"{trial.method} "), []).append(trial.method)
    for reason, names in reasons.items():
        print_line(console, reason, label=f"{', '.join(names)} not tried", style="yellow")
    if found[0].judged is None:
        return
    print_line(console, f"{found[0].left_out.total:,} learned images were judged")
    better = better_method(found, own)
    if better is not None:
        print_line(console, f"{better} is better beyond chance")
        print_line(console, f"to change: hycal remake {shlex.quote(str(model))} {better}")
    elif own in {trial.method for trial in found}:
        print_line(console, "no method is better beyond chance")
