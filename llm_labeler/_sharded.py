"""A run in shards, on as many machines: each asks its share, and together they make what one run makes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from llm_labeler._asking import Asked, How, ask_everything
from llm_labeler._dataset import check_out
from llm_labeler._ensemble import StrategyFunction
from llm_labeler._flags import Own, read_given
from llm_labeler._label import Notes, begin, parse, prepare, refuse_unanswered
from llm_labeler._labelled import Labelled
from llm_labeler._plan import leaving
from llm_labeler._records import Text, digest
from llm_labeler._settings import LabelSettings
from llm_labeler._shard_done import ShardDone
from llm_labeler._shards import divided, is_of, left, shard_folder, shards_beside, share_of
from llm_labeler._store import Store
from llm_labeler._texts import digest_of
from llm_labeler._workplace import (
    IN_USE,
    RUN_FILE,
    STORE_FILE,
    TEXTS_FILE,
    RunRecord,
    recall,
    recall_places,
    remember,
)
from pairkit.differing import differing
from pairkit.errors import ConfigError, DataError
from pairkit.folders import check_apart, held_folder, work_beside
from pairkit.in_memory import Source
from pairkit.openai_api.loops import run_anywhere
from pairkit.progress import Display, Listener, Progress
from pairkit.shards import Shard


def generate_shard(
    source: Source,
    out: Path,
    work: Path | None,
    settings: LabelSettings,
    own: Own,
    shard: Shard,
    *,
    column: str | None = None,
    how: How = How(),  # noqa: B008 - frozen
    progress: bool | Listener = True,
) -> ShardDone:
    """See `llm_labeler.generate`: one shard of it."""
    start = time.monotonic()
    notes = Notes(progress)
    limited = divided(settings, shard)
    recorded, texts, providers = prepare(source, column, limited, own)
    notes.add_of(texts, leaving(settings, providers))
    # What it asks by is divided; what it is a share of is written down as it was given.
    record = replace(recorded, settings=settings, shard=shard)
    places, share = share_of(texts.texts, shard)
    folder = shard_folder(work or work_beside(out), shard)
    with (
        held_folder(folder, IN_USE),
        Store.open(folder / STORE_FILE, create=True) as store,
        Display(progress) as show,
    ):
        remember(folder, record, share, places)
        store.identity()  # before anybody copies it
        begin(store, recorded, providers, notes)
        asked = Asked()
        if share:
            asked = run_anywhere(ask_everything(recorded, share, providers, store, how=how, show=show))
        if not how.keep_going:
            refuse_unanswered(asked)
        notes.add_rejected(store, record)
        missing, in_all = left(record, share, store), store.spent()
    seconds = time.monotonic() - start
    return ShardDone(
        str(shard), folder, len(share), len(texts.texts), missing, asked, in_all, seconds, tuple(notes)
    )


def merge(
    out: Path,
    work: Path | None,
    strategy: str | StrategyFunction | None = None,
    *,
    keep_going: bool = False,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Labelled:
    """See `llm_labeler.merge`."""
    work = work or work_beside(out)
    check_apart(out, work)
    shards = _all_alike(work)
    record = shards[0].record
    settings, own = read_given({"strategy": strategy}, below=record.settings.model_dump(mode="json"))
    check_out(out, replace(record, settings=settings).made_of(), fresh=fresh)
    with ExitStack() as held, Display(progress) as show:
        for folder in (work, *(shard.folder for shard in shards)):
            held.enter_context(held_folder(folder, IN_USE))
        for shard in shards:
            with Store.open(shard.folder / STORE_FILE) as store:
                shard.check(store, keep_going=keep_going)
        texts = _together(shards)
        with Store.open(work / STORE_FILE, create=True) as whole:
            for number, shard in enumerate(shards):
                show(Progress("merging shards", number, len(shards)))
                with Store.open(shard.folder / STORE_FILE) as store:
                    whole.take_in(store)
            show(Progress("merging shards", len(shards), len(shards), ended=True))
        remember(work, record, texts)
    return parse(work, out, settings, own, fresh=fresh, progress=progress)


@dataclass(frozen=True)
class _Shard:
    """A shard that is there."""

    shard: Shard
    folder: Path
    record: RunRecord  # of the whole run
    texts: tuple[Text, ...]
    places: Sequence[int]

    @property
    def again(self) -> str:
        return f"run shard {self.shard} again (--shard {self.shard})"

    def made_of(self) -> Mapping[str, Any]:
        """What all shards of a run have in common."""
        return {**self.record.made_of(), "rows not used": self.record.dropped_texts}

    def digests(self) -> Mapping[str, Any]:
        """The same of the LLMs' parameters, as questions are known by them."""
        return {f"parameters of {name}": told for name, (told, _) in self.record.parameters.items()}

    def check(self, store: Store, *, keep_going: bool) -> None:
        """See that it has asked all that it is to ask.

        Raises:
            ConfigError: A batch is not collected.
            DataError: Questions have no answer, and the run is not to keep going.
        """
        if batches := store.batches():
            number = sum(len(batch.keys) for batch in batches)
            raise ConfigError(
                f"{self.folder}: {number:,} questions wait in a batch; {self.again} with batch (--batch)"
            )
        if not keep_going and (missing := left(self.record, self.texts, store)):
            raise DataError(
                f"{missing:,} questions have no answer; {self.again}, or do without them with keep_going"
                " (--keep-going)",
                path=self.folder,
            )


def _all_alike(work: Path) -> list[_Shard]:
    """All shards of a run, in order."""
    counts = sorted({shard.of for shard in shards_beside(work)})
    if not counts:
        raise DataError(
            f"no shards, such as {shard_folder(work, Shard(1, 4)).name}; make them by shard (--shard)",
            path=work,
        )
    if len(counts) > 1:
        raise ConfigError(
            f"{work}: beside it are shards of {' and of '.join(map(str, counts))}; remove those that are not"
            " to be merged"
        )
    found = [_read(Shard(number, counts[0]), work) for number in range(1, counts[0] + 1)]
    first = found[0]
    for one in found[1:]:
        differences = differing(first.made_of(), one.made_of()) or differing(first.digests(), one.digests())
        if differences:
            raise ConfigError(
                f"{one.folder}: differs from {first.folder.name} in {'; '.join(differences)}; make both alike"
            )
    return found


def _read(shard: Shard, work: Path) -> _Shard:
    folder, again = shard_folder(work, shard), f"run shard {shard} (--shard {shard})"
    if not (folder / RUN_FILE).is_file():
        raise DataError(f"{'was not begun' if folder.is_dir() else 'is missing'}; {again}", path=folder)
    record, texts = recall(folder)
    if record.shard != shard:
        what = "no shard" if record.shard is None else f"shard {record.shard}"
        raise DataError(f"is {what} by its {RUN_FILE}; {again}", path=folder)
    if any(digest(text.text) != text.text_id or not is_of(shard, text) for text in texts):
        raise DataError(f"holds a sentence that is not of its share; {again}", path=folder / TEXTS_FILE)
    return _Shard(shard, folder, replace(record, shard=None), texts, recall_places(folder))


def _together(shards: Sequence[_Shard]) -> tuple[Text, ...]:
    """The sentences of all shards, in the order of the input."""
    placed = {place: text for one in shards for place, text in zip(one.places, one.texts, strict=True)}
    texts = tuple(placed[place] for place in sorted(placed))
    if digest_of(texts) != shards[0].record.sha256:
        raise DataError(
            "the shards' sentences are together not those of their input; run all shards again, which asks"
            " nothing twice",
            path=shards[0].folder.parent,
        )
    return texts
