"""What the documents take from the code, written into them: `make reference`.

The pages of commands and settings are made as a whole. In any page, a line `<!-- WHAT: PLACE -->` is followed
by what the code says, up to a line `<!-- end -->`. WHAT is one of

- `docstring`: the docstring of `package.module` without its title,
- `table`: only the table in it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from command_pages import ROOT, command_page, scripts
from setting_pages import setting_page

DOCS = ROOT / "docs"
# Settings by console script and heading: where the model is, and the table of its flags.
SETTINGS = {
    "gis": {
        "Build": ("gis_builder.settings:BuildSettings", "gis_builder.api:build"),
        "Archive": ("gis_builder.settings:ArchiveSettings", "gis_builder.api:archive"),
    },
    "label": {"Labelling": ("llm_labeler.settings:LabelSettings", "llm_labeler.api:generate")},
    "aoe": {"Training": ("aoe_train.settings.training:TrainSettings", "aoe_train.api.training:train")},
}
_PART = re.compile(r"^(<!-- (\w+): (\S+) -->)\n.*?^(<!-- end -->)$", re.MULTILINE | re.DOTALL)


def pages() -> dict[Path, str]:
    """Each page that holds anything of the code, as it ought to be."""
    made = {}
    for script, package in scripts().items():
        made[DOCS / "reference" / f"{script}.md"] = command_page(script, package)
        if script in SETTINGS:
            roots = {heading: tuple(map(_at, places)) for heading, places in SETTINGS[script].items()}
            made[DOCS / "reference" / f"{script}-settings.md"] = setting_page(script, roots)
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if page not in made and _PART.search(text):
            made[page] = _PART.sub(_filled, text)
    return made


def _filled(part: re.Match[str]) -> str:
    begin, what, place, end = part.groups()
    return f"{begin}\n\n{SAYS[what](place).strip()}\n\n{end}"


def _docstring(place: str) -> str:
    return (inspect.getdoc(import_module(place)) or "").partition("\n\n")[2]


def _table(place: str) -> str:
    return "\n".join(line for line in _docstring(place).splitlines() if line.startswith("|"))


def _at(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name) if find_spec(module) else {}


SAYS: dict[str, Callable[[str], str]] = {
    "docstring": _docstring,
    "table": _table,
}

if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
