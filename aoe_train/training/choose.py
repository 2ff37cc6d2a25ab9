"""Resolve the settings of a run: what nobody gave is chosen once, by rows and backbone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aoe_train.data.defaults import DatasetFacts, with_defaults, with_defaults_for_all
from aoe_train.model.folder.files import read_object
from aoe_train.model.precision import Computed, choose_precision
from aoe_train.training.trainer.arguments import set_chosen
from pairkit.app.errors import DataError
from pairkit.dataset.in_memory import Source, source_name

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from aoe_train.data.run_data import Sources
    from aoe_train.settings.training import TrainSettings
    from aoe_train.training.load import Loaded


@dataclass(frozen=True)
class ResolvedSettings:
    """The settings of a run with nothing left open.

    Attributes:
        run: What holds for the whole run; of a single dataset, that dataset's.
        datasets: What holds for each dataset.
        precision: What the run computes in.
    """

    run: TrainSettings
    datasets: Mapping[str, TrainSettings]
    precision: Computed


def resolve(sources: Sources, loaded: Loaded, args: TrainingArguments) -> ResolvedSettings:
    """Choose what was not given, and put it into the arguments too."""
    facts = {
        name: DatasetFacts(
            rows.kind,
            len(rows),
            _is_written(sources.data[name]) or 2 * rows.reading.written > len(rows),
        )
        for name, rows in loaded.data.train.items()
    }
    given, dim = loaded.settings, loaded.encoder.dim
    if sources.several:
        chosen = with_defaults_for_all(given, facts, dim=dim)
    else:
        ((name, one),) = facts.items()
        chosen = with_defaults(given.of(name), one, dim=dim)
    precision = choose_precision(chosen.run.precision, args.device)
    set_chosen(args, chosen.optim, precision)
    return ResolvedSettings(chosen, {name: chosen.of(name) for name in facts}, precision)


def _is_written(source: Source) -> bool:
    """Whether LLMs or rules wrote the pairs: the dataset's run.json names `label` as its maker."""
    folder = Path(source_name(source))
    for place in (folder, folder.parent):  # `triplet` and `positive` are folders within the dataset's
        with suppress(DataError, OSError, ValueError):  # a run.json of others; a name that is no path
            if str(read_object(place / "run.json").get("made_by")).startswith("label "):
                return True
    return False
