"""`hycal new`: packages to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hycal.commands._lazy import Subcommands
from hycal.commands._output import confirm, report_errors

app = Subcommands(no_args_is_help=True, help="Write a package to start from.")


@app.callback()
def _group() -> None:
    """Write a package to start from."""


@app.command("method")
@report_errors
def method_command(
    name: Annotated[str, typer.Argument(help="Of the class, such as NearestMedian.")],
    folder: Annotated[
        Path | None, typer.Option(help="Where to write it; nearest-median for NearestMedian by default.")
    ] = None,
) -> None:
    """Write a package with a method of your own: the class, a test of the laws, and a README.

    The method works as it is: replace its two functions by yours. Once the package is installed, every command takes
    the method by its name. A class in any module can also be run without a package: hycal bench run --methods
    MODULE:CLASS.

    Example: hycal new method NearestMedian
    """
    from hycal.testing.packages import package_of, write_method_package

    target = write_method_package(name, folder)
    confirm(
        f"{target}: write your method in {target / 'src' / package_of(name) / '__init__.py'}, then",
        f"  pip install --editable '{target}[test]'",
        f"  pytest {target}",
        f'  hycal bench run xd8-balanced --methods "{name} NCM" --out results',
    )
