"""The sentences to label: read from any input, each once, and what can't be used is counted by its reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from heapq import nsmallest
from pathlib import Path

from llm_labeler._records import Text
from llm_labeler._settings import InputSettings
from llm_labeler._sources import read_values
from pairkit.errors import DataError
from pairkit.folders import own_name
from pairkit.in_memory import Source, source_name
from pairkit.keyed import keyed_hash
from pairkit.printable import holds_no_text

_BREAKS = re.compile("[\t\n\r\u2028\u2029]+")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Texts:
    """The usable texts of an input, in its order.

    Attributes:
        name: The input's own name, without the folders above it; of what was in memory a digest of its texts.
        texts: Each text once.
        rows: Rows looked at; fewer than the input has where a limit was reached. Those drawn from are not
            dropped: a person asked for some of them.
        dropped: Reason to rows not used: `not_text`, `empty`, `unusable_characters`, `too_long`, `too_short`,
            `no_letters`, `repeated`.
        examples: Reason to where the first such row stands, `path:row`.
    """

    name: str
    texts: tuple[Text, ...]
    rows: int
    dropped: Mapping[str, int]
    examples: Mapping[str, str]

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of the usable texts in their order, wherever they were read from."""
        return digest_of(self.texts)


def digest_of(texts: Iterable[Text]) -> str:
    """Hex SHA-256 of texts in their order."""
    digest = sha256()
    for text in texts:
        data = text.text.encode()
        digest.update(b"%d:%s" % (len(data), data))
    return digest.hexdigest()


def read_texts(source: Source, *, column: str | None, settings: InputSettings, seed: int = 0) -> Texts:
    """Read the sentences to label.

    Tabs and line breaks inside a text, with the blanks around them, become one space each, and blanks around
    a text are taken off: a prompt shows a sentence on one line. Nothing else is changed.

    Args:
        source: See `read_values`; of a pair dataset the first texts of its train split.
        column: The column that holds the sentences; by default recognised.
        settings: Which sentences are usable, and how many are taken.
        seed: Decides which ones are drawn, with what they say and not with where they stand.

    Raises:
        ConfigError: no such source, or one of unknown kind.
        DataError: not readable, no such column, or not one usable text in it.
        RemoteError: the Hub could not be asked.
    """
    kept: dict[str, Text] = {}
    dropped: Counter[str] = Counter()
    examples: dict[str, str] = {}
    rows = 0
    for where, row, value in read_values(source, column):
        rows += 1
        sentence = tidy(value) if isinstance(value, str) else ""
        text = Text.of(sentence, row)
        reason = why_unusable(value, sentence, settings) or ("repeated" if text.text_id in kept else None)
        if reason is None:
            kept[text.text_id] = text
            if len(kept) == settings.limit:
                break
        else:
            dropped[reason] += 1
            examples.setdefault(reason, f"{where}:{row}")
    if not kept:
        raise DataError(_why_none(rows, dropped), path=source_name(source))
    found = Texts(
        "", _drawn([*kept.values()], settings.draw, seed), rows, dict(sorted(dropped.items())), examples
    )
    return replace(found, name=_name(source, found))


def _drawn(texts: Sequence[Text], count: int | None, seed: int) -> tuple[Text, ...]:
    """Some of the texts, in their order."""
    if count is None:
        return tuple(texts)
    chosen = set(nsmallest(count, (text.text_id for text in texts), key=partial(keyed_hash, seed, "draw")))
    return tuple(text for text in texts if text.text_id in chosen)


def _name(source: Source, texts: Texts) -> str:
    if not isinstance(source, str | Path):
        return f"in memory, {texts.sha256[:16]}"
    return own_name(str(source))


def tidy(value: str) -> str:
    """A text on one line, see `read_texts`."""
    parts = (part.strip() for part in _BREAKS.split(value))
    return " ".join(part for part in parts if part)


def why_unusable(value: object, sentence: str, settings: InputSettings) -> str | None:
    """Why a row is not used; None: it may be.

    Args:
        value: What stands in the row.
        sentence: The same, tidied.
        settings: The bounds of its length.
    """
    if value is not None and not isinstance(value, str):
        return "not_text"
    if not sentence:
        return "empty"
    if len(sentence) > settings.max_chars:
        return "too_long"
    if holds_no_text(sentence):
        return "unusable_characters"
    if len(sentence) < settings.min_chars:
        return "too_short"
    return None if _LETTER.search(sentence) else "no_letters"


def _why_none(rows: int, dropped: Mapping[str, int]) -> str:
    if not rows:
        return "holds no rows; give a file with one sentence per line, or a table of sentences"
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(dropped.items()))
    return f"no usable text in {rows:,} rows ({reasons}); see the [input] settings, or name another input"
