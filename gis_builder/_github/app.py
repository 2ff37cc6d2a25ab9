"""A GitHub App's installation: its secret is asked for with the App's key, and again when it runs out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from gis_builder._github.answers import Answer
from gis_builder._github.exchange import Exchange
from gis_builder._github.tokens import Token
from gis_builder._settings.crawl import read_root
from pairkit.errors import AuthError, ConfigError

_TIMEOUT_S = 30.0
_EARLY_S = 60.0  # a secret that runs out this soon is not begun with


class _Given(BaseModel):
    token: str = Field(min_length=1, max_length=1000, pattern=r"^[!-~]+$")
    expires_at: AwareDatetime


def installation_secret(api_url: str, environ: Mapping[str, str]) -> Callable[[], str]:
    """A function that gives the present secret of the App's installation that the environment names.

    Raises:
        ConfigError: the environment names no key or installation.
    """
    key, installation = _key(environ), environ.get("GITHUB_APP_INSTALLATION_ID", "")
    if not (installation.isascii() and installation.isdigit()):
        raise ConfigError(
            "GITHUB_APP_INSTALLATION_ID: expected the number in the installation's page address"
        )
    return _Installation(api_url, environ["GITHUB_APP_ID"], key, installation).secret


class _Installation:
    def __init__(self, api_url: str, app_id: str, key: str, installation: str) -> None:
        self._api_url, self._app_id, self._key = api_url, app_id, key
        self._path = f"/app/installations/{installation}/access_tokens"
        self._given: _Given | None = None

    def secret(self) -> str:
        """The secret, which is good for some time.

        Raises:
            AuthError: the server gives none.
        """
        if self._given is None or self._given.expires_at.timestamp() < time.time() + _EARLY_S:
            self._given = self._ask()
        return self._given.token

    def _ask(self) -> _Given:
        exchange = Exchange(read_root(self._api_url), Token(self._signature(), self._api_url), _TIMEOUT_S)
        try:
            raw = exchange.post(self._path, b"{}")
        finally:
            exchange.close()
        if isinstance(raw, Answer):
            raise _refused(raw.message)
        if 300 <= raw.status < 400:
            raise _refused(f"HTTP {raw.status}, a redirect: give the address that it leads to as api_url")
        if raw.status != 201:
            raise _refused(f"HTTP {raw.status}")
        try:
            return _Given.model_validate_json(raw.body)
        except ValidationError:
            raise _refused("an answer that holds none") from None

    def _signature(self) -> str:
        """What the App proves itself with for some minutes."""
        from github.Auth import AppAuth  # takes a while to import
        from jwt import PyJWTError

        try:
            return AppAuth(self._app_id, self._key).create_jwt()
        except (TypeError, ValueError, PyJWTError) as error:  # no key, one of another kind, an encrypted one
            raise _refused(f"its key can't sign: {type(error).__name__}") from None


def _refused(why: str) -> AuthError:
    return AuthError(
        f"the GitHub App's installation gives no token ({why}): check GITHUB_APP_ID, its private key and "
        "GITHUB_APP_INSTALLATION_ID"
    )


def _key(environ: Mapping[str, str]) -> str:
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
