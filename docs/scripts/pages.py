"""A hook of mkdocs: what only the site has, and what reads otherwise there than in the repository.

The documents are written to be read in the repository as they are: each link leads to a committed file.
The site takes in documents from outside of `docs/`, makes the pages of Python names, and turns links to those
into links to its pages.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from importlib import import_module

from command_pages import ROOT, scripts
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

DOCUMENTS = {
    "ARCHITECTURE.md": "about/design.md",
    "CHANGELOG.md": "about/changes.md",
    "CONTRIBUTING.md": "about/contributing.md",
    "benchmarks/README.md": "about/benchmarks.md",
    "data/README.md": "about/data.md",
    "papers/README.md": "about/papers.md",
}
PACKAGES = tuple(dict.fromkeys((*scripts().values(), "pairkit")))
# A file of the repository outside of `docs/`, and the page that the site shows in its place.
PAGES = DOCUMENTS | {f"{package}/__init__.py": f"reference/{package}.md" for package in PACKAGES}
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)\s#]+)")
_TWINS = re.compile(r"^```sh\n((?:(?!```).*\n)*)```\n\n```python\n((?:(?!```).*\n)*)```$", re.MULTILINE)
_LIGHT = re.compile(r"^!\[(.*)\]\((.*)-light\.svg\)$", re.MULTILINE)
_PACKAGE_ALONE = [
    f"      {option}: false" for option in ("members", "show_root_heading", "show_root_toc_entry")
]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that no file in `docs/` holds."""
    for name, page in DOCUMENTS.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    for package in PACKAGES:
        content = python_page(package, import_module(package).__all__)
        files.append(File.generated(config, f"reference/{package}.md", content=content))
    return files


def python_page(package: str, names: Iterable[str]) -> str:
    """The page of a package: what it says of itself, its functions, then its types."""
    every = sorted(name for name in names if not name.startswith("_"))
    lines = [f"# `{package}`", "", f"::: {package}", "    options:", *_PACKAGE_ALONE]
    for heading, group in (
        ("Functions", [name for name in every if name.islower()]),
        ("Types", [name for name in every if not name.islower()]),
    ):
        if group:
            lines += ["", f"## {heading}", "", *(f"::: {package}.{name}\n" for name in group)]
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Lead links to pages of the site, put shell and Python into tabs, and show pictures in both schemes."""
    markdown = _LINK.sub(lambda link: site_link(link[1], page.file.src_uri), markdown)
    markdown = _TWINS.sub(_tabs, markdown)
    return _LIGHT.sub(r"![\1](\2-light.svg#only-light)\n![\1](\2-dark.svg#only-dark)", markdown)


def site_link(link: str, page: str) -> str:
    """A link of a document in the repository, as a page of the site has it."""
    written = next((name for name, shown in DOCUMENTS.items() if shown == page), f"docs/{page}")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(written), link))
    shown = PAGES.get(target) or target.removeprefix("docs/")
    return posixpath.relpath(shown, posixpath.dirname(page) or ".")


def _tabs(blocks: re.Match[str]) -> str:
    return "\n".join(
        f'=== "{title}"\n\n    ```{language}\n{_indented(text)}    ```\n'
        for title, language, text in (("Shell", "sh", blocks[1]), ("Python", "python", blocks[2]))
    )


def _indented(text: str) -> str:
    return "".join(f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True))
