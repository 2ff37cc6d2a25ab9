"""Loading of a run's rows, and the prompt of each column.

As in sentence-transformers' trainer, there is one prompt for all texts, or one for each column. The key
`query` means the first column and `document` all others, unless a column's own name is given. A value can
also be the name of one of the model's prompts. Other columns have the model's default prompt, as in encoding.
Each of several datasets can override the run's prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aoe_train.data.defaults import default_objective
from aoe_train.data.examples import (
    Say,
    check_labels,
    negative_counts,
    negatives_in_words,
    read_examples,
    silent,
)
from aoe_train.objectives.settings import RANKED
from aoe_train.records import ABSENT, Examples, TextSelection
from aoe_train.settings.prompts import DEFAULT, DOCUMENTS, PLACE, QUERY, NamedPrompts, read_prompt
from aoe_train.settings.training import EncoderSettings, TrainSettings
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line
from pairkit.dataset.in_memory import Source, source_name
from pairkit.dataset.labels import LabelRules, describe_labels
from pairkit.dataset.named_sources import named_sources
from pairkit.dataset.parts import files_of, is_hub_name, parts_of
from pairkit.dataset.reader import split_names

if TYPE_CHECKING:
    from aoe_train.records import Examples
    from aoe_train.settings.training import TrainSettings


@dataclass(frozen=True)
class Sources:
    """The inputs of a run, and the folder for its model."""

    data: Mapping[str, Source]
    backbone: str
    out: Path
    dev_data: Mapping[str, Source] | None = None
    columns: Mapping[str, str] | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    judged: Source | None = None

    def __post_init__(self) -> None:
        """Name all datasets and sort them by name, so that results don't depend on their order."""
        dev = None if self.dev_data is None else named_sources(self.dev_data)
        data = dict(sorted(named_sources(self.data).items()))
        for name, value in {"data": data, "dev_data": dev, "out": Path(self.out)}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "backbone", str(self.backbone))

    @property
    def several(self) -> bool:
        """Whether there are several training datasets."""
        return len(self.data) > 1

    def names(self) -> dict[str, str | dict[str, str] | None]:
        """Names of the inputs for run.json; by dataset if there are several."""
        dev = None if self.dev_data is None else unwrap_single(_source_names(self.dev_data))
        judged = {} if self.judged is None else {"judged": source_name(self.judged)}
        data = unwrap_single(_source_names(self.data))
        return {"data": data, "backbone": self.backbone, "dev_data": dev} | judged


def unwrap_single(by_name: Mapping[str, Any]) -> Any:
    """The only value without its name, or all values by name."""
    return next(iter(by_name.values())) if len(by_name) == 1 else dict(by_name)


def _source_names(sources: Mapping[str, Source]) -> dict[str, str]:
    return {name: source_name(source) for name, source in sources.items()}


_SMALL = 1 << 20  # bytes of files that are read twice, which takes milliseconds


def check_files(sources: Sources, settings: TrainSettings, *, custom: Collection[str] = ()) -> None:
    """Refuse missing and empty files, and small unusable ones, before torch is imported.

    Datasets named in `custom` have the user's own loss.
    """
    every = [*sources.data.values(), *(sources.dev_data or {}).values()]
    read_twice = all(isinstance(source, str | Path) for source in every)
    every += [] if sources.judged is None else [sources.judged]
    total = 0
    for source in every:
        files = files_of(source)
        is_on_hub = isinstance(source, str) and not files and is_hub_name(source)
        if isinstance(source, str | Path) and not files and not is_on_hub:
            parts_of(source)  # has a better message, but accepts names of tables
            raise DataError("no such file", path=source)
        read_twice &= not is_on_hub or source is sources.judged
        sizes = [file.stat().st_size for file in files]
        if files and not any(sizes):  # some may be empty, such as those of another split
            raise DataError("is empty (0 bytes); expected rows", path=files[0])
        total += sum(sizes)
    if read_twice and total <= _SMALL:
        read_data(sources, settings, ranked=sources.data.keys() - custom)


@dataclass(frozen=True)
class Data:
    """Training rows and held-out rows by name."""

    train: Mapping[str, Examples]
    dev: Mapping[str, Examples]


def read_data(
    sources: Sources,
    settings: TrainSettings,
    say: Say = silent,
    *,
    ranked: Collection[str] | None = None,
) -> Data:
    """Read the rows of all datasets; checks the labels of those in `ranked` (all if None)."""
    check_names(settings, sources)
    train: dict[str, Examples] = {}
    reported: dict[str, str] = {}
    for name, source in sources.data.items():
        say_of = _named_say(name, sources, say)
        with _named_errors(name, sources):
            rows = train[name] = _reader(name, sources, settings, say_of)(source)
            if len(counts := negative_counts(rows)) > 1:
                say_of(f"{source_name(source)}: negatives: {negatives_in_words(counts)}")
            reported[name] = _report_labels(rows, source, say_of)
            objective = default_objective(settings.of(name), rows.kind)
            if (ranked is None or name in ranked) and RANKED & objective.weights.active.keys():
                check_labels(rows, source)
    return Data(train, _read_dev(sources, settings, reported, say))


def _read_dev(
    sources: Sources, settings: TrainSettings, reported: Mapping[str, str], say: Say
) -> dict[str, Examples]:
    """The given held-out rows, or else the usable validation splits."""
    dev: dict[str, Examples] = {}
    for name, source in (sources.data if sources.dev_data is None else sources.dev_data).items():
        say_of = _named_say(name, sources, say)
        with _named_errors(name, sources):
            read = _reader(name, sources, settings, say_of)
            if sources.dev_data is not None:
                rows = read(source, split=_dev_split(source))
                _report_labels(rows, source, say_of, reported.get(name, next(iter(reported.values()))))
                if reason := _not_scorable(rows):
                    raise DataError(f"{reason}; give other --dev-data, or none", path=source_name(source))
                dev[name] = rows
            elif "validation" in (splits := split_names(source)) and len(splits) > 1:
                rows = read(source, split="validation")
                if reason := _not_scorable(rows):
                    say_of(f"{source_name(source)}: its validation split is left out: {reason}")
                else:
                    dev[name] = rows
    if settings.mix.dev is not None and settings.mix.dev not in dev:
        raise ConfigError(
            f"mix.dev: no dev set {one_line(settings.mix.dev, 80)!r}; "
            + (f"expected {', '.join(dev)}" if dev else "there is none: give --dev-data")
        )
    return dev


def _reader(name: str, sources: Sources, settings: TrainSettings, say: Say) -> Callable[..., Examples]:
    """A function that reads the rows of a dataset or dev set with its settings."""
    (first, *others) = sources.data
    if name not in {*sources.data, *settings.datasets} and not others:
        name = first  # a dev set with another name than the only dataset
    data, section = settings.of(name).data, settings.datasets.get(name)
    columns = sources.columns if section is None or section.columns is None else section.columns
    rules = LabelRules(data.labels, data.label_range, data.bad_rows)
    return partial(read_examples, columns=columns, rules=rules, conflicts=data.conflicts, say=say)


def check_names(settings: TrainSettings, sources: Sources) -> None:
    """Refuse settings for unknown datasets, and settings that have no effect."""
    known = dict.fromkeys([*sources.data, *(sources.dev_data or {})])
    for name, section in settings.datasets.items():
        if name not in known:
            raise ConfigError(f"datasets.{one_line(name, 80)}: no such dataset; expected {', '.join(known)}")
        for_training = sorted(section.model_fields_set & {"weight", "batch_size", "preset", "objective"})
        if name not in sources.data and for_training:
            raise ConfigError(
                f"datasets.{name}.{for_training[0]}: has no effect, as {name} is only held out; expected"
                f" {', '.join(sources.data)}"
            )
        if "weight" in for_training and settings.mix.until == "once":
            raise ConfigError(
                f"datasets.{name}.weight: has no effect if each row is seen once an epoch; leave it out, or"
                " set mix.epoch to longest or shortest"
            )


@contextmanager
def _named_errors(name: str, sources: Sources) -> Iterator[None]:
    """Name the dataset in errors if there are several."""
    try:
        yield
    except (ConfigError, DataError) as error:
        if not sources.several and len(sources.dev_data or {}) < 2:
            raise
        raise type(error)(f"dataset {name}: {error}") from error


def _named_say(name: str, sources: Sources, say: Say) -> Say:
    return (lambda words: say(f"{name}: {words}")) if sources.several else say


def _report_labels(examples: Examples, source: Source, say: Say, before: str = "") -> str:
    """Report how labels other than 0 and 1 were read, unless `before` has reported the same."""
    labels = examples.reading.labels
    words = describe_labels(labels)
    if labels is not None and words != before:
        say(f"{source_name(source)}: {labels}")
    return words


def _not_scorable(dev: Examples) -> str | None:
    """Why these held-out rows can't score a model; None if they can."""
    if dev.kind == "single":
        return "single texts can't score a model"
    if dev.labels is not None and (dev.labels == dev.labels[0]).all():
        return f"all {len(dev)} labels are {dev.labels[0]:g}, so there is nothing to rank"
    return None


def _dev_split(source: Source) -> str | None:
    splits = split_names(source)
    return "validation" if "validation" in splits else splits[0] if len(splits) == 1 else None


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
        if self.by_key and not any(self.by_key.keys() & _column_keys(column, columns) for column in columns):
            raise ConfigError(
                f"prompts: found {', '.join(self.by_key)}, but no prompt for rows of {', '.join(columns)}:"
                f" add one, or name them {QUERY} (the first column) and {_DOCUMENT} (the others)"
            )
        return [self._prompt(column, columns) for column in columns]

    def applied(self, examples: Examples) -> Examples:
        """The rows with a prompt for each text; a text with two prompts becomes two texts."""
        prompts = self.by_column(examples)
        distinct = list(dict.fromkeys(prompts))
        if len(distinct) == 1:
            return replace(examples, prompts=distinct[0])
        codes, rows = _encode_pairs(examples, [distinct.index(each) for each in prompts], len(distinct))
        content_ids, prompt_ids = np.divmod(codes, len(distinct))
        return replace(
            examples,
            texts=TextSelection(examples.texts, content_ids),
            rows=rows,
            prompts=TextSelection(distinct, prompt_ids),
            content_ids=content_ids,
        )

    def _prompt(self, column: str, columns: list[str]) -> str:
        keys = _column_keys(column, columns)
        return next((self.by_key[key] for key in keys if key in self.by_key), self.default)


def _encode_pairs(examples: Examples, prompts: list[int], count: int) -> tuple[np.ndarray, np.ndarray]:
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
    encoder, by_dataset = shared.encoder, {}
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
    known = {key for names in columns for column in names for key in _column_keys(column, names)}
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
        if prompt not in of_model.own:
            raise ConfigError(f"prompts: the model doesn't define a prompt {prompt!r}; give its words")
        return of_model.own[prompt]
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
        changed["default_prompt_name"] = next(name for name, known in prompts.items() if known == words)
    return encoder.model_copy(update=changed)


def _column_keys(column: str, columns: list[str]) -> list[str]:
    """The keys that can mean a column, the most specific first."""
    negative = [_NEGATIVE] if column.startswith(_NEGATIVE) else []
    return [column, *negative, QUERY if column == columns[0] else _DOCUMENT]
