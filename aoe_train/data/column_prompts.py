"""Which prompt each column of training rows has, and by which name the trained model knows it.

As sentence-transformers' trainer takes them: one prompt for all texts, or columns to prompts. `query`
stands for the first column, `document` for all others, unless a column is named itself. The value may also
be the name of a prompt that the model has. Columns without a prompt have the model's default one, as texts
that are encoded. Of several datasets each may have prompts of its own in place of the run's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from aoe_train.records import ABSENT, Examples, TextSelection
from aoe_train.settings.prompts import DEFAULT, DOCUMENTS, PLACE, QUERY, NamedPrompts, read_prompt
from aoe_train.settings.training import EncoderSettings, TrainSettings
from pairkit.app.errors import ConfigError
from pairkit.app.printable import one_line

_BLOCK = 1 << 16  # rows of a round
_DOCUMENT, _NEGATIVE = DOCUMENTS[0], "negative"
_PAIR = "text1", "text2"
_COLUMNS = {"binary": _PAIR, "graded": _PAIR, "single": ("text",)}
_KNOWN_AS = {"anchor": QUERY, "positive": _DOCUMENT}


def column_names(examples: Examples) -> list[str]:
    """What the columns of rows are called; negatives have numbers where there are several."""
    columns = _COLUMNS.get(examples.kind, ("anchor", "positive"))
    negatives = examples.rows.shape[1] - len(columns)
    if negatives == 1:
        return [*columns, _NEGATIVE]
    return [*columns, *(f"{_NEGATIVE}_{number + 1}" for number in range(negatives))]


@dataclass(frozen=True)
class ColumnPrompts:
    """The prompts of a run."""

    given: Mapping[str, str]
    others: str
    kept: EncoderSettings

    def by_column(self, examples: Examples) -> list[str]:
        """The words for each column of rows."""
        columns = column_names(examples)
        if self.given and not any(self.given.keys() & _keys(column, columns) for column in columns):
            raise ConfigError(
                f"prompts are for {', '.join(self.given)}, but there are rows of {', '.join(columns)}: give"
                f" these prompts too, or name them {QUERY} (the first column) and {_DOCUMENT} (the others)"
            )
        return [self._words(column, columns) for column in columns]

    def applied(self, examples: Examples) -> Examples:
        """The rows with the prompt of each text; one that has two prompts is two texts."""
        words = self.by_column(examples)
        distinct = list(dict.fromkeys(words))
        if len(distinct) == 1:
            return replace(examples, prompts=distinct[0])
        numbers, rows = _numbered(examples, [distinct.index(one) for one in words], len(distinct))
        said, prompts = np.divmod(numbers, len(distinct))
        return replace(
            examples,
            texts=TextSelection(examples.texts, said),
            rows=rows,
            prompts=TextSelection(distinct, prompts),
            said=said,
        )

    def _words(self, column: str, columns: list[str]) -> str:
        return next((self.given[key] for key in _keys(column, columns) if key in self.given), self.others)


def _numbered(examples: Examples, prompts: list[int], count: int) -> tuple[np.ndarray, np.ndarray]:
    """The texts with their prompts that there are, and rows of places among these.

    Text t with prompt p has the number t * `count` + p.
    """
    used = np.zeros(len(examples.texts) * count, np.bool_)
    rows = np.full(examples.rows.shape, ABSENT, np.int64)
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(examples), _BLOCK)]
    for block in blocks:
        own = examples.rows[block]
        used[(own * count + prompts)[own != ABSENT]] = True
    places = np.cumsum(used) - 1
    for block in blocks:
        own = examples.rows[block]
        there = own != ABSENT
        rows[block][there] = places[(own * count + prompts)[there]]
    return np.flatnonzero(used), rows


@dataclass(frozen=True)
class RunPrompts:
    """The prompts of a run on one dataset or several."""

    all: ColumnPrompts
    own: Mapping[str, ColumnPrompts]
    kept: EncoderSettings

    def of(self, name: str) -> ColumnPrompts:
        """Those of a dataset or dev set."""
        return self.own.get(name, self.all)


def run_prompts(
    settings: TrainSettings,
    encoder: EncoderSettings,
    train: Mapping[str, Examples],
    dev: Mapping[str, Examples],
) -> RunPrompts:
    """Find out what the prompts of all datasets mean."""
    found = column_prompts(settings.prompts, encoder, [*train.values(), *dev.values()])
    kept, own = found.kept, {}
    for name, section in settings.datasets.items():
        if section.prompts is not None:
            kinds = [rows[name] for rows in (train, dev) if name in rows]
            own[name] = column_prompts(section.prompts, kept, kinds, dataset=name)
            kept = own[name].kept
    return RunPrompts(found, own, kept)


def column_prompts(
    given: str | Mapping[str, str] | None,
    encoder: EncoderSettings,
    kinds: Iterable[Examples],
    *,
    dataset: str = "",
) -> ColumnPrompts:
    """Find out what a run's prompts mean."""
    own = encoder.named_prompts
    if not given:
        if given is not None:
            raise ConfigError("prompts: empty; leave it out, or give words such as 'query: '")
        return ColumnPrompts({}, own.chosen(), encoder)
    if given == PLACE:  # the text alone
        return ColumnPrompts({}, "", encoder.model_copy(update={"default_prompt_name": None}))
    if isinstance(given, str):
        words = _meant(given, own)
        if dataset:
            return ColumnPrompts({}, words, _named(encoder, {dataset: words}))
        return ColumnPrompts({}, words, _named(encoder, {DEFAULT: words}, default=True))
    columns = [column_names(examples) for examples in kinds]
    known = {key for names in columns for column in names for key in _keys(column, names)}
    for key in given:
        if key not in known:
            raise ConfigError(
                f"prompts: no column {one_line(key, 80)!r}; there are {', '.join(columns[0])}, and {QUERY}"
                f" stands for the first, {_DOCUMENT} for the others"
            )
    meant = {key: _meant(words, own) for key, words in given.items()}
    names = {_KNOWN_AS.get(key, key): words for key, words in meant.items()}
    if dataset:
        taken = encoder.prompts
        names = {
            name if taken.get(name, words) == words else f"{name}-{dataset}": words
            for name, words in names.items()
        }
    return ColumnPrompts(meant, own.chosen(), _named(encoder, names))


def _meant(words: str, own: NamedPrompts) -> str:
    """The words, or those of the prompt that they name."""
    if words in own.known:
        if words not in own.own:
            raise ConfigError(f"prompts: the model has no prompt {words!r} of its own; give its words")
        return own.own[words]
    read_prompt(words)
    return words


def _named(encoder: EncoderSettings, names: Mapping[str, str], *, default: bool = False) -> EncoderSettings:
    """The settings with these prompts; words that have a name keep it."""
    prompts = dict(encoder.prompts)
    for name, words in names.items():
        if words not in prompts.values():
            prompts[name] = words
    changed: dict[str, object] = {"prompts": prompts}
    if default:
        (words,) = names.values()
        changed["default_prompt_name"] = next(name for name, own in prompts.items() if own == words)
    return encoder.model_copy(update=changed)


def _keys(column: str, columns: list[str]) -> list[str]:
    """All by which a column can be named, the one that names fewest columns first."""
    negative = [_NEGATIVE] if column.startswith(_NEGATIVE) else []
    return [column, *negative, QUERY if column == columns[0] else _DOCUMENT]
