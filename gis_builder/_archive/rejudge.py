"""The third task once more, for repositories of which GitHub told more than the hours have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import groupby

from gis_builder._archive import rows as r
from gis_builder._archive.exclusions import Exclusions
from gis_builder._archive.judged import Judged, Topped, by_outcome, pack, unpack, verdict_counts
from gis_builder._archive.judging import WITH_DUPLICATES, Judging
from gis_builder._archive.objects import Location
from gis_builder._archive.threads import threads_of
from gis_builder._settings import ArchiveSettings


def judge_more(
    judged: Location,
    topped: Location,
    files: Sequence[Location],
    low: int,
    high: int,
    settings: str,
    excluded: Sequence[str],
) -> bytes:
    """Judge those repositories again of which more is known by now.

    Args:
        judged: What `judge_share` made.
        topped: What is known now, see `topup`.
        files: See `judge_share`, as what follows.
        low: See there.
        high: See there.
        settings: See there.
        excluded: See there.
    """
    before, more = unpack(judged, Judged), {repo.repo_id: repo for repo in unpack(topped, Topped).repos}
    judge = Judging(ArchiveSettings.model_validate_json(settings), Exclusions(excluded))
    table = r.read_share(files, low, high, more)
    for repo_id, rows in groupby(table.iter_rows(named=True), key=lambda row: row["repo_id"]):
        repo, learned = threads_of(rows), more[repo_id]
        repo.learn(learned.issues, learned.pulls, learned.missing)
        judge.take(repo)
    return pack(_replaced(before, judge.result(), more))


def _replaced(before: Judged, anew: Judged, which: Collection[int]) -> Judged:
    """A partition with some repositories as they were judged anew."""
    repos = {repo.repo_id: repo for repo in anew.repos}
    verdicts = verdict_counts(before.verdicts) + verdict_counts(anew.verdicts)
    counts = Counter(before.counts)
    counts.update(anew.counts)
    for repo in before.repos:
        if repo.repo_id in which:
            verdicts.subtract({(outcome, reason): count for outcome, reason, count in repo.verdicts})
            counts[WITH_DUPLICATES] -= 1
        else:
            repos[repo.repo_id] = repo
    kept = [repos[repo.repo_id] for repo in before.repos if repo.repo_id in repos]
    return Judged(kept, by_outcome(verdicts), dict(sorted(counts.items())))
