"""Hooks of MkDocs: the pages at the root of the repository, links between pages, and what the code says itself.

The Markdown in docs/ is written for readers of the repository: its links lead from file to file there. Here each link
becomes one between pages of the site. A line `<!-- from the code: NAME -->` is replaced by what `tools.reference` makes
of the code; everything else in docs/ can be read without the site.
"""

from __future__ import annotations

import json
import logging
import posixpath
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # MkDocs loads a hook by its path

from tools import reference  # noqa: E402

log = logging.getLogger("mkdocs.plugins.hycal")
ROOT_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
_MARK = re.compile(r"^<!-- from the code: ([\w. -]+) -->$", re.MULTILINE)
_LINK = re.compile(r"(\]\()([\w./-]+)((?:#[\w-]+)?\))")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
MADE: Mapping[str, Callable[[], str]] = {
    "commands": reference.commands,
    "routes": reference.routes,
    "names": reference.names,
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages at the root of the repository, and the OpenAPI document."""
    for source, page in ROOT_PAGES.items():
        if (ROOT / source).exists():
            files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    document = json.dumps(reference.openapi(), indent=1, ensure_ascii=False)
    files.append(File.generated(config, "reference/openapi.json", content=document))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the text of a page with its links, and with what the code says."""
    filled = _MARK.sub(lambda mark: MADE[mark[1]](), markdown)
    here = page.file.src_uri
    parts = _FENCE.split(filled)  # every other part is a block of code
    return "".join(part if number % 2 else site_links(part, here) for number, part in enumerate(parts))


def site_links(text: str, page: str) -> str:
    """Return `text` with links between files of the repository as links between pages of the site.

    >>> site_links("[rules](../../CONTRIBUTING.md#the-house)", "how-to/method.md")
    '[rules](../contributing.md#the-house)'
    >>> site_links("![page](docs/images/page-ask.png)", "index.md")
    '![page](images/page-ask.png)'
    """
    sources = {site: source for source, site in ROOT_PAGES.items()}
    source = sources.get(page, f"docs/{page}")

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[2]))
        site = ROOT_PAGES.get(target, target.removeprefix("docs/"))
        if site == target and target != source:  # neither in docs/ nor a page
            log.warning("%s links to %s, which is no page of the site", source, target)
        return f"{link[1]}{posixpath.relpath(site, posixpath.dirname(page) or '.')}{link[3]}"

    return _LINK.sub(moved, text)


def on_post_build(config: MkDocsConfig, **_: Any) -> None:
    """Fail on a broken link or anchor in the pages as they were written, and on anything from another host."""
    from tools.links import site_problems

    for problem in site_problems(Path(config.site_dir)):
        log.warning("%s", problem)
