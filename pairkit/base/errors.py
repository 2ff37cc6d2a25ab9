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

from pathlib import Path

from pairkit.base.interface import spoken


class PairkitError(Exception):
    """Base of all errors that users can fix."""

    exit_code = 1

    def __str__(self) -> str:
        """The message in the words of the reader's interface."""
        return spoken(super().__str__())


class ConfigError(PairkitError):
    """A setting, flag, credential or output path is not usable."""

    exit_code = 2


class DataError(PairkitError):
    """A record, file or store is not usable; the message begins with `path:row` if known."""

    exit_code = 3

    def __init__(self, message: str, *, path: Path | str | None = None, row: int | None = None) -> None:
        self.path, self.row = path, row
        where = "" if path is None else f"{path}: " if row is None else f"{path}:{row}: "
        super().__init__(where + message)


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
