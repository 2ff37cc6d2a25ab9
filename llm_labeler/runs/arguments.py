"""Turn the arguments of public functions into settings and user functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from llm_labeler.clients.llms import LlmFunction, is_async
from llm_labeler.settings import LabelSettings
from llm_labeler.settings.llms import FUNCTION
from pairkit.base.errors import ConfigError
from pairkit.base.settings import between_commas, load_settings

if TYPE_CHECKING:
    from pairkit.base.cli.progress import Listener
    from pairkit.dataset.reading.in_memory import Source

LlmEntry: TypeAlias = LlmFunction | Mapping[str, Any]
LlmsGiven: TypeAlias = (
    str | LlmFunction | Sequence[str | LlmFunction] | Mapping[str, LlmEntry]
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
    entries: dict[str, LlmEntry] = {}
    for key in ("llms", "judge.llms"):
        named = list(_named_llms(flags.get(key)))
        changes[key] = [name for name, _ in named] or None
        _add_entries(entries, named)

    functions = {}
    tree = dict(below or {})
    tree["llm"] = dict(tree.get("llm", {}))
    for name, entry in entries.items():
        if isinstance(entry, Mapping):
            fields = entry
        else:
            functions[name] = entry
            fields = {"kind": FUNCTION, "model": _import_path(entry)}
            # Not in `changes`, so that the configuration can raise the concurrency of a plain function.
            if not is_async(entry):
                tree["llm"][name] = {"concurrency": 1}
        for field, value in fields.items():
            changes[f"llm.{name}.{field}"] = value
    merged = load_settings(
        LabelSettings, changes, below=tree, config=config, settings=settings
    )
    return merged, functions


def _named_llms(llms: Any) -> Iterator[tuple[str, LlmEntry | None]]:
    """The name of each LLM with its function or entry, or with None if the settings describe the LLM."""
    if isinstance(llms, Mapping):
        yield from llms.items()
    elif isinstance(llms, str):
        names = between_commas(llms)
        if not all(names):
            raise ConfigError(
                f"llm {llms!r}: expected NAME or NAME,NAME, such as chatgpt,llama"
            )
        for name in names:
            yield name, None
    elif isinstance(llms, Sequence):
        for llm in llms:
            yield from _named_llms(llm)
    elif llms is not None:
        yield getattr(llms, "__name__", type(llms).__name__), llms


def _add_entries(
    entries: dict[str, LlmEntry], named: Iterable[tuple[str, LlmEntry | None]]
) -> None:
    """Add functions and entries by name; raises ConfigError for unusable ones, and for two of one name."""
    names = set()
    for name, entry in named:
        is_repeated = name in names
        names.add(name)
        if entry is None:
            continue
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise ConfigError(
                f"llm: {name!r:.60} is not a name; expected letters, digits, _ and -: llm={{'mine': …}}"
            )
        if not (callable(entry) or isinstance(entry, Mapping)):
            raise ConfigError(
                f"llm: {name!r:.60} is {type(entry).__name__}; expected a function from prompt to answer, or"
                " an entry such as {'kind': 'openai_compatible', …}"
            )
        # The same function may propose and judge.
        if is_repeated or entries.setdefault(name, entry) != entry:
            raise ConfigError(
                f"llm: two LLMs are called {name}; choose another name: llm={{'mine': …}}"
            )


def _import_path(function: LlmFunction) -> str:
    """The module and name of a function, or of the class of another callable."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"python:{named.__module__}.{named.__qualname__}"
