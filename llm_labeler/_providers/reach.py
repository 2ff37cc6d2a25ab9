"""How the server of an entry is reached: its address, its key, and whether it may be called local."""

from __future__ import annotations

from collections.abc import Mapping

from llm_labeler._providers.dialect import Dialect
from llm_labeler._settings import LlmSettings
from pairkit.address import Address, read_address
from pairkit.errors import ConfigError
from pairkit.openai_api.channel import Channel, Connection
from pairkit.openai_api.credentials import find_key, key_variable

OPENAI = "https://api.openai.com/v1"
GLM = "https://open.bigmodel.cn/api/paas/v4"
ANTHROPIC = "https://api.anthropic.com/v1"
GEMINI = "https://generativelanguage.googleapis.com/v1beta"
_USUAL = {"openai": OPENAI, "glm": GLM, "anthropic": ANTHROPIC, "gemini": GEMINI}
_EXAMPLE = "http://localhost:8000/v1"


def find_address(name: str, settings: LlmSettings) -> Address:
    """The address of an entry's server.

    Raises:
        ConfigError: it has none, one that is no base URL, or one elsewhere though the entry says `local`.
    """
    url = settings.base_url or _USUAL.get(settings.kind)
    if not url:
        raise ConfigError(f"llm {name}: no address; set base_url in [llm.{name}], such as {_EXAMPLE}")
    address = read_address(url, f"llm {name}: base_url", _EXAMPLE)
    if settings.local and not address.is_loopback:
        raise ConfigError(
            f"llm {name}: local = true, but {address.url} is another machine; take local out of [llm.{name}]"
        )
    return address


def open_channel(
    name: str, settings: LlmSettings, address: Address, dialect: Dialect, environ: Mapping[str, str]
) -> Channel:
    """The way to an entry's server; nothing is connected to yet.

    Raises:
        ConfigError: no key where one is needed, or one that must not be sent there.
    """
    variable = key_variable(address.host, settings.api_key_env)
    remedy = f"set {variable} or api_key_env in [llm.{name}]"
    connection = Connection(
        address,
        None if variable is None else find_key(f"llm {name}", variable, environ, remedy),
        timeout_s=settings.timeout_s,
        concurrency=settings.concurrency,
        ca_file=settings.ca_file,
        plain_http=settings.plain_http,
        key_header=dialect.key_header,
        headers=dialect.headers,
    )
    try:
        return Channel(connection, environ)
    except ConfigError as error:
        raise ConfigError(f"llm {name}: {error}; see [llm.{name}]") from error
