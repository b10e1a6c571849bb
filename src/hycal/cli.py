"""The command line, `hycal`: each group of commands lives in `hycal.commands`."""

from __future__ import annotations

import typer

from hycal.commands import bench, data, encoders
from hycal.commands.embed import embed_command

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    help="Teach a classifier new image classes from a handful of examples.",
)
app.command("doctor")(encoders.doctor)
app.command("embed")(embed_command)
app.add_typer(bench.app, name="bench")
app.add_typer(data.app, name="data")
app.add_typer(encoders.app, name="encoders")
