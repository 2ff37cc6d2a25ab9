"""Reads files of tickets and links: tables, and JSON of other trackers than GitHub; and converts them to records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, TypeAlias

from gis_builder.store import Comment, Issue
from gis_builder.store.decoding import (
    Malformed,
    RepoName,
    convert,
    date_order,
    parse_time,
    stamp,
)
from gis_builder.trackers.markup import markup_kind, to_markdown
from gis_builder.trackers.saved import LINES, OnBroken, is_known, values
from gis_builder.trackers.ticket_cells import (
    LINK_ROLES,
    LINK_RULES,
    ROLES,
    SEPARATOR,
    Cells,
    Columns,
    SourceRow,
    cell_text,
    cells_by_role,
    cells_of,
    dict_or_empty,
    objects_in,
    one_text,
    plain_id,
    source_row,
    texts_of,
    values_at,
)
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import comparable
from pairkit.base.system.text_lines import read_objects
from pairkit.dataset.reading.separated import records
from pairkit.dataset.reading.tables import SHEETS, first_row, format_of, read_table

TABLES = (".csv", ".tsv", ".parquet", *SHEETS)  # always tickets, unlike JSON
_KINDS = (*TABLES, *LINES, ".json")
# Files of exports that can't be read, and what to do.
UNREADABLE = {
    **dict.fromkeys((".xml", ".rss"), "XML can't be read; export CSV or JSON"),
    **dict.fromkeys(
        (".zip", ".tar", ".tgz"),
        "archives can't be read; unpack it and give the folder",
    ),
}
_OTHER_FILES = re.compile(  # of GitLab's project export and of backups
    r"(?:(?:external_)?(?:merge|pull)_?requests?|pulls?|milestones?|labels?|releases?|epics?|snippets?|boards?)"
)
TIMES = ("created_at", "closed_at", "updated_at")
_COMMENTS = (
    "comment.comments",
    "comments",
    "journals",
    "notes",
    "discussions.notes",  # of GitLab's API
    "discussion_thread.posts",
    "conversations",
)
_CLOSED = re.compile(
    r"(?:closed?|resolved|done|complet(?:ed?)?|finished|solved|verified|fixed|rejected|declined|invalid|merged"
    r"|won'?t.?(?:fix|do)|cancell?ed|(?:ab)?geschlossen|erledigt|gelöst|behoben|fertig|abgelehnt|ferm[ée]e?|clos"
    r"|résolue?|terminée?|(?:cerr|finaliz|fech)ad[oa]|resuelt[oa]|listo|(?:resolv|conclu)[ií]d[oa]|chius[oa]"
    r"|risolt[oa]|completat[oa]|zamkni[ęe]t[ye]|rozwiązan[ey]|gotowe|(?:af)?gesloten|opgelost|gereed|kapalı|çözüldü"
    r"|закрыта?о?|реш[её]н[оа]?|готово|выполнен[оа]?|已?(?:关闭|解决|完成)|完了|終了|(?:クローズ|解決)(?:済み?)?"
    r"|종료|완료됨?|닫힘|해결됨?|duplicated?)(?:[-_ :(].*)?"
)
# With any other state, a ticket that has a closing time is closed; Redmine keeps that of a reopened ticket.
_OPEN = re.compile(
    r"re-?(?:open|activ)|open|active|new\b|to.?do|in progress|assigned|pending|waiting|on.hold|feedback"
    r"|backlog|offen|neu|wieder|in (?:arbeit|bearbeitung|behandeling|corso)|nouveau|r?[eé]?ouvert"
    r"|en (?:cours|curso)|nuev[oa]|(?:re)?abi?ert[oa]|nov[oa]|em andamento|nuov[oa]|(?:ri)?apert[oa]|nieuw"
    r"|heropend|otwart|now[ey]|w toku|açık|yeni|нов|в работе|(?:пере)?откры|(?:重新)?打开|新|未|处理中"
    r"|进行中|対応中|処理中|再?オープン|열림|신규|진행"
)
_UNRESOLVED = re.compile(
    r"|none|unresolved|open|reopened|offen|nicht (?:erledigt|gelöst)|un(?:erledigt|gelöst)|non (?:résolue?"
    r"|risolt[oa])|(?:no resuelt|não resolvid|irrisolt)[oa]|sin resolver|niet opgelost|onopgelost"
    r"|nierozwiązan[ey]|не ?реш[её]н\w*|çözülme(?:di|miş)|未解[决決]|미해결"
)
_DUPLICATE = re.compile(
    r"(?i)(?:closed[-_ ]*)?\(?(?:dup(?:e|licated?)?|dupli[kc]a{1,2}[td][oa]?|doublon|doppelt|dublette"
    r"|дубликат|重复|重複|중복)\)?"
)
_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")
_ROUNDED = re.compile(r"[0-9][.,][0-9]+E\+[0-9]+")
# Texts that tools write if there is no time, such as "-" or "0000-00-00".
_NO_TIME = re.compile(
    r"(?i)n/?a|na[nt]|none|null|never|(?:0001-01-01|9999-12-31).*|[-–—/.:0T ]+Z?"
)
_OR_SKIP = "or give --skip-broken"
_GITLAB_API = re.compile(r"projects/([0-9]+)/issues/([0-9]+)$")

TimeOf: TypeAlias = Callable[[str], str]  # a time as a stamp


class Link(NamedTuple):
    """A cell of links as the tracker writes it."""

    ticket: str  # id
    cell: str
    role: str = "duplicate_of"  # of its column; "links" of a neutral one


class Ticket(NamedTuple):
    """A ticket or, without `issue`, a row of links; with its tracker's ids."""

    id: str
    links: tuple[Link, ...]
    issue: Issue | None = None  # without repository and number
    url: str = ""
    repo: str = ""  # owner/name, a name or empty
    priority: str = ""
    comments: tuple[Comment, ...] = ()
    comment_count: object = None  # as the tracker states it


def read_ticket(row: SourceRow, cells: Cells, time_of: TimeOf) -> Ticket:
    """The ticket, or only its links, in a row and its cells."""
    own_id = plain_id(one_text(cells, "id"))
    if not _ID.fullmatch(own_id):
        raise Malformed(
            f"id: expected one line of 1 to 200 characters; fix it, {_OR_SKIP}"
        )
    if _ROUNDED.fullmatch(own_id):
        raise Malformed(
            f"id {own_id} was rounded by a spreadsheet; export ids as text, {_OR_SKIP}"
        )
    links = tuple(dict.fromkeys(_links(row, cells, own_id)))
    if "title" not in cells:
        return Ticket(own_id, links)
    kind = markup_kind(row.names)
    issue = _issue(cells, kind, time_of)
    latest = issue.closed_at or issue.updated_at
    return Ticket(
        id=own_id,
        links=links,
        issue=issue,
        url=one_text(cells, "url"),
        repo=one_text(cells, "repo"),
        priority=one_text(cells, "priority"),
        comments=_comments(row, cells, kind, time_of, latest),
        comment_count=next(iter(cells.get("comment_count", ())), None),
    )


def _links(row: SourceRow, cells: Cells, own_id: str) -> Iterator[Link]:
    relation = one_text(cells, "relation")
    for role in ("duplicate_of", "duplicated_by", "links"):
        for text in texts_of(cells, role):
            cell = f"{relation} {text}".strip()
            yield Link(own_id, cell, "links" if relation else role)
    formal = list(_formal_links(row.fields, own_id))
    yield from formal
    if not formal:
        # GitLab's id in the database: an export has only the number, in a system note.
        for number in values_at(row.fields, "duplicated_to_id"):
            yield Link(own_id, f"duplicated_to_id={number}")


def _issue(cells: Cells, kind: str, time_of: TimeOf) -> Issue:
    """The issue of a ticket, without repository and number; `kind` is that of its markup."""
    title = one_text(cells, "title")
    if not title:
        raise Malformed(f"title: empty; fill it in, {_OR_SKIP}")
    created_at = _required_time(cells, time_of)
    closed_at = _time(cells, "closed_at", time_of)
    updated_at = _time(cells, "updated_at", time_of) or closed_at or created_at
    state = comparable(one_text(cells, "state"))
    resolution = comparable(one_text(cells, "resolution"))
    is_duplicate = any(map(_DUPLICATE.fullmatch, (state, resolution)))
    is_closed = (
        is_duplicate
        or not _UNRESOLVED.fullmatch(resolution.strip("-").lower())
        or _CLOSED.fullmatch(state.lower())
        or (closed_at and not _OPEN.match(state.lower()))
    )
    reason = "duplicate" if is_duplicate else "completed"
    return Issue(
        repo="",
        number=0,
        title=title,
        body=to_markdown(one_text(cells, "body"), kind),
        state="closed" if is_closed else "open",
        state_reason=reason if is_closed else None,
        author=one_text(cells, "author") or None,
        author_association="NONE",
        created_at=created_at,
        updated_at=updated_at,
        closed_at=(closed_at or updated_at) if is_closed else None,
        labels=_several(cells, "labels"),
    )


def _comments(
    row: SourceRow, cells: Cells, kind: str, time_of: TimeOf, latest: str
) -> tuple[Comment, ...]:
    """The comments of a ticket; a remark without a time has the latest one of the ticket."""
    comments = []
    for item in _comment_items(row, cells, time_of):
        fields = cells_by_role(tuple(item), tuple(item.values()))
        body = to_markdown(one_text(fields, "body"), kind)
        is_change = not body and "created_at" in fields  # such as of the state
        if is_change or item.get("system") is True:
            continue
        is_remark = not row.fields and "created_at" not in fields
        when = latest if is_remark else _required_time(fields, time_of)
        author = one_text(fields, "author") or None
        comments.append(Comment(0, author, "NONE", when, body))
    comments.sort(key=attrgetter("created_at"))  # some trackers list the newest first
    return tuple(
        replace(comment, id=number) for number, comment in enumerate(comments, 1)
    )


def _comment_items(
    row: SourceRow, cells: Cells, time_of: TimeOf
) -> Iterator[dict[str, object]]:
    """The comments of an object or of Jira's tables, and the remarks of other tables."""
    for path in _COMMENTS:
        items = values_at(row.fields, path)
        if items:
            yield from map(dict_or_empty, items)
            return
    if not row.fields:
        for text in texts_of(cells, "comments"):
            parts = text.split(";", 2)
            if len(parts) == 3 and _is_time(parts[0], time_of):
                yield dict(zip(("created", "author", "text"), parts, strict=True))
            else:
                yield {"text": text}


def nested_roles(value: Mapping[str, object]) -> dict[str, str]:
    """The keys of an object whose lists have its comments and links."""
    roles = {}
    for rule in LINK_RULES:
        if values_at(value, f"{rule['items']}.{rule['target']}"):
            roles[rule["items"]] = "links"
    if "duplicated_to_id" in value:
        roles["duplicated_to_id"] = "duplicate_of"
    for path in _COMMENTS:
        if values_at(value, path):
            key = path.partition(".")[0]
            roles[key] = f"comments, {roles[key]}" if key in roles else "comments"
            break
    return roles


def _formal_links(value: Mapping[str, object], own_id: str) -> Iterator[Link]:
    for rule in LINK_RULES:
        for item in values_at(value, rule["items"]):
            if "when" in rule:
                path, *expected = rule["when"]
                if list(map(str, values_at(item, path))) != expected:
                    continue
            words = values_at(item, rule.get("relation", ""))
            relation = " ".join(map(cell_text, words))
            source = own_id
            if "source" in rule:
                source = next(map(cell_text, values_at(item, rule["source"])), own_id)
            for target in map(cell_text, values_at(item, rule["target"])):
                address = _GITLAB_API.search(target)
                if address and address[1] == cell_text(value.get("project_id")):
                    target = address[2]
                cell = f"{rule.get('words', relation)} {target}"
                if rule.get("only", "") in cell:
                    yield Link(source, cell, "links")


def _several(cells: Cells, role: str) -> tuple[str, ...]:
    """The parts of a role's texts, which may have separators."""
    parts: dict[str, None] = {}
    for text in texts_of(cells, role):
        parts |= dict.fromkeys(part.strip() for part in SEPARATOR.split(text))
    return tuple(filter(None, parts))


def _time(cells: Cells, role: str, time_of: TimeOf) -> str | None:
    text = one_text(cells, role)
    if not text or _NO_TIME.fullmatch(text):
        return None
    try:
        return time_of(text)
    except Malformed as error:
        raise Malformed(f"{role}: {error}") from None


def _is_time(text: str, time_of: TimeOf) -> bool:
    try:
        return bool(time_of(text))
    except Malformed:
        return False


def _required_time(cells: Cells, time_of: TimeOf) -> str:
    time = _time(cells, "created_at", time_of)
    if time is None:
        raise Malformed(f"created_at: empty; fill it in, {_OR_SKIP}")
    return time


@dataclass(frozen=True)
class ImportOptions:
    """The options of an import."""

    links: Path | None  # a table of duplicate links
    columns: Columns
    # Repository of all tickets, and of GitHub's objects that name none.
    repo: str | None
    skip_broken: bool
    link_columns: Columns  # of `links`
    date_format: str  # of strptime; empty: see `parse_time`

    def __post_init__(self) -> None:
        for mapping, known in ((self.columns, ROLES), (self.link_columns, LINK_ROLES)):
            for role in mapping:
                if role not in known:
                    raise ConfigError(
                        f"column mapping {role!r}: expected one of {', '.join(known)}"
                    )
        if self.link_columns and not self.links:
            raise ConfigError("--link-columns: give the file of links too, as --links")
        if self.date_format and not _has_year(self.date_format):
            raise ConfigError(
                f"date_format = {self.date_format!r}: expected such as %d/%m/%Y %H:%M"
            )
        try:
            convert(self.repo or "owner/name", RepoName)
        except Malformed:
            raise ConfigError(
                f"repo = {self.repo!r}: expected owner/name, such as acme/helpdesk"
            ) from None


def _has_year(date_format: str) -> bool:
    """Whether it is a format of strptime with a year, unlike dd/mm/yyyy."""
    moment = datetime(2024, 1, 31, tzinfo=UTC)
    try:
        parsed = datetime.strptime(moment.strftime(date_format), date_format)
    except ValueError:
        return False
    return parsed.year == moment.year


def file_kind(path: Path) -> str:
    """The suffix of a file that may contain tickets, without `.gz`; empty for other files."""
    kind = format_of(path)
    return kind if kind in _KINDS else ""


@dataclass(frozen=True)
class TicketFile:
    """A file of tickets or links; `broken` gets the errors of its rows and may raise them."""

    path: Path
    columns: Columns
    broken: OnBroken
    date_format: str = ""
    are_links: bool = False

    def __iter__(self) -> Iterator[Ticket]:
        for row, source, cells in self.cells():
            try:
                yield read_ticket(source, cells, self.time_of)
            except Malformed as error:
                self.broken(DataError(str(error), path=self.path, row=row))

    def contains_tickets(self) -> bool:
        """Whether the first row or object is a ticket or a link."""
        _, first = next(_rows(self.path, lambda _: None), (0, None))
        item = next(iter(objects_in(first)), None)
        stem, _, _ = self.path.name.lower().partition(".")
        # Such as GitHub's milestones.
        is_of_github = "/repos/" in str(dict_or_empty(item).get("url"))
        if is_of_github or any(map(is_known, (first, item))):
            return False
        if _OTHER_FILES.fullmatch(stem):
            return False
        try:
            return bool(cells_of(source_row(item), self.columns))
        except Malformed:
            return False

    def lacks_body(self) -> bool:
        """Whether it is a table of tickets without a column for texts."""
        for _, source, cells in self.cells():
            return not source.fields and "title" in cells and "body" not in cells
        return False

    def cells(self) -> Iterator[tuple[int, SourceRow, Cells]]:
        """The number, names with values, and cells of each ticket or link."""
        try:
            for row, value in self._objects():
                try:
                    source = source_row(value)
                    cells = cells_of(source, self.columns, are_links=self.are_links)
                    yield row, source, cells
                except Malformed as error:
                    if isinstance(value, SourceRow):
                        # The table lacks a column, which holds for all of its rows.
                        self.broken(DataError(str(error), path=self.path))
                        return
                    self.broken(DataError(str(error), path=self.path, row=row))
        except DataError as error:
            self.broken(error)

    def time_of(self, text: str) -> str:
        """A time as a stamp."""
        return stamp(parse_time(text, self.date_format, lambda: self._day_first))

    @cached_property
    def _day_first(self) -> bool:
        """Whether the day comes first in dates such as 03/04/2024, according to the file's other dates."""
        orders: set[bool | None] = set()
        same_file = TicketFile(self.path, self.columns, lambda _: None)
        for _, _, cells in same_file.cells():
            orders.update(date_order(one_text(cells, role)) for role in TIMES)
        orders.discard(None)
        if len(orders) != 1:
            fault = (
                "have both orders" if orders else "can have the day or the month first"
            )
            raise DataError(
                f"dates such as 03/04/2024 {fault}; give --date-format %d/%m/%Y or %m/%d/%Y"
                ", with the time if there is one, such as %d/%m/%Y %H:%M",
                path=self.path,
            )
        return orders == {True}

    def _objects(self) -> Iterator[tuple[int, object]]:
        """Yield rows of tables, and objects, which are numbered in JSON and have their line in JSON lines."""
        is_json = file_kind(self.path) == ".json"
        number = 0
        for row, value in _rows(self.path, self.broken):
            for item in objects_in(value):
                number += 1
                yield number if is_json else row, item


def _rows(path: Path, broken: OnBroken) -> Iterator[tuple[int, object]]:
    """Yield numbered JSON objects as they are, or rows of tables."""
    kind = file_kind(path)
    if kind == ".json":
        yield from values(path, broken)
    elif kind in LINES:
        yield from read_objects(path, broken)
    elif kind in (".csv", ".tsv"):
        lines = records(path, broken)
        names = tuple(next(lines, (1, []))[1])
        for row, cells in lines:
            if cells:
                missing = len(names) - len(cells)
                yield row, SourceRow(names, cells + [""] * missing)
    else:
        frame = read_table(path)
        names = tuple(frame.columns)
        for row, values_of_row in enumerate(frame.iter_rows(), first_row(path)):
            yield row, SourceRow(names, values_of_row)
