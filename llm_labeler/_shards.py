"""What a shard of a run is: its sentences, its folder, its part of all limits, and what it has yet to ask."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from pathlib import Path

from llm_labeler._gathered import judge_questions, proposed
from llm_labeler._records import Text
from llm_labeler._settings import BudgetSettings, LabelSettings, LlmSettings
from llm_labeler._store import Store
from llm_labeler._tasks import task_of
from llm_labeler._workplace import RunRecord
from pairkit.errors import ConfigError
from pairkit.shards import Shard

_MICRO = 10**6


def is_of(shard: Shard, text: Text) -> bool:
    """Whether a sentence is of a shard: by what it says alone, so that added sentences move no other."""
    return int(text.text_id, 16) % shard.of == shard.number - 1


def share_of(texts: Sequence[Text], shard: Shard) -> tuple[list[int], tuple[Text, ...]]:
    """A shard's sentences and where they stand among all."""
    places = [place for place, text in enumerate(texts) if is_of(shard, text)]
    return places, tuple(texts[place] for place in places)


def shard_folder(work: Path, shard: Shard) -> Path:
    """Where a shard keeps its answers, beside the run's own folder: `pairs.work` has `pairs-2-of-8.work`."""
    return work.with_name(f"{work.stem}-{shard.mark}{work.suffix}")


def shards_beside(work: Path) -> list[Shard]:
    """The shards of a run whose folders are there, in order."""
    folders = (path.name for path in work.parent.glob("*-of-*") if path.is_dir())
    return Shard.in_names(folders, work.stem, [work.suffix])


def divided(settings: LabelSettings, shard: Shard) -> LabelSettings:
    """The settings by which a shard asks: no limit is exceeded by all shards together.

    How many calls go on at a time is each shard's own: what a server of one's own takes at a time is a matter
    of that server, and shards may have one each.

    Raises:
        ConfigError: A limit leaves the shard nothing.
    """
    asked = {*settings.proposers, *settings.judges}
    llms = {name: _llm(name, llm, shard) if name in asked else llm for name, llm in settings.llm.items()}
    return settings.model_copy(update={"budget": _budget(settings.budget, shard), "llm": llms})


def left(record: RunRecord, texts: Sequence[Text], store: Store) -> int:
    """How many questions have no answer yet; of those to judges the ones about what is proposed so far."""
    task = task_of(record)
    by_id = {text.text_id: text for text in texts}
    proposals = (task.asks(texts, llm) for llm in record.settings.proposers)
    judging = (
        judge_questions(proposed(store, record, by_id), judge, record) for judge in record.settings.judges
    )
    return sum(1 for questions in chain(proposals, judging) for _ in store.missing(questions))


def _llm(name: str, llm: LlmSettings, shard: Shard) -> LlmSettings:
    paces = {"rpm": llm.rpm, "tpm": llm.tpm}
    return llm.model_copy(
        update={pace: _share(f"llm.{name}.{pace}", total, shard) for pace, total in paces.items()}
    )


def _budget(budget: BudgetSettings, shard: Shard) -> BudgetSettings:
    counts = {"max_tokens": budget.max_tokens, "max_requests": budget.max_requests}
    shares: dict[str, float | None] = {
        name: _share(f"{name} (--{name.replace('_', '-')})", total, shard) for name, total in counts.items()
    }
    if budget.max_cost is not None:  # in whole millionths of a dollar
        micro = int(Fraction(repr(budget.max_cost)) * _MICRO)
        shares["max_cost"] = (_share("max_cost (--max-cost), in millionths,", micro, shard) or 0) / _MICRO
    return budget.model_copy(update=shares)


def _share(name: str, total: int | None, shard: Shard) -> int | None:
    share = None if total is None else shard.share(total)
    if total and not share:
        raise ConfigError(
            f"{name} {total:,}: leaves nothing for shard {shard}; give {shard.of:,} or more, or make fewer"
            " shards"
        )
    return share
