"""A server's address, read once; a credential is sent to its origin (scheme, host, port) only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from pairkit.app.errors import BadReply, ConfigError

_PORTS = {"http": 80, "https": 443}
_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?|\[[0-9a-f:.]+\])"  # else encoding the name fails
    r"(?::(?P<port>[0-9]{1,5}))?(?P<rest>/.*)?",
    re.IGNORECASE | re.ASCII,
)
# Two slashes or a backslash could begin another host; a fragment is never sent.
_PATH = re.compile(r'/(?!/)[!"$-\[\]-~]*')
_DOTS = re.compile(r"/(?:\.|%2e){1,2}(?:/|\Z)", re.IGNORECASE)  # a library or a server would go up by them


class Origin(NamedTuple):
    """What a credential is given for, in lower case and with the port written out."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Address:
    """The root of a server, without anything secret in it."""

    origin: Origin
    path: str = ""  # of the root: empty, or with a leading slash and none at its end

    @property
    def url(self) -> str:
        """The root as a URL, without a slash at its end."""
        scheme, host, port = self.origin
        return f"{scheme}://{host}{'' if port == _PORTS[scheme] else f':{port}'}{self.path}"

    @property
    def host(self) -> str:
        """The host in lower case, an IPv6 address in brackets."""
        return self.origin.host

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent there stays on this machine."""
        return is_loopback(self.host.strip("[]"))

    def join(self, path: str) -> str:
        """The URL of `path`, which begins with one slash and is below this root."""
        url = self.url + path
        if not is_path(path) or origin_of(url) != self.origin:
            raise BadReply(f"{self.url}: {path[:100]!r} is not a path on this server; no request was sent")
        return url

    def guard(self, secret: str, remedy: str) -> None:
        """Refuse to send a secret in clear over a network."""
        if self.origin.scheme == "http" and not self.is_loopback:
            raise ConfigError(
                f"{self.url}: over plain http, others can read {secret}; use https, or {remedy}"
            )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine; an IPv6 address stands without brackets."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def read_address(text: str, what: str, example: str) -> Address:
    """A server's root as a person wrote it."""
    if "@" in text:
        raise ConfigError(f"{what} holds a user or password; leave them out; keys are given separately")
    if "?" in text or "#" in text:
        raise ConfigError(f"{what} holds a query or a fragment; leave it out")
    origin, match = origin_of(text), _URL.fullmatch(text)
    path = ((match and match["rest"]) or "").rstrip("/")
    if origin is None or (path and not is_path(path)):
        words = "" if text.isascii() else " (a name in other letters is written as xn--…)"
        raise ConfigError(f"{what} is {text[:200]!r}: expected a server's root{words}, such as {example}")
    return Address(origin, path)


def origin_of(url: str) -> Origin | None:
    """The origin of a URL; None where it is not a plain http or https URL."""
    match = _URL.fullmatch(url)
    if match is None:
        return None
    scheme, host = match["scheme"].lower(), match["host"].lower()
    port = int(match["port"] or _PORTS[scheme])
    try:
        if host.startswith("["):
            host = f"[{IPv6Address(host[1:-1]).compressed}]"
    except ValueError:
        return None
    return Origin(scheme, host, port) if 0 < port < 1 << 16 else None


def is_path(text: str) -> bool:
    """Whether a text is a path, with or without a query, that leads neither to another host nor upwards."""
    return _PATH.fullmatch(text) is not None and not _DOTS.search(text.partition("?")[0])
