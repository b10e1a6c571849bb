"""The command line, `hycal`: each group of commands lives in `hycal.commands`."""

from __future__ import annotations

from typing import Annotated

import typer

from hycal._version import __version__
from hycal.commands import bench, change, data, encoders, export, judge, learn, predict, serve, show
from hycal.commands.embed import embed_command

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
_MODELS = "Models"
app.command("learn", rich_help_panel=_MODELS)(learn.learn_command)
app.command("predict", rich_help_panel=_MODELS)(predict.predict_command)
app.command("correct", rich_help_panel=_MODELS)(learn.correct_command)
app.command("classes", rich_help_panel=_MODELS)(show.classes_command)
app.command("info", rich_help_panel=_MODELS)(show.info_command)
app.command("rename", rich_help_panel=_MODELS)(change.rename_command)
app.command("forget", rich_help_panel=_MODELS)(change.forget_command)
app.command("undo", rich_help_panel=_MODELS)(change.undo_command)
app.command("merge", rich_help_panel=_MODELS)(change.merge_command)
app.command("diff", rich_help_panel=_MODELS)(show.diff_command)
app.command("evaluate", rich_help_panel=_MODELS)(judge.evaluate_command)
app.command("advise", rich_help_panel=_MODELS)(judge.advise_command)
app.command("export", rich_help_panel=_MODELS)(export.export_command)
app.command("serve", rich_help_panel=_MODELS)(serve.serve_command)
app.command("doctor")(encoders.doctor)
app.command("embed")(embed_command)
app.add_typer(bench.app, name="bench")
app.add_typer(data.app, name="data")
app.add_typer(encoders.app, name="encoders")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"hycal {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Teach a classifier new image classes from a handful of examples."""
