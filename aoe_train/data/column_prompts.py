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
from aoe_train.settings.train_settings import (
    DEFAULT,
    DOCUMENT,
    PLACE,
    QUERY,
    EncoderSettings,
    NamedPrompts,
    TrainSettings,
    read_prompt,
)
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line

_NEGATIVE = "negative"
_PAIR = ("text1", "text2")
_COLUMNS = {"binary": _PAIR, "graded": _PAIR, "single": ("text",)}
_PROMPT_NAMES = {"anchor": QUERY, "positive": DOCUMENT}


def column_names(examples: Examples) -> list[str]:
    """The names of the columns; several negatives are numbered."""
    columns = _COLUMNS.get(examples.kind, ("anchor", "positive"))
    negatives = examples.rows.shape[1] - len(columns)
    if negatives == 1:
        return [*columns, _NEGATIVE]
    return [*columns, *(f"{_NEGATIVE}_{number}" for number in range(1, negatives + 1))]


@dataclass(frozen=True)
class ColumnPrompts:
    """The prompts of one dataset's columns, and the encoder's settings with these prompts."""

    by_key: Mapping[str, str]
    default: str
    encoder: EncoderSettings

    def by_column(self, examples: Examples) -> list[str]:
        """The prompt of each column; raises ConfigError if none of the run's keys means a column."""
        prompts = []
        known = set()
        columns = column_names(examples)
        for column in columns:
            keys = _column_keys(column, columns)
            known.update(keys)
            of_column = [self.by_key[key] for key in keys if key in self.by_key]
            prompts.append(of_column[0] if of_column else self.default)
        if self.by_key and not known & self.by_key.keys():
            raise ConfigError(
                f"prompts: found {', '.join(self.by_key)}, but no prompt for rows of {', '.join(columns)}:"
                f" add one, or name them {QUERY} (the first column) and {DOCUMENT} (the others)"
            )
        return prompts

    def applied(self, examples: Examples) -> Examples:
        """The rows with a prompt for each text; a text with two prompts becomes two texts."""
        prompts = self.by_column(examples)
        distinct = list(dict.fromkeys(prompts))
        if len(distinct) == 1:
            return replace(examples, prompts=distinct[0])
        prompt_of_column = [distinct.index(prompt) for prompt in prompts]
        present = examples.rows != ABSENT
        pairs = (examples.rows * len(distinct) + prompt_of_column)[present]
        codes, indices = np.unique(pairs, return_inverse=True)
        rows = np.full_like(examples.rows, ABSENT)
        rows[present] = indices
        content_ids, prompt_ids = np.divmod(codes, len(distinct))
        return replace(
            examples,
            texts=TextSelection(examples.texts, content_ids),
            rows=rows,
            prompts=TextSelection(distinct, prompt_ids),
            content_ids=content_ids,
        )


def run_prompts(
    settings: TrainSettings,
    encoder: EncoderSettings,
    train: Mapping[str, Examples],
    dev: Mapping[str, Examples],
) -> tuple[dict[str, ColumnPrompts], EncoderSettings]:
    """The prompts of each dataset and dev set of a run, and the encoder's settings with all of them."""
    shared = column_prompts(settings.prompts, encoder, [*train.values(), *dev.values()])
    encoder = shared.encoder
    by_dataset = dict.fromkeys([*train, *dev], shared)
    for name, section in settings.datasets.items():
        if section.prompts is not None:
            examples = [rows[name] for rows in (train, dev) if name in rows]
            by_dataset[name] = column_prompts(
                section.prompts, encoder, examples, dataset=name
            )
            encoder = by_dataset[name].encoder
    return by_dataset, encoder


def column_prompts(
    prompts: str | Mapping[str, str] | None,
    encoder: EncoderSettings,
    examples: Iterable[Examples],
    *,
    dataset: str = "",
) -> ColumnPrompts:
    """Resolve the prompts of a run, or those that a dataset has instead; raises ConfigError."""
    model_prompts = encoder.named_prompts
    if prompts is None:
        return ColumnPrompts({}, model_prompts.chosen(), encoder)
    if not prompts:
        raise ConfigError(
            "prompts: empty; leave it out, or give words such as 'query: '"
        )
    if prompts == PLACE:  # no prompt
        if not dataset:
            encoder = encoder.model_copy(update={"default_prompt_name": None})
        return ColumnPrompts({}, "", encoder)
    if isinstance(prompts, str):
        words = _words(prompts, model_prompts)
        named = _with_prompts(encoder, {dataset or DEFAULT: words}, default=not dataset)
        return ColumnPrompts({}, words, named)

    columns_of = [column_names(rows) for rows in examples]
    known = {
        key
        for columns in columns_of
        for name in columns
        for key in _column_keys(name, columns)
    }
    by_key: dict[str, str] = {}
    names: dict[str, str] = {}
    for key, prompt in prompts.items():
        if key not in known:
            raise ConfigError(
                f"prompts: no column {one_line(key, 80)!r}; expected {', '.join(columns_of[0])}, {QUERY} (the"
                f" first) or {DOCUMENT} (the others)"
            )
        words = _words(prompt, model_prompts)
        name = _PROMPT_NAMES.get(key, key)
        if prompts.get(name, prompt) != prompt:  # the prompt of another column
            name = key
        if dataset and encoder.prompts.get(name, words) != words:
            name = f"{name}-{dataset}"
        by_key[key] = words
        names[name] = words
    return ColumnPrompts(by_key, model_prompts.chosen(), _with_prompts(encoder, names))


def _words(prompt: str, model_prompts: NamedPrompts) -> str:
    """The words of the model's prompt with this name, or the prompt itself.

    Raises ConfigError if the model doesn't define the name.
    """
    if prompt in model_prompts.known:
        if prompt not in model_prompts.prompts:
            raise ConfigError(
                f"prompts: the model doesn't define a prompt {prompt!r}; give its words"
            )
        return model_prompts.prompts[prompt]
    read_prompt(prompt)
    return prompt


def _with_prompts(
    encoder: EncoderSettings, names: Mapping[str, str], *, default: bool = False
) -> EncoderSettings:
    """The settings with these prompts added, the last as `default`; words that have a name keep it."""
    prompts = dict(encoder.prompts)
    default_name = encoder.default_prompt_name
    # In reverse order, so that the first of several names of the same words is kept.
    name_of = {words: name for name, words in reversed(prompts.items())}
    for new_name, words in names.items():
        name = name_of.setdefault(words, new_name)
        prompts[name] = words
        if default:
            default_name = name
    return encoder.model_copy(
        update={"prompts": prompts, "default_prompt_name": default_name}
    )


def _column_keys(column: str, columns: list[str]) -> list[str]:
    """The keys that can mean a column, the most specific first."""
    role = QUERY if column == columns[0] else DOCUMENT
    if column.startswith(_NEGATIVE):
        return [column, _NEGATIVE, role]
    return [column, role]
