"""Templates of HTML pages, and the page of a model's gravity. The report of the benchmark uses the same page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hycal.errors import load_extra
from hycal.escaping import html_text
from hycal.gravity.drawing import draw_flow, draw_pull
from hycal.gravity.measure import Gravity
from hycal.gravity.tables import sentence, sheets

if TYPE_CHECKING:
    from jinja2 import Environment

Pair = tuple[str, str]
PAGE_MARK = b'<meta name="generator" content="hycal">'


def gravity_page(name: str, measured: Mapping[str, Gravity]) -> str:
    """Return the HTML page of a model called `name`: sentences, drawings and tables, by state of calibration."""
    shown = list(measured.values())
    return (
        environment("hycal.gravity")
        .get_template("gravity.html")
        .render(
            title=f"Domain Gravity of {name}",
            sentences=[sentence(when, one) for when, one in measured.items()],
            drawings=[draw_flow(shown, name), draw_pull(shown, name)],
            sheets=[sheet for one in shown for sheet in sheets(one)],
        )
    )


def environment(package: str, *, block: Pair = ("{%", "%}"), variable: Pair = ("{{", "}}")) -> Environment:
    """Return the templates in the folder `templates` of a package, and those of this one.

    HTML is escaped. `block` and `variable` are the delimiters of templates.
    """
    load_extra("jinja2", extra="bench", why="A page")
    from jinja2 import ChoiceLoader, Environment, PackageLoader, pass_eval_context, select_autoescape
    from markupsafe import Markup

    @pass_eval_context
    def escaped(context: Any, value: Any) -> Any:
        return Markup(html_text(value)) if context.autoescape and type(value) is str else value

    return Environment(
        *block,
        *variable,
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("hycal.gravity")]),
        autoescape=select_autoescape(["html"]),
        finalize=escaped,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
