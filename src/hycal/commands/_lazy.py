"""Commands that are imported when they are called, so that `hycal --help` waits for none of them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

F = TypeVar("F", bound=Callable[..., Any])


def _plain_flags(params: Any) -> Any:
    """Show no type beside a flag, as in `--json <bool>`: a flag takes no value."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class Command(TyperCommand):
    """A command whose help fills its lines at any width, and shows no type beside a flag."""

    def __init__(self, *args: Any, **options: Any) -> None:
        paragraphs = inspect.cleandoc(options.get("help") or "").split("\n\n")
        options["help"] = "\n\n".join(" ".join(part.split()) for part in paragraphs)
        super().__init__(*args, **options)

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, `--help` included."""
        return _plain_flags(super().get_params(ctx))


class _Group(TyperGroup):
    """A group whose help shows no type beside a flag."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, `--help` included."""
        return _plain_flags(super().get_params(ctx))


class Subcommands(typer.Typer):
    """Commands below one name, such as those of `hycal bench`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[F], F]:
        """Return the decorator of a command."""
        return super().command(name, cls=Command, **options)


@dataclass(frozen=True)
class Entry:
    """A line of `hycal --help`."""

    name: str
    place: str  # "MODULE:NAME" below `hycal.commands` of a command function, or of a Typer with commands of its own
    help: str  # what it does, in a line
    panel: str | None = None  # the heading under which it is listed

    def load(self) -> Any:
        """Import the command."""
        module, _, name = self.place.partition(":")
        found = getattr(importlib.import_module(f"hycal.commands.{module}"), name)
        if isinstance(found, typer.Typer):
            return typer.main.get_group(found)
        alone = typer.Typer(add_completion=False)
        alone.command(self.name, cls=Command)(found)
        return typer.main.get_command(alone)


class _Announced(TyperCommand):
    """A command known by its entry alone, until it is called or asked for its own help."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.name, help=entry.help, rich_help_panel=entry.panel)
        self._entry = entry

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Return the context of the real command, which runs in the place of this one."""
        return self._entry.load().make_context(*args, **kwargs)


class LazyGroup(_Group):
    """A group with the commands in `entries`, for `typer.Typer(cls=)`."""

    entries: ClassVar[tuple[Entry, ...]] = ()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for entry in self.entries:
            self.add_command(_Announced(entry))
