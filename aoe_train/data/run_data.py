"""The inputs of a run: checks of its files, and loading of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
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

# Files of up to this many bytes take milliseconds to read.
_SMALL = 1 << 20
# Keys of a dataset's section that have no effect on dev data.
_FOR_TRAINING = {"weight", "batch_size", "preset", "objective"}


@dataclass(frozen=True)
class Data:
    """Training rows and held-out rows by name."""

    train: Mapping[str, Examples]
    dev: Mapping[str, Examples]
    # Notes on rows that were read before the run, which aren't printed yet.
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Sources:
    """The inputs of a run, and the folder for its model."""

    # The sources are sorted by name, so that results don't depend on their order.
    data: Mapping[str, Source]
    backbone: str
    out: Path
    dev_data: Mapping[str, Source] = field(default_factory=dict)
    columns: Mapping[str, str] | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    judged: Source | None = None
    # The user's own losses by dataset, and their own metric of the dev data.
    losses: Mapping[str, LossFunction] = field(default_factory=dict)
    dev_metric: Callable[[Encoder], float] | None = None
    # The rows of small files, which `checked_sources` has read.
    small: Data | None = None

    @property
    def several(self) -> bool:
        """Whether there are several training datasets."""
        return len(self.data) > 1


def checked_sources(sources: Sources, settings: TrainSettings) -> Sources:
    """Refuse missing and empty files, and read small ones, all before torch is imported."""
    if sources.judged is not None:
        _input_size(sources.judged)
    inputs = [*sources.data.values(), *sources.dev_data.values()]
    sizes = [*map(_input_size, inputs)]
    if not all(sizes) or sum(sizes) > _SMALL:
        return sources
    notes: list[str] = []
    data = read_data(sources, settings, notes.append)
    return replace(sources, small=replace(data, notes=notes))


def _input_size(source: Source) -> int:
    """The bytes of an input's files, 0 for a Hub id or rows in memory; refuses missing and empty files."""
    files = files_of(source)
    if isinstance(source, str | Path) and not files:
        if is_hub_name(source):
            return 0
        parts_of(source)  # has a better message, but accepts names of tables
        raise DataError(no_such_file(Path(source)), path=source)
    # Some files may be empty, such as those of another split.
    size = sum(file.stat().st_size for file in files)
    if files and not size:
        raise DataError("is empty (0 bytes); expected rows", path=files[0])
    return size


def read_data(sources: Sources, settings: TrainSettings, say: Say) -> Data:
    """Read the rows of all datasets; labels are checked unless the user's own loss reads them."""
    if sources.small is not None:
        for note in sources.small.notes:
            say(note)
        return sources.small
    _check_sections(settings, sources)
    train = _read_training_data(sources, settings, say)
    dev = _read_dev_data(sources, settings, train, say)
    chosen = settings.mix.dev
    if chosen is not None and chosen not in dev:
        remedy = (
            f"expected {', '.join(dev)}" if dev else "there is none: give --dev-data"
        )
        raise ConfigError(f"mix.dev: no dev set {one_line(chosen, 80)!r}; {remedy}")
    return Data(train, dev)


def _read_training_data(
    sources: Sources, settings: TrainSettings, say: Say
) -> dict[str, Examples]:
    train: dict[str, Examples] = {}
    for name, source in sources.data.items():
        with _named(name, sources, say) as say_named:
            rows = _reader(name, sources, settings, say_named)(source)
            counts = negative_counts(rows)
            if len(counts) > 1:
                say_named(
                    f"{source_name(source)}: negatives: {negatives_in_words(counts)}"
                )
            _report_labels(rows, source, say_named)
            if name not in sources.losses:
                check_labels(
                    rows, source, default_objective(settings.of(name), rows.kind)
                )
            train[name] = rows
    return train


def _read_dev_data(
    sources: Sources,
    settings: TrainSettings,
    train: Mapping[str, Examples],
    say: Say,
) -> dict[str, Examples]:
    """The given held-out rows, or else the usable validation splits of the training data."""
    is_given = bool(sources.dev_data)
    dev: dict[str, Examples] = {}
    for name, source in (sources.dev_data or sources.data).items():
        with _named(name, sources, say) as say_named:
            splits = split_names(source)
            held_out = ("validation", "test") if is_given else ("validation",)
            split = next((each for each in held_out if each in splits), None)
            if not is_given and (split is None or len(splits) == 1):
                continue
            if split == "test" and len(splits) > 1:
                say_named(f"{source_name(source)}: has no validation split, using test")
            read = _reader(name, sources, settings, say_named, held_out=is_given)
            rows = read(source, split=split)
            # Notes on labels of the training rows are not repeated.
            training_rows = train.get(name, next(iter(train.values())))
            _report_labels(rows, source, say_named, training_rows)
            reason = _not_scorable(rows)
            if reason is None:
                dev[name] = rows
            elif is_given:
                message = f"{reason}; give other --dev-data, or none"
                raise DataError(message, path=source_name(source))
            else:
                say_named(
                    f"{source_name(source)}: its validation split is left out: {reason}"
                )
    return dev


def _reader(
    name: str,
    sources: Sources,
    settings: TrainSettings,
    say: Say,
    *,
    held_out: bool = False,
) -> Callable[..., Examples]:
    """A function that reads the rows of a dataset or dev set with its settings."""
    is_known = name in sources.data or name in settings.datasets
    if not is_known and not sources.several:
        # A dev set with another name than the only dataset has its settings.
        name = next(iter(sources.data))
    own = settings.of(name)
    columns = settings.section(name).columns
    learns_texts = own.purpose or own.preset in ("simcse", "simcse-paper", DOMAIN)
    return partial(
        read_examples,
        columns=sources.columns if columns is None else columns,
        rules=LabelRules(own.data.labels, own.data.label_range, own.data.bad_rows),
        conflicts=own.data.conflicts,
        meant="texts" if learns_texts and not held_out else "rows",
        say=say,
    )


def _check_sections(settings: TrainSettings, sources: Sources) -> None:
    """Refuse settings for unknown datasets, and settings that have no effect."""
    known = {**sources.data, **sources.dev_data}
    for name, section in settings.datasets.items():
        if name not in known:
            raise ConfigError(
                f"datasets.{one_line(name, 80)}: no such dataset; expected {', '.join(known)}"
            )
        for_training = section.model_fields_set & _FOR_TRAINING
        if name not in sources.data and for_training:
            raise ConfigError(
                f"datasets.{name}.{min(for_training)}: has no effect, as {name} is only held out; expected"
                f" {', '.join(sources.data)}"
            )
        if "weight" in for_training and settings.mix.until == "once":
            raise ConfigError(
                f"datasets.{name}.weight: has no effect if each row is seen once an epoch; leave it out, or"
                " set mix.epoch to longest or shortest"
            )


@contextmanager
def _named(name: str, sources: Sources, say: Say) -> Iterator[Say]:
    """Name the dataset in messages and errors if there are several."""
    try:
        yield (lambda words: say(f"{name}: {words}")) if sources.several else say
    except (ConfigError, DataError) as error:
        if not sources.several and len(sources.dev_data) < 2:
            raise
        raise type(error)(f"dataset {name}: {error}") from error


def _report_labels(
    rows: Examples, source: Source, say: Say, known: Examples | None = None
) -> None:
    """Report how labels other than 0 and 1 were read, unless those of `known` were read alike."""
    labels = rows.reading.labels
    known_note = "" if known is None else describe_labels(known.reading.labels)
    if labels is not None and describe_labels(labels) != known_note:
        say(f"{source_name(source)}: {labels}")


def _not_scorable(dev: Examples) -> str | None:
    """Why these held-out rows can't score a model; None if they can."""
    if dev.kind == "single":
        return "single texts can't score a model"
    if dev.labels is not None and (dev.labels == dev.labels[0]).all():
        return f"no label differs from {dev.labels[0]:g}, so there is nothing to rank"
    return None
