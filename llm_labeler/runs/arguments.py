"""Turn the arguments of public functions into settings and user functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from llm_labeler.clients.llms import LlmFunction, is_async
from llm_labeler.settings import LabelSettings
from llm_labeler.settings.llms import FUNCTION
from pairkit.base.cli.progress import Listener
from pairkit.base.errors import ConfigError
from pairkit.base.settings import between_commas, load_settings
from pairkit.dataset.reading.in_memory import Source

Llm: TypeAlias = str | LlmFunction
LlmsGiven: TypeAlias = (
    Llm | Sequence[Llm] | Mapping[str, LlmFunction | Mapping[str, Any]]
)
"""Names of LLMs (`ensemble`: the papers' three), functions from prompt to answer, or both; or a mapping from
your own names to functions and entries such as `{"kind": "openai_compatible", "model": …, "base_url": …}`."""

_NAME = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class LabelCall:
    """The checked arguments of `generate`, `plan` or `judge`."""

    source: Source
    out: Path
    work: Path
    columns: dict[str, str] | None
    settings: LabelSettings
    functions: Mapping[str, LlmFunction]
    batch: bool
    keep_going: bool
    retry_failed: bool
    fresh: bool
    progress: bool | Listener


def read_arguments(
    flags: Mapping[str, Any],
    *,
    below: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None,
) -> tuple[LabelSettings, dict[str, LlmFunction]]:
    """Merge defaults < `below` < `config` < `settings` < `flags`, by dotted keys; LLMs may be functions."""
    changes = dict(flags)
    functions = {}
    for key in ("llms", "judge.llms"):
        named = _with_names(flags.get(key))
        changes[key] = [name for name, _ in named] or None
        for name, llm in named:
            if callable(llm):
                functions[name] = llm
                function = llm if hasattr(llm, "__qualname__") else type(llm)
                model = f"python:{function.__module__}.{function.__qualname__}"
                changes |= {f"llm.{name}.kind": FUNCTION, f"llm.{name}.model": model}
            elif llm is not None:
                changes |= {
                    f"llm.{name}.{field}": value for field, value in llm.items()
                }
    # In `below`, so that the configuration can raise the concurrency of a plain function.
    plain = {
        name: {"concurrency": 1} for name, llm in functions.items() if not is_async(llm)
    }
    tree = dict(below or {})
    tree["llm"] = {**tree.get("llm", {}), **plain}
    merged = load_settings(
        LabelSettings, changes, below=tree, config=config, settings=settings
    )
    return merged, functions


def _with_names(llms: Any) -> list[tuple[str, Any]]:
    """Pair each name with its function or entry, or with None if the settings describe the LLM."""
    if llms is None:
        return []
    named: list[tuple[str, Any]] = []
    if isinstance(llms, Mapping):
        named += llms.items()
    else:
        is_list = isinstance(llms, Sequence) and not isinstance(llms, str)
        for element in llms if is_list else [llms]:
            named += _element_with_names(element)
    described = []
    for name, llm in named:
        if llm is None:
            continue
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise ConfigError(
                f"llm: {name!r:.60} is not a name; expected letters, digits, _ and -: llm={{'mine': …}}"
            )
        if not (callable(llm) or isinstance(llm, Mapping)):
            raise ConfigError(
                f"llm: {name!r:.60} is {type(llm).__name__}; expected a function from prompt to answer, or"
                " an entry such as {'kind': 'openai_compatible', …}"
            )
        described.append(name)
    if len({*described}) < len(described):
        raise ConfigError(
            "llm: two functions have the same name; name them: llm={'one': …, 'two': …}"
        )
    return named


def _element_with_names(llm: Any) -> list[tuple[str, Any]]:
    if isinstance(llm, str):
        parts = between_commas(llm)
        if not all(parts):
            raise ConfigError(
                f"llm {llm!r}: expected NAME or NAME,NAME, such as chatgpt,llama"
            )
        return [(part, None) for part in parts]
    return [(getattr(llm, "__name__", type(llm).__name__), llm)]
