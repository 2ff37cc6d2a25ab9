"""Hostile saved trackers end in a one-line message or a readable store."""

import json
import random
import shutil
from contextlib import suppress

import gis_builder
from pairkit import ConfigError, DataError
from tests.support.shorthand import parametrize, raises, text_table, values

from .conftest import DATA, comment, event, issue, write_tracker, write_world
from .crawl_fuzz import Changer
from .test_saved import HOME, copied
from .test_ticket_exports import save
from .working_folder import contents, imported

HUGE = "9" * 5000
LISTED = json.loads((DATA / "layouts/gh_list/issues.json").read_text())[0]


def refused(source, work):
    """The one-line error of an import."""
    with raises(DataError) as caught:
        imported(source, work)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def ticket(**fields):
    return {"id": 1, "title": "x", "created_at": "2024-01-01", **fields}


# In a tracker, a table or an object of any layout, and the part of the message that names the fault.
REPO_FILES = [
    "[" * 200_000,
    '{"full_name": "o/r", "x": ' + "[" * 200_000,
    " " * (1 << 20) + '{"full_name": "o/r"}',
    *({"full_name": name} for name in ("../..", "o/..")),
    *(
        {"full_name": HOME, "previous_names": names}
        for names in (5, True, [".."], ["a/b", [1]])
    ),
    *(
        {"full_name": HOME, "created_at": time}
        for time in (5, "\ud800", "0001-01-01T00:00:00Z")
    ),
    {"full_name": HOME, "private": {}},
]
MARK = event(HOME, 1, "marked_as_duplicate", 3)
LINES = [
    ("issues", issue(HOME, 1) | {"state": [1]}),
    ("issues", {}),
    ("issues", issue(HOME, 2**31 - 1)),
    ("issues", issue(HOME, 10_000_001)),
    ("missing", {"number": 5, "status": {}}),
    *(
        ("missing", {"number": 5, "status": "transferred", "to": to})
        for to in (f"o/r#{HUGE}", "o/r#0", "../..#9")
    ),
    ("events", MARK | {"canonical": "o\x1b/r#9"}),
    ("events", MARK | {"event": [1]}),
    (
        "comments",
        comment(HOME, 1, 5, "x")
        | {"issue_url": f"https://x/repos/{HOME}/issues/{HUGE}"},
    ),
]
ISSUES_LINES = values("""
    {'state_reason': 5} | state_reason: expected str
    {'author_association': ['OWNER']} | author_association: expected str
    {'created_at': '0001-01-01T00:00:00Z'} | a time outside the years
    {'comments': -1} | comments: expected int >= 0
    {'comments': 'dup of #2'} | comments: expected int
    {'user': {'login': 'a b'}} | user.login: expected a login
    {'repository_url': 'https://api.github.com/repos/a b/c?d'} | expected owner/name
""")
OBJECTS = [
    *(
        (content, message)
        for message, content in text_table(
            r"""
    x.json:2: unknown layout | [{"event": "labeled"}, {"of": "nothing"}]
    unknown layout | [1, 2]
    x.json:1: unknown layout | [{}, {"id": 1, "title": "x", "created_at": "2024-01-01"}]
    x.json:2: not JSON (unbalanced brackets | [{"event": "labeled"}
    x.json:1: unknown layout | [NaN
    x.json:1: is an error message of GitHub | {"message": "Bad credentials", "documentation_url": ""}
    contains no issue; save | []
    x.json:1:  | {"issues": [{"key": "A-1", "fields": {"summary": 5, "created": [1]}}, 7]}
    x.json:1:  | {"issues": [{"key": ["A"], "fields": {"summary": "x", "created": "2024-01-01"}}]}
    x.json:1:  | {"bugs": [null, {"id": {}, "summary": "x", "creation_time": "9"}]}
    x.json:1:  | {"bugs": [{"id": 1, "summary": "x", "creation_time": "2024-01-01", "comments": [0, 5]}]}
    """,
            columns=2,
        )
    ),
    ([LISTED | {"state": "odd"}], "state: invalid enum value"),
    *(
        ([LISTED | {"labels": labels}], "x.json:1: labels")
        for labels in (5, {"a": 1}, [5])
    ),
    (
        {"number": 1, "title": "x", "state": "OPEN", "url": LISTED["url"]},
        "missing required field created_at",
    ),
    (
        {"incomplete_results": True, "items": [issue(HOME, 1)]},
        "x.json:1: is an incomplete answer of GitHub",
    ),
    (
        {"data": {"nodes": [None, LISTED]}, "errors": [{}]},
        "x.json:1: is an incomplete answer of GitHub",
    ),
    ([issue(HOME, 1), {"event": "closed", "id": 1}], "x.json:2: names no issue"),
    (
        '[{"event": "labeled"}, {"a": ' + "[" * 100_000,
        "x.json:2: not JSON (nested too deep",
    ),
    ("[" * 100_000, "not JSON"),
    ({"iid": 1e400, "web_url": 5, "title": [], "_links": 3}, "x.json:1: "),
    (ticket(id="\x1b[0m"), "x.json:1: "),
]
TABLES = [
    *(
        (content, message)
        for message, content in text_table(
            r"""
    t.csv: no column for created_at; the columns are id, title: rename | id,title\n1,a\n
    no column for title; the columns are id, a; b; c; d, | id,"a; b; c; d",created_at\n1,a,2024-01-01\n
    t.csv:3: title: empty | id,title,created_at\n1,a,2024-01-01\n2,,2024-01-01\n
    created_at: unknown time '12/31/2024 25:00'; expected | id,title,created_at\n1,a,12/31/2024 25:00\n
    t.csv:2: created_at: empty | id,title,created_at\n1,a,\n
    t.csv:2: created_at: a time outside the years | id,title,created_at\n1,a,1066-10-14\n
    t.csv:2: id 1.23457E+15 was rounded | id,title,created_at\n1.23457E+15,a,2024-01-01\n
    t.csv: no column for id | ,title,created_at\n,a,2024-01-01\n
    t.csv:2: id: expected one line | id,title,created_at\n,a,2024-01-01\n
    t.csv:2: 4 cells, expected 3, so 'b' is beyond | id,title,created_at\n1,a,2024-01-01,b\n
    t.csv:2: lines 2 to 4: a quotation mark opens | id,title,created_at\n1,"a,2024-01-01\n2,a,x\n3,a,x\n
    contains no issue | id,title,created_at\n
    contains no issue |
    """,
            columns=2,
        )
    )
]


@parametrize(
    "name, content, message",
    [
        *((f"{HOME}/repo.json", content, "repo.json: ") for content in REPO_FILES),
        *((f"{HOME}/{stem}.jsonl", row, f"{stem}.jsonl:1: ") for stem, row in LINES),
        (f"{HOME}/issues.jsonl", "", f"({HOME}: empty (no issues)); save"),
        *(
            ("issues.jsonl", issue(HOME, 1) | fields, message)
            for fields, message in ISSUES_LINES
        ),
        *(("x.json", content, message) for content, message in OBJECTS),
        *(("t.csv", content, message) for content, message in TABLES),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_fault_is_named_with_file_and_row(tmp_path, name, content, message):
    saved = tmp_path / "saved"
    if name.startswith(HOME):
        write_tracker(saved, HOME, issues=[issue(HOME, 1)])
    path = save(saved, name, content)
    if not name.endswith("jsonl") and path.parent == saved:
        saved = path  # named alone, a file is never skipped as another program's
    error = refused(saved, tmp_path / "work")
    assert message in error
    assert path.name in error or "contains no issue" in error
    with suppress(DataError):
        imported(saved, tmp_path / "other", skip_broken=True)
        gis_builder.status(tmp_path / "other")
        contents(tmp_path / "other")


@parametrize("seed", range(20))
def test_random_trackers_end_in_success_or_a_one_line_error(tmp_path, seed):
    fuzz_import(tmp_path, seed)


LAYOUTS = ("world", "paginated", "gh_list", "github_backup")


def fuzz_import(folder, seed):
    """Import a changed tracker and read it; returns `ok` or the name of the error."""
    draw = random.Random(seed)
    root = folder / "saved"
    layout = draw.choice(LAYOUTS)
    if layout == "world":
        write_world(root)
    else:
        copied(layout, root)
    changer = Changer(draw)
    files = sorted(
        path for path in root.rglob("*") if path.is_file() and path.suffix != ".gz"
    )
    for path in draw.sample(files, min(len(files), draw.choice((1, 1, 2, 3)))):
        _spoil(path, changer, draw)
    try:
        return _imported(root, folder / "work")
    except Exception as error:
        raise AssertionError(
            f"seed {seed}: {type(error).__name__}: {str(error)[:300]}"
        ) from error
    finally:
        shutil.rmtree(root)


def _spoil(path, changer, draw):
    """Change a line, a value or bytes of a file."""
    lines = (
        path.read_bytes().split(b"\n")
        if path.suffix == ".jsonl"
        else [path.read_bytes()]
    )
    place = draw.randrange(len(lines))
    *_, lines[place] = changer.change(200, {}, lines[place])
    path.write_bytes(b"\n".join(lines))


def _imported(root, work):
    try:
        imported(root, work)
    except (DataError, ConfigError) as error:
        if "\n" in str(error):
            raise AssertionError(f"more than a line: {error}") from error
        return type(error).__name__
    assert not [text for _, text in gis_builder.status(work).warnings if "\n" in text]
    gis_builder.detect(work)
    contents(work)
    return "ok"
