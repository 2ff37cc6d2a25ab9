"""Random changes of a JSON or TOML tree with unexpected values."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

JUNK: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        5,
        2**31,
        2**63,
        -(2**63) - 1,
        10**30,
        10**400,
        0.5,
        -0.0,
        1e308,
    ),
    *(
        float("nan"),
        float("inf"),
        "",
        " ",
        "x",
        "0",
        "null",
        "\ud800",
        "\x00",
        "\u202e",
        "a" * 5000,
    ),
    *(
        "../..",
        "/",
        "{text}",
        "{text}{text}",
        "{data}",
        "http://[",
        "%s%n",
        "\n",
        [],
        {},
        [[]],
        [None],
    ),
    *(
        [[[[[1]]]]],
        {"": ""},
        {"a": {"b": {"c": []}}},
        ["a", 1, None],
        {"type": "x"},
        {"ids": "x"},
    ),
    *([{}] * 50, list(range(100))),
]


def mutated(tree: Any, choice: random.Random, junk: Sequence[Any] = JUNK) -> Any:
    """A copy with one to three changes: a value replaced, removed, repeated or added."""
    root = {"": copy.deepcopy(tree)}
    for _ in range(choice.randint(1, 3)):
        holder, key = choice.choice(_places(root))
        change = choice.random()
        if change < 0.65:
            holder[key] = copy.deepcopy(choice.choice(junk))
        elif change < 0.8 and holder is not root:
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif holder is not root:
            holder[choice.choice(["x", "", "__class__", "type", "path"])] = (
                copy.deepcopy(choice.choice(junk))
            )
    return root[""]


def _places(root: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [root]
    while waiting:
        value = waiting.pop()
        keys = list(value) if isinstance(value, dict) else range(len(value))
        found += [(value, key) for key in keys]
        waiting += [value[key] for key in keys if isinstance(value[key], (dict, list))]
    return found
