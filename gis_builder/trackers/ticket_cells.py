"""Tickets from the rows of tables and the JSON objects of trackers other than GitHub.

`ticket_columns.toml` declares their columns and keys, their links, and objects that are not tickets.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from itertools import chain
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
TICKET, LINK = ("id", "title", "created_at"), ("id", "duplicate_of")  # required roles
LINK_ROLES = (*LINK, "relation")

SEPARATOR = re.compile(r"[,;|\n，、；]")  # of ids or labels in a cell
# Keys of the list of tickets in an answer of an API or in an export.
_WRAPPER = re.compile(
    "(?i)issues?|bugs?|tickets?|items|data|records?|results?|values?|entries|rows"
    "|repository|project|search|nodes?|edges"
)
NESTED = (
    "fields",
    "attributes",
    "stats",
)  # keys whose fields are read; the last has Freshdesk's times
_COMMENTS = (
    "comment.comments",
    "comments",
    "journals",
    "notes",
    "discussions.notes",  # of GitLab's API
    "discussion_thread.posts",
    "conversations",
)
_OTHER_KINDS = {key: kind for kind, keys in _DECLARED["other_kinds"].items() for key in keys}

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
_BLOCKS = {
    "paragraph",
    "heading",
    "codeBlock",
    "blockquote",
    "listItem",
    "hardBreak",
}  # of Jira's rich text
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
    if not isinstance(value, dict) or not depth or "title" in roles_of(tuple(flat(value))):
        return [value]
    inside = [(key, inner) for key, inner in value.items() if _WRAPPER.fullmatch(key)]
    key = next(
        (key for kind in (list, dict) for key, inner in inside if isinstance(inner, kind)), None
    )
    if key is None and all(isinstance(inner, dict) for inner in value.values()):
        # By number, or by alias of a GraphQL query
        return [item for inner in value.values() for item in objects_in(inner, depth - 1)]
    if key is None or "key" in value:
        return [value]
    items = value[key] if isinstance(value[key], list) else [value[key]]
    objects = [inner for item in items for inner in objects_in(item, depth - 1)]
    comments: dict[str, list[Any]] = {}  # Bitbucket's are beside the issues
    for comment in value["comments"] if isinstance(value.get("comments"), list) else ():
        comments.setdefault(cell_text(_dict(comment).get("issue")), []).append(comment)
    comments.pop("", None)
    comments_of = [comments.get(cell_text(_dict(each).get("id"))) for each in objects]
    return [
        each | {"comments": more} if more else each
        for each, more in zip(objects, comments_of, strict=True)
    ]


def flat(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object with the fields of nested objects, and without nulls."""
    custom = {
        cell_text(item.get("name")): item.get("value")
        for item in map(_dict, _at(value, "customFields"))
    }
    merged = {**custom, **value}
    merged = {name: connected(field) for name, field in merged.items()}
    for name in NESTED:
        merged |= _dict(value.get(name))
    if "fields" in value and "key" in value:  # Jira
        key = cell_text(value["key"])
        root = cell_text(value.get("self")).partition("/rest/")[0]
        merged |= {"repo": key.rpartition("-")[0], "web url": root and f"{root}/browse/{key}"}
    comments = _at(merged, "comments")
    if (
        "creation_time" in merged
    ):  # Bugzilla's first comment is the description, and `url` is not its page
        merged = {"description": _dict(next(iter(comments), None)).get("text")} | merged
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
    names, values = (tuple(value), tuple(value.values())) if isinstance(value, dict) else value
    if (kind := other_kind(names)) and not columns:
        raise Malformed(f"is {kind}; import only tickets, or give their columns with --columns")
    indices = roles_of(names, tuple(columns.items()))
    is_link = are_links or ("title" not in indices and "duplicate_of" in indices)
    if missing := [role for role in (LINK if is_link else TICKET) if role not in indices]:
        wrong = (f"no column {columns[role]!r} for {role}" for role in missing if role in columns)
        fault = next(wrong, f"no column for {', '.join(missing)}")
        flag = "--link-columns" if are_links else "--columns"
        remedy = f"rename columns, or give {flag} {','.join(f'{role}=NAME' for role in missing)}"
        raise Malformed(
            f"{fault}; the columns are {one_line(', '.join(names), 400) or '(none)'}: {remedy}"
        )
    return {
        role: [values[n] for n in columns]
        for role, columns in indices.items()
        if role in LINK_ROLES or not is_link
    }


def other_kind(names: Iterable[str]) -> str:
    """What an object with these keys is instead of a ticket; empty if unknown."""
    return next((_OTHER_KINDS[name] for name in names if name in _OTHER_KINDS), "")


@lru_cache(100)
def roles_of(
    names: tuple[str, ...], columns: tuple[tuple[str, str], ...] = ()
) -> dict[str, list[int]]:
    """The indices of each role's columns; `columns` maps roles to names."""
    normalised = [_normalised(name) for name in names]
    mapping = dict(columns)
    by_role = {}
    for role, known in ROLES.items():
        if role in mapping:
            indices = [index for index, name in enumerate(names) if name.strip() == mapping[role]]
        else:
            indices = [i for name in known for i, column in enumerate(normalised) if column == name]
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
        raise Malformed(f"id: expected one line of 1 to 200 characters; fix it, {_OR_SKIP}")
    if _ROUNDED.fullmatch(own_id):
        raise Malformed(f"id {own_id} was rounded by a spreadsheet; export ids as text, {_OR_SKIP}")
    relation = one_text(cells, "relation")
    links = [
        Link(own_id, f"{relation} {text}".strip(), "links" if relation else role)
        for role in ("duplicate_of", "duplicated_by", "links")
        for text in _texts(cells, role)
    ]
    if isinstance(value, dict):
        formal = [*_formal_links(value, own_id)]
        # GitLab's id in the database: an export has only the number, in a system note.
        links += formal or [
            Link(own_id, f"duplicated_to_id={n}") for n in _at(value, "duplicated_to_id")
        ]
    link = Ticket(own_id, tuple(dict.fromkeys(links)))
    if "title" not in cells:
        return link
    title = one_text(cells, "title")
    state, resolution = (comparable(one_text(cells, role)) for role in ("state", "resolution"))
    if not title:
        raise Malformed(f"title: empty; fill it in, {_OR_SKIP}")
    created_at = _required_time(cells, time_of)
    closed_at = _time(cells, "closed_at", time_of)
    updated_at = _time(cells, "updated_at", time_of) or closed_at or created_at
    has_resolution = not _UNRESOLVED.fullmatch(resolution.strip("-").lower())
    is_resolved = has_resolution or _CLOSED.fullmatch(state.lower())
    is_duplicate = any(map(_DUPLICATE.fullmatch, (state, resolution)))
    is_closed = is_resolved or is_duplicate or (closed_at and not _OPEN.match(state.lower()))
    kind = markup_kind(tuple(value if isinstance(value, dict) else value[0]))
    issue = Issue(
        repo="",
        number=0,
        title=title,
        body=to_markdown(one_text(cells, "body"), kind),
        state="closed" if is_closed else "open",
        state_reason=("duplicate" if is_duplicate else "completed") if is_closed else None,
        author=one_text(cells, "author") or None,
        author_association="NONE",
        created_at=created_at,
        updated_at=updated_at,
        closed_at=(closed_at or updated_at) if is_closed else None,
        closed_by=None,
        labels=_several(cells, "labels"),
    )
    url, repo, priority = (one_text(cells, role) for role in ("url", "repo", "priority"))
    comments = tuple(_comments(cells, value, kind, time_of))
    stated = next(iter(cells.get("comment_count", ())), None)
    return Ticket(own_id, link.links, issue, url, repo, priority, comments, stated)


def _comments(
    cells: Cells,
    value: Any,
    kind: str,
    time_of: TimeOf,
) -> Iterator[Comment]:
    if isinstance(value, dict):
        items = next((items for path in _COMMENTS if (items := _at(value, path))), [])
    else:
        parts = (text.split(";", 2) for text in _texts(cells, "comments"))
        items = [dict(zip(("created", "author", "text"), part, strict=False)) for part in parts]
    for number, item in enumerate(map(_dict, items), 1):
        fields = {
            role: [[*item.values()][n] for n in indices]
            for role, indices in roles_of(tuple(item)).items()
        }
        body = to_markdown(one_text(fields, "body"), kind)
        if (body or "created_at" not in fields) and item.get("system") is not True:
            try:
                when = _required_time(fields, time_of)
            except Malformed:
                if isinstance(value, dict):
                    raise
                continue  # another column of remarks
            yield Comment(number, one_text(fields, "author") or None, "NONE", when, body)


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
            if "when" in rule and [*map(str, _at(item, rule["when"][0]))] != rule["when"][1:]:
                continue
            relation = " ".join(map(cell_text, _at(item, rule.get("relation", ""))))
            source = (
                next(map(cell_text, _at(item, rule["source"])), own_id)
                if "source" in rule
                else own_id
            )
            for target in map(cell_text, _at(item, rule["target"])):
                address = _GITLAB_API.search(target)
                is_same = address is not None and address[1] == cell_text(value.get("project_id"))
                target = address[2] if address and is_same else target
                cell = f"{rule.get('words', relation)} {target}"
                if rule.get("only", "") in cell:
                    yield Link(source, cell, "links")


def _at(value: Any, path: str) -> list[Any]:
    """The values at a dotted path, through lists and without nulls."""
    values = [value]
    for name in path.split("."):
        fields = [item.get(name) for item in values if isinstance(item, dict)]
        items = chain.from_iterable(
            field if isinstance(field, list) else [field] for field in fields
        )
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
    values = chain.from_iterable(
        cell if isinstance(cell, list) else [cell] for cell in cells.get(role, ())
    )
    return [text for text in map(str.strip, map(cell_text, values)) if text]


def _several(cells: Cells, role: str) -> tuple[str, ...]:
    """The parts of a role's texts, which may have separators."""
    parts = (part.strip() for text in _texts(cells, role) for part in SEPARATOR.split(text))
    return tuple(dict.fromkeys(part for part in parts if part))


def one_text(cells: Cells, role: str) -> str:
    """The first text of a role's cells."""
    return next((text for cell in cells.get(role, ()) if (text := cell_text(cell).strip())), "")


def cell_text(cell: Any) -> str:
    """A cell as text: the name of a person, the words of Jira's rich text; empty for unknown types."""
    if isinstance(cell, dict):
        name = next((cell[name] for name in _PERSON if isinstance(cell.get(name), str)), "")
        return whole_text(name) or "".join(_rich_text(cell)).strip()
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
            texts = (node.get("text"), attrs.get("text"), attrs.get("url"))
            text = whole_text(next((text for text in texts if text and isinstance(text, str)), ""))
            yield f"~~{text}~~" if text.strip() and "strike" in _at(node, "marks.type") else text
            kind = cell_text(node.get("type"))
            if tag := _RICH_TAGS.get(kind, ""):
                yield tag
            stack += ["\n" if kind in _BLOCKS else "", tag, node.get("content")]
        elif node in _MARKS:
            yield node


def _time(cells: Cells, role: str, time_of: TimeOf) -> str | None:
    text = one_text(cells, role)
    try:
        return time_of(text) if text else None
    except Malformed as error:
        raise Malformed(f"{role}: {error}") from None


def _required_time(cells: Cells, time_of: TimeOf) -> str:
    time = _time(cells, "created_at", time_of)
    if time is None:
        raise Malformed(f"created_at: empty; fill it in, {_OR_SKIP}")
    return time
