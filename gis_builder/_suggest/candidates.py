"""Older issues that may say the same: asked of `aoe search` in a process of its own, or of `aoe serve`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Protocol

from msgspec import Meta
from msgspec.json import Decoder

from gis_builder._decoding import Malformed, Node, Number, RepoName, decode
from gis_builder._github.answers import Answer
from gis_builder._github.exchange import Exchange
from gis_builder._github.tokens import Token
from pairkit.address import read_address
from pairkit.errors import AuthError, BadReply, ConfigError, DataError, PairkitError, RateLimited, RemoteError
from pairkit.printable import one_line

By = Literal["both", "model", "words"]

_TIMEOUT_S = 60.0
_NO_WORDS = "no words"  # in place of a server's own
_NEEDED = "index what `gis render` writes, with its columns repo, number, text and created_at"
# Of this environment, what would let another process act on GitHub.
_SECRETS = (
    *("GITHUB_TOKEN", "GITHUB_TOKENS", "GITHUB_APP_PRIVATE_KEY", "GITHUB_APP_PRIVATE_KEY_PATH"),
    *("GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"),  # of the `gh` tool
)


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for.

    Attributes:
        text: Of the issue, as `gis render` writes it.
        repo: Only issues of it, `owner/name`.
        before: Only issues that were opened earlier; None for all.
        top: How many, at most.
        by: both, model or words; see `aoe_train.search`.
    """

    text: str
    repo: str
    before: str | None
    top: int
    by: By = "both"


class _Row(Node, frozen=True):
    number: Number
    repo: RepoName


class Candidate(Node, frozen=True):
    """An issue that was found; see `aoe_train.Hit`."""

    row: _Row
    text: str
    cosine: Annotated[float, Meta(ge=-1.01, le=1.01)] | None = None  # a float32's may be a little above 1
    words: Annotated[float, Meta(ge=0, le=1.01)] | None = None
    probability: Annotated[float, Meta(ge=0, le=1)] | None = None

    @property
    def number(self) -> int:
        """The issue's."""
        return self.row.number


class _Hits(Node, frozen=True):
    hits: list[Candidate]


_HITS = Decoder(_Hits)


class Search(Protocol):
    """Finds candidates, best first."""

    def __call__(self, sought: Sought) -> Sequence[Candidate]:
        """The issues that fit best.

        Raises:
            ConfigError: No index, or none of issues.
            DataError: A damaged one.
            RemoteError: The server failed.
        """


class IndexSearch:
    """Asks `aoe search` about a folder that `aoe index` made."""

    def __init__(self, index: Path) -> None:
        self._index = index.resolve()  # which begins with a slash, so that no name passes for a flag

    def __call__(self, sought: Sought) -> Sequence[Candidate]:
        """See `Search`."""
        # With -P no file of the folder that somebody works in, such as a checkout, passes for a library.
        command = [sys.executable, "-P", "-m", "aoe_train", "search", str(self._index), "-", "--json"]
        command += ["--top", str(sought.top), "--by", sought.by, "--where", f"repo={sought.repo}"]
        if sought.before is not None:
            command += ["--before", f"created_at={sought.before}"]
        done = subprocess.run(  # noqa: S603 - our own command; a text comes by standard input
            command,
            input=sought.text.encode("utf-8", "replace"),
            capture_output=True,
            env={name: value for name, value in os.environ.items() if name not in _SECRETS},
            check=False,
        )
        if done.returncode:
            raise _error_of(done.returncode, done.stderr.decode("utf-8", "replace"))
        return _candidates(done.stdout, str(self._index), sought)


class ServerSearch:
    """Asks `aoe serve --index` over HTTP."""

    def __init__(self, url: str, key: str = "") -> None:
        """Take the address.

        Args:
            url: The server's root.
            key: What requests have to bear; empty for none.

        Raises:
            ConfigError: No address, a key that is none, or one that would cross a network in clear.
        """
        self._address = read_address(url, "server", "http://127.0.0.1:8000")
        if not (key.isascii() and key.isprintable()):
            raise ConfigError("the server's key holds characters that no key has; copy it again")
        if key:
            self._address.guard("the key", "ask a server on this machine")
        self._exchange = Exchange(self._address, Token(key, url, "the key"), _TIMEOUT_S)

    def __call__(self, sought: Sought) -> Sequence[Candidate]:
        """See `Search`."""
        asked = {
            "text": sought.text,
            "top": sought.top,
            "by": sought.by,
            "where": {"repo": sought.repo},
        }
        if sought.before is not None:
            asked["before"] = {"created_at": sought.before}
        raw = self._exchange.post("/search", json.dumps(asked).encode())
        where = self._address.url
        if isinstance(raw, Answer):
            raise RemoteError(f"{where}: {raw.message}; is an `aoe serve` with an index running there?")
        if raw.status == 200:
            return _candidates(raw.body, where, sought)
        words = f"{where}: HTTP {raw.status}, {one_line(_message(raw.body))}"
        if raw.status in (401, 403):
            raise AuthError(f"{words}; give its key")
        if raw.status == 429:
            raise RateLimited(f"{words}; run the same command again later", 1.0)
        if raw.status >= 500 or raw.status == 408:
            raise RemoteError(f"{words}; run the same command again")
        raise ConfigError(f"{words}; {_NEEDED}, and start the server with that index")


class _Error(Node, frozen=True):
    message: str = ""


class _Refusal(Node, frozen=True):
    error: _Error = _Error()


_REFUSAL = Decoder(_Refusal)


def _candidates(body: bytes, where: str, sought: Sought) -> Sequence[Candidate]:
    try:
        # Each costs a request to GitHub, so no more are taken than were asked for.
        return decode(body, _HITS).hits[: sought.top]
    except Malformed as error:
        raise BadReply(f"{where}: what was found is not of issues ({error}); {_NEEDED}") from None


def _message(body: bytes) -> str:
    try:
        return decode(body, _REFUSAL).error.message or _NO_WORDS
    except Malformed:
        return _NO_WORDS


def _error_of(code: int, said: str) -> PairkitError:
    """What `aoe search` ended with, as an error of ours with the same exit code."""
    line = next((line for line in reversed(said.splitlines()) if line.startswith("error: ")), "")
    words = one_line(line.removeprefix("error: ") or said[-300:] or f"it ended with {code}")
    kinds: dict[int, type[PairkitError]] = {2: ConfigError, 4: RemoteError}
    return kinds.get(code, DataError)(f"aoe search: {words}")
