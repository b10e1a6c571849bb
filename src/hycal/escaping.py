r"""Text that leaves the program: terminal, CSV, HTML, JSON, LaTeX, Markdown and names of files.

A name may come from a stranger's folder, manifest or model. Control characters, escape sequences of terminals, marks
that reverse the direction of writing, and halves of surrogate pairs leave as escapes such as `\x1b`, in every form.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Iterable
from typing import Any

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_FORMULA = re.compile(r"[\s']*[=+\-@＝＋－＠]")  # spreadsheets take the wide forms for the same
_MARKDOWN = re.compile(r"[\\`*_{}\[\]()<>#+!|~&$:@]")
_TEX = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "{}$&#_%"},
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "σ": r"$\sigma$",
    "ρ": r"$\rho$",
    "–": "--",
}
_NOT_PLAIN = re.compile(r"[^\x00-\x7e]")
_IN_NO_FILE_NAME = re.compile(r"[/\\%]|^\.")


def visible(text: str, *, keep: str = "") -> str:
    r"""Return `text` with an escape for each character that is not printed as itself, but for those to `keep`.

    >>> visible("é\x1b[31m\udce9.jpg")
    'é\\x1b[31m\\udce9.jpg'
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in keep else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def csv_line(cells: Iterable[object]) -> str:
    r"""Return cells as a line of CSV without its end. A text that a spreadsheet would compute gets an apostrophe.

    Where a cell has a semicolon, all are quoted: spreadsheets of some countries separate cells by it.

    >>> print(csv_line(["=1+1", -0.5, "a,b", "@\x1b"]))
    '=1+1,-0.5,"a,b",'@\x1b
    """
    texts = [_csv_cell(str(cell)) for cell in cells]
    out = io.StringIO()
    how = csv.QUOTE_ALL if any(";" in text for text in texts) else csv.QUOTE_MINIMAL
    csv.writer(out, lineterminator="", quoting=how).writerow(texts)  # type: ignore[arg-type]
    return out.getvalue()


def csv_text(cell: str) -> str:
    """Return the text of a cell of CSV, without the apostrophe that `csv_line` puts before formulas.

    >>> csv_text("'=1+1"), csv_text("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if cell.startswith("'") and _is_formula(cell[1:]) else cell


def _csv_cell(text: str) -> str:
    shown = visible(text)
    return f"'{shown}" if _is_formula(shown) else shown


def _is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None and not _NUMBER.fullmatch(text)


def html_text(text: str) -> str:
    """Return `text` for an element or a quoted attribute of HTML; it may have several lines."""
    return html.escape(visible(text, keep="\n"))


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return `value` as JSON in printable ASCII."""
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def whole_unicode(given: str) -> str:
    """Return text of a file system or of a client as JSON can carry it: a lone surrogate becomes a question mark."""
    return given.encode("utf-8", "replace").decode()


def plain_json(body: bytes) -> bytes:
    r"""Return JSON in UTF-8 as JSON in printable ASCII.

    >>> plain_json('{"é": 1}'.encode())
    b'{"\\u00e9": 1}'
    """
    if body.isascii() and b"\x7f" not in body:
        return body
    return _NOT_PLAIN.sub(lambda found: json_text(found[0])[1:-1], body.decode()).encode()


def tex_text(text: str) -> str:
    r"""Return `text` for LaTeX, where no character of it is a command.

    >>> print(tex_text(r"100% \input{x}"))
    100\% \textbackslash{}input\{x\}
    """
    return "".join(_TEX.get(letter, letter) for letter in visible(text))


def markdown_cell(text: str) -> str:
    """Return `text` for a cell of a table in Markdown."""
    return visible(text).replace("|", r"\|")


def markdown_text(text: str) -> str:
    r"""Return `text` for Markdown, where no character of it is markup, a link or HTML.

    >>> print(markdown_text("[x](http://y) <b>"))
    \[x\]\(http\://y\) \<b\>
    """
    return _MARKDOWN.sub(r"\\\g<0>", visible(text))


def file_name(text: str) -> str:
    """Return `text` as the name of one file: it names no other folder, and is not hidden.

    >>> file_name("HyCal[metric=cosine]"), file_name("../up")
    ('HyCal[metric=cosine]', '%2E.%2Fup')
    """
    return _IN_NO_FILE_NAME.sub(lambda found: f"%{ord(found[0]):02X}", visible(text))


def archive_path(path: str) -> str:
    """Return the path of a file in an archive, which every system reads alike: printable, and without backslashes.

    >>> archive_path("a b/c.png"), archive_path(f"a{chr(92)}b.png")
    ('a b/c.png', 'a%5Cb.png')
    """
    parts = path.split("/")
    return "/".join(part if part.isprintable() and "\\" not in part else file_name(part) for part in parts)
