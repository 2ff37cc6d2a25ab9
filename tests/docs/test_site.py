"""The site builds strictly, asks nobody else for anything, and has what the repository shows otherwise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

build = pytest.importorskip("mkdocs.commands.build").build
load_config = pytest.importorskip("mkdocs.config").load_config
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\bsrc="?(https?:[^" >]+)|<link[^>]*\bhref="?(https?:[^" >]+)"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        config = load_config("mkdocs.yml", strict=True, site_dir=str(folder))
        config.plugins["material/search"].config.enabled = False  # a fifth of the time
        build(config)
    return folder


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    assert {page.name: found for page in pages if (found := _LOADED.findall(page.read_text("utf-8")))} == {}


def test_the_reference_has_every_command(site: Path) -> None:
    for script, command in (("gis", "build"), ("label", "generate"), ("aoe", "train")):
        assert f'id="{script}-{command}"' in (site / "reference" / f"{script}.html").read_text("utf-8")


def test_links_to_files_outside_lead_to_pages(site: Path) -> None:
    assert 'href="reference/aoe_train.html"' in (site / "index.html").read_text("utf-8")
    assert 'href="../about/design.html"' in (site / "howto" / "extend.html").read_text("utf-8")
    assert 'href="../howto/evaluate.html"' in (site / "tutorials" / "train.html").read_text("utf-8")


def test_shell_and_python_are_tabs(site: Path) -> None:
    page = (site / "tutorials" / "train.html").read_text("utf-8")
    assert len(re.findall(r'<label for="[^"]+">Shell</label>', page)) >= 5
    assert page.count(">Shell</label>") == page.count(">Python</label>")
