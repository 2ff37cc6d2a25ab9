"""Reads lists of repositories: a file with one `owner/name` per line, a list, or a comma-separated text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.settings import argument

# GitHub's rules: logins have letters, digits and hyphens, and those of managed users an underscore; names may
# also have dots.
_NAME = re.compile(r"(?P<owner>[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38}))/(?P<name>[A-Za-z0-9._-]{1,100})")
_ADDRESS = re.compile(r"^(?:https?://(?:www\.)?github\.com/|git@github\.com:)|(?:\.git)?/?$")


def read_repos(source: str | Path | Iterable[str]) -> list[str]:
    """The distinct repositories in `source`, in order."""
    if isinstance(source, Path) or (isinstance(source, str) and _is_file(source)):
        return _read_file(Path(source))
    listed = argument("repos", source.split(",") if isinstance(source, str) else source, list[str])
    entries = [entry.strip() for entry in listed if entry.strip()]
    names = [_parse(entry) for entry in entries]
    if not names or None in names:
        invalid = next((entry for entry, name in zip(entries, names, strict=True) if name is None), source)
        raise ConfigError(
            f"repos = {invalid!r}: neither an existing file nor owner/name; "
            "give a file with one owner/name per line, or owner/name,owner/name"
        )
    return _distinct([name for name in names if name])


def _is_file(source: str) -> bool:
    try:
        return Path(source).is_file()
    except (OSError, ValueError):  # too long for a path, or invalid characters
        return False


def _read_file(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"not readable as UTF-8 text ({error}); expected one owner/name per line", path=path
        ) from error
    names = []
    for row, line in enumerate(lines, start=1):
        entry = re.sub(r"(^|\s)#.*$", "", line).strip()
        if not entry:
            continue
        name = _parse(entry)
        if name is None:
            raise DataError(
                f"{entry!r} is not a repository; expected owner/name, such as rust-lang/rust",
                path=path,
                row=row,
            )
        names.append(name)
    if not names:
        raise DataError("no repository; expected one owner/name per line", path=path)
    return _distinct(names)


def _parse(entry: str) -> str | None:
    match = _NAME.fullmatch(_ADDRESS.sub("", entry))
    return match[0] if match and match["name"] not in {".", ".."} else None


def _distinct(names: list[str]) -> list[str]:
    """The distinct names, each in its first spelling; GitHub's names ignore case."""
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(name.lower(), name)
    return list(first.values())
