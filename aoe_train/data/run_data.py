"""The inputs of a run: checks of its files, and loading of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aoe_train.data.defaults import default_objective
from aoe_train.data.examples import (
    Say,
    check_labels,
    negative_counts,
    negatives_in_words,
    read_examples,
    silent,
)
from aoe_train.objectives.training_rows import Examples
from aoe_train.settings.train_settings import DOMAIN, TrainSettings
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.system.text_lines import no_such_file
from pairkit.dataset.labels import LabelRules, describe_labels
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.dataset.reading.parts import files_of, is_hub_name, parts_of
from pairkit.dataset.reading.reader import split_names

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.objectives.objective import LossFunction


@dataclass(frozen=True)
class Sources:
    """The inputs of a run, and the folder for its model."""

    data: Mapping[str, Source]  # sorted by name, so that results don't depend on their order
    backbone: str
    out: Path
    dev_data: Mapping[str, Source] | None = None
    columns: Mapping[str, str] | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    judged: Source | None = None
    losses: Mapping[str, LossFunction] = field(default_factory=dict)  # the user's own, by dataset
    dev_metric: Callable[[Encoder], float] | None = None  # the user's own

    @property
    def several(self) -> bool:
        """Whether there are several training datasets."""
        return len(self.data) > 1


_SMALL = 1 << 20  # bytes of files that are read twice, which takes milliseconds


def check_files(sources: Sources, settings: TrainSettings) -> None:
    """Refuse missing and empty files, and small unusable ones, before torch is imported."""
    every = [*sources.data.values(), *(sources.dev_data or {}).values()]
    read_twice = all(isinstance(source, str | Path) for source in every)
    every += [] if sources.judged is None else [sources.judged]
    total = 0
    for source in every:
        files = files_of(source)
        is_on_hub = isinstance(source, str) and not files and is_hub_name(source)
        if isinstance(source, str | Path) and not files and not is_on_hub:
            parts_of(source)  # has a better message, but accepts names of tables
            raise DataError(no_such_file(Path(source)), path=source)
        read_twice &= not is_on_hub or source is sources.judged
        sizes = [file.stat().st_size for file in files]
        if files and not any(sizes):  # some may be empty, such as those of another split
            raise DataError("is empty (0 bytes); expected rows", path=files[0])
        total += sum(sizes)
    if read_twice and total <= _SMALL:
        read_data(sources, settings)


@dataclass(frozen=True)
class Data:
    """Training rows and held-out rows by name."""

    train: Mapping[str, Examples]
    dev: Mapping[str, Examples]


def read_data(sources: Sources, settings: TrainSettings, say: Say = silent) -> Data:
    """Read the rows of all datasets; labels are checked unless the user's own loss reads them."""
    check_names(settings, sources)
    train: dict[str, Examples] = {}
    reported: dict[str, str] = {}
    for name, source in sources.data.items():
        say_of = _named_say(name, sources, say)
        with _named_errors(name, sources):
            rows = _reader(name, sources, settings, say_of)(source)
            train[name] = rows
            counts = negative_counts(rows)
            if len(counts) > 1:
                say_of(f"{source_name(source)}: negatives: {negatives_in_words(counts)}")
            reported[name] = _report_labels(rows, source, say_of)
            if name not in sources.losses:
                check_labels(rows, source, default_objective(settings.of(name), rows.kind))
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
                splits = split_names(source)
                rows = read(
                    source, split="validation" if "validation" in splits else None, meant="rows"
                )
                _report_labels(
                    rows, source, say_of, reported.get(name, next(iter(reported.values())))
                )
                if reason := _not_scorable(rows):
                    raise DataError(
                        f"{reason}; give other --dev-data, or none", path=source_name(source)
                    )
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


def _reader(
    name: str, sources: Sources, settings: TrainSettings, say: Say
) -> Callable[..., Examples]:
    """A function that reads the rows of a dataset or dev set with its settings."""
    (first, *others) = sources.data
    if name not in {*sources.data, *settings.datasets} and not others:
        name = first  # a dev set with another name than the only dataset
    of_dataset = settings.of(name)
    data = of_dataset.data
    section = settings.datasets.get(name)
    columns = sources.columns if section is None or section.columns is None else section.columns
    rules = LabelRules(data.labels, data.label_range, data.bad_rows)
    means_texts = of_dataset.purpose or of_dataset.preset in ("simcse", "simcse-paper", DOMAIN)
    return partial(
        read_examples,
        columns=columns,
        rules=rules,
        conflicts=data.conflicts,
        meant="texts" if means_texts else "rows",
        say=say,
    )


def check_names(settings: TrainSettings, sources: Sources) -> None:
    """Refuse settings for unknown datasets, and settings that have no effect."""
    known = dict.fromkeys([*sources.data, *(sources.dev_data or {})])
    for name, section in settings.datasets.items():
        if name not in known:
            raise ConfigError(
                f"datasets.{one_line(name, 80)}: no such dataset; expected {', '.join(known)}"
            )
        for_training = sorted(
            section.model_fields_set & {"weight", "batch_size", "preset", "objective"}
        )
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
