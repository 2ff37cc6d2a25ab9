"""Backbones by name, which packages of the index bring: for where no Hub can be reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from aoe_train._backbones.minilm import minilm_folder
from aoe_train._backbones.smollm2 import KEPT_AS, smollm2_folder


@dataclass(frozen=True)
class Packaged:
    """A model that a package brings.

    Attributes:
        hub_id: What it is called on the Hub.
        license: As the Hub names it.
        language: Codes of the languages that it reads.
        folder: Checks its files and gives the folder of a transformers model.
    """

    hub_id: str
    license: str
    language: tuple[str, ...]
    folder: Callable[[], Path]


PACKAGED: Mapping[str, Packaged] = {
    "minilm": Packaged("sentence-transformers/all-MiniLM-L6-v2", "apache-2.0", ("en",), minilm_folder),
    "smollm2": Packaged("HuggingFaceTB/SmolLM2-135M-Instruct", "apache-2.0", ("en",), smollm2_folder),
}


def name_of_kept(folder: Path) -> str | None:
    """The name of a backbone that is kept in this folder of the cache; None for any other folder."""
    return "smollm2" if folder.name == KEPT_AS else None
