"""What each repository that was asked for is, over REST: three requests for one that is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gis_builder._decoding import Malformed, stamp, stamp_or_none
from gis_builder._github.check import found, not_found, unsettled, why_not
from gis_builder._github.client import Denied, Stopped
from gis_builder._github.parse import well_formed
from gis_builder._github.rest_client import ISSUES, REPOSITORY, RestCrawl
from gis_builder._rest_records import RepoObject
from gis_builder._store import Page, RepoOutcome, RepoRow
from pairkit.errors import AuthError, RateLimited, RemoteError

_NEWEST = "/repos/{}/issues?state=all&per_page=1&direction=desc&sort={}"


def check(crawl: RestCrawl, names: Sequence[str], *, listed: bool = True) -> None:
    """Ask about repositories and store what each is. Those known to be crawlable are not asked about again.

    Args:
        crawl: The tools.
        names: `owner/name`, each.
        listed: Whether a person asked for them.

    Raises:
        ConfigError: a name is not of that form.
        RemoteError: the server fails on two repositories in a row or on the only one, or is not there.
    """
    asked = unsettled(crawl.store, names, listed=listed)
    failed = 0
    for place, name in enumerate(asked, start=1):
        try:
            row = look_up(crawl, name)
            failed = 0
        except (AuthError, RateLimited, Stopped):
            raise
        except RemoteError as error:
            failed += 1
            if failed == min(2, len(asked)) or not crawl.client.was_heard:
                raise
            row = RepoRow(name, RepoOutcome.FAILED, detail=str(error))
        old = crawl.store.repo(name)
        # A crawl that failed half way goes on from what it had, so an update has to look back as far.
        as_of = old.as_of if old and old.as_of else row.as_of
        crawl.save("", Page(repos=[replace(row, listed=listed, as_of=as_of)]))
        crawl.tell("", "check", place, len(asked))


def look_up(crawl: RestCrawl, name: str) -> RepoRow:
    """Ask about one repository as if for the first time, storing nothing.

    REST counts issues and pull requests together, so `issue_count` is the highest number until a sweep knows
    better.
    """
    try:
        reply = crawl.client.get(f"/repos/{name}", REPOSITORY)
    except Denied as error:
        return RepoRow(name, RepoOutcome.PRIVATE, detail=str(error))
    if reply.status == 451:
        return RepoRow(name, RepoOutcome.NOT_FOUND, detail=reply.message)
    if reply.value is None:
        return not_found(name)
    with well_formed(name):
        return _row(crawl, name, reply.value)


def _row(crawl: RestCrawl, name: str, value: RepoObject) -> RepoRow:
    full_name, created_at = value.full_name, stamp_or_none(value.created_at) or ""
    row = RepoRow(name, RepoOutcome.OK, full_name=full_name, created_at=created_at)
    if kept_out := why_not(row, crawl.settings, is_private=value.private, has_issues=value.has_issues):
        return kept_out
    newest, _ = crawl.client.get_list(_NEWEST.format(full_name, "created"), ISSUES)
    if not newest:
        return found(row)
    fresh, _ = crawl.client.get_list(_NEWEST.format(full_name, "updated"), ISSUES)
    if not fresh:
        raise Malformed("no issue that was updated last")
    counted = replace(
        row,
        max_number=newest[0].number,
        issue_count=newest[0].number,
        newest_at=stamp(newest[0].created_at),
        as_of=stamp(fresh[0].updated_at),
    )
    return found(counted)
