"""Keys of servers: from the environment, or from a file that the environment names; never from elsewhere.

A key that nobody named for a server goes to its maker's own host alone: OPENAI_API_KEY, and what else the
environment holds for OpenAI, to api.openai.com, ANTHROPIC_API_KEY to api.anthropic.com and so on. For any
other host the variable has to be named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pairkit.app.errors import ConfigError

OPENAI_HOST = "api.openai.com"
ANTHROPIC_HOST = "api.anthropic.com"
GEMINI_HOST = "generativelanguage.googleapis.com"
# Where a host's key is looked for if nobody says.
_USUAL: Mapping[str, str] = {
    OPENAI_HOST: "OPENAI_API_KEY",
    ANTHROPIC_HOST: "ANTHROPIC_API_KEY",
    GEMINI_HOST: "GEMINI_API_KEY",
    "open.bigmodel.cn": "ZHIPUAI_API_KEY",
    "api.z.ai": "ZHIPUAI_API_KEY",
}
_LONGEST_FILE = 65_536  # bytes of a key file


@dataclass(frozen=True, slots=True)
class Key:
    """A credential, and the variable that people know it by; printing it shows the variable alone."""

    secret: str = field(repr=False)
    source: str


def key_variable(host: str, named: str | None) -> str | None:
    """The variable with the key for a host: the one that is named for it, else its maker's own, else none."""
    return named or _USUAL.get(host)


def find_key(who: str, variable: str, environ: Mapping[str, str], remedy: str) -> Key:
    """The variable's value, or the content of the file that `VARIABLE_FILE` names."""
    secret, source = environ.get(variable, "").strip(), variable
    if not secret and (file := environ.get(f"{variable}_FILE")):
        secret, source = _read(who, Path(file)), f"{variable}_FILE"
    if not secret:
        raise ConfigError(f"{who}: no key; {remedy}")
    if not _can_be_sent(secret) or " " in secret:
        raise ConfigError(
            f"{who}: what {source} holds is no key: it has blanks or characters that no header can carry"
        )
    return Key(secret, source)


def headers_for(host: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment's extra headers for OpenAI; none for any other host."""
    if host != OPENAI_HOST:
        return {}
    named = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
    found = {header: environ[name].strip() for header, name in named.items() if environ.get(name, "").strip()}
    for header, value in found.items():
        if not _can_be_sent(value):
            raise ConfigError(
                f"the environment's header {header!r} for OpenAI can't be sent; fix or unset it"
            )
    return found


def _can_be_sent(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _read(who: str, file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_LONGEST_FILE).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{who}: {file}: the key file can't be read ({type(error).__name__})") from error


MASK = "[key]"
_SHORTEST = 8  # characters: "EMPTY", "ollama" and the like are no secrets, and may stand in any text


class Masking:
    """Hides secrets, in whichever way a server has escaped them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        """Secrets shorter than eight characters are left alone."""
        hidden = sorted({secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True)
        self._plain = [secret.encode() for secret in hidden]
        self._escaped = [re.compile(b"".join(_spellings(byte) for byte in secret)) for secret in self._plain]

    def body(self, body: bytes) -> bytes:
        """A body without them: as they are, or with characters as JSON or a URL may spell them."""
        mask = MASK.encode()
        for secret in self._plain:
            body = body.replace(secret, mask)
        if b"\\" in body or b"%" in body:
            for escaped in self._escaped:
                body = escaped.sub(mask, body)
        return body

    def text(self, text: str) -> str:
        """A message or header without them."""
        return self.body(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _spellings(byte: int) -> bytes:
    r"""A pattern for `/`, `\/`, `\u002f` and `%2F` alike."""
    one = re.escape(bytes((byte,)))
    digits = b"%02x" % byte
    return b"(?:" + one + b"|\\\\" + one + b"|(?i:\\\\u00" + digits + b"|%" + digits + b"))"
