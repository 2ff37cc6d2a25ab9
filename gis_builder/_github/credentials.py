"""Where a crawl's tokens come from."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from gis_builder._github.app import installation_secret
from gis_builder._github.tokens import Token
from gis_builder._settings.crawl import read_root
from pairkit.errors import ConfigError

_HOW = (
    "set GITHUB_TOKEN (any token that can read public repositories), give a file of tokens (--token-file, "
    "token_file=…), log in with `gh auth login`, or set GITHUB_APP_ID, "
    "GITHUB_APP_PRIVATE_KEY_PATH and GITHUB_APP_INSTALLATION_ID"
)


def find_tokens(
    api_url: str,
    *,
    file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    plain_http: bool = False,
) -> tuple[Token, ...]:
    """Find the tokens to crawl with: a file, else the environment, else a GitHub App, else the `gh` tool.

    Args:
        api_url: The server's root, the only one that a token is ever sent to.
        file: One token a line; blank lines and lines that begin with `#` are skipped.
        environ: `GITHUB_TOKEN` and `GITHUB_TOKENS` (each may hold several, with commas) or `GITHUB_APP_*`.
        plain_http: Whether tokens may cross a network in clear.

    Raises:
        ConfigError: there is none, and the message says how to give one; or it would be sent in clear.
    """
    if not plain_http:
        read_root(api_url).guard("the token", "set crawl.plain_http to true")
    secrets = (
        _from_file(file) if file else _split(environ.get(n, "") for n in ("GITHUB_TOKEN", "GITHUB_TOKENS"))
    )
    if not secrets and environ.get("GITHUB_APP_ID"):
        return (Token(installation_secret(api_url, environ), api_url),)
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
