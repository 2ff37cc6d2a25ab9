"""The site builds strictly, loads nothing from other servers, and has all pages."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.docs.blocks import ROOT
from tests.support.shorthand import each_line, module_fixture

pytest.importorskip("zensical")
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\bsrc="?(https?:[^" >]+)|<link[^>]*\bhref="?(https?:[^" >]+)"""
)


def run(*arguments, folder):
    """Runs a module or script in a folder, with our packages on the path."""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))),
    }
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def build(folder):
    """Builds the site from the staged pages of a folder."""
    text = (ROOT / "mkdocs.yml").read_text()
    for old, new in (
        ("docs_dir: build/pages", "docs_dir: pages"),
        ("paths: [.]", f"paths: ['{ROOT}']"),
        ("docs/scripts/doctests.py", f"{ROOT}/docs/scripts/doctests.py"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "mkdocs.yml").write_text(text, encoding="utf-8")
    return run("-m", "zensical", "build", "--strict", "--clean", folder=folder)


def stage(folder):
    staged = run(
        str(ROOT / "docs" / "scripts" / "pages.py"), str(folder / "pages"), folder=ROOT
    )
    assert staged.returncode == 0, staged.stderr


@module_fixture
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    stage(folder)
    built = build(folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "site"


def test_every_page_is_in_the_navigation(site):
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert {
        page.relative_to(site).with_suffix(".md").as_posix()
        for page in site.rglob("*.html")
    } - {"404.md"} == listed


def test_no_page_loads_from_another_server(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    assert {
        page.name: urls
        for page in pages
        if (urls := _LOADED.findall(page.read_text("utf-8")))
    } == {}


def test_every_picture_exists(site):
    pictures = [
        (page.parent / source).resolve()
        for page in site.rglob("*.html")
        for source in re.findall(
            r"""<img[^>]*\bsrc="([^"#:]+)["#]""", page.read_text("utf-8")
        )
    ]
    assert len(pictures) > 8
    assert [picture for picture in pictures if not picture.is_file()] == []


@each_line("""
    query, page
    RAG | howto/rag
    clustering | howto/groups
    topic model | howto/groups
    8 GPUs | howto/slurm
    cite | howto/reproduce
    duplicates | howto/duplicates
    LangChain | howto/rag
    cost | howto/cost
    Windows | howto/machines
    proxy | howto/machines
    out of memory | howto/machines
    quantization | howto/small-vectors
    semantic search | howto/search
    custom loss | howto/extend
    hyperparameter | howto/objectives
    Optuna | howto/objectives
""")
def test_words_that_readers_search_for_are_in_a_heading(site, query, page):
    """Words in headings rank first in the search, which compares beginnings of words."""
    sections = json.loads((site / "search.json").read_text("utf-8"))["items"]
    headings = [
        section["title"]
        for section in sections
        if section["location"].startswith(f"{page}.html")
    ]
    assert [heading for heading in headings if re.search(rf"(?i)\b{query}", heading)]


def test_the_reference_has_every_command(site):
    for script, command in (("gis", "build"), ("label", "generate"), ("aoe", "train")):
        assert f'id="{script}-{command}"' in (
            site / "reference" / f"{script}.html"
        ).read_text("utf-8")


def test_links_to_files_outside_docs_lead_to_pages(site):
    assert 'href="reference/aoe_train.html"' in (site / "index.html").read_text("utf-8")
    assert 'href="../about/design.html"' in (site / "howto" / "extend.html").read_text(
        "utf-8"
    )
    assert 'href="../howto/evaluate.html"' in (
        site / "tutorials" / "train.html"
    ).read_text("utf-8")


def test_tables_of_the_reference_stack_on_a_phone(site):
    page = (site / "reference" / "aoe.html").read_text("utf-8")
    assert page.count('<div class="stack">') == page.count("<table>") > 20


def test_shell_and_python_are_tabs(site):
    page = (site / "tutorials" / "train.html").read_text("utf-8")
    source = (ROOT / "docs" / "tutorials" / "train.md").read_text("utf-8")
    assert (
        len(re.findall(r'<label for="[^"]+">Shell</label>', page))
        == source.count("```python\n")
        >= 4
    )
    assert page.count(">Shell</label>") == page.count(">Python</label>")
