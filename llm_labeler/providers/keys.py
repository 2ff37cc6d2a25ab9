"""Keys of servers: from the environment, or from a file that the environment names; never from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from llm_labeler.settings import LlmSettings
from pairkit.errors import ConfigError

# Where a kind's key is looked for if the entry does not say.
_USUAL = {"openai": "OPENAI_API_KEY", "glm": "ZHIPUAI_API_KEY"}


@dataclass(frozen=True, slots=True)
class Key:
    """A credential, and the variable that people know it by; printing it shows the variable alone."""

    secret: str = field(repr=False)
    source: str


def find_key(name: str, settings: LlmSettings, environ: Mapping[str, str]) -> Key | None:
    """The key of an entry: the variable's value, or the content of the file that `VARIABLE_FILE` names.

    Returns:
        The key; None where the entry needs none.

    Raises:
        ConfigError: it needs one and there is none, or it can't be one.
    """
    variable = settings.api_key_env or _USUAL.get(settings.kind)
    if variable is None:
        return None
    secret, source = environ.get(variable, "").strip(), variable
    if not secret and (file := environ.get(f"{variable}_FILE")):
        secret, source = _read(name, Path(file)), f"{variable}_FILE"
    if not secret:
        raise ConfigError(f"llm {name}: no key; set {variable} or api_key_env in [llm.{name}]")
    if not (secret.isascii() and secret.isprintable()) or " " in secret:
        raise ConfigError(
            f"llm {name}: what {source} holds is no key: it has blanks or characters that no header can carry"
        )
    return Key(secret, source)


def _read(name: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"llm {name}: {file}: the key file can't be read ({type(error).__name__})"
        ) from error
