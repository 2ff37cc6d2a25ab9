"""Every issue of a store as a row of text, whether it stands in a pair or not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl

from gis_builder.pairing.text import render
from gis_builder.progress.display import SILENT, RunDisplay
from gis_builder.store import Store, full_names
from pairkit.app.errors import ConfigError, DataError
from pairkit.dataset.parquet import parquet_bytes
from pairkit.system.files import write_bytes

COLUMNS: dict[str, type[pl.DataType]] = {
    "id": pl.String,
    "repo": pl.String,
    "number": pl.Int64,
    "url": pl.String,
    "text": pl.String,
    "created_at": pl.String,
}


def render_store(store: Store, out: Path, show: RunDisplay = SILENT) -> Counter[str]:
    """Write all issues of all repositories, rendered by the rule of the dataset, short ones too."""
    rows: list[tuple[str, str, int, str, str, str]] = []
    counts: Counter[str] = Counter()
    repositories = store.repos()
    site = store.site
    known = {repository.full_name: repository.issue_count for repository in repositories}
    for repo in full_names(repositories):
        issues = list(store.issues(repo))
        if len(issues) < known[repo]:
            show.say(
                f"{repo}: {len(issues):,} of its {known[repo]:,} issues are in the crawl; the strategy sweep"
                " has all"
            )
        for issue in show.counted("rendering texts", issues, len(issues)):
            text = render(issue).text
            counts["written" if text else "text_empty"] += 1
            if text:
                ref = issue.ref
                rows.append((str(ref), ref.repo, ref.number, ref.page(site), text, issue.created_at))
    if not rows:
        raise DataError("no issue of the crawl has a text; crawl first", path=store.path)
    table = parquet_bytes(pl.DataFrame(rows, schema=COLUMNS, orient="row"))
    if out.exists() and not (out.is_file() and out.read_bytes() == table):
        raise ConfigError(f"{out}: already exists, with other rows; choose another file, or move it away")
    write_bytes(out, table)
    return counts
