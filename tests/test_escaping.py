"""Text that leaves the program cannot be taken for anything but text."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from hycal.escaping import csv_line, file_name, html_text, json_text, markdown_cell, plain_json, tex_text, visible
from hycal.gravity.drawing import drawing

SOURCE = Path(__file__).resolve().parents[1] / "src" / "hycal"
HOSTILE = "\x1b]0;x\x07\x9b31m\x7f\u202egpj\u2066\u200f\r\n\udce9"
FORMS = [visible, html_text, json_text, tex_text, markdown_cell, file_name, lambda text: csv_line([text])]


@pytest.mark.parametrize("form", FORMS)
def test_no_form_lets_a_control_character_or_a_direction_mark_through(form):
    written = form(HOSTILE)
    assert written.replace("\n", "").isprintable()
    assert written.count("\n") == (form is html_text)  # lines are the only control that HTML needs
    assert form("café 猫") in ("café 猫", json.dumps("café 猫"))


def test_json_of_another_writer_becomes_plain():
    value = {"café\u202e\x7f\x9b": ["猫", "🐈", 'a"\\b']}
    written = plain_json(json.dumps(value, ensure_ascii=False).encode())
    assert written.isascii() and written.decode().isprintable() and json.loads(written) == value
    assert plain_json(written) is written


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1", "-1e5x"])
def test_a_spreadsheet_computes_no_cell(text):
    (cell,) = next(csv.reader(io.StringIO(csv_line([text]))))
    assert cell[0] in "'\\"


@pytest.mark.parametrize("number", [-0.5, 7, "-0.125000", "1e-30", "+3"])
def test_numbers_stay_numbers(number):
    assert float(csv_line([number])) == float(number)


def test_a_semicolon_begins_no_cell_of_its_own():
    assert csv_line(["a;=1+1", 2]) == '"a;=1+1","2"'


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "a/b", "..", ".hidden", "a\\b"])
def test_a_file_name_stays_in_its_folder(name):
    made = file_name(name)
    assert Path("folder", made).parent == Path("folder") and made[0] != "." and "\\" not in made


def test_names_in_a_drawing_are_no_formulas_and_no_controls():
    out: list[str] = []
    with drawing("names", out) as (ax,):
        ax.plot([0, 1])
        ax.set_title("$\\nothing{ \u202e<b>")
    assert "$\\nothing{ \\u202e&lt;b&gt;" in out[0] and "\u202e" not in out[0]


@pytest.mark.parametrize("other", ["csv.writer(", "html.escape(", "isprintable()"])
def test_one_module_escapes(other):
    entering = {"project/labels.py"}  # it checks names that come in
    users = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if other in path.read_text()}
    assert users - entering == {"escaping.py"}
