"""Messages name options as flags of the shell; readers in Python get keyword arguments instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

# The boolean options of messages: `--fresh` is `fresh=True`, and `--no-lora` is `lora=False`.
BOOLEAN = {
    *("batch", "cache", "cut-negatives", "dry-run", "fresh", "grades", "keep-going", "local-only", "lora"),
    *("no-key", "retry-failed", "skip-broken", "trust-remote-code"),
}
_RENAMED = {"set": "settings"}
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


def _keyword(found: re.Match[str]) -> str:
    flag, value, whole = found["flag"], found["value"], found[0]
    if flag is None:
        return whole
    positive = flag.removeprefix("no-")
    if flag in BOOLEAN or positive in BOOLEAN:
        rest = whole[len(flag) + 2 :]
        return f"{_name(flag)}=True{rest}" if flag in BOOLEAN else f"{_name(positive)}=False{rest}"
    given = (value or "").strip("'")
    if flag.endswith("columns") and "=" in given:
        return f"{_name(flag)}={dict(part.partition('=')[::2] for part in given.split(','))}"
    is_bare = re.fullmatch(r"[\d.]+(e-?\d+)?|[A-Z]*", given)  # a number, or a word that stands for a value
    return f"{_name(flag)}={given if is_bare else repr(given)}"


def _name(flag: str) -> str:
    return _RENAMED.get(flag, flag.replace("-", "_"))
