"""Messages name options as flags of the shell; readers in Python get keyword arguments instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

# The boolean options of messages: `--fresh` is `fresh=True`, and `--no-lora` is `lora=False`.
BOOLEAN = {
    *("batch", "cache", "cut_negatives", "dry_run", "fresh", "grades", "keep_going", "local_only", "lora"),
    *("no_key", "remove_missing", "retry_failed", "skip_broken", "trust_remote_code"),
}
# A value has a "=", "/", digit or capital, or ": " after it; any other is written as `--flag=value`.
_FLAG = re.compile(
    r"`[^`]*`"  # a command
    r"|(?<![^\s(])--(?P<flag>[a-z][a-z-]*)"
    r"((?:=| (?='|(?!--|\()\S*(?:: |[\dA-Z=/])))(?P<value>'[^']*'|\S+?)(?=[,;:.)]*(?:\s|$)))?"
)
_is_shell = False


@contextmanager
def shell() -> Iterator[None]:
    """Leave flags in messages as they are."""
    global _is_shell  # threads also print messages
    before, _is_shell = _is_shell, True
    try:
        yield
    finally:
        _is_shell = before


def spoken(message: str) -> str:
    """A message with its flags as keyword arguments, except in the shell."""
    return message if _is_shell else _FLAG.sub(_keyword, message)


def _keyword(match: re.Match[str]) -> str:
    flag, value = match["flag"], (match["value"] or "").strip("'")
    if flag is None:
        return match[0]
    name = "settings" if flag == "set" else flag.replace("-", "_")
    positive = name if name in BOOLEAN else name.removeprefix("no_")
    if positive in BOOLEAN:
        return f"{positive}={name == positive}{match[0][len(flag) + 2 :]}"
    if name.endswith("columns") and "=" in value:
        return f"{name}={dict(part.partition('=')[::2] for part in value.split(','))}"
    is_bare = re.fullmatch(r"-?[\d.]+(e-?\d+)?|[A-Z]*", value)  # a number, or a word that stands for a value
    return f"{name}={value if is_bare else repr(value)}"
