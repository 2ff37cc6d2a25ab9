"""All errors; a command prints one as a line on stderr and ends with its exit code.

```
PairkitError 1
├ ConfigError 2     unknown key, bad value, missing credential, an output that can't be written
├ DataError 3       a bad record, file or store
│ └ LeakError       one issue, cluster or near-identical text in two splits
└ RemoteError 4     a server failed; running the command again resumes
  ├ RateLimited     has the seconds to wait before the next request
  ├ AuthError       a missing, refused or too weak credential
  └ BadReply        an invalid response
```
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

from pairkit.base.printable import without_keys

# Messages name options as flags of the shell; readers in Python get keyword arguments instead.
# The boolean options of messages: `--fresh` is `fresh=True`, and `--no-lora` is `lora=False`.
BOOLEAN = {
    "batch",
    "cache",
    "cut_negatives",
    "dry_run",
    "fresh",
    "grades",
    "keep_going",
    "local_only",
    "lora",
    "no_key",
    "plain_http",
    "remove_missing",
    "retry_failed",
    "skip_broken",
    "trust_remote_code",
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
    before = _is_shell
    _is_shell = True
    try:
        yield
    finally:
        _is_shell = before


def spoken(message: str) -> str:
    """A message with its flags as keyword arguments, except in the shell."""
    return message if _is_shell else _FLAG.sub(_keyword, message)


def by_reader(*, shell: str, python: str) -> str:
    """The command for readers in the shell, or the call for those in Python."""
    return f"`{shell if _is_shell else python}`"


def spoken_notes(
    notes: Callable[[Any], Iterable[str]],
) -> Callable[[object], list[str]]:
    """Decorate the `notes` of a result that name options."""
    return wraps(notes)(lambda result: [spoken(note) for note in notes(result)])


def _keyword(match: re.Match[str]) -> str:
    flag = match["flag"]
    value = (match["value"] or "").strip("'")
    if flag is None:
        return match[0]
    name = "settings" if flag == "set" else flag.replace("-", "_")
    positive = name if name in BOOLEAN else name.removeprefix("no_")
    if positive in BOOLEAN:
        return f"{positive}={name == positive}{match[0][len(flag) + 2 :]}"
    if name.endswith("columns") and "=" in value:
        columns = dict(part.partition("=")[::2] for part in value.split(","))
        return f"{name}={columns}"
    # A number, or a word that stands for a value.
    is_bare = re.fullmatch(r"-?[\d.]+(e-?\d+)?|[A-Z]*", value)
    return f"{name}={value if is_bare else repr(value)}"


class PairkitError(Exception):
    """Base of all errors that users can fix."""

    exit_code = 1

    def __str__(self) -> str:
        """The message in the words of the reader's interface."""
        return without_keys(spoken(super().__str__()))


class ConfigError(PairkitError):
    """A setting, flag, credential or output path is not usable."""

    exit_code = 2


class DataError(PairkitError):
    """A record, file or store is not usable; the message begins with `path:row` if known."""

    exit_code = 3

    def __init__(
        self, message: str, *, path: Path | str | None = None, row: int | None = None
    ) -> None:
        self.path = path
        self.row = row
        if path is not None:
            where = path if row is None else f"{path}:{row}"
            message = f"{where}: {message}"
        super().__init__(message)


class LeakError(DataError):
    """Two splits of a dataset share a text, issue or cluster."""


class RemoteError(PairkitError):
    """A server could not be reached or failed; fetched data is kept."""

    exit_code = 4


class RateLimited(RemoteError):  # noqa: N818 - named after the status
    """A rate limit: the next request may be sent after `retry_after_s` seconds."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class AuthError(RemoteError):
    """The credential is missing, refused or lacks access."""


class BadReply(RemoteError):  # noqa: N818
    """The response of a server can't be parsed."""
