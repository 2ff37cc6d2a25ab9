"""From the sources of a run to its rows, with the prompt of each column.

Prompts are as sentence-transformers' trainer takes them: one for all texts, or columns to prompts. `query`
stands for the first column, `document` for all others, unless a column is named itself. The value may also
be the name of a prompt that the model has. Columns without a prompt have the model's default one, as texts
that are encoded. Of several datasets each may have prompts of its own in place of the run's.
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
    """What a run is made from, and where its model goes."""

    data: Mapping[str, Source]
    backbone: str
    out: Path
    dev_data: Mapping[str, Source] | None = None
    columns: Mapping[str, str] | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    judged: Source | None = None

    def __post_init__(self) -> None:
        """Name what has no name, in the order of names: the order in which datasets are given has no say."""
        dev = None if self.dev_data is None else named_sources(self.dev_data)
        named = dict(sorted(named_sources(self.data).items()))
        for name, value in {"data": named, "dev_data": dev, "out": Path(self.out)}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "backbone", str(self.backbone))

    @property
    def several(self) -> bool:
        """Whether there is more than one dataset to train on."""
        return len(self.data) > 1

    def names(self) -> dict[str, str | dict[str, str] | None]:
        """What messages and records call them: a table by name where there are several."""
        dev = None if self.dev_data is None else one_or_all(_source_names(self.dev_data))
        judged = {} if self.judged is None else {"judged": source_name(self.judged)}
        found = {"data": one_or_all(_source_names(self.data)), "backbone": self.backbone, "dev_data": dev}
        return found | judged


def one_or_all(by_name: Mapping[str, Any]) -> Any:
    """The one value where there is one, else all by name; a record of one dataset has no names in it."""
    return next(iter(by_name.values())) if len(by_name) == 1 else dict(by_name)


def _source_names(sources: Mapping[str, Source]) -> dict[str, str]:
    return {name: source_name(source) for name, source in sources.items()}


_SMALL = 1 << 20  # bytes of files that are read once more, which takes milliseconds


def check_files(sources: Sources, settings: TrainSettings, *, own: Collection[str] = ()) -> None:
    """Refuse missing, empty and, if all are small, unusable files before torch is loaded.

    Datasets named in `own` have a loss of the user's.
    """
    given = [*sources.data.values(), *(sources.dev_data or {}).values()]
    read_again = all(isinstance(source, str | Path) for source in given)
    given += [] if sources.judged is None else [sources.judged]
    total = 0
    for source in given:
        files = files_of(source)
        is_on_hub = isinstance(source, str) and not files and is_hub_name(source)
        if isinstance(source, str | Path) and not files and not is_on_hub:
            parts_of(source)  # says that it is not there, unless it has the name of a table
            raise DataError("no such file", path=source)
        read_again &= not is_on_hub or source is sources.judged
        sizes = [file.stat().st_size for file in files]
        if files and not any(sizes):  # of several, the empty ones may be of another split
            raise DataError("is empty (0 bytes); expected rows", path=files[0])
        total += sum(sizes)
    if read_again and total <= _SMALL:
        read_data(sources, settings, ranked=sources.data.keys() - own)


@dataclass(frozen=True)
class Data:
    """Rows to train on, and rows to choose the best weights by; each by name."""

    train: Mapping[str, Examples]
    dev: Mapping[str, Examples]


def read_data(
    sources: Sources,
    settings: TrainSettings,
    say: Say = silent,
    *,
    ranked: Collection[str] | None = None,
) -> Data:
    """Read the rows of all."""
    check_names(settings, sources)
    train: dict[str, Examples] = {}
    told: dict[str, str] = {}
    for name, source in sources.data.items():
        with _named_errors(name, sources):
            train[name], told[name] = _read_train(name, sources, settings, _named_say(name, sources, say))
            objective = default_objective(settings.of(name), train[name].kind)
            if (ranked is None or name in ranked) and RANKED & objective.weights.wanted.keys():
                check_labels(train[name], source)
    return Data(train, _read_dev(sources, settings, told, say))


def _read_train(name: str, sources: Sources, settings: TrainSettings, say: Say) -> tuple[Examples, str]:
    """A dataset's rows, and what was told of their labels."""
    source = sources.data[name]
    rows = _reader(name, sources, settings, say)(source)
    if len(counts := negative_counts(rows)) > 1:
        say(f"{source_name(source)}: negatives: {negatives_in_words(counts)}")
    return rows, _tell_labels(rows, source, say)


def _read_dev(
    sources: Sources, settings: TrainSettings, told: Mapping[str, str], say: Say
) -> dict[str, Examples]:
    """The held-out rows that were given, or the validation splits that can be used."""
    dev: dict[str, Examples] = {}
    for name, source in (sources.data if sources.dev_data is None else sources.dev_data).items():
        tell = _named_say(name, sources, say)
        with _named_errors(name, sources):
            read = _reader(name, sources, settings, tell)
            if sources.dev_data is not None:
                rows = read(source, split=_dev_split(source))
                _tell_labels(rows, source, tell, told.get(name, next(iter(told.values()))))
                if reason := _not_scorable(rows):
                    raise DataError(f"{reason}; give other --dev-data, or none", path=source_name(source))
                dev[name] = rows
            elif "validation" in (splits := split_names(source)) and len(splits) > 1:
                rows = read(source, split="validation")
                if reason := _not_scorable(rows):
                    tell(f"{source_name(source)}: its validation split is left out: {reason}")
                else:
                    dev[name] = rows
    if settings.mix.dev is not None and settings.mix.dev not in dev:
        raise ConfigError(
            f"mix.dev: no dev set {one_line(settings.mix.dev, 80)!r}; "
            + (f"there are {', '.join(dev)}" if dev else "there is none: give --dev-data")
        )
    return dev


def _reader(name: str, sources: Sources, settings: TrainSettings, say: Say) -> Callable[..., Examples]:
    """Reads the rows of a dataset or dev set as its settings say; a dev set may be called otherwise."""
    (first, *others) = sources.data
    like = first if name not in {*sources.data, *settings.datasets} and not others else name
    own, section = settings.of(like).data, settings.datasets.get(like)
    columns = sources.columns if section is None or section.columns is None else section.columns
    rules = LabelRules(own.labels, own.label_range, own.bad_rows)
    return partial(read_examples, columns=columns, rules=rules, conflicts=own.conflicts, say=say)


def check_names(settings: TrainSettings, sources: Sources) -> None:
    """See that settings are for datasets that there are, and mean something for them."""
    held_out = sources.dev_data or {}
    known = dict.fromkeys([*sources.data, *held_out])
    for name, own in settings.datasets.items():
        if name not in known:
            raise ConfigError(f"datasets.{one_line(name, 80)}: no such dataset; there are {', '.join(known)}")
        only = sorted(own.model_fields_set & {"weight", "batch_size", "preset", "objective"})
        if name not in sources.data and only:
            raise ConfigError(
                f"datasets.{name}.{only[0]}: {name} is held out; it is for {', '.join(sources.data)}"
            )
        if "weight" in only and settings.mix.until == "once":
            raise ConfigError(
                f"datasets.{name}.weight: has no say where each row is seen once an epoch; leave it out, or"
                " set mix.epoch to longest or shortest"
            )


@contextmanager
def _named_errors(name: str, sources: Sources) -> Iterator[None]:
    """Where there are several datasets, an error says which it is about."""
    try:
        yield
    except (ConfigError, DataError) as error:
        if not sources.several and len(sources.dev_data or {}) < 2:
            raise
        raise type(error)(f"dataset {name}: {error}") from error


def _named_say(name: str, sources: Sources, say: Say) -> Say:
    return (lambda words: say(f"{name}: {words}")) if sources.several else say


def _tell_labels(examples: Examples, source: Source, say: Say, before: str = "") -> str:
    """Say what was made of labels that are not 0 and 1 as they come, unless that was said before."""
    labels = examples.reading.labels
    words = describe_labels(labels)
    if labels is not None and words != before:
        say(f"{source_name(source)}: {labels}")
    return words


def _not_scorable(dev: Examples) -> str | None:
    """Why a model can't be scored on these held-out rows; None where it can."""
    if dev.kind == "single":
        return "single texts tell nothing that a model could be scored by"
    if dev.labels is not None and (dev.labels == dev.labels[0]).all():
        return f"all {len(dev)} labels are {dev.labels[0]:g}, which ranks nothing"
    return None


def _dev_split(source: Source) -> str | None:
    splits = split_names(source)
    return "validation" if "validation" in splits else splits[0] if len(splits) == 1 else None


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
    """Resolve the prompts of all datasets."""
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
    """Resolve the prompts of a run."""
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
