"""Where a server is, and whether that is this machine."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from llm_labeler.settings import LlmSettings
from pairkit.errors import ConfigError

OPENAI = "https://api.openai.com/v1"
GLM = "https://open.bigmodel.cn/api/paas/v4"
_USUAL = {"openai": OPENAI, "glm": GLM}


@dataclass(frozen=True, slots=True)
class Address:
    """A server's base URL, without anything secret in it."""

    url: str
    host: str

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent there stays on this machine."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


def read_address(name: str, settings: LlmSettings) -> Address:
    """The address of an entry's server.

    Raises:
        ConfigError: it has none, or one that is no base URL; a password in it is not repeated.
    """
    url = settings.base_url or _USUAL.get(settings.kind)
    if not url:
        raise ConfigError(
            f"llm {name}: no address; set base_url in [llm.{name}], such as http://localhost:8000/v1"
        )
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"llm {name}: base_url is no URL; expected http(s)://HOST[:PORT]/v1") from error
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"llm {name}: base_url holds a password, a query or a fragment, which could end up in files; "
            f"put the key into an environment variable and name that as api_key_env in [llm.{name}]"
        )
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"llm {name}: base_url is {url!r}; expected http(s)://HOST[:PORT]/v1")
    return Address(url.rstrip("/"), host)
