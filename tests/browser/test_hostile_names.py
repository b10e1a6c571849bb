"""Names of a stranger's model or folder: the page shows them as text that hides and moves nothing."""

from __future__ import annotations

import numpy as np
import pytest

from hycal.escaping import csv_line, html_text, visible
from hycal.project import Arrival, Example
from tests.browser.conftest import serving
from tests.support.projects import new_project

HOSTILE = "gpj\u202e\u2066\x1b[31m\x9b\x7f\u200b\ufeff\u00a0\u2028\ue000"
HEBREW = "\u05e9\u05dc\u05d5\u05dd"
LABELS = [f"pets{HOSTILE}/cat{HOSTILE}", f"pets/{HEBREW}", f"pets/{HEBREW} 3", "pets/dog"]
VIEWS = ["ask", "teach", "test", "camera", "classes", "map", "history"]

EVERYTHING_READ = """() => {
  const found = [document.title];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) found.push(walker.currentNode.data);
  for (const element of document.querySelectorAll("[title], [alt], [aria-label]"))
    found.push(...["title", "alt", "aria-label"].map((name) => element.getAttribute(name) ?? ""));
  for (const element of document.querySelectorAll("option")) found.push(element.value);
  return found;
}"""


@pytest.fixture(scope="module")
def page(tmp_path_factory, browser):
    project = new_project(tmp_path_factory.mktemp("hostile") / "m.hycal")
    rows = np.eye(project.state.space.dimension, dtype=np.float32)
    for number, label in enumerate(LABELS):
        project.learn([Arrival(label, Example(rows[number], name=f"{HOSTILE}.jpg"))])
    with serving(project.path) as server:
        page = browser.new_page()
        page.goto(server.url)
        page.wait_for_selector("body[data-ready]")
        yield page
        page.close()


def test_nothing_that_people_read_has_a_hidden_character(page):
    for view in VIEWS:
        page.click(f"nav a[href='#{view}']")
        page.wait_for_selector(f"#{view}:not([hidden])")
        page.wait_for_timeout(300)
    page.click("nav a[href='#classes']")
    page.locator("button.strip").last.click()
    page.wait_for_selector("tr.examples")
    page.locator("td.actions button", has_text="Forget").first.click()
    read = "".join(page.evaluate(EVERYTHING_READ))
    assert read.replace("\n", "").isprintable()
    assert visible(f"cat{HOSTILE}") in read and f"pets/{HEBREW} 3" in read


def test_the_page_and_the_program_escape_alike(page):
    texts = [
        HOSTILE,
        "caf\xe9 \u732b",
        "a\nb\tc\rd",
        '=1+1;"',
        "-0.5",
        "-1x",
        " =1",
        "\uff1d1",
        "\U000e0041",
        "\U0001f408",
    ]
    script = """async (texts) => {
      const { csvCell, readable } = await import("/escaping.js");
      return texts.map((text) => [readable(text), csvCell(text)]);
    }"""
    for text, (shown, cell) in zip(texts, page.evaluate(script, texts), strict=True):
        assert shown == visible(text, keep="\n")
        assert cell[1:-1].replace('""', '"') == csv_line([text, ";"]).removesuffix(',";"')[1:-1].replace('""', '"')
        assert html_text(shown) == html_text(text)


def test_letters_from_right_to_left_move_nothing_around_them(page):
    script = """async (words) => {
      const { h } = await import("/dom.js");
      const line = h("p", {}, words.join(" "));
      document.body.append(line);
      const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
      const places = [];
      while (walker.nextNode())
        for (const { index } of walker.currentNode.data.matchAll(/\\S+/g)) {
          const range = document.createRange();
          range.setStart(walker.currentNode, index);
          range.setEnd(walker.currentNode, index + 1);
          places.push(range.getBoundingClientRect().left);
        }
      line.remove();
      return places;
    }"""
    places = page.evaluate(script, ["3", HEBREW, ",", "5", HEBREW, "(7)", HEBREW])
    assert len(places) == 7 and places == sorted(places)
