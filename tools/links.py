"""Broken links and anchors: of the Markdown in the repository, and of the built site. `python -m tools.links [SITE]`.

In the repository a link leads to a file, and an anchor is that which GitHub gives a heading. In the site every `href`
and `src` leads to a file of it; nothing is loaded from another host. Addresses of other hosts are not asked for.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s\"[^\"]*\")?\)")
_FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2\s*$", re.MULTILINE | re.DOTALL)
_LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
_NOT_LOADED = {"canonical", "alternate", "prev", "next", "search"}  # `link` elements that a browser does not fetch


def documents(root: Path = ROOT) -> list[Path]:
    """Return the Markdown of the repository: at its root, in docs/ and in examples/."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md")), *sorted(root.glob("examples/**/*.md"))]


def slug(heading: str) -> str:
    """Return the anchor that GitHub gives a heading.

    >>> slug("What to label, and `when`")
    'what-to-label-and-when'
    """
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def anchors(document: Path) -> frozenset[str]:
    """Return the anchors of a Markdown file; a heading that comes again has a number."""
    found: list[str] = []
    for heading in re.findall(
        r"^#{1,6} (.+?)\s*#*$", _FENCE.sub("", document.read_text(encoding="utf-8")), re.MULTILINE
    ):
        base = slug(heading)
        again = sum(one == base or re.fullmatch(rf"{re.escape(base)}-\d+", one) is not None for one in found)
        found.append(f"{base}-{again}" if again else base)
    return frozenset(found)


def problems(document: Path) -> Iterator[str]:
    """Yield each link of a Markdown file that leads nowhere."""
    text = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", document.read_text(encoding="utf-8")))
    for link in _LINK.findall(text):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = document.parent / unquote(parts.path) if parts.path else document
        if not target.exists():
            yield f"{document}: {link} leads to no file"
        elif parts.fragment and target.suffix == ".md" and parts.fragment not in anchors(target.resolve()):
            yield f"{document}: {link} leads to no heading of {target.name}"


class _Page(HTMLParser):
    """The links, anchors and loaded files of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element names."""
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in _LOADED and _LOADED[tag] in values and values.get("rel") not in _NOT_LOADED:
            self.loaded.append(values[_LOADED[tag]])


def site_problems(site: Path) -> Iterator[str]:
    """Yield each link of a built site that leads nowhere, and each file that it loads from another host."""
    pages = {path.resolve(): _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for address in page.loaded:
            if urlsplit(address).netloc:
                yield f"{path}: loads {address} from another host"
        if path.name == "404.html":  # its addresses are absolute, as it is served anywhere
            continue
        for address in [*page.links, *page.loaded]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{path}: {address} leads to no file"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids | {"__skip"}:
                yield f"{path}: {address} leads to no anchor"


def main() -> None:
    """Print what is broken; with a folder, in the site that was built there."""
    found = list(site_problems(Path(sys.argv[1]))) if sys.argv[1:] else []
    found += [problem for document in documents() for problem in problems(document)]
    for problem in found:
        sys.stderr.write(f"{problem}\n")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
