"""No link of a document leads nowhere. `make docs` checks the built site by the same rules."""

from __future__ import annotations

import itertools
import re

import pytest

from tests.support.documents import ROOT
from tools.links import anchors, documents, problems, site_problems


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document):
    assert not list(problems(document))


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_list_begins_after_an_empty_line(document):
    """Without one, it is a list for readers of the repository and a paragraph on the site."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    lines = ["", *text.splitlines()]
    begins = [
        line
        for before, line in itertools.pairwise(lines)
        if re.match(r"[-*] |1\. ", line) and before.strip() and not re.match(r"[-*] |\d+\. |  ", before)
    ]
    assert not begins


def test_what_is_broken_is_found(tmp_path):
    (tmp_path / "there.md").write_text("# A heading, with `code`\n\n# A heading, with `code`\n")
    assert anchors(tmp_path / "there.md") == {"a-heading-with-code", "a-heading-with-code-1"}
    document = tmp_path / "here.md"
    document.write_text(
        "[a](there.md#a-heading-with-code) [b](there.md#none) [c](gone.md) [d](https://x.org/y) `[e](f)`"
    )
    assert [problem.split(": ")[1] for problem in problems(document)] == [
        "there.md#none leads to no heading of there.md",
        "gone.md leads to no file",
    ]
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.html").write_text('<h1 id="top">x</h1><a href="b.html#y">b</a><a href="c.html">c</a><img src="/x.png">')
    (site / "b.html").write_text('<script src="https://x.org/a.js"></script><a href="a.html#top">a</a>')
    found = [problem.partition(": ")[2] for problem in site_problems(site)]
    assert found == [
        "b.html#y leads to no anchor",
        "c.html leads to no file",
        "/x.png leads to no file",
        "loads https://x.org/a.js from another host",
    ]
