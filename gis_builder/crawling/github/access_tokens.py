"""Finds the tokens of a crawl; each token is sent only to its own server."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import requests
from requests.auth import AuthBase

from gis_builder.settings import read_root
from pairkit.base.errors import AuthError, ConfigError
from pairkit.base.system.address import origin_of

_MIN_SECRET = 12  # characters
_MASK = "****"
_APP_TIMEOUT_S = 30
_RENEW_BEFORE_S = 60.0  # the expiry of an App's token
_HELP = (
    "set GITHUB_TOKEN (any token that can read public repositories), pass a file of tokens (--token-file), "
    "log in with `gh auth login`, or set GITHUB_APP_ID, GITHUB_APP_PRIVATE_KEY_PATH and"
    " GITHUB_APP_INSTALLATION_ID"
)


class Token(AuthBase):
    """A secret that is never printed; as `requests` authentication, it signs requests to one origin only."""

    __slots__ = ("_address", "_last", "_secret", "name")  # not shown by `vars`

    def __init__(
        self, secret: str | Callable[[], str], api_url: str, name: str = "the token"
    ) -> None:
        self._secret = secret
        self._last = secret if isinstance(secret, str) else ""
        self.name = name
        self._address = read_root(api_url)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token to a request to its own origin."""
        if origin_of(request.url or "") == self._address.origin:
            secret = self.reveal()
            if secret:
                request.headers["Authorization"] = f"Bearer {secret}"
        return request

    def reveal(self) -> str:
        """The secret."""
        self._last = self._secret if isinstance(self._secret, str) else self._secret()
        return self._last

    def mask(self, text: str) -> str:
        """Replace the last used secret in a text, in case a server echoes it."""
        return text.replace(self._last, _MASK) if self._is_secret else text

    def mask_bytes(self, body: bytes) -> bytes:
        """See `mask`."""
        secret = self._last.encode()
        return body.replace(secret, _MASK.encode()) if self._is_secret else body

    @property
    def _is_secret(self) -> bool:
        # The short tokens of test servers occur in ordinary messages.
        return len(self._last) >= _MIN_SECRET

    def __repr__(self) -> str:
        return f"Token({_MASK})"

    def __reduce__(self) -> str:
        raise TypeError("a token can't be pickled")


def find_tokens(
    api_url: str,
    *,
    file: Path | None = None,
    environ: Mapping[str, str],
    plain_http: bool = False,
) -> tuple[Token, ...]:
    """Find tokens in a file, else in the environment, else from a GitHub App, else from the `gh` tool."""
    if not plain_http:
        read_root(api_url).guard("the token", "set crawl.plain_http to true")
    if file:
        secrets = _from_file(file)
    else:
        variables = ("GITHUB_TOKEN", "GITHUB_TOKENS")
        secrets = _split(environ.get(variable, "") for variable in variables)
    if not secrets and environ.get("GITHUB_APP_ID"):
        return (Token(_Installation(api_url, environ).secret, api_url),)
    secrets = secrets or _from_gh(api_url)
    if not secrets:
        raise ConfigError(f"no GitHub token found: {_HELP}")
    if len(secrets) == 1:
        return (Token(secrets[0], api_url),)
    return tuple(
        Token(secret, api_url, f"token {number} of {len(secrets)}")
        for number, secret in enumerate(secrets, 1)
    )


def _split(texts: Iterable[str]) -> list[str]:
    """The distinct tokens of texts, in order; separators are commas and blanks."""
    secrets = [part for text in texts for part in text.replace(",", " ").split()]
    if any(not re.fullmatch(r"[\w.~-]+", secret, re.ASCII) for secret in secrets):
        raise ConfigError(
            "a token contains invalid characters, such as quotes or NAME=; copy it again"
        )
    return list(dict.fromkeys(secrets))


def _from_file(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(f"{file}: the token file can't be read ({reason})") from None
    secrets = _split(line.partition("#")[0] for line in lines)
    if not secrets:
        raise ConfigError(
            f"{file}: the token file contains no token; expected one per line"
        )
    return secrets


def _from_gh(api_url: str) -> list[str]:
    """Read the token of the `gh` tool for this host; an empty list if there is none."""
    gh = shutil.which("gh")
    if gh is None:
        return []
    host = read_root(api_url).host.removeprefix("api.")
    try:
        result = subprocess.run(  # noqa: S603 - a fixed command with a host name
            [gh, "auth", "token", "--hostname", host],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return _split([result.stdout]) if result.returncode == 0 else []


class _Installation:
    """Provides the token of a GitHub App's installation, renewed before it expires."""

    def __init__(self, api_url: str, environ: Mapping[str, str]) -> None:
        self._api_url = api_url
        self._app_id = environ["GITHUB_APP_ID"]
        self._key = _key(environ)
        installation = environ.get("GITHUB_APP_INSTALLATION_ID", "")
        if not (installation.isascii() and installation.isdigit()):
            raise ConfigError(
                "GITHUB_APP_INSTALLATION_ID: expected the number in the URL of the installation's page"
            )
        self._installation = int(installation)
        self._token = ""
        self._expires_at = 0.0

    def secret(self) -> str:
        """The current token."""
        # Imported here, because these libraries are slow to import and few people need them.
        from github import Auth, GithubException, GithubIntegration

        try:
            if self._expires_at < time.time() + _RENEW_BEFORE_S:
                auth = Auth.AppAuth(self._app_id, self._key)
                app = GithubIntegration(
                    auth=auth, base_url=self._api_url, timeout=_APP_TIMEOUT_S
                )
                authorization = app.get_access_token(self._installation)
                self._token = authorization.token
                self._expires_at = authorization.expires_at.timestamp()
        except GithubException as error:
            why = f"HTTP {error.status}"
        except Exception as error:  # noqa: BLE001 - such as of a wrong kind of key
            why = type(error).__name__  # its message may contain the key
        else:
            return self._token
        raise AuthError(
            f"no token for the GitHub App's installation ({why}): check GITHUB_APP_ID, its private key, "
            "GITHUB_APP_INSTALLATION_ID and api_url"
        )


def _key(environ: Mapping[str, str]) -> str:
    path = environ.get("GITHUB_APP_PRIVATE_KEY_PATH")
    if not path:
        key = environ.get("GITHUB_APP_PRIVATE_KEY", "")
        if not key:
            raise ConfigError(
                "GITHUB_APP_ID is set but neither GITHUB_APP_PRIVATE_KEY nor its _PATH is"
            )
        return key.replace("\\n", "\n")
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(
            f"{path}: the GitHub App's private key can't be read"
        ) from None
