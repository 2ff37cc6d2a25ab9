"""A server's address; a credential is sent only to its origin (scheme, host, port)."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from pairkit.base.errors import BadReply, ConfigError

_PORTS = {"http": 80, "https": 443}
_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?|\[[0-9a-f:.]+\])"  # longer labels can't be encoded
    r"(?::(?P<port>[0-9]{1,5}))?(?P<rest>/.*)?",
    re.IGNORECASE | re.ASCII,
)
# Without `//` and backslashes, which could begin another host, and without fragments.
_PATH = re.compile(r'/(?!/)[!"$-\[\]-~]*')
# Segments that lead to a parent path.
_DOTS = re.compile(r"/(?:\.|%2e){1,2}(?:/|\Z)", re.IGNORECASE)

# Reserved for documentation; nothing is sent to them.
_OTHERS = {socket.AF_INET: ("192.0.2.1", 9), socket.AF_INET6: ("2001:db8::1", 9)}


class Origin(NamedTuple):
    """Scheme and host in lower case, and port."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Address:
    """The root URL of a server, without secrets."""

    origin: Origin
    path: str = ""  # empty, or with a slash only at the beginning

    @property
    def url(self) -> str:
        """The root URL without a slash at the end."""
        scheme, host, port = self.origin
        return f"{scheme}://{host}{'' if port == _PORTS[scheme] else f':{port}'}{self.path}"

    @property
    def host(self) -> str:
        """The host in lower case; an IPv6 address is in brackets."""
        return self.origin.host

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine."""
        return is_loopback(self.host.strip("[]"))

    def join(self, path: str) -> str:
        """The URL of a path below this root."""
        url = self.url + path
        if not is_path(path) or origin_of(url) != self.origin:
            raise BadReply(
                f"{self.url}: {path[:100]!r} is not a path on this server; no request was sent"
            )
        return url

    def guard(self, secret: str, remedy: str) -> None:
        """Refuse to send a secret unencrypted over a network."""
        if self.origin.scheme == "http" and not self.is_loopback:
            raise ConfigError(
                f"{self.url}: over plain http, others can read {secret}; use https, or {remedy}"
            )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine; an IPv6 address is without brackets."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def reachable_host(host: str) -> str:
    """The address at which others reach this machine, if a server listens on all of its addresses."""
    if host not in ("0.0.0.0", "::"):  # noqa: S104
        return host
    family = socket.AF_INET6 if host == "::" else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(_OTHERS[family])
            address: str = probe.getsockname()[0]
    except OSError:  # no network
        return socket.gethostname()
    return address


def read_address(text: str, what: str, example: str) -> Address:
    """Parse the root URL of a server."""
    if "@" in text:
        raise ConfigError(
            f"{what} holds a user or password; leave them out, as keys are given separately"
        )
    if "?" in text or "#" in text:
        raise ConfigError(f"{what} holds a query or a fragment; leave it out")
    origin = origin_of(text)
    match = _URL.fullmatch(text)
    path = ((match and match["rest"]) or "").rstrip("/")
    if origin is None or (path and not is_path(path)):
        hint = (
            "" if text.isascii() else " (a name in other letters is written as xn--…)"
        )
        raise ConfigError(
            f"{what} is {text[:200]!r}: expected a server's root{hint}, such as {example}"
        )
    return Address(origin, path)


def origin_of(url: str) -> Origin | None:
    """The origin of a plain http or https URL; None for others."""
    match = _URL.fullmatch(url)
    if match is None:
        return None
    scheme = match["scheme"].lower()
    host = match["host"].lower()
    port = int(match["port"] or _PORTS[scheme])
    try:
        if host.startswith("["):
            host = f"[{IPv6Address(host[1:-1]).compressed}]"
    except ValueError:
        return None
    return Origin(scheme, host, port) if 0 < port < 1 << 16 else None


def is_path(text: str) -> bool:
    """Whether a text is a path (and query) that leads neither to another host nor upwards."""
    path, _, _ = text.partition("?")
    return _PATH.fullmatch(text) is not None and not _DOTS.search(path)
