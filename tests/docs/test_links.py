"""Each relative link of a document leads to a committed file, and to an existing heading in it."""

import json
import re
import subprocess
from collections import Counter
from functools import cache

import pytest

from tests.docs.blocks import ROOT, each_page

_CODE = re.compile(r"^(```|~~~).*?^\1$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)[^)]*\)|\b(?:src|srcset|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:")


def _committed():
    """Files that git tracks or does not ignore; none outside of a checkout."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return [
        path
        for name in listing.stdout.split("\0")
        if name and (path := ROOT / name).is_file()
    ]


COMMITTED = _committed()
DOCUMENTS = [path for path in COMMITTED if path.suffix in {".md", ".ipynb"}]
pytestmark = pytest.mark.skipif(not COMMITTED, reason="not a checkout of git")


def test_documents_are_found():
    assert {
        ROOT / "README.md",
        ROOT / "docs" / "index.md",
        ROOT / "docs" / "tutorials" / "train.ipynb",
    } <= {*DOCUMENTS}


@each_page(DOCUMENTS)
def test_links_are_valid(page):
    assert [
        f"{link}: {fault}" for link in links(page) if (fault := broken(page, link))
    ] == []


def links(document):
    """Yields the relative links of a document."""
    for markdown, html in _LINK.findall(_CODE.sub("", _text(document))):
        if not _EXTERNAL.match(markdown or html):
            yield markdown or html


def broken(document, link):
    """Returns the fault of a link, if it has one."""
    name, _, anchor = link.partition("#")
    target = (document.parent / name).resolve() if name else document
    if target not in COMMITTED and not any(
        target in path.parents for path in COMMITTED
    ):
        return "no committed file"
    if anchor and anchor not in anchors(_text(target)):
        return "no such heading"
    return None


def anchors(text):
    """The anchors of a document's headings, by GitHub's rule."""
    seen = Counter()
    slugs = set()
    for heading in _HEADING.findall(
        re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    ):
        words = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        slugs.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return slugs


@cache
def _text(document):
    text = document.read_text()
    if document.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return "\n\n".join(
        "".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"
    )
