"""What differs between two records of what something was made of, in words for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pairkit.printable import one_line


def differing(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """What differs between two of them, as lines to show."""
    old, new = dict(_flat(there)), dict(_flat(here))
    keys = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    return [f"{one_line(key, 80)} ({_shown(old.get(key))} there, {_shown(new.get(key))} now)" for key in keys]


def _flat(tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    waiting = [("", tree)]
    while waiting:
        above, values = waiting.pop()
        for key, value in values.items():
            if isinstance(value, Mapping):
                waiting.append((f"{above}{key}.", value))
            else:
                yield f"{above}{key}", list(value) if isinstance(value, tuple) else value


def _shown(value: object) -> str:
    text = one_line(str(value))
    return text if len(text) <= 20 else text[:12] + "…"
