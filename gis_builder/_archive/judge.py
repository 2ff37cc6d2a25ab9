"""The third task: the rows of a share of the repositories to verdicts, clusters, texts and positives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import groupby

import polars as pl

from gis_builder._archive import rows as r
from gis_builder._archive.exclusions import Exclusions
from gis_builder._archive.judged import pack
from gis_builder._archive.judging import Judging
from gis_builder._archive.objects import Location
from gis_builder._archive.threads import threads_of
from gis_builder._settings import ArchiveSettings


def judge_share(
    files: Sequence[Location], low: int, high: int, settings: str, excluded: Sequence[str]
) -> bytes:
    """Judge the repositories whose keys are in [low, high).

    Args:
        files: Rows of any months.
        low: The least key.
        high: The key after the greatest.
        settings: `ArchiveSettings` as JSON.
        excluded: See `Exclusions`.
    """
    judge = Judging(ArchiveSettings.model_validate_json(settings), Exclusions(excluded))
    table = r.read_share(files, low, high)
    is_closed = (pl.col("kind") == r.ISSUE) & (pl.col("state") == "closed")
    closed = table.filter(is_closed).group_by("repo_id").len()
    enough = closed.filter(pl.col("len") >= judge.settings.limits.min_closed)
    with_issues = table.filter(pl.col("kind") == r.ISSUE)["repo_id"].n_unique()
    judge.counts["too_few_closed_issues"] += with_issues - enough.height
    wanted = _of_languages(table, enough["repo_id"], judge.settings.limits.languages, judge.counts)
    kept = table.join(wanted.to_frame(), on="repo_id", how="semi", maintain_order="left")
    for _, rows in groupby(kept.iter_rows(named=True), key=lambda row: row["repo_id"]):
        judge.take(threads_of(rows))
    return pack(judge.result())


def _of_languages(
    table: pl.DataFrame, repos: pl.Series, languages: Collection[str], counts: Counter[str]
) -> pl.Series:
    """Those repositories whose language, as it was named last, is one of these; all where these are none."""
    if not languages:
        return repos
    named = table.filter((pl.col("kind") == r.LANGUAGE) & pl.col("repo_id").is_in(repos.implode()))
    latest = named.sort("event_at", "event_id").unique("repo_id", keep="last")
    found = [
        repo for repo, name in latest.select("repo_id", "name").iter_rows() if name.casefold() in languages
    ]
    counts["unknown_language"] += repos.len() - latest.height
    counts["other_language"] += latest.height - len(found)
    return pl.Series("repo_id", sorted(found), pl.Int64)
