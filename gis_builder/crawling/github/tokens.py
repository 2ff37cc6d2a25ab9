"""Tokens: where a crawl's come from, and that each is sent to its own server only."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import requests
from requests.auth import AuthBase

from gis_builder.settings.crawl import read_root
from pairkit.app.errors import ConfigError
from pairkit.system.address import origin_of

_SHORTEST_SECRET = 12
_MASK = "****"
_HOW = (
    "set GITHUB_TOKEN (any token that can read public repositories), give a file of tokens (--token-file, "
    "token_file=…), or log in with `gh auth login`"
)


class Token(AuthBase):
    """A secret that signs requests and never prints itself.

    It is handed to `requests` as an authentication object, so that neither a `.netrc` file nor a session's
    headers take part, and it signs for one origin only: what goes elsewhere goes unsigned. Its `name` tells a
    person which of several it is.
    """

    __slots__ = ("_address", "_secret", "name")

    def __init__(self, secret: str, api_url: str, name: str = "the token") -> None:
        self._secret, self.name = secret, name
        self._address = read_root(api_url)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Sign a request, as `requests` asks its authentication objects to once the URL is made up."""
        if origin_of(request.url or "") == self._address.origin:
            request.headers["Authorization"] = f"Bearer {self._secret}"
        return request

    def reveal(self) -> str:
        """The secret itself."""
        return self._secret

    def mask(self, text: str) -> str:
        """`text` without the secret, should a server have echoed it."""
        return text.replace(self._secret, _MASK) if self._is_secret else text

    def mask_bytes(self, body: bytes) -> bytes:
        """See `mask`."""
        return body.replace(self._secret.encode(), _MASK.encode()) if self._is_secret else body

    @property
    def _is_secret(self) -> bool:
        # A word as short as a test server's token is in every other message, and is no secret.
        return len(self._secret) >= _SHORTEST_SECRET

    def __repr__(self) -> str:
        return f"Token({_MASK})"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a token is not to be stored")


def find_tokens(
    api_url: str,
    *,
    file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    plain_http: bool = False,
) -> tuple[Token, ...]:
    """Find the tokens to crawl with: a file, else the environment, else the `gh` tool."""
    if not plain_http:
        read_root(api_url).guard("the token", "set crawl.plain_http to true")
    secrets = (
        _from_file(file) if file else _split(environ.get(n, "") for n in ("GITHUB_TOKEN", "GITHUB_TOKENS"))
    )
    secrets = secrets or _from_gh(api_url)
    if not secrets:
        raise ConfigError(f"no GitHub token found: {_HOW}")
    count = len(secrets)
    names = [f"token {place} of {count}" if count > 1 else "the token" for place in range(1, count + 1)]
    return tuple(Token(secret, api_url, name) for secret, name in zip(secrets, names, strict=True))


def _split(texts: Iterable[str]) -> list[str]:
    """The distinct tokens of comma or blank separated texts, in order."""
    secrets = [part for text in texts for part in text.replace(",", " ").split()]
    if any(not secret.isascii() or not secret.isprintable() for secret in secrets):
        raise ConfigError("a GitHub token holds characters that no token has; copy it again")
    return list(dict.fromkeys(secrets))


def _from_file(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(f"{file}: the token file can't be read ({reason})") from None
    secrets = _split(line for line in lines if not line.lstrip().startswith("#"))
    if not secrets:
        raise ConfigError(f"{file}: the token file holds no token; expected one per line")
    return secrets


def _from_gh(api_url: str) -> list[str]:
    """Ask the `gh` tool for its token of this host; an empty list where it has none."""
    gh = shutil.which("gh")
    if gh is None:
        return []
    host = read_root(api_url).host.removeprefix("api.")
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command with a host name
            [gh, "auth", "token", "--hostname", host], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return _split([done.stdout]) if done.returncode == 0 else []
