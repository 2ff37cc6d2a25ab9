"""The judged repositories of all buckets, with their positives.

Texts and pairs are in temporary files, and only some numbers of each in memory, because GitHub has many
millions of them.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct, field

from gis_builder.gh_archive.judge_threads import (
    OUTCOMES,
    JudgedRepo,
    pack,
    read_judged,
    with_duplicates,
)
from gis_builder.gh_archive.runners import digest_of
from gis_builder.pairing.pair_folder import (
    Reasons,
    dropped_frame,
    reasons_of,
    row_order,
)
from gis_builder.pairing.positives import Positives, make_positives
from gis_builder.pairing.split import RefTable, SameSplit
from gis_builder.pairing.text import RenderedTexts
from gis_builder.settings import ArchiveSettings
from gis_builder.store.issue_records import DroppedPair, IssuePair, IssueRef, IssueText
from pairkit.base.system.files import write_errors
from pairkit.base.system.seeded import keyed_hash
from pairkit.similarity.groups import Indices

NAME_TAKEN = "name_taken_over"
OVER_LIMIT = "per_repo_max"
_PAIRS = {"first": pl.Int32, "second": pl.Int32, "hash": pl.UInt64, "label": pl.Int8}
T = TypeVar("T")


class RecordsOnDisk(Generic[T]):
    """Values in the order in which they were added, in a file of a folder; only offsets are in memory."""

    def __init__(self, folder: Path, file: IO[bytes], kind: type[T]) -> None:
        self._folder = folder
        self._file = file
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> T:
        start = self._ends[place]
        end = self._ends[place + 1]
        self._file.seek(start)
        return self._decoder.decode(self._file.read(end - start))

    def at(self, places: Iterable[int]) -> list[T]:
        """The values at these places, which are read in the order of the file, because that is faster."""
        requested = list(places)
        values = {place: self[place] for place in sorted(requested)}
        return [values[place] for place in requested]

    def extend(self, values: Iterable[T]) -> None:
        """Append values."""
        with write_errors(self._folder):
            self._file.seek(self._ends[-1])
            for value in values:
                packed = self._encoder.encode(value)
                self._file.write(packed)
                self._ends.append(self._ends[-1] + len(packed))
            self._file.flush()


@contextmanager
def records_on_disk(folder: Path, kind: type[T]) -> Iterator[RecordsOnDisk[T]]:
    """Records in an unnamed temporary file, which is deleted even if the process is killed."""
    file = TemporaryFile(dir=folder)  # noqa: SIM115
    try:
        yield RecordsOnDisk(folder, file, kind)
    finally:
        # Closing flushes again what could not be written, which was reported.
        with suppress(OSError):
            file.close()


class _Owner(NamedTuple):
    """The latest repository of a name, if one was deleted and created again; later ones are greater."""

    named_at: tuple[str, int]
    repo_id: int


Owners = dict[str, _Owner]  # by name in lower case


class _OwnedRepo(NamedTuple):
    """A repository with duplicates that owns its name, and the places of its positives."""

    repo_id: int
    name: str
    positives: range


class _Bucket(NamedTuple):
    """The repositories of a bucket, and a hash of its content."""

    repos: list[_OwnedRepo]
    digest: str


class IssueTextsOnDisk:
    """The texts of all issues that may be in a pair, as a sequence of strings."""

    def __init__(self, texts: RecordsOnDisk[IssueText], refs: RefTable) -> None:
        self._refs = refs
        self._texts = texts
        self._issues = array("q")
        self._place = np.full(len(refs), -1, np.int32)

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: int) -> str:
        return self._texts[index].text

    def extend(self, texts: Sequence[IssueText]) -> None:
        """Add texts."""
        issues = self._refs.indices(text.ref for text in texts)
        first = len(self)
        self._place[issues] = np.arange(first, first + len(issues))
        self._issues.extend(issues.tolist())
        self._texts.extend(texts)

    @property
    def issues(self) -> Indices:
        """The index of each text's issue among the references; (text,)."""
        return np.asarray(self._issues)

    @property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Whether each reference has a text; (reference,)."""
        return self._place >= 0

    def of(self, refs: Iterable[IssueRef]) -> dict[IssueRef, IssueText]:
        """Read the texts of these issues."""
        places = self._place[self._refs.indices(set(refs))]
        return {text.ref: text for text in self._texts.at(places.tolist())}


class PairsOnDisk:
    """The pairs of the dataset, and a table of their issues (indices of references) and their order."""

    def __init__(
        self, pairs: RecordsOnDisk[IssuePair], refs: RefTable, seed: int
    ) -> None:
        self._refs = refs
        self._row_order = row_order(seed)
        self._pairs = pairs
        self._frames = [pl.DataFrame(schema=_PAIRS)]

    def __len__(self) -> int:
        return len(self._pairs)

    def extend(self, pairs: Sequence[IssuePair]) -> None:
        """Add pairs."""
        columns = {
            "first": self._refs.indices(pair.first for pair in pairs),
            "second": self._refs.indices(pair.second for pair in pairs),
            "hash": [self._row_order(pair)[0] for pair in pairs],
            "label": [pair.label for pair in pairs],
        }
        self._frames.append(pl.DataFrame(columns, schema=_PAIRS))
        self._pairs.extend(pairs)

    @property
    def table(self) -> pl.DataFrame:
        """The columns place (index), first, second, hash and label of each pair."""
        self._frames = [pl.concat(self._frames)]
        return self._frames[0].with_row_index("place")

    def at(self, places: Iterable[int]) -> list[IssuePair]:
        """Read pairs by index."""
        return self._pairs.at(places)


class CombinedBuckets(Struct):
    """The judged repositories of all buckets and their positives."""

    settings: ArchiveSettings
    refs: RefTable
    same_split: SameSplit
    texts: IssueTextsOnDisk
    pairs: PairsOnDisk
    reasons: Reasons = field(default_factory=Counter)  # of dropped issues and pairs
    dropped: list[pl.DataFrame] = []
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    clusters: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    buckets: list[_Bucket] = []

    def add(self, judged: Sequence[JudgedRepo], owners: Owners) -> None:
        """Add a bucket."""
        for repo in judged:
            for outcome, reason, count in repo.verdicts:
                self.verdicts[outcome, reason] += count
            self.counts[repo.outcome] += 1
        owned = []
        rejected = {}
        dropped = []
        repos = with_duplicates(judged)
        for repo in repos:
            if owners[repo.name.lower()].repo_id != repo.repo_id:
                self.counts[NAME_TAKEN] += 1
                continue
            rejected.update(repo.rejected)
            start = len(self.pairs)
            dropped += self._add_repo(repo)
            positives = range(start, len(self.pairs))
            owned.append(_OwnedRepo(repo.repo_id, repo.name, positives))
        self.drop(rejected, dropped)
        self.buckets.append(_Bucket(owned, digest_of(pack(repos))))

    def _add_repo(self, repo: JudgedRepo) -> list[DroppedPair]:
        """Add a repository and its positives; returns the dropped ones."""
        for cluster in repo.clusters:
            self.same_split.add(cluster.members)
        self.clusters += len(repo.clusters)
        self.texts.extend(list(repo.texts.values()))
        self.removed.update(repo.removed)
        texts = RenderedTexts(repo.texts, repo.rejected)
        seed = self.settings.seed
        positives = make_positives(
            repo.clusters, texts, repo.grounds, self.settings.pair, seed
        )
        _limit(positives, self.settings.limits.per_repo_max, seed)
        self.pairs.extend(positives.pairs)
        return positives.dropped

    def drop(
        self, rejected: Mapping[IssueRef, str], dropped: Sequence[DroppedPair]
    ) -> None:
        """Record rejected issues and dropped pairs."""
        self.reasons.update(reasons_of(rejected, dropped))
        self.dropped.append(dropped_frame(rejected, dropped))

    def verdicts_by_outcome(self) -> dict[str, dict[str, int]]:
        """The counts by outcome and reason, in the format of `gis build`."""
        by_outcome: dict[str, dict[str, int]] = {}
        for (outcome, reason), count in sorted(self.verdicts.items()):
            by_outcome.setdefault(outcome, {})[reason] = count
        return by_outcome


def combine_buckets(
    paths: Sequence[Path],
    texts: RecordsOnDisk[IssueText],
    pairs: RecordsOnDisk[IssuePair],
    settings: ArchiveSettings,
) -> CombinedBuckets:
    """Read the buckets one by one; texts and positives are written to disk."""
    owners: Owners = {}
    refs = RefTable(_refs(paths, owners))
    combined = CombinedBuckets(
        settings=settings,
        refs=refs,
        same_split=SameSplit(refs),
        texts=IssueTextsOnDisk(texts, refs),
        pairs=PairsOnDisk(pairs, refs, settings.seed),
    )
    combined.counts.update(dict.fromkeys((*OUTCOMES, NAME_TAKEN), 0))
    for path in paths:
        combined.add(read_judged(path), owners)
    return combined


def _refs(paths: Iterable[Path], owners: Owners) -> Iterator[IssueRef]:
    """Yield all issues of clusters or with texts; adds their repositories to the owners."""
    for path in paths:
        for repo in with_duplicates(read_judged(path)):
            name = repo.name.lower()
            owner = _Owner(repo.named_at, repo.repo_id)
            owners[name] = max(owners.get(name, owner), owner)
            for cluster in repo.clusters:
                yield from cluster.members
            yield from repo.texts


def _limit(positives: Positives, limit: int | None, seed: int) -> None:
    """Limit the number of a repository's positives; the choice is random."""
    if limit is None:
        return
    shuffled = sorted(
        positives.pairs,
        key=lambda pair: keyed_hash(seed, "limit", pair.first, pair.second),
    )
    positives.dropped += [pair.dropped(OVER_LIMIT) for pair in shuffled[limit:]]
    kept = set(shuffled[:limit])
    positives.pairs = [pair for pair in positives.pairs if pair in kept]
