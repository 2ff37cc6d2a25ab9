"""What the card of a dataset from the archive says besides: where it comes from, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gis_builder._archive.hours import lacks_events
from pairkit.card import table, with_section

_SOURCE = """
Issues and comments of all public repositories, as [GH Archive](https://www.gharchive.org) (CC BY 4.0)
recorded their events, in the hours {hours}. {asked}

* A text is as it stood at the issue's last event in these hours; later edits are not known.
* The archive has no marks as duplicate: what people wrote, and how issues were closed, decides.
{originals}
* Issues that bots opened are left out ({bots:,}), and of authors who seem to be bots, as nearly all that they
  opened in a repository is made of a template ({template_bots:,}); as are repositories with fewer closed
  issues than {min_closed:,}.
{limit}{language}* {excluded:,} repositories and {excluded_issues:,} issues were left out as they were
  asked to be.
"""

_ASKED_NOTHING = "GitHub was asked for nothing."
_ORIGINALS = """
* An issue that was named as the original but had no event in these hours makes no pair (`not_fetched` among
  `dropped_positives`).
""".strip()

_ASKED = "GitHub was asked for originals that have no event in them."
_TOPPED = """
* Of the numbers that were named as originals but had no event in these hours, GitHub gave {issues:,} issues,
  whose texts are as it has them now; {pull_requests:,} are pull requests, and {missing:,} are not there.
""".strip()

_COVERAGE = """
{table}
{incomplete}
*Missing* hours are not in the archive or were not given; of an hour that *broke off* the beginning was read.
GitHub numbers all events in turn, others than these too. Many more ids to an event in one month than in
others mean that the archive lost events there.
{without}
"""

_INCOMPLETE = """
**After 2025-05-23 the archive lacks most events.** A duplicate whose closing, closing words or original are
among them is not in here.
"""


def with_coverage(card: str, statistics: Mapping[str, Any], hours: str, settings: Mapping[str, Any]) -> str:
    """The card with what is special about the archive.

    Args:
        card: The card of the dataset.
        statistics: With `months`, `archive_repositories` and the counts of a build.
        hours: The range that was asked for.
        settings: Those of the dataset.
    """
    limits = settings["limits"]
    rejected = statistics["rejected_issues"]
    topped = statistics.get("topped_up")
    source = _SOURCE.format(
        asked=_ASKED if topped else _ASKED_NOTHING,
        originals=_TOPPED.format(**topped) if topped else _ORIGINALS,
        hours=hours,
        bots=rejected.get("bot_author", 0),
        template_bots=rejected.get("template_author", 0),
        min_closed=limits["min_closed"],
        limit=f"* No repository gives more than {limits['per_repo_max']:,} positives.\n"
        if limits["per_repo_max"]
        else "",
        language=_language(limits["languages"], statistics["archive_repositories"]),
        excluded=statistics["archive_repositories"].get("excluded", 0),
        excluded_issues=rejected.get("excluded", 0),
    )
    coverage = _coverage(statistics["months"], lacking=lacks_events(hours))
    return with_section(with_section(card, "Source", source), "Coverage", coverage)


def _language(names: Sequence[str], counts: Mapping[str, int]) -> str:
    if not names:
        return ""
    other, unknown = counts.get("other_language", 0), counts.get("unknown_language", 0)
    return (
        f"* Only repositories mostly written in {' or '.join(names)}, as pull requests in these hours say it:"
        f" {other:,} of other languages are left out, and {unknown:,} of which no pull request tells it.\n"
    )


def _coverage(months: Mapping[str, Mapping[str, Any]], *, lacking: bool) -> str:
    rows = [
        (
            name,
            month["hours"],
            len(month["missing_hours"]),
            len(month["hours_broken_off"]),
            sum(month["broken_lines"].values()),
            month["events"],
            "–" if month["ids_for_each_event"] is None else f"{month['ids_for_each_event']:.2f}",
        )
        for name, month in months.items()
    ]
    heads = ["month", "hours", "missing", "broke off", "broken lines", "events", "ids to an event"]
    without = sum(month["events_without_association"] for month in months.values())
    return _COVERAGE.format(
        table=table(heads, rows),
        incomplete=_INCOMPLETE if lacking else "",
        without=(
            f"\n{without:,} events do not say what their author is to the repository; for them, who pushed to"
            " it or owns it counts as a member."
            if without
            else ""
        ),
    )
