"""Stages the pages of the site in `build/pages` for the site generator: `make docs`.

The site also has documents from outside of `docs/`, and pages of the Python packages. Links to files of the
repository become links to their pages.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from command_pages import ROOT, scripts

STAGED = ROOT / "build" / "pages"
DOCUMENTS = {
    "ARCHITECTURE.md": "about/design.md",
    "CHANGELOG.md": "about/changes.md",
    "CONTRIBUTING.md": "about/contributing.md",
    "benchmarks/README.md": "about/benchmarks.md",
    "data/README.md": "about/data.md",
    "papers/README.md": "about/papers.md",
    "papers/equations.md": "about/equations.md",
    "papers/settings.md": "about/settings.md",
}
PACKAGES = tuple(dict.fromkeys((*scripts().values(), "pairkit")))
# Maps files outside of `docs/` to their pages of the site.
PAGES = DOCUMENTS | {
    f"{package}/__init__.py": f"reference/{package}.md" for package in PACKAGES
}
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)\s#]+)")
_TWINS = re.compile(
    r"^```sh\n((?:(?!```).*\n)*)```\n\n```python\n((?:(?!```).*\n)*)```$", re.MULTILINE
)
_TABLE = re.compile(r"^(?:\|.*\n)+", re.MULTILINE)
_LIGHT = re.compile(r"^!\[(.*)\]\((.*)-light\.svg\)$", re.MULTILINE)
_PACKAGE_OPTIONS = [
    f"      {option}: false"
    for option in ("members", "show_root_heading", "show_root_toc_entry")
]


def stage(folder: Path) -> None:
    """Writes all pages, pictures and styles of the site into a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        ROOT / "docs", folder, ignore=shutil.ignore_patterns("scripts", "__pycache__")
    )
    for name, page in DOCUMENTS.items():
        (folder / page).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, folder / page)
    for package in PACKAGES:
        page_text = python_page(package, import_module(package).__all__)
        (folder / "reference" / f"{package}.md").write_text(page_text, encoding="utf-8")
    for page in folder.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(
            site_text(text, page.relative_to(folder).as_posix()), encoding="utf-8"
        )


def python_page(package: str, names: Iterable[str]) -> str:
    """Returns the page of a package: its docstring, functions and types."""
    public = sorted(name for name in names if not name.startswith("_"))
    lines = [f"# `{package}`", "", f"::: {package}", "    options:", *_PACKAGE_OPTIONS]
    for heading, group in (
        ("Functions", [name for name in public if name.islower()]),
        ("Types", [name for name in public if not name.islower()]),
    ):
        if group:
            lines += [
                "",
                f"## {heading}",
                "",
                *(f"::: {package}.{name}\n" for name in group),
            ]
    return "\n".join(lines) + "\n"


def site_text(markdown: str, page: str) -> str:
    """Adapts links, puts shell and Python into tabs, and marks tables and pictures for the phone layout."""
    markdown = _LINK.sub(lambda link: site_link(link[1], page), markdown)
    markdown = _TWINS.sub(_tabs, markdown)
    if page.startswith("reference/") or page == "howto/which-way.md":
        markdown = _TABLE.sub(
            r'<div class="stack" markdown>\n\n\g<0>\n</div>\n', markdown
        )
    return _LIGHT.sub(_schemes, markdown)


def _schemes(picture: re.Match[str]) -> str:
    alt, name = picture.groups()
    return "\n".join(
        f"![{alt}]({name}{form}-{scheme}.svg#only-{scheme}){{ .way{form} }}"
        for form in ("", "-tall")
        for scheme in ("light", "dark")
    )


def site_link(link: str, page: str) -> str:
    """Converts a link between files of the repository to a link between pages of the site."""
    source = next(
        (name for name, staged in DOCUMENTS.items() if staged == page), f"docs/{page}"
    )
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    target_page = PAGES.get(target) or target.removeprefix("docs/")
    return posixpath.relpath(target_page, posixpath.dirname(page) or ".")


def _tabs(blocks: re.Match[str]) -> str:
    return "\n".join(
        f'=== "{title}"\n\n    ```{language}\n{_indented(text)}    ```\n'
        for title, language, text in (
            ("Shell", "sh", blocks[1]),
            ("Python", "python", blocks[2]),
        )
    )


def _indented(text: str) -> str:
    return "".join(
        f"    {line}" if line.strip() else line
        for line in text.splitlines(keepends=True)
    )


if __name__ == "__main__":
    stage(Path(sys.argv[1]) if len(sys.argv) > 1 else STAGED)
