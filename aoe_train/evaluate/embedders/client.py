"""The connection to a server of OpenAI's protocol: its address, its key, and what its refusals mean."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pairkit.errors import AuthError, ConfigError, DataError, PairkitError, RateLimited, RemoteError

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAI

_KEY = "OPENAI_API_KEY"
_OPENAI = "api.openai.com"
_RETRIES = 6  # with waits that double, or as long as the server says
_TIMEOUT_S = 120.0
_WAIT_S = 60.0  # where a server does not say how long
_SHOWN = 200


def make_client(url: str) -> OpenAI:
    """A client for the server at `url`, with the key in OPENAI_API_KEY if there is one.

    Raises:
        ConfigError: Not an address, a key that can't be one, none for OpenAI itself, or no client installed.
    """
    try:
        import openai
    except ImportError as error:
        raise ConfigError("--endpoint needs the openai client: pip install 'aoe-toolkit[eval]'") from error
    address, host = _address(url)
    client = openai.OpenAI(
        api_key=_key(host) or "none",  # the client insists on one
        base_url=address,
        max_retries=_RETRIES,
        timeout=_TIMEOUT_S,
        # What is for this machine goes through no proxy, and nothing follows a redirect to elsewhere.
        http_client=openai.DefaultHttpxClient(follow_redirects=False, trust_env=not _is_loopback(host)),
    )
    if host != _OPENAI:  # the client takes these from the environment; they are OpenAI's business alone
        client.organization = client.project = None
    return client


@contextmanager
def remote_errors(where: str, texts: list[str]) -> Iterator[None]:
    """Turn the client's exceptions into ours.

    Args:
        where: Model and address, for messages.
        texts: What was being asked for.
    """
    import openai

    try:
        yield
    except openai.APIStatusError as error:
        raise _refused(error, where, texts) from error
    except openai.APITimeoutError as error:
        raise RemoteError(f"{where}: no answer in {_TIMEOUT_S:g} s; run the same command again") from error
    except openai.APIConnectionError as error:
        raise RemoteError(
            f"{where}: can't be reached ({error.__cause__ or error}); start the server or mend --endpoint"
        ) from error
    except openai.OpenAIError as error:
        raise RemoteError(f"{where}: {type(error).__name__}: {str(error)[:_SHOWN]}") from error


def _refused(error: APIStatusError, where: str, texts: list[str]) -> PairkitError:
    status, said = error.status_code, _message(error)
    if status in (401, 403):
        held = "the key in" if os.environ.get(_KEY) else "a request without"
        # What comes with a 401 may repeat part of the key.
        return AuthError(f"{where}: refused {held} {_KEY} (HTTP {status}); set a key that may use the model")
    if status == 429 and error.code != "insufficient_quota":
        wait_s = _wait_s(error)
        return RateLimited(
            f"{where}: asks to wait {wait_s:g} s (HTTP 429: {said}); run the same command again then", wait_s
        )
    if status in (404, 405):
        return ConfigError(
            f"{where}: no such model or address (HTTP {status}: {said}); --endpoint is what comes before"
            " /embeddings and usually ends in /v1"
        )
    if status in (400, 413, 422):
        longest = max(texts, key=len)
        return DataError(
            f"{where}: refused {len(texts)} texts (HTTP {status}: {said}); the longest has {len(longest):,}"
            f" characters and begins {longest[:60]!r}: shorten it or leave it out if it is too long"
        )
    return RemoteError(f"{where}: HTTP {status}: {said}; run the same command again, or see the server's log")


def _message(error: APIStatusError) -> str:
    inner = error.body
    text = inner.get("message") if isinstance(inner, dict) else inner
    shown = " ".join(str(text or error.response.text).split())[:_SHOWN]
    key = os.environ.get(_KEY, "").strip()
    return shown.replace(key, "[key]") if key else shown


def _wait_s(error: APIStatusError) -> float:
    try:
        return float(error.response.headers["retry-after"])
    except (KeyError, ValueError):
        return _WAIT_S


def _key(host: str) -> str | None:
    key = os.environ.get(_KEY, "").strip()
    if not key:
        if host == _OPENAI:
            raise ConfigError(f"--endpoint of OpenAI wants a key: set {_KEY}")
        return None
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(
            f"what {_KEY} holds is no key: it has blanks or characters that no header can carry"
        )
    return key


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _address(url: str) -> tuple[str, str]:
    """The base URL and its host.

    Raises:
        ConfigError: Not one; a password in it is not repeated.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError("--endpoint: not a URL; expected http(s)://HOST[:PORT]/v1") from error
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(f"--endpoint holds a password, a query or a fragment; give a key in {_KEY} instead")
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"--endpoint {url}: expected http(s)://HOST[:PORT]/v1")
    return url.rstrip("/").removesuffix("/embeddings"), host
