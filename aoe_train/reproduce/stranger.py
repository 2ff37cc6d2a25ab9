"""A recipe from a file may be a stranger's: what it may run at all, and what a person has to see first.

Commands of a recipe run with this person's keys and tokens. So a recipe may name few of them, with few
flags: none that names a server, a key, a file of settings, or code. Even those, and whatever it fetches or
reads from elsewhere, are shown and confirmed before anything is done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from aoe_train.backbones.packaged import PACKAGED
from aoe_train.reproduce.recipe import NO_DEV
from pairkit.errors import ConfigError
from pairkit.printable import one_line

if TYPE_CHECKING:
    from aoe_train.reproduce.recipe import AtScale, Recipe, Scale

ALLOWED = {
    ("gis", "import"): {"--work", "--quiet"},
    ("gis", "detect"): {"--work"},
    ("gis", "pair"): {
        *("--work", "--out", "--relations", "--match", "--negatives", "--ratio", "--seed", "--quiet"),
    },
    ("label", "generate"): {
        *("--llm", "--input", "--text-column", "--out", "--limit", "--size", "--polarity", "--strategy"),
        *(
            "--antonym-score",
            "--max-cost",
            "--max-tokens",
            "--max-requests",
            "--local-only",
            "--seed",
            "--quiet",
        ),
    },
}
"""The commands that a recipe may run, and the flags that it may give them."""

_WRITTEN = {"--out", "--work"}
_DATA, _WORK = "{data}/", "{work}/"
_PLAIN = re.compile(r"[\w.,=+-]*")  # a number, a column, a list of names; no path and no address


def check_command(command: Sequence[str]) -> None:
    """Refuse a command that a recipe may not run, as it stands in the recipe.

    Raises:
        ConfigError: Another command, another flag, or a path that is not below {data} or, where it is written
            to, {work}.
    """
    name = tuple(command[:2])
    if name not in ALLOWED:
        known = ", ".join(" ".join(words) for words in ALLOWED)
        raise ConfigError(f"prepare: `{' '.join(command)}` is none of {known}; run it yourself first")
    flag = ""
    for word in command[2:]:
        if word.startswith("-"):
            flag, equals, word = word.partition("=")
            if flag not in ALLOWED[name]:
                raise ConfigError(
                    f"prepare: `{' '.join(command)}` gives {flag}; a recipe may give"
                    f" {', '.join(sorted(ALLOWED[name]))}"
                )
            if not equals:
                continue
        _check_value(command, flag, word)
        flag = ""


def _check_value(command: Sequence[str], flag: str, word: str) -> None:
    places = (_WORK,) if flag in _WRITTEN else (_DATA, _WORK)
    is_plain = flag not in _WRITTEN and _PLAIN.fullmatch(word) and ".." not in word
    if not is_plain and (not word.startswith(places) or ".." in word.split("/")):
        raise ConfigError(
            f"prepare: `{' '.join(command)}` names {word}; expected a path below {' or '.join(places)}"
        )


def asks(recipe: Recipe, scale: Scale) -> list[str]:
    """What a person has to agree to before a stranger's recipe runs at a scale, a line each.

    There is none where all lies below --data-dir and no command is run.

    Raises:
        ConfigError: A command that no recipe may run, or a path or address that none may name.
    """
    at = recipe.at(scale)
    for command in at.source.prepare:
        check_command(command)
    lines = [f"runs    {' '.join(command)}" for command in at.source.prepare]
    lines += [f"loads   {word}" for word in _distinct(_named(recipe, at, scale))]
    return lines + [f"reports {word}" for word in _distinct(_reports(recipe, at))]


def _named(recipe: Recipe, at: AtScale, scale: Scale) -> Iterator[str]:
    """Models and data that are not below --data-dir."""
    words = [at.backbone, at.source.train, at.source.dev, *(column.data for column in at.evaluate)]
    for row in recipe.runs:
        words += [row.backbone, row.texts.of if row.texts else None]
        words += [own.backbone for name, own in row.scales.items() if name in (scale, "small")]
    for word in words:
        if word is None or word in (PACKAGED, NO_DEV):
            continue
        if ".." in re.split(r"[/\\]", word) or "://" in word:
            raise ConfigError(
                f"the recipe names {word}; expected a path below {_DATA} or {_WORK}, or a hub name"
            )
        if not word.startswith((_DATA, _WORK)):
            yield word


def _reports(recipe: Recipe, at: AtScale) -> Iterator[str]:
    """Services that a run would tell what it does."""
    layers = [recipe.settings, at.settings, *(row.settings for row in recipe.runs)]
    layers += [own.settings for row in recipe.runs for name, own in row.scales.items()]
    for layer in layers:
        log = layer.get("log")
        if isinstance(log, dict) and log.get("report_to"):
            yield one_line(f"to {log['report_to']}")


def _distinct(words: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(words))
