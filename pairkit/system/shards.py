"""Shards: shares of one run for several machines, as a person names them: `2/8`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from pairkit.app.errors import ConfigError

_SPOKEN = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `of` shares; `number` counts from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def named(cls, text: str) -> Self:
        """What "2/8" means."""
        found = _SPOKEN.fullmatch(text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ConfigError(
                f"--shard {text} (shard={text!r}): expected I/N with I from 1 to N, such as 2/8"
            )
        return cls(int(found[1]), int(found[2]))

    @classmethod
    def in_names(cls, names: Iterable[str], stem: str, endings: Iterable[str]) -> list[Self]:
        """The shards whose marks stand in names of files or folders, in order."""
        ending = "|".join(map(re.escape, endings))
        name = re.compile(rf"{re.escape(stem)}-([0-9]{{1,6}})-of-([1-9][0-9]{{0,5}})(?:{ending})")
        found = (match for match in map(name.fullmatch, names) if match is not None)
        return sorted(
            {cls(int(match[1]), int(match[2])) for match in found}, key=lambda one: (one.of, one.number)
        )

    @property
    def mark(self) -> str:
        """Its part of a file's or folder's name: `2-of-8`."""
        return f"{self.number}-of-{self.of}"

    def share(self, total: int) -> int:
        """Its part of a whole number; the parts of all shards are together the whole."""
        return total * self.number // self.of - total * (self.number - 1) // self.of
