"""`hycal bench`: the benchmark, by command."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from hycal.bench.setting_form import SAMPLING
from hycal.bench.settings import Setting, few_shot_settings, list_settings, load_setting, load_settings
from hycal.commands import _options as opt
from hycal.commands._lazy import Subcommands
from hycal.commands._output import (
    embedding_progress,
    plain,
    plural,
    print_line,
    print_table,
    progress,
    report_errors,
    working,
)
from hycal.errors import HyCalError
from hycal.escaping import tex_text

if TYPE_CHECKING:
    from hycal.bench.cells import Cell
    from hycal.bench.domains import BenchDomain
    from hycal.bench.report.results import Group
    from hycal.bench.runner import Summary

app = Subcommands(no_args_is_help=True, help="Run the benchmark and report it.")

_SHOTS = "5"  # images of each class, where only features are given
_PROGRESS = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
Out = Annotated[Path, typer.Option("--out", help="Folder for the results; a run goes on with what is there.")]
Seeds = Annotated[str, typer.Option(help="A list such as '0 1'; those of the setting by default.")]
Features = Annotated[
    list[Path] | None,
    typer.Option(
        "--features",
        "--embeddings",
        help="File or folder of features, of any tool; may be given again. The xd8 settings use the bundled ones "
        "without it.",
    ),
]
Columns = Annotated[
    str, typer.Option(help="Which columns are which, if not called so: 'features=vec labels=species split=fold'.")
]


@app.command("list")
def list_command() -> None:
    """Show every setting and every method."""
    from hycal.bench.methods import studies
    from hycal.classifiers import METHODS

    console = Console()
    table = Table("setting", "title", "protocol", "domains", "classes", "images (seed 0)", "orders", box=None)
    for name in list_settings():
        setting = load_setting(name)
        classes = sum(domain.classes for domain in setting.domains)
        images = sum(sum(domain.shots_for(setting.seeds[0])) for domain in setting.domains)
        orders = " ".join(("default", *setting.orders))
        row = (setting.title, setting.protocol, str(len(setting.domains)), str(classes), f"{images:,}", orders)
        table.add_row(*map(plain, (name, *row)))
    print_table(table)
    print_line(console, f"methods: {', '.join(METHODS)}")
    for study in studies().values():
        print_line(console, f"study:{study.name}: {', '.join(study.labels)}")


@app.command("run")
@report_errors
def run_command(
    out: Out,
    settings: Annotated[
        list[str] | None, typer.Argument(help="Settings, by name or as a .toml file; none for --features alone.")
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            help="A list such as 'all study:metrics', 'HyCal KLDA:hycal-paper HyCal\\[metric=cosine]', or MODULE:CLASS "
            "for a method of your own."
        ),
    ] = "all",
    features: Features = None,
    shots: Annotated[str, typer.Option(help="Images of each class for --features alone, such as '1 5 16'.")] = "",
    columns: Columns = "",
    latex: Annotated[bool, typer.Option("--latex", help="Print the rows in LaTeX, too.")] = False,
    seeds: Seeds = "",
    orders: Annotated[str, typer.Option(help="Orders of learning, such as 'default I II'.")] = "default",
    sampling: Annotated[str, typer.Option(help=f"{' or '.join(SAMPLING)}; that of the setting by default.")] = "",
    jobs: Annotated[int, typer.Option(help="Processes side by side; -1 for one on each core.")] = -1,
    cluster: opt.Cluster = "",
    quiet: opt.Quiet = False,
) -> None:
    """Run methods on settings, four seeds each, keep one small file for each run, and print the table.

    A setting of the paper has the published numbers beside ours. With --features alone, each domain in the files is
    learned from 5 images of each class (--shots), one domain after the other. Features may be .npz, .parquet, .arrow,
    .safetensors or .pt files, folders that the library `datasets` saved, or folders of these: docs/how-to/features.md.

    What has a result already is not run again. Ends with code 0 once everything that can run has a result.

    Example: hycal bench run xd8-balanced --methods "HyCal NCM" --out results

    Example: hycal bench run --features clip.parquet --shots "1 16" --methods "HyCal mine:MyMethod" --out results
    """
    from hycal.bench.methods import parse_methods
    from hycal.bench.runner import grid, run_grid

    console = Console()
    variants = parse_methods(methods)
    if not orders.split():
        raise HyCalError("--orders names no order; expected a list such as 'default I II'.")
    chosen, embedded = _chosen(settings or [], features or [], shots, columns)
    if sampling:
        chosen = [setting.sampled(sampling) for setting in chosen]
    cells = grid(chosen, variants, seeds=_numbers("--seeds", seeds) or None, orders=orders.split())
    began = time.monotonic()
    with progress(Console(quiet=quiet), *_PROGRESS, line=lambda done, of, _: f"{done} of {of} runs") as watch:
        summary = run_grid(cells, embedded, out, cluster=cluster or f"local:{jobs}", watch=watch)
    _print_summary(console, summary, out, time.monotonic() - began)
    _print_groups(_results_of(cells, out), latex=latex)


def _chosen(
    settings: list[str], features: list[Path], shots: str, columns: str
) -> tuple[list[Setting], dict[str, dict[str, BenchDomain]]]:
    """Return the settings to run, and the domains of each; settings of the features themselves if none is named."""
    from hycal.bench.domains import load_domains, read_domains

    if settings and shots:
        raise HyCalError("--shots is for features without a setting; a setting says itself how many. Leave one out.")
    if not settings and not features:
        raise HyCalError("Nothing to run. Name a setting of `hycal bench list`, or pass --features FILE_OR_FOLDER.")
    if settings:
        chosen = load_settings(settings)
        return chosen, {one.name: load_domains(one, features or None, columns=columns) for one in chosen}
    domains = read_domains(features, columns=columns)
    name = features[0].resolve().stem if len(features) == 1 else "features"
    counts = _numbers("--shots", shots or _SHOTS)
    chosen = few_shot_settings(name, {key: len(domain.class_names) for key, domain in domains.items()}, counts)
    return chosen, {one.name: domains for one in chosen}


@app.command("embed")
@report_errors
def embed_command(
    settings: Annotated[list[str], typer.Argument(help="Settings whose data sets are embedded.")],
    root: Annotated[
        Path, typer.Option(help="Folder that holds one folder for each data set, by its name, or as CoOp calls it.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for one DOMAIN.npz each; pass it to `run --features`.")],
    encoder: opt.NewEncoder = "clip-vit-b16",
    quiet: opt.Quiet = False,
) -> None:
    """Embed the user's own copies of the data sets of a setting: images, and class names.

    A run that was interrupted goes on where it stopped; a data set that this encoder has embedded already is not
    embedded again. If its images, classes or splits have changed since, that is an error.

    Example: hycal bench embed high-scale --root ~/data --out embeddings
    """
    from hycal.bench.domains import write_domain
    from hycal.bench.embedding import embed_domain, find_copy, is_embedded
    from hycal.embedding.cache import embeddings_folder, open_cache
    from hycal.encoders import load_encoder

    console = Console()
    names = dict.fromkeys(data_set for name in settings for data_set in load_setting(name).data_sets)
    loaded = load_encoder(encoder)
    root = root.expanduser()
    wanted = [name for name in names if not is_embedded(name, out, loaded, root)]
    folders = {name: find_copy(name, root) for name in wanted}  # all, before hours of work on the first
    with open_cache(loaded, embeddings_folder()) as store:
        for name, folder in folders.items():
            with embedding_progress(Console(stderr=True, quiet=quiet)) as watch:
                domain, skipped = embed_domain(name, folder, loaded, store=store, watch=watch)
            for skip in skipped:
                print_line(console, f"{skip.name}: {skip.reason}", label="skipped", style="yellow", separator=" ")
            path = write_domain(out, domain)
            counts = f"{len(domain.train_y):,} to learn from, {len(domain.test_y):,} to test on"
            print_line(console, f"{path}: {counts}")
    if not loaded.has_text:
        print_line(console, f"{loaded.name} has no text tower: methods will use images alone")


@app.command("report")
@report_errors
def report_command(
    folder: Annotated[Path, typer.Argument(help="Folder that `hycal bench run` wrote its results to.")],
    force: opt.Force = False,
    quiet: opt.Quiet = False,
) -> None:
    """Write the tables and figures of a folder of results: Markdown, LaTeX, CSV, and one HTML page.

    Example: hycal bench report results
    """
    from hycal.bench.report.results import collect
    from hycal.bench.report.writers import write_report

    console = Console()
    with working("writing the report", quiet=quiet):
        results = collect(folder)
        files = write_report(results, folder, force=force)
    _print_groups([group for group in results.groups if group.methods])
    for path in files.values():
        print_line(console, str(path))


@app.command("efficiency")
@report_errors
def efficiency_command(out: Out, quiet: opt.Quiet = False) -> None:
    """Measure what it takes every method to add 10 classes to a model of 290; the report sets it beside the counts.

    Example: hycal bench efficiency --out results
    """
    from hycal.bench.efficiency import measure, write_efficiency

    measured = {}
    for method, cost in measure():
        measured[method] = cost
        line = f"{method:12} {1000 * cost.seconds:9.1f} ms {cost.state_bytes / 2**20:8.1f} MiB"
        print_line(Console(quiet=quiet), line)
    print_line(Console(), str(write_efficiency(out, measured)))


@app.command("practice")
@report_errors
def practice_command(
    settings: Annotated[list[str], typer.Argument(help="Settings, by name or as a .toml file.")],
    out: Out,
    seeds: Seeds = "",
    features: Features = None,
    quiet: opt.Quiet = False,
) -> None:
    """Run scikit-learn's classifiers beside HierarchicalHyCal: what a practitioner would pick instead.

    Logistic regression, linear SVM, ridge and nearest neighbours, one after the other, so that times can be compared. A
    seed that has a result already is not run again.

    Example: hycal bench practice xd8-balanced --seeds 0 --out results
    """
    from hycal.bench.domains import load_domains
    from hycal.bench.practice import run_practice

    console = Console(quiet=quiet)  # a line for each seed: a bar would take processor time that is measured
    for setting in load_settings(settings):
        embedded = load_domains(setting, features)
        for seed in _numbers("--seeds", seeds) or setting.seeds:
            ran = run_practice(setting, seed, embedded, out)
            print_line(console, f"{setting.name}, seed {seed}: {'run' if ran else 'known already'}")


def _numbers(option: str, text: str) -> list[int]:
    """Return the whole numbers of an option; none if it is empty."""
    least = 1 if option == "--shots" else 0
    if not all(word.isdecimal() and int(word) >= least for word in text.split()):
        raise HyCalError(f"{option} is {text!r}; expected whole numbers such as '{least} {least + 1}'.")
    return [int(word) for word in text.split()]


def _results_of(cells: Sequence[Cell], out: Path) -> Sequence[Group]:
    """Return the results of the cells of a run, by setting."""
    from hycal.bench.cells import read_cell
    from hycal.bench.report.results import grouped
    from hycal.bench.runner import CELLS

    paths = (out / CELLS / cell.place for cell in cells)
    return grouped(read_cell(path) for path in paths if path.exists())


def _print_groups(groups: Sequence[Group], *, latex: bool = False) -> None:
    """Print a table for each setting: our numbers, and the published ones where the setting is the paper's."""
    from hycal.bench.report.blocks import cell_text, latex_row
    from hycal.bench.report.sections.setting import short_table

    console = Console()
    for group in groups:
        short = short_table(group)
        heads = [column.title for column in short.columns]
        table = Table("method", *heads, title=plain(f"{group.name} ({group.protocol})"), box=None)
        for method, values in short.rows:
            table.add_row(plain(method), *(cell_text("terminal", short, value) for value in values))
        print_table(table)
        for number, note in enumerate(short.notes, start=1):
            print_line(console, f"[{number}] {note}")
        if latex:
            print_line(console, "% " + " & ".join(("method", *map(tex_text, heads))))
            for method, values in short.rows:
                print_line(console, latex_row(short, method, values))


def _print_summary(console: Console, summary: Summary, out: Path, seconds: float) -> None:
    for what, why in summary.impossible.items():
        print_line(console, f"{what}: {why}", label="not run", style="yellow", separator=" ")
    for where, count in summary.shortages.items():
        line = f"{where}: {count} classes have fewer images than shots"
        print_line(console, line, label="short", style="yellow", separator=" ")
    ran = f"{plural(summary.computed, 'run')} in {seconds:.1f} s"
    print_line(console, f"{ran}, {summary.known} known already; results in {out}")
