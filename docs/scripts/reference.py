"""Writes generated parts into the documents, and the names that type checkers see: `make reference`.

The pages of commands and settings are generated as a whole. In other pages, the text between
`<!-- docstring: package.module -->` and `<!-- end -->` is the module's docstring without its title; after
`<!-- table: package.module -->` it is only the table in that docstring.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from command_pages import ROOT, command_page, scripts
from setting_pages import setting_page

DOCS = ROOT / "docs"
# By console script and heading: the settings model, and the function whose flags set it.
SETTINGS = {
    "gis": {
        "Build": (
            "gis_builder.settings:BuildSettings",
            "gis_builder.api.datasets:build",
        ),
        "Archive": (
            "gis_builder.settings:ArchiveSettings",
            "gis_builder.api.datasets:archive",
        ),
    },
    "label": {
        "Labelling": ("llm_labeler.settings:LabelSettings", "llm_labeler.api:generate")
    },
    "aoe": {
        "Training": (
            "aoe_train.settings.train_settings:TrainSettings",
            "aoe_train.api.training:train",
        )
    },
}
_PART = re.compile(
    r"^(<!-- (\w+): (\S+) -->)\n.*?^(<!-- end -->)$", re.MULTILINE | re.DOTALL
)


def pages() -> dict[Path, str]:
    """Returns the up-to-date text of each page with generated parts."""
    texts = {
        ROOT / package / "__init__.pyi": stub(package) for package in scripts().values()
    }
    for script, package in scripts().items():
        texts[DOCS / "reference" / f"{script}.md"] = command_page(script, package)
        if script in SETTINGS:
            roots = {
                heading: tuple(map(_load, paths))
                for heading, paths in SETTINGS[script].items()
            }
            texts[DOCS / "reference" / f"{script}-settings.md"] = setting_page(
                script, roots
            )
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if page not in texts and _PART.search(text):
            texts[page] = _PART.sub(_filled, text)
    return texts


def stub(package: str) -> str:
    """The imports of a package's public names, for type checkers."""
    named = sorted(
        (module, name)
        for module, names in import_module(package)._PUBLIC_NAMES.items()
        for name in names.split()
    )
    return "# made by `make reference`\n" + "".join(
        f"from {module} import {name} as {name}\n" for module, name in named
    )


def _filled(part: re.Match[str]) -> str:
    begin, kind, module, end = part.groups()
    return f"{begin}\n\n{PARTS[kind](module).strip()}\n\n{end}"


def _docstring(module: str) -> str:
    return (inspect.getdoc(import_module(module)) or "").partition("\n\n")[2]


def _table(module: str) -> str:
    return "\n".join(
        line for line in _docstring(module).splitlines() if line.startswith("|")
    )


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


PARTS: dict[str, Callable[[str], str]] = {"docstring": _docstring, "table": _table}

if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
