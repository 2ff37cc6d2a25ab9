"""Several named sources, such as datasets of one training or several held-out sets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from glob import has_magic, iglob
from pathlib import Path
from typing import Any, TypeAlias, cast

from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line
from pairkit.dataset.reading.columns import known_pair
from pairkit.dataset.reading.in_memory import Source, path_of
from pairkit.dataset.reading.parts import split_name
from pairkit.dataset.records import SPLITS, PairDataset

Given: TypeAlias = Source | Sequence[Source] | Mapping[str, Source]
"""One source, several of them, or several by name."""
_NAME = re.compile(r"[\w-]+")
_NAMED = re.compile(r"([\w-]+)=(.+)", re.DOTALL)


def named_sources(sources: Given) -> dict[str, Source]:
    """The sources by name: keys of a mapping, names of files and folders, or `data-N` for rows in memory."""
    if isinstance(sources, Mapping):
        named = _by_name(sources)
    elif (
        not isinstance(sources, Sequence)
        or isinstance(sources, str)
        or _is_table(sources)
    ):
        named = _with_names([(None, cast("Source", sources))])
    else:
        named = _with_names([(None, source) for source in sources])
    for name, source in named.items():
        if isinstance(source, Path):
            named[name] = str(source)
    return named


def named_words(arguments: Sequence[str]) -> dict[str, Source]:
    """The sources of a command line, each `SOURCE` or `name=SOURCE`; see `named_sources`."""
    sources = []
    for word in arguments:
        named = _NAMED.fullmatch(word)
        if named and not Path(word).exists():
            sources.append((named[1], named[2]))
        else:
            sources.append((None, word))
    return _with_names(sources)


def _by_name(sources: Mapping[Any, Any]) -> dict[str, Source]:
    names = [str(name) for name in sources]
    splits = {*map(split_name, names)}.intersection(SPLITS)
    other_kinds = (str, Path, PairDataset, Mapping)
    has_tables = not any(isinstance(source, other_kinds) for source in sources.values())
    has_splits = "train" in splits or all(split_name(name) in SPLITS for name in names)
    has_columns = known_pair(names)
    if has_tables and (has_splits or has_columns):
        return {"data-1": cast("Source", sources)}
    if "train" in splits and len(splits) > 1:
        raise ConfigError(
            f"{' and '.join(sorted(splits))} are names of splits: give held-out rows as dev_data, or other"
            " names to the datasets"
        )
    return {_check_name(name): source for name, source in sources.items()}


def _check_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            f"{one_line(repr(name), 80)} can't be the name of a dataset; expected letters, digits, - and _"
        )
    return name


def _with_names(sources: Sequence[tuple[str | None, Source]]) -> dict[str, Source]:
    numbered = [*enumerate(sources, 1)]
    short_names = [name or _name(source, number) for number, (name, source) in numbered]
    named = {}
    for number, (name, source) in numbered:
        unique = name or _name(source, number)
        if name is None and short_names.count(unique) > 1:
            unique = _name(source, number, parts=2)
        if unique in named:
            raise ConfigError(
                f"two datasets are named {unique!r}; give other names, such as one=PATH, or a mapping of"
                " names to sources"
            )
        named[unique] = source
    return named


def _is_table(sources: Sequence[Any]) -> bool:
    """Whether a list has rows, not sources."""
    # An empty list has rows too.
    has_dicts = all(isinstance(item, Mapping) for item in sources)
    if has_dicts or any(map(_is_row, sources)):
        return True
    if not all(isinstance(item, str) for item in sources):
        return False
    missing = [path for path in sources if not _exists(path)]
    if missing and len(missing) < len(sources):
        raise ConfigError(
            f"{one_line(missing[0], 80)!r}: no such file or folder, but others of the list exist; expected"
            " paths or single texts (give Hub ids by name: {'name': 'owner/dataset'})"
        )
    return bool(missing)


def _is_row(item: Any) -> bool:
    """Whether an item of a list is a row without column names, rather than a source of texts."""
    if isinstance(item, list):
        return any(isinstance(cell, int | float) for cell in item)
    return isinstance(item, tuple)


def _exists(path: str) -> bool:
    try:
        if has_magic(path) and any(iglob(path, recursive=True)):  # noqa: PTH207 - any folder
            return True
        return Path(path).exists()
    except (OSError, ValueError):  # a text too long for a path
        return False


def _name(source: Source, number: int, *, parts: int = 1) -> str:
    """A name from the last parts of a path or Hub id."""
    where = path_of(source)
    if where is None:
        return f"data-{number}"
    *above, last = Path(where.replace(":", "-")).parts[-parts:] or [""]
    stem, _, _ = last.lstrip(".").partition(".")
    name = "-".join([*above, stem])
    return re.sub(r"[^\w-]+", "-", name).strip("-") or f"data-{number}"
