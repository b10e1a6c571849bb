"""The page of a model's gravity."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from hycal import NCM, HyCalError
from hycal.gravity import measure
from hycal.gravity.page import gravity_page


@pytest.fixture(scope="module")
def page() -> str:
    classifier = NCM().fit([[1, 0, 0], [0, 1, 0]], ["a", "b"], domain="<letters>")
    classifier.partial_fit([[0, 0, 1]], ["1"], domain="digits & 'co'")
    return gravity_page('my "model"', {"after": measure(classifier, [[1, 0.1, 0], [0, 1, 2]], ["a", "b"])})


def test_names_are_escaped_and_drawings_are_not(page: str) -> None:
    assert "<title>Domain Gravity of my &quot;model&quot;</title>" in page
    assert "<th>&lt;letters&gt;</th>" in page
    assert "<th>digits &amp; &#x27;co&#x27;</th>" in page
    assert "<letters>" not in page
    assert page.count("<figure><svg") == 2


def test_the_page_has_the_sentence_and_every_table(page: str) -> None:
    assert "<p>NCM (after calibration): 1 of 2 images (50.00%) are given to a class of another domain;" in page
    assert page.count("<table>") == 2  # two domains have no relation that could be beyond chance
    assert page.endswith("</body></html>\n")


def test_the_page_needs_no_benchmark() -> None:
    code = "import sys, hycal.commands.evaluate, hycal.gravity.page; print(*(m for m in sys.modules if 'bench' in m))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


def test_without_jinja_the_page_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(HyCalError, match=r"pip install 'hycal\[bench\]'"):
        gravity_page("model", {})


def test_relations_are_shown_from_five_domains_on() -> None:
    classifier = NCM()
    for number in range(5):
        classifier.partial_fit([np.eye(5)[number]], [str(number)], domain=f"domain {number}")
    page = gravity_page("model", {"after": measure(classifier, np.eye(5), list("01234"))})
    assert page.count("<table>") == 3 and "relations" in page
