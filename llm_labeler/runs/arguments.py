"""From the arguments of public functions to settings, and the user's functions among them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from llm_labeler.clients.function import LlmFunction, is_async
from llm_labeler.settings import LabelSettings, own_name
from pairkit.app.errors import ConfigError
from pairkit.app.settings import merge

Llm: TypeAlias = str | LlmFunction
LlmsGiven: TypeAlias = Llm | Sequence[Llm] | Mapping[str, LlmFunction | Mapping[str, Any]]
"""LLMs by their names (`ensemble`: the papers' three), functions from prompt to answer, or both; or by names
of one's own, functions and entries such as `{"kind": "openai_compatible", "model": …, "base_url": …}`."""

_NAME = re.compile(r"[\w-]+")


def read_arguments(
    keys: Mapping[str, str],
    given: Mapping[str, Any],
    *,
    below: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None = None,
) -> tuple[LabelSettings, dict[str, LlmFunction]]:
    """Settings from defaults < file < settings < arguments (`keys`: their settings); and user functions."""
    values = dict(given)
    entries: dict[str, Any] = {}
    functions: dict[str, LlmFunction] = {}
    for role in ("llms", "judges"):
        names = []
        for name, llm in _named(values.get(role)):
            names.append(name)
            if callable(llm):
                functions[name] = llm
                entries[name] = {"kind": "function", "model": own_name(llm)}
            elif llm is not None:
                entries[name] = dict(llm)
        values[role] = names or None
    # Below the configuration, which may raise the concurrency of a function.
    plain = {
        name: {**entries[name], "concurrency": 1} for name, own in functions.items() if not is_async(own)
    }
    tree = {**(below or {})}
    tree["llm"] = {**tree.get("llm", {}), **plain}
    fields = {f"llm.{name}.{key}": value for name, entry in entries.items() for key, value in entry.items()}
    table = {**keys, **{key: key for key in fields}}
    found = merge(LabelSettings, table, {**values, **fields}, below=tree, config=config, settings=settings)
    return found, functions


def _named(llms: Any) -> list[tuple[str, Any]]:
    """Names with the function or entry that belongs to each; None where the name is all."""
    if llms is None:
        return []
    if isinstance(llms, Mapping):
        found = [*llms.items()]
    else:
        several = llms if isinstance(llms, Sequence) and not isinstance(llms, str) else [llms]
        found = [pair for one in several for pair in _of_one(one)]
    for name, llm in found:
        if llm is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise ConfigError(
                f"llms: {name!r:.60} is not a name; expected letters, digits, _ and -: llms={{'mine': …}}"
            )
        if not (llm is None or callable(llm) or isinstance(llm, Mapping)):
            raise ConfigError(
                f"llms: {name!r:.60} is {type(llm).__name__}; expected a function from prompt to answer, or"
                " an entry such as {'kind': 'openai_compatible', …}"
            )
    if len({name for name, llm in found if llm is not None}) < sum(llm is not None for _, llm in found):
        raise ConfigError("llms: two functions have the same name; name them: llms={'one': …, 'two': …}")
    return found


def _of_one(llm: Any) -> list[tuple[str, Any]]:
    if isinstance(llm, str):
        parts = [part.strip() for part in llm.split(",")]
        if not all(parts):
            raise ConfigError(f"llms {llm!r}: expected NAME or NAME,NAME, such as chatgpt,llama")
        return [(part, None) for part in parts]
    return [(getattr(llm, "__name__", type(llm).__name__), llm)]
