"""What the commands of `gis` print, on stdout for the result and on stderr for the notes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pairkit.terminal import out as stdout
from pairkit.terminal import print_json, say

if TYPE_CHECKING:
    from gis_builder._build import Built
    from gis_builder._settings import BuildSettings
    from gis_builder._store import RepoRow, Store


def show_plan(
    names: list[str], settings: BuildSettings, token_file: Path | None, *, json: bool, quiet: bool
) -> None:
    """Price a crawl and print it."""
    from gis_builder._plan import plan as plan_crawl
    from gis_builder._plan import plan_table
    from gis_builder._session import Crawler

    with Crawler(settings, token_file, quiet=quiet) as crawler:
        planned = plan_crawl(names, settings, crawler.open)
    if json:
        print_json(planned.to_dict())
    else:
        stdout.print(plan_table(planned))


def show_crawled(store: Store, rows: Sequence[RepoRow], *, as_json: bool, quiet: bool) -> None:
    """What became of each repository, and what it cost."""
    from gis_builder._status import crawl_summary
    from gis_builder._summary import outcome_lines, spent_line

    for line in [*outcome_lines(rows), spent_line(store)]:
        say(line, quiet=quiet)
    if as_json:
        print_json(crawl_summary(store, rows))


def show_built(built: Built, *, as_json: bool, quiet: bool) -> None:
    """With --json the one object on stdout; else the table of counts there. Notes go to stderr either way."""
    from gis_builder._summary import counts_table, drop_lines, outcome_lines

    for line in [*outcome_lines(built.rows), *drop_lines(built.statistics)]:
        say(line, quiet=quiet)
    say(
        f"{built.usage.points:,} points in {built.usage.requests:,} requests, "
        f"{built.points_per_100_positives:.1f} points for 100 positives; audit: no leaks",
        quiet=quiet,
    )
    if as_json:
        print_json(built.summary())
    else:
        stdout.print(counts_table(built))
        say(f'load it with datasets.load_dataset("{built.out}")', quiet=quiet)
