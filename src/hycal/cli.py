"""The command line, `hycal`: each group of commands lives in `hycal.commands`."""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
from typing import Annotated

import typer

from hycal._version import __version__
from hycal.commands._lazy import Entry, LazyGroup

_MODELS = "Models"
_PILE = "A pile of unlabelled images"
_EMBEDDINGS = "Embeddings and benchmark"
_FIELD = "Share and extend"
_OBJECTS_AT_ONCE = 500_000  # between searches for garbage


class Commands(LazyGroup):
    """Every command, in the order in which `hycal --help` lists them."""

    entries = (
        Entry("learn", "learn:learn_command", "Learn the classes in a folder of images.", _MODELS),
        Entry("predict", "predict:predict_command", "Classify images.", _MODELS),
        Entry("correct", "learn:correct_command", "Set the class of one image.", _MODELS),
        Entry("classes", "show:classes_command", "List the classes of a model.", _MODELS),
        Entry("info", "show:info_command", "Show the method, encoder, size and history of a model.", _MODELS),
        Entry("rename", "change:rename_command", "Rename a class or a domain.", _MODELS),
        Entry("forget", "change:forget_command", "Forget a class, a domain or an image.", _MODELS),
        Entry("undo", "change:undo_command", "Take back the last change.", _MODELS),
        Entry("redo", "change:redo_command", "Make again what undo took back.", _MODELS),
        Entry("merge", "change:merge_command", "Make one model of two.", _MODELS),
        Entry("seal", "change:seal_command", "Write a copy without images, to share.", _MODELS),
        Entry("diff", "show:diff_command", "Compare two models.", _MODELS),
        Entry("evaluate", "evaluate:evaluate_command", "Test a model on labelled images.", _MODELS),
        Entry("advise", "advise:advise_command", "Find doubtful images and weak classes.", _MODELS),
        Entry("methods", "methods:methods_command", "Find the method that suits a model.", _MODELS),
        Entry("remake", "methods:remake_command", "Change the method of a model.", _MODELS),
        Entry("views", "views:views_command", "Show, add or drop the encoders of a model.", _MODELS),
        Entry(
            "gravity",
            "evaluate:gravity_command",
            "Show how often images of one domain are classified into another.",
            _MODELS,
        ),
        Entry("export", "export:export_command", "Write a model's head as ONNX.", _MODELS),
        Entry("serve", "serve:serve_command", "Serve a model: a page in the browser, and an HTTP API.", _MODELS),
        Entry("suggest", "suggest:suggest_command", "Say which images to label next.", _PILE),
        Entry("discover", "suggest:discover_command", "Show groups among unknown images.", _PILE),
        Entry("sort", "sort:sort_command", "Sort a pile of images into class folders.", _PILE),
        Entry("unsort", "sort:unsort_command", "Put everything back as it was before sort.", _PILE),
        Entry("labels", "labels:labels_command", "Write labels for another program.", _PILE),
        Entry("find", "find:find_command", "Find images by an image, a class or words.", _PILE),
        Entry("duplicates", "find:duplicates_command", "Show images that are nearly the same.", _PILE),
        Entry("doctor", "encoders:doctor", "Say what works on this machine, and what does not.", _EMBEDDINGS),
        Entry("embed", "embed:embed_command", "Embed every image in a folder.", _EMBEDDINGS),
        Entry("encoders", "encoders:app", "List, fetch and inspect the encoders.", _EMBEDDINGS),
        Entry("data", "data:app", "Find, fetch and check the data sets of the benchmark.", _EMBEDDINGS),
        Entry("bench", "bench:app", "Run the benchmark and report it.", _EMBEDDINGS),
        Entry("hub", "hub:app", "Share a model on the Hugging Face hub, or take one.", _FIELD),
        Entry("new", "new:app", "Write a package for a method of your own.", _FIELD),
    )


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    _search_garbage_rarely()
    _prepare_streams()


def _search_garbage_rarely() -> None:
    """Imports make many objects and little garbage: to search it, also at the end, takes a tenth of a short command."""
    gc.set_threshold(_OBJECTS_AT_ONCE)
    atexit.register(gc.freeze)


def _prepare_streams() -> None:
    """Escape what the encoding of a stream lacks; open closed ones on the null device: no file may get their number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # the lowest free number; to write there is an error
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
