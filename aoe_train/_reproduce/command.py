"""A command of a recipe: which there are, what each may be given, and where it may read and write.

A recipe's words are parsed into flags and values, and what runs is built anew from those: click might take a
word for a value that looks like a flag here, or write to a default folder where a flag is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from aoe_train._reproduce.plan import Places

DATA, WORK = "{data}/", "{work}/"
ARGUMENT = ""  # stands for the flag of a word without one
_PLAIN = re.compile(r"[\w.,=+-]*")  # a number, a column, a list of names; no path and no address


@dataclass(frozen=True)
class Allowed:
    """What a command may be given: flags by what their values are, or ARGUMENT for a word without a flag.

    Attributes:
        writes: Paths that are written to.
        reads: Paths that are read.
        plain: Numbers and names.
        switches: Flags without a value.
        needed: Must be there, as defaults lie in the current folder.
    """

    writes: frozenset[str]
    needed: frozenset[str]
    reads: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()
    switches: frozenset[str] = frozenset({"--quiet"})

    @property
    def flags(self) -> frozenset[str]:
        """All of them."""
        return (self.writes | self.reads | self.plain | self.switches) - {ARGUMENT}


ALLOWED: Mapping[tuple[str, str], Allowed] = {
    ("gis", "import"): Allowed(
        writes=frozenset({"--work"}),
        needed=frozenset({"--work", ARGUMENT}),
        reads=frozenset({ARGUMENT}),
    ),
    ("gis", "detect"): Allowed(
        writes=frozenset({"--work"}), needed=frozenset({"--work"}), switches=frozenset()
    ),
    ("gis", "pair"): Allowed(
        writes=frozenset({"--work", "--out"}),
        needed=frozenset({"--work", "--out"}),
        plain=frozenset({"--relations", "--match", "--negatives", "--ratio", "--seed"}),
    ),
    ("label", "generate"): Allowed(
        writes=frozenset({"--out", "--work"}),
        needed=frozenset({"--out", "--input", "--llm"}),
        reads=frozenset({"--input"}),
        plain=frozenset(
            {
                *("--llm", "--text-column", "--limit", "--size", "--polarity", "--strategy", "--seed"),
                *("--antonym-score", "--max-cost", "--max-tokens", "--max-requests"),
            }
        ),
        switches=frozenset({"--local-only", "--quiet"}),
    ),
}
"""The commands that a recipe may run."""


@dataclass(frozen=True)
class Command:
    """A command that a recipe may run.

    Attributes:
        name: A key of `ALLOWED`.
        values: Flag to value; None for a switch.
    """

    name: tuple[str, str]
    values: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """What runs: each flag in one word with its value, so that neither can pass for something else."""
        given = [
            flag if value is None else f"{flag}={value}" if flag else value
            for flag, value in self.values.items()
        ]
        return [*self.name, *given]

    def __str__(self) -> str:
        return " ".join(self.words)

    def filled(self, places: Places) -> Command:
        """The same with {data} and {work} filled in.

        Raises:
            ConfigError: A link leads out of them, or there is no data folder.
        """
        values = {flag: None if value is None else places.fill(value) for flag, value in self.values.items()}
        allowed = ALLOWED[self.name]
        for flag, value in values.items():
            if value is not None and flag not in allowed.plain:
                inside = [places.work] if flag in allowed.writes else [places.data, places.work]
                _check_place(self, Path(value), [home for home in inside if home])
        return replace(self, values=values)


def parse_command(words: Sequence[str]) -> Command:
    """A recipe's words as a command.

    Raises:
        ConfigError: Another command, another flag, a flag without its value or twice, one that is missing, or
            a path that is not below {data} or, where it is written to, {work}.
    """
    match tuple(words[:2]):
        case (str() as package, str() as verb) if (package, verb) in ALLOWED:
            name = package, verb
        case _:
            known = ", ".join(" ".join(each) for each in ALLOWED)
            raise ConfigError(f"prepare: `{' '.join(words)}` is none of {known}; run it yourself first")
    allowed, values = ALLOWED[name], dict[str, str | None]()
    rest = list(words[2:])
    while rest:
        flag, value = _take(words, allowed, rest)
        if flag in values:
            raise _refusal(words, f"gives {flag or value} besides another one; expected one")
        values[flag] = value
    for flag in sorted(allowed.needed - values.keys()):
        raise _refusal(words, f"lacks {flag or 'the folder to read'}; add it")
    return Command(name, values)


def _take(words: Sequence[str], allowed: Allowed, rest: list[str]) -> tuple[str, str | None]:
    """The next flag and its value, taken off `rest`."""
    word = rest.pop(0)
    if not word.startswith("-"):
        if ARGUMENT not in allowed.reads:
            raise _refusal(words, f"names {word} without a flag; expected a flag before it")
        return ARGUMENT, _checked(words, allowed, ARGUMENT, word)
    flag, equals, value = word.partition("=")
    if flag not in allowed.flags:
        raise _refusal(words, f"gives {flag}; a recipe may give {', '.join(sorted(allowed.flags))}")
    if flag in allowed.switches:
        if equals:
            raise _refusal(words, f"gives {flag} a value; expected {flag} alone")
        return flag, None
    if not equals:
        value = rest.pop(0) if rest else ""
    return flag, _checked(words, allowed, flag, value)


def _checked(words: Sequence[str], allowed: Allowed, flag: str, value: str) -> str:
    if not value or value.startswith("-"):
        raise _refusal(words, f"gives {flag} the value {value!r}; expected one that does not begin with -")
    if flag in allowed.plain:
        if not _PLAIN.fullmatch(value) or ".." in value:
            raise _refusal(words, f"names {value}; expected a number or names for {flag}")
        return value
    places = (WORK,) if flag in allowed.writes else (DATA, WORK)
    if not value.startswith(places) or ".." in value.split("/"):
        raise _refusal(words, f"names {value}; expected a path below {' or '.join(places)}")
    return value


def _check_place(command: Command, path: Path, homes: Sequence[Path]) -> None:
    real = path.resolve()
    if not any(home.resolve() in real.parents for home in homes):
        raise ConfigError(
            f"prepare: `{command}` names {path}, which is {real}; expected a path below"
            f" {' or '.join(str(home) for home in homes)} that no link leads out of"
        )


def _refusal(words: Sequence[str], why: str) -> ConfigError:
    return ConfigError(f"prepare: `{' '.join(words)}` {why}")
