"""`hycal data`: the benchmark's data sets on this machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table

from hycal.commands._lazy import Subcommands
from hycal.commands._output import print_line, print_table, progress, report_errors, working
from hycal.data.catalog import find_dataset, list_datasets
from hycal.data.check import check_dataset
from hycal.data.download import fetch

app = Subcommands(no_args_is_help=True, help="Find, fetch and check the data sets of the benchmark.")

Name = Annotated[str, typer.Argument(help="Name of the data set; `hycal data list` shows them.")]
Root = Annotated[Path, typer.Option(help="Folder that holds the files, unpacked as published.")]


@app.command("list")
def list_command() -> None:
    """Show every data set that hycal can read."""
    table = Table("name", "data set", "classes", "images", "fetch", box=None)
    for spec in list_datasets():
        verified = [item.checksum is not None for item in spec.files]
        how = "by hand" if not verified else "verified" if all(verified) else "no checksum published"
        table.add_row(spec.name, spec.title, str(spec.classes), f"{sum(spec.images.values()):,}", how)
    print_table(table)


@app.command("check")
@report_errors
def check_command(name: Name, root: Root) -> None:
    """Say what is there of a data set, what is missing, and what is wrong.

    Ends with code 0 if the set is complete, 1 if it is not.

    Example: hycal data check dtd --root ~/data/dtd
    """
    console = Console()
    with working(f"checking {name}"):
        report = check_dataset(name, root.expanduser())
    print_line(console, f"{report.title} in {root}")
    for heading, style, lines in (
        ("there", "green", report.there),
        ("missing", "red", report.missing),
        ("wrong", "red", report.wrong),
    ):
        for line in lines:
            print_line(console, line, label=heading, style=style)
    if not report.complete:
        raise typer.Exit(1)
    console.print("complete", style="green")


@app.command("fetch")
@report_errors
def fetch_command(name: Name, root: Root) -> None:
    """Download a data set, verify it, and unpack it into a folder; with CoOp's split, where the paper uses it.

    A download that was interrupted goes on where it stopped. Where a checksum is published the file is
    verified before it is unpacked; where there is none, that is said.

    Example: hycal data fetch mnist --root ~/data/mnist
    """
    spec = find_dataset(name)
    console = Console()
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with progress(console, *columns) as watch:
        fetch(spec, root.expanduser(), say=lambda line: print_line(console, line), watch=watch)
    print_line(console, f"Now: hycal data check {name} --root {shlex.quote(str(root))}")
