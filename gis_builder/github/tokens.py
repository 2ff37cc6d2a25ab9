"""Tokens: where they come from, and that they are shown to nobody but the server they belong to."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase

from pairkit.errors import AuthError, ConfigError

_HOW = (
    "set GITHUB_TOKEN (any token that can read public repositories), give --token-file, log in with `gh auth "
    "login`, or set GITHUB_APP_ID, GITHUB_APP_PRIVATE_KEY_PATH and GITHUB_APP_INSTALLATION_ID"
)

_SHORTEST_SECRET = 12


class Token(AuthBase):
    """A secret that signs requests and never prints itself.

    It is handed to `requests` as an authentication object, so that neither a `.netrc` file nor a session's
    headers take part, and it signs for one host only: a redirect elsewhere goes unsigned. Its `name` tells a
    person which of several it is.
    """

    __slots__ = ("_host", "_secret", "name")

    def __init__(self, secret: str | Callable[[], str], api_url: str, name: str = "the token") -> None:
        self._secret = secret
        self.name = name
        self._host = urlsplit(api_url).netloc

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Sign a request, as `requests` asks its authentication objects to."""
        if urlsplit(request.url or "").netloc == self._host:
            request.headers["Authorization"] = f"Bearer {self.reveal()}"
        return request

    def reveal(self) -> str:
        """The secret itself, for a library that has to sign requests of its own."""
        return self._secret if isinstance(self._secret, str) else self._secret()

    def mask(self, text: str) -> str:
        """`text` without the secret, should a server have echoed it."""
        secret = self.reveal()
        # A word as short as an emulator's token is in every other message, and is no secret.
        return text.replace(secret, "****") if len(secret) >= _SHORTEST_SECRET else text

    def __repr__(self) -> str:
        return "Token(****)"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a token is not to be stored")


def find_tokens(
    api_url: str, *, file: Path | None = None, environ: Mapping[str, str] = os.environ
) -> tuple[Token, ...]:
    """Find the tokens to crawl with: a file, else the environment, else a GitHub App, else the `gh` tool.

    Args:
        api_url: The server's root, the only one that a token is ever sent to.
        file: One token a line; blank lines and lines that begin with `#` are skipped.
        environ: `GITHUB_TOKEN` and `GITHUB_TOKENS` (each may hold several, with commas) or `GITHUB_APP_*`.

    Raises:
        ConfigError: there is none; the message says how to give one.
    """
    secrets = (
        _from_file(file) if file else _split(environ.get(n, "") for n in ("GITHUB_TOKEN", "GITHUB_TOKENS"))
    )
    if not secrets and environ.get("GITHUB_APP_ID"):
        return (_app_token(api_url, environ),)
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
        raise ConfigError(f"{file}: the token file holds no token; expected one a line")
    return secrets


def _from_gh(api_url: str) -> list[str]:
    """Ask the `gh` tool for its token of this host; an empty list where it has none."""
    gh = shutil.which("gh")
    if gh is None:
        return []
    host = (urlsplit(api_url).hostname or "").removeprefix("api.")
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command with a host name
            [gh, "auth", "token", "--hostname", host], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return _split([done.stdout]) if done.returncode == 0 else []


def _app_token(api_url: str, environ: Mapping[str, str]) -> Token:
    """A token of a GitHub App's installation, renewed by PyGithub when it runs out after an hour."""
    from github import Auth, Github, GithubException
    from jwt import PyJWTError  # what PyGithub lets through when the key is none

    key, installation = _app_key(environ), environ.get("GITHUB_APP_INSTALLATION_ID", "")
    if not installation.isdigit():
        raise ConfigError(
            "GITHUB_APP_INSTALLATION_ID: expected the number in the installation's page address"
        )
    auth = Auth.AppAuth(environ["GITHUB_APP_ID"], key).get_installation_auth(int(installation))
    # PyGithub binds the authentication to a server when a client is made with it.
    client = Github(base_url=api_url.rstrip("/"), auth=auth)

    def current() -> str:
        try:
            return str(client.requester.auth.token) if client.requester.auth else ""
        except GithubException as error:
            status = str(error.status)
        except (ValueError, PyJWTError, requests.RequestException) as error:
            status = type(error).__name__
        raise AuthError(
            f"the GitHub App's installation gives no token ({status}): check GITHUB_APP_ID, its private "
            "key and GITHUB_APP_INSTALLATION_ID"
        )

    return Token(current, api_url)


def _app_key(environ: Mapping[str, str]) -> str:
    path = environ.get("GITHUB_APP_PRIVATE_KEY_PATH")
    if not path:
        key = environ.get("GITHUB_APP_PRIVATE_KEY", "")
        if not key:
            raise ConfigError("GITHUB_APP_ID is set but neither GITHUB_APP_PRIVATE_KEY nor its _PATH is")
        return key.replace("\\n", "\n")
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{path}: the GitHub App's private key can't be read") from None
