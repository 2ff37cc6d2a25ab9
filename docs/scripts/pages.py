"""A hook of mkdocs: pages that are made from the code, and from documents outside of `docs/`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from command_pages import ROOT, command_page, scripts
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from setting_pages import Settings, sections, setting_page, setting_table

_TABLE = re.compile(r"^<!-- settings: (\S+) -->$", re.MULTILINE)
_DOCSTRING = re.compile(r"^<!-- docstring: (\S+) -->$", re.MULTILINE)
_DOCUMENTED = re.compile(r"^<!-- table: (\S+) -->$", re.MULTILINE)
_SCHEMA = re.compile(r"^<!-- schema: (\S+) -->$", re.MULTILINE)
_PACKAGE_ALONE = [
    f"      {option}: false" for option in ("members", "show_root_heading", "show_root_toc_entry")
]
INCLUDED = {
    "ARCHITECTURE.md": "about/design.md",
    "benchmarks/README.md": "about/benchmarks.md",
    "CHANGELOG.md": "about/changes.md",
}
# Settings by console script and heading: where the model is, and the table of its flags.
SETTINGS = {
    "gis": {"Build": ("gis_builder._settings:BuildSettings", "gis_builder._flags:FLAGS")},
    "label": {"Labelling": ("llm_labeler._settings:LabelSettings", "llm_labeler._flags:FLAGS")},
    "aoe": {
        "Training": ("aoe_train._settings:TrainSettings", "aoe_train._flags:TRAIN"),
        "Pre-training a RAN": ("aoe_train._pretrain_settings:PretrainSettings", "aoe_train._flags:PRETRAIN"),
    },
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that no file in `docs/` holds."""
    for name, page in INCLUDED.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_moved(text)))
    for script, package in scripts().items():
        files.append(File.generated(config, f"reference/{script}.md", content=command_page(script, package)))
        if script in SETTINGS:
            roots = {heading: tuple(map(_at, places)) for heading, places in SETTINGS[script].items()}
            page = setting_page(script, roots)
            files.append(File.generated(config, f"reference/{script}-settings.md", content=page))
    for package in dict.fromkeys((*scripts().values(), "pairkit")):
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


def on_page_markdown(markdown: str, **_: object) -> str:
    """Fill in what the code says of itself.

    A line `<!-- settings: package.module:Model -->` becomes the table of a model of settings, a line
    `<!-- docstring: package.module -->` what the module says at its top, a line
    `<!-- table: package.module -->` the table in there, and a line `<!-- schema: package.module -->` the
    tables of a store.
    """
    markdown = _TABLE.sub(lambda found: "\n".join(_tables(_at(found[1]))), markdown)
    markdown = _DOCUMENTED.sub(lambda found: _table_in(import_module(found[1])), markdown)
    markdown = _SCHEMA.sub(lambda found: _schema(import_module(found[1])), markdown)
    return _DOCSTRING.sub(lambda found: _after_title(import_module(found[1])), markdown)


def _table_in(module: ModuleType) -> str:
    lines = (inspect.getdoc(module) or "").splitlines()
    return "\n".join(line for line in lines if line.startswith("|"))


def _after_title(module: ModuleType) -> str:
    return (inspect.getdoc(module) or "").partition("\n\n")[2]


def _schema(module: ModuleType) -> str:
    schema = module.SCHEMA
    return f"Version {schema.version}.\n\n```sql\n{schema.tables.strip()}\n```"


def _tables(model: type[Settings]) -> Iterator[str]:
    for section in sections(model, {}):
        if section.prefix:
            yield from ("", f"**`[{section.prefix}]`** {section.purpose}", "")
        yield from setting_table(section)


def _at(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name) if find_spec(module) else {}


def _moved(text: str) -> str:
    """Links of a document at the root or in `benchmarks/`, as seen from a page in `docs/about/`."""
    return re.sub(r"\]\((?:\.\./)?docs/", "](../", text)
