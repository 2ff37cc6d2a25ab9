"""Tickets from the rows of tables and the JSON objects of trackers other than GitHub.

`ticket_columns.toml` declares their columns and keys, their links, and objects that are not tickets.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from gis_builder.store import Comment, Issue
from gis_builder.store.decoding import Malformed, whole_text
from gis_builder.trackers.markup import markup_kind, to_markdown
from pairkit.base.printable import comparable, one_line

_DECLARED = tomllib.loads(
    Path(__file__).with_name("ticket_columns.toml").read_text(encoding="utf-8")
)
ROLES: dict[str, list[str]] = _DECLARED["roles"]
# The roles that a ticket, and a row of links, must have.
TICKET = ("id", "title", "created_at")
LINK = ("id", "duplicate_of")
LINK_ROLES = (*LINK, "relation")

SEPARATOR = re.compile(r"[,;|\n，、；]")  # of ids or labels in a cell
# Keys of the list of tickets in an answer of an API or in an export.
_WRAPPER = re.compile(
    "(?i)issues?|bugs?|tickets?|items|data|records?|results?|values?|entries|rows"
    "|repository|project|search|nodes?|edges"
)
# Keys whose fields are read; the last has Freshdesk's times.
NESTED = ("fields", "attributes", "stats")
_COMMENTS = (
    "comment.comments",
    "comments",
    "journals",
    "notes",
    "discussions.notes",  # of GitLab's API
    "discussion_thread.posts",
    "conversations",
)
_OTHER_KINDS: dict[str, str] = {
    key: kind for kind, keys in _DECLARED["other_kinds"].items() for key in keys
}

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
_NO_TIME = re.compile(r"(?i)n/?a|na[nt]|none|null|never|0001-01-01.*|[-–—/.:0T ]+Z?")
_OR_SKIP = "or give --skip-broken"
_GITLAB_API = re.compile(r"projects/([0-9]+)/issues/([0-9]+)$")
_PERSON = (
    "username",
    "name",
    "displayName",
    "display_name",
    "display_value",
    "login",
    "key",
    "identifier",
)
# Types of nodes in Jira's rich text that are lines of their own, and the tags around some of them.
_BLOCKS = {"paragraph", "heading", "codeBlock", "blockquote", "listItem", "hardBreak"}
_RICH_TAGS = {"codeBlock": "{noformat}", "blockquote": "{quote}"}
_MARKS = {"\n", *_RICH_TAGS.values()}

Columns: TypeAlias = Mapping[str, str]
Cells: TypeAlias = dict[str, list[Any]]  # by role
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


def objects_in(value: Any, depth: int = 5) -> list[Any]:
    """The objects in a wrapper such as `{"issues": [...]}`, or the value itself."""
    if (
        not isinstance(value, dict)
        or not depth
        or "title" in roles_of(tuple(flat(value)))
    ):
        return [value]
    wrappers = {key: inner for key, inner in value.items() if _WRAPPER.fullmatch(key)}
    lists = [inner for inner in wrappers.values() if isinstance(inner, list)]
    dicts = [inner for inner in wrappers.values() if isinstance(inner, dict)]
    if lists or dicts:
        if "key" in value:
            return [value]
        items = lists[0] if lists else dicts[:1]
    elif all(isinstance(inner, dict) for inner in value.values()):
        items = list(value.values())  # by number, or by alias of a GraphQL query
    else:
        return [value]
    objects = []
    for item in items:
        objects += objects_in(item, depth - 1)
    if (lists or dicts) and isinstance(value.get("comments"), list):
        return _with_comments(objects, value["comments"])
    return objects


def _with_comments(objects: Iterable[Any], comments: Iterable[Any]) -> list[Any]:
    """The objects with their comments, which Bitbucket has beside the issues."""
    comments_of: dict[str, list[Any]] = {}
    for comment in comments:
        issue = cell_text(_dict(comment).get("issue"))
        comments_of.setdefault(issue, []).append(comment)
    comments_of.pop("", None)
    with_comments = []
    for item in objects:
        own = comments_of.get(cell_text(_dict(item).get("id")))
        with_comments.append(item | {"comments": own} if own else item)
    return with_comments


def flat(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object with the fields of nested objects, and without nulls."""
    merged = {}
    for item in map(_dict, _at(value, "customFields")):
        merged[cell_text(item.get("name"))] = item.get("value")
    merged |= value
    merged = {name: connected(field) for name, field in merged.items()}
    for name in NESTED:
        merged |= _dict(value.get(name))
    if "fields" in value and "key" in value:  # Jira
        key = cell_text(value["key"])
        root = cell_text(value.get("self")).partition("/rest/")[0]
        merged |= {
            "repo": key.rpartition("-")[0],
            "web url": root and f"{root}/browse/{key}",
        }
    if "creation_time" in merged:
        # Bugzilla's first comment is the description, and `url` is not its page.
        comments = _at(merged, "comments")
        first = _dict(comments[0]) if comments else {}
        merged = {"description": first.get("text")} | merged
        merged |= {"url": "", "comments": comments[1:]}
    return {name: field for name, field in merged.items() if field is not None}


def connected(value: Any) -> Any:
    """The items of a connection of GraphQL; any other value stays."""
    if not isinstance(value, dict):
        return value
    if "edges" in value:
        return _at(value, "edges.node")
    return value.get("nodes", value)


def cells_of(value: Any, columns: Columns, *, are_links: bool) -> Cells:
    """The values of each role in a row of a table or in a JSON object."""
    if not isinstance(value, dict | tuple):
        raise Malformed(f"{type(value).__name__}, expected a JSON object")
    names, values = (
        (tuple(value), tuple(value.values())) if isinstance(value, dict) else value
    )
    kind = other_kind(names)
    if kind and not columns:
        raise Malformed(
            f"is {kind}; import only tickets, or give their columns with --columns"
        )
    indices = roles_of(names, tuple(columns.items()))
    is_link = are_links or ("title" not in indices and "duplicate_of" in indices)
    missing = [role for role in (LINK if is_link else TICKET) if role not in indices]
    if missing:
        flag = "--link-columns" if are_links else "--columns"
        raise Malformed(_missing_columns(missing, names, columns, flag))
    cells = _by_role(values, indices)
    if is_link:
        return {role: cells[role] for role in LINK_ROLES if role in cells}
    return cells


def _missing_columns(
    missing: Sequence[str],
    names: Iterable[str],
    columns: Columns,
    flag: str,
) -> str:
    """Which roles have no column, and what to do."""
    fault = f"no column for {', '.join(missing)}"
    wrong = [role for role in missing if role in columns]
    if wrong:
        fault = f"no column {columns[wrong[0]]!r} for {wrong[0]}"
    named = one_line(", ".join(names), 400) or "(none)"
    mapping = ",".join(f"{role}=NAME" for role in missing)
    return f"{fault}; the columns are {named}: rename columns, or give {flag} {mapping}"


def other_kind(names: Iterable[str]) -> str:
    """What an object with these keys is instead of a ticket; empty if unknown."""
    for name in names:
        if name in _OTHER_KINDS:
            return _OTHER_KINDS[name]
    return ""


@lru_cache(100)
def roles_of(
    names: tuple[str, ...],
    columns: tuple[tuple[str, str], ...] = (),
) -> dict[str, list[int]]:
    """The indices of each role's columns; `columns` maps roles to names."""
    mapping = dict(columns)
    stripped: dict[str, list[int]] = {}
    normalised: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        stripped.setdefault(name.strip(), []).append(index)
        normalised.setdefault(_normalised(name), []).append(index)
    by_role = {}
    for role, known in ROLES.items():
        indices = []
        if role in mapping:
            indices = stripped.get(mapping[role], [])
        else:
            for name in known:
                indices = indices + normalised.get(name, [])
        if indices:
            by_role[role] = indices[:1] if role in TICKET else indices
    return by_role


def _normalised(name: str) -> str:
    """A name such as `System.CreatedDate` or `Created At (UTC)` as in `ROLES`."""
    last = re.sub(r"^[\w.]+\.(?=\w)|\(UTC\)$", "", comparable(name).strip())
    parts = re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", last))
    return " ".join(parts).lower() or last


def read_ticket(cells: Cells, value: Any, time_of: TimeOf) -> Ticket:
    """The ticket, or only its links, in the cells of a row or object."""
    own_id = plain_id(one_text(cells, "id"))
    if not _ID.fullmatch(own_id):
        raise Malformed(
            f"id: expected one line of 1 to 200 characters; fix it, {_OR_SKIP}"
        )
    if _ROUNDED.fullmatch(own_id):
        raise Malformed(
            f"id {own_id} was rounded by a spreadsheet; export ids as text, {_OR_SKIP}"
        )
    links = tuple(dict.fromkeys(_links(cells, value, own_id)))
    if "title" not in cells:
        return Ticket(own_id, links)
    kind = markup_kind(tuple(value if isinstance(value, dict) else value[0]))
    return Ticket(
        id=own_id,
        links=links,
        issue=_issue(cells, kind, time_of),
        url=one_text(cells, "url"),
        repo=one_text(cells, "repo"),
        priority=one_text(cells, "priority"),
        comments=tuple(_comments(cells, value, kind, time_of)),
        comment_count=next(iter(cells.get("comment_count", ())), None),
    )


def _links(cells: Cells, value: Any, own_id: str) -> Iterator[Link]:
    relation = one_text(cells, "relation")
    for role in ("duplicate_of", "duplicated_by", "links"):
        for text in _texts(cells, role):
            cell = f"{relation} {text}".strip()
            yield Link(own_id, cell, "links" if relation else role)
    if isinstance(value, dict):
        formal = list(_formal_links(value, own_id))
        yield from formal
        if not formal:
            # GitLab's id in the database: an export has only the number, in a system note.
            for number in _at(value, "duplicated_to_id"):
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
        closed_by=None,
        labels=_several(cells, "labels"),
    )


def _comments(
    cells: Cells, value: Any, kind: str, time_of: TimeOf
) -> Iterator[Comment]:
    if isinstance(value, dict):
        lists = [_at(value, path) for path in _COMMENTS]
        items = next(filter(None, lists), [])
    else:
        names = ("created", "author", "text")
        parts = (text.split(";", 2) for text in _texts(cells, "comments"))
        items = [dict(zip(names, part, strict=False)) for part in parts]
    for number, item in enumerate(map(_dict, items), 1):
        fields = _by_role(tuple(item.values()), roles_of(tuple(item)))
        body = to_markdown(one_text(fields, "body"), kind)
        if (body or "created_at" not in fields) and item.get("system") is not True:
            try:
                when = _required_time(fields, time_of)
            except Malformed:
                if isinstance(value, dict):
                    raise
                continue  # another column of remarks
            author = one_text(fields, "author") or None
            yield Comment(number, author, "NONE", when, body)


def _by_role(values: Sequence[Any], indices: Mapping[str, Sequence[int]]) -> Cells:
    """The values of each role, by the indices of its columns."""
    return {role: [values[place] for place in indices[role]] for role in indices}


def nested_roles(value: Mapping[str, Any]) -> dict[str, str]:
    """The keys of an object whose lists have its comments and links."""
    roles = {
        rule["items"]: "links"
        for rule in _DECLARED["links"]
        if any(_at(item, rule["target"]) for item in _at(value, rule["items"]))
    }
    if "duplicated_to_id" in value:
        roles["duplicated_to_id"] = "duplicate_of"
    for path in _COMMENTS:
        if _at(value, path):
            key = path.partition(".")[0]
            roles[key] = f"comments, {roles[key]}" if key in roles else "comments"
            break
    return roles


def _formal_links(value: Mapping[str, Any], own_id: str) -> Iterator[Link]:
    for rule in _DECLARED["links"]:
        for item in _at(value, rule["items"]):
            if "when" in rule:
                path, *expected = rule["when"]
                if list(map(str, _at(item, path))) != expected:
                    continue
            words = _at(item, rule.get("relation", ""))
            relation = " ".join(map(cell_text, words))
            source = own_id
            if "source" in rule:
                source = next(map(cell_text, _at(item, rule["source"])), own_id)
            for target in map(cell_text, _at(item, rule["target"])):
                address = _GITLAB_API.search(target)
                if address is not None and address[1] == cell_text(
                    value.get("project_id")
                ):
                    target = address[2]
                cell = f"{rule.get('words', relation)} {target}"
                if rule.get("only", "") in cell:
                    yield Link(source, cell, "links")


def _at(value: Any, path: str) -> list[Any]:
    """The values at a dotted path, through lists and without nulls."""
    values = [value]
    for name in path.split("."):
        items: list[Any] = []
        for parent in values:
            if isinstance(parent, dict):
                field = parent.get(name)
                items += field if isinstance(field, list) else [field]
        values = [item for item in items if item is not None]
    return values


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def plain_id(text: str) -> str:
    """Remove the `#`, and the `.0` that tools add if a column has empty cells."""
    text = text.removeprefix("#")
    return text.removesuffix(".0") if text.removesuffix(".0").isdecimal() else text


def _texts(cells: Cells, role: str) -> list[str]:
    """The texts of a role's cells, which may be lists."""
    values = []
    for cell in cells.get(role, ()):
        values += cell if isinstance(cell, list) else [cell]
    texts = [cell_text(value).strip() for value in values]
    return [text for text in texts if text]


def _several(cells: Cells, role: str) -> tuple[str, ...]:
    """The parts of a role's texts, which may have separators."""
    parts: dict[str, None] = {}
    for text in _texts(cells, role):
        parts |= dict.fromkeys(part.strip() for part in SEPARATOR.split(text))
    return tuple(filter(None, parts))


def one_text(cells: Cells, role: str) -> str:
    """The first text of a role's cells."""
    for cell in cells.get(role, ()):
        text = cell_text(cell).strip()
        if text:
            return text
    return ""


def cell_text(cell: Any) -> str:
    """A cell as text: the name of a person, the words of Jira's rich text; empty for unknown types."""
    if isinstance(cell, dict):
        names = [cell[key] for key in _PERSON if isinstance(cell.get(key), str)]
        name = whole_text(names[0]) if names else ""
        return name or "".join(_rich_text(cell)).strip()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, date):
        return cell.isoformat()
    is_plain = isinstance(cell, str | int | float) and not isinstance(cell, bool)
    return whole_text(str(cell)) if is_plain else ""


def _rich_text(tree: Any) -> Iterator[str]:
    """The words of a text in the tree format of version 3 of Jira's API."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += reversed(node)
        elif isinstance(node, dict):
            attrs = _dict(node.get("attrs"))
            text = ""
            # The node's own text counts before its attributes.
            for named in (attrs.get("url"), attrs.get("text"), node.get("text")):
                if named and isinstance(named, str):
                    text = whole_text(named)
            is_struck = text.strip() != "" and "strike" in _at(node, "marks.type")
            yield f"~~{text}~~" if is_struck else text
            kind = cell_text(node.get("type"))
            tag = _RICH_TAGS.get(kind, "")
            yield tag
            stack += ["\n" if kind in _BLOCKS else "", tag, node.get("content")]
        elif node in _MARKS:
            yield node


def _time(cells: Cells, role: str, time_of: TimeOf) -> str | None:
    text = one_text(cells, role)
    if not text or _NO_TIME.fullmatch(text):
        return None
    try:
        return time_of(text)
    except Malformed as error:
        raise Malformed(f"{role}: {error}") from None


def _required_time(cells: Cells, time_of: TimeOf) -> str:
    time = _time(cells, "created_at", time_of)
    if time is None:
        raise Malformed(f"created_at: empty; fill it in, {_OR_SKIP}")
    return time
