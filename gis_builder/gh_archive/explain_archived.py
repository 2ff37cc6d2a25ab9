"""Explains the verdict on one issue of an archive, from the sorted rows of its repository."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gis_builder.detection.detector import judge_thread, parse_issue
from gis_builder.detection.explain import explain
from gis_builder.gh_archive import archive_rows as r
from gis_builder.gh_archive.threads import threads_of
from gis_builder.settings import DetectSettings
from gis_builder.store.issue_records import Verdict
from pairkit.base.errors import ConfigError


def explain_archived(work: Path, name: str, settings: DetectSettings) -> tuple[Verdict, str]:
    """The verdict on an issue and its explanation."""
    issue = parse_issue(name)
    files = list(work.glob("rows-*/*/*.parquet"))
    is_name = pl.col("name").str.to_lowercase() == issue.repo.lower()
    names = r.read_rows(files, (pl.col("kind") == r.REPO) & is_name).sort("event_at", "event_id")
    for key, repo_id in names.select("key", "repo_id").reverse().iter_rows():  # the latest of this name
        own = r.read_rows(files, (pl.col("key") == key) & (pl.col("repo_id") == repo_id))
        repo = threads_of(own.iter_rows(named=True))
        if thread := repo.threads.get(issue.number):
            verdict = judge_thread(thread, repo.kind_of, repo.rules, settings)
            return verdict, explain(thread, verdict, repo.kind_of, repo.rules)
    raise ConfigError(f"issue = {name}: not among the issues of {work}, or not in the hours of its last run")
