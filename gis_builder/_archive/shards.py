"""One share of a run's tasks, as a person writes it: `2/8`."""

from __future__ import annotations

import re

from pairkit.errors import ConfigError


def read_shard(words: str) -> tuple[int, int]:
    """Which shard it is, from 0, and how many there are.

    Raises:
        ConfigError: It is none.
    """
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", words)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ConfigError(f"shard = {words}: expected I/N with I from 1 to N, such as 2/8")
    return int(match[1]) - 1, int(match[2])
