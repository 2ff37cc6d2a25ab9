"""The prompts of training rows, by column.

As in sentence-transformers' trainer, there is one prompt for all texts, or one for each column. The key
`query` means the first column and `document` all others, unless a column's own name is given. A value can
also be the name of one of the model's prompts. Other columns have the model's default prompt, as in encoding.
Each of several datasets can override the run's prompts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from aoe_train.objectives.training_rows import ABSENT, Examples, TextSelection
from aoe_train.settings.prompt_settings import (
    DEFAULT,
    DOCUMENTS,
    PLACE,
    QUERY,
    NamedPrompts,
    read_prompt,
)
from aoe_train.settings.train_settings import EncoderSettings, TrainSettings
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line

_BLOCK = 1 << 16  # rows processed at once
_DOCUMENT, _NEGATIVE = DOCUMENTS[0], "negative"
_PAIR = "text1", "text2"
_COLUMNS = {"binary": _PAIR, "graded": _PAIR, "single": ("text",)}
_PROMPT_NAMES = {"anchor": QUERY, "positive": _DOCUMENT}


def column_names(examples: Examples) -> list[str]:
    """The names of the columns; several negatives are numbered."""
    columns = _COLUMNS.get(examples.kind, ("anchor", "positive"))
    negatives = examples.rows.shape[1] - len(columns)
    if negatives == 1:
        return [*columns, _NEGATIVE]
    return [*columns, *(f"{_NEGATIVE}_{number + 1}" for number in range(negatives))]


@dataclass(frozen=True)
class ColumnPrompts:
    """The prompts of one dataset's columns, and the encoder's settings with these prompts."""

    by_key: Mapping[str, str]
    default: str
    encoder: EncoderSettings

    def by_column(self, examples: Examples) -> list[str]:
        """The prompt of each column."""
        columns = column_names(examples)
        if self.by_key and not any(
            self.by_key.keys() & _column_keys(column, columns) for column in columns
        ):
            raise ConfigError(
                f"prompts: found {', '.join(self.by_key)}, but no prompt for rows of {', '.join(columns)}:"
                f" add one, or name them {QUERY} (the first column) and {_DOCUMENT} (the others)"
            )
        keys = (_column_keys(column, columns) for column in columns)
        return [
            next((self.by_key[key] for key in each if key in self.by_key), self.default)
            for each in keys
        ]

    def applied(self, examples: Examples) -> Examples:
        """The rows with a prompt for each text; a text with two prompts becomes two texts."""
        prompts = self.by_column(examples)
        distinct = list(dict.fromkeys(prompts))
        if len(distinct) == 1:
            return replace(examples, prompts=distinct[0])
        codes, rows = _encode_pairs(
            examples, [distinct.index(each) for each in prompts], len(distinct)
        )
        content_ids, prompt_ids = np.divmod(codes, len(distinct))
        return replace(
            examples,
            texts=TextSelection(examples.texts, content_ids),
            rows=rows,
            prompts=TextSelection(distinct, prompt_ids),
            content_ids=content_ids,
        )


def _encode_pairs(
    examples: Examples, prompts: list[int], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """The distinct codes text * `count` + prompt that occur, and rows of their indices."""
    used = np.zeros(len(examples.texts) * count, np.bool_)
    rows = np.full(examples.rows.shape, ABSENT, np.int64)
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(examples), _BLOCK)]
    for block in blocks:
        texts = examples.rows[block]
        used[(texts * count + prompts)[texts != ABSENT]] = True
    indices = np.cumsum(used) - 1
    for block in blocks:
        texts = examples.rows[block]
        present = texts != ABSENT
        rows[block][present] = indices[(texts * count + prompts)[present]]
    return np.flatnonzero(used), rows


@dataclass(frozen=True)
class RunPrompts:
    """The prompts of all datasets of a run."""

    shared: ColumnPrompts
    by_dataset: Mapping[str, ColumnPrompts]
    encoder: EncoderSettings

    def of(self, name: str) -> ColumnPrompts:
        """The prompts of a dataset or dev set."""
        return self.by_dataset.get(name, self.shared)


def run_prompts(
    settings: TrainSettings,
    encoder: EncoderSettings,
    train: Mapping[str, Examples],
    dev: Mapping[str, Examples],
) -> RunPrompts:
    """Resolve the prompts of all datasets."""
    shared = column_prompts(settings.prompts, encoder, [*train.values(), *dev.values()])
    encoder = shared.encoder
    by_dataset = {}
    for name, section in settings.datasets.items():
        if section.prompts is not None:
            examples = [rows[name] for rows in (train, dev) if name in rows]
            by_dataset[name] = column_prompts(section.prompts, encoder, examples, dataset=name)
            encoder = by_dataset[name].encoder
    return RunPrompts(shared, by_dataset, encoder)


def column_prompts(
    prompts: str | Mapping[str, str] | None,
    encoder: EncoderSettings,
    examples: Iterable[Examples],
    *,
    dataset: str = "",
) -> ColumnPrompts:
    """Resolve the prompts of a run, or those that a dataset has instead."""
    of_model = encoder.named_prompts
    if not prompts:
        if prompts is not None:
            raise ConfigError("prompts: empty; leave it out, or give words such as 'query: '")
        return ColumnPrompts({}, of_model.chosen(), encoder)
    if prompts == PLACE:  # no prompt
        return ColumnPrompts({}, "", encoder.model_copy(update={"default_prompt_name": None}))
    if isinstance(prompts, str):
        words = _words(prompts, of_model)
        if dataset:
            return ColumnPrompts({}, words, _with_prompts(encoder, {dataset: words}))
        return ColumnPrompts({}, words, _with_prompts(encoder, {DEFAULT: words}, default=True))
    columns = [column_names(each) for each in examples]
    known = set[str]()
    for of_rows in columns:
        known.update(*(_column_keys(column, of_rows) for column in of_rows))
    for key in prompts:
        if key not in known:
            raise ConfigError(
                f"prompts: no column {one_line(key, 80)!r}; expected {', '.join(columns[0])}, {QUERY} (the"
                f" first) or {_DOCUMENT} (the others)"
            )
    by_key = {key: _words(prompt, of_model) for key, prompt in prompts.items()}
    names = {_PROMPT_NAMES.get(key, key): words for key, words in by_key.items()}
    if dataset:
        names = {
            name if encoder.prompts.get(name, words) == words else f"{name}-{dataset}": words
            for name, words in names.items()
        }
    return ColumnPrompts(by_key, of_model.chosen(), _with_prompts(encoder, names))


def _words(prompt: str, of_model: NamedPrompts) -> str:
    """The words of the model's prompt with this name, or the prompt itself."""
    if prompt in of_model.known:
        if prompt not in of_model.prompts:
            raise ConfigError(
                f"prompts: the model doesn't define a prompt {prompt!r}; give its words"
            )
        return of_model.prompts[prompt]
    read_prompt(prompt)
    return prompt


def _with_prompts(
    encoder: EncoderSettings, names: Mapping[str, str], *, default: bool = False
) -> EncoderSettings:
    """The settings with these prompts added; words that have a name keep it."""
    prompts = dict(encoder.prompts)
    for name, words in names.items():
        if words not in prompts.values():
            prompts[name] = words
    changed: dict[str, object] = {"prompts": prompts}
    if default:
        (words,) = names.values()
        changed["default_prompt_name"] = next(
            name for name, known in prompts.items() if known == words
        )
    return encoder.model_copy(update=changed)


def _column_keys(column: str, columns: list[str]) -> list[str]:
    """The keys that can mean a column, the most specific first."""
    negative = [_NEGATIVE] if column.startswith(_NEGATIVE) else []
    return [column, *negative, QUERY if column == columns[0] else _DOCUMENT]
