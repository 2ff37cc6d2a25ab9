"""API keys, read only from environment variables or from files that these name.

By default each key is sent only to its own provider: OPENAI_API_KEY and OpenAI's other variables to
api.openai.com, ANTHROPIC_API_KEY to api.anthropic.com and so on. For other hosts, a variable must be set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pairkit.base.errors import ConfigError

OPENAI_HOST = "api.openai.com"
ANTHROPIC_HOST = "api.anthropic.com"

# Default variable for each host.
_KEY_VARIABLES = {
    OPENAI_HOST: "OPENAI_API_KEY",
    ANTHROPIC_HOST: "ANTHROPIC_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
    "open.bigmodel.cn": "ZHIPUAI_API_KEY",
    "api.z.ai": "ZHIPUAI_API_KEY",
}
_MAX_FILE_BYTES = 65_536
# Short words in one case; a key has longer or mixed ones.
_VARIABLE = re.compile(
    r"(?=.{1,64}\Z)(?:(?:[A-Z0-9]{0,18}_)*[A-Z0-9]{1,18}|(?:[a-z0-9]{0,18}_)*[a-z0-9]{1,18})"
)

MASK = "[key]"
_MIN_CHARS = 8  # shorter keys such as "EMPTY" or "ollama" aren't secrets and may occur in any text
# Characters of a key whose beginning is masked, too, and of this beginning.
_MIN_LONG = 20
_PREFIX = 10


@dataclass(frozen=True, slots=True)
class Key:
    """A key and the variable that it comes from; its repr shows only the variable."""

    secret: str = field(repr=False)
    source: str


def variable_name(name: str) -> str:
    """The name of an environment variable; ValueError, without the value, if it may be a key."""
    if not _VARIABLE.fullmatch(name):
        raise ValueError(
            "expected the name of an environment variable, such as OPENAI_API_KEY, not a key"
        )
    return name


def key_variable(host: str, named: str | None) -> str | None:
    """The variable with the key for a host: the named one, or the provider's own."""
    try:
        return variable_name(named) if named else _KEY_VARIABLES.get(host)
    except ValueError as error:
        raise ConfigError(f"api_key_env: {error}") from error


def find_key(
    who: str,
    variable: str,
    environ: Mapping[str, str],
    remedy: str,
) -> Key:
    """The value of the variable, or the content of the file that `VARIABLE_FILE` names."""
    secret = environ.get(variable, "").strip()
    source = variable
    if not secret and (file := environ.get(f"{variable}_FILE")):
        secret = _read(who, Path(file))
        source = f"{variable}_FILE"
    if not secret:
        raise ConfigError(f"{who}: no key; {remedy}")
    if not _can_be_sent(secret) or " " in secret:
        raise ConfigError(
            f"{who}: {source} isn't a key: it has blanks or characters that can't be sent in a header"
        )
    return Key(secret, source)


def headers_for(host: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Headers from OpenAI's environment variables; empty for other hosts."""
    if host != OPENAI_HOST:
        return {}
    named = {
        "OpenAI-Organization": "OPENAI_ORG_ID",
        "OpenAI-Project": "OPENAI_PROJECT_ID",
    }
    headers = {}
    for header, variable in named.items():
        value = environ.get(variable, "").strip()
        if not _can_be_sent(value):
            raise ConfigError(
                f"the environment's header {header!r} for OpenAI can't be sent; fix or unset it"
            )
        if value:
            headers[header] = value
    return headers


def _can_be_sent(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _read(who: str, file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_MAX_FILE_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{who}: {file}: the key file can't be read ({type(error).__name__})"
        ) from error


class Masking:
    """Replaces secrets and beginnings of long ones in responses, also if the server has escaped them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        """Secrets shorter than eight characters are ignored."""
        hidden = {secret for secret in secrets if len(secret) >= _MIN_CHARS}
        begins = [secret[:_PREFIX] for secret in hidden if len(secret) >= _MIN_LONG]
        self._patterns: list[tuple[bytes, re.Pattern[bytes]]] = []
        for secret in sorted(hidden, key=len, reverse=True):
            self._patterns.append((secret.encode(), _spelt(secret)))
        for begin in begins:
            self._patterns.append((begin.encode(), _spelt(begin, rb"[\w*.=-]*")))

    def body(self, body: bytes) -> bytes:
        """The body without secrets, plain or escaped as in JSON or URLs."""
        is_escaped = b"\\" in body or b"%" in body
        for plain, pattern in self._patterns:
            if is_escaped or plain in body:
                body = pattern.sub(MASK.encode(), body)
        return body

    def text(self, text: str) -> str:
        """A message or header without secrets."""
        return self.body(text.encode("utf-8", "surrogatepass")).decode(
            "utf-8", "surrogatepass"
        )


def _spelt(secret: str, after: bytes = b"") -> re.Pattern[bytes]:
    return re.compile(b"".join(map(_spellings, secret.encode())) + after)


def _spellings(byte: int) -> bytes:
    r"""A pattern for a byte, plain or escaped: `/`, `\/`, `\u002f` or `%2F`."""
    plain = re.escape(bytes((byte,)))
    digits = b"%02x" % byte
    return rb"(?:%b|\\%b|(?i:\\u00%b|%%%b))" % (plain, plain, digits, digits)
