"""Ids, links, times, states and texts of tickets; damaged rows, options and previews of an import."""

import csv
import json
import re
from itertools import product
from pathlib import Path

import polars as pl
import pytest

import gis_builder
from pairkit import ConfigError, DataError
from tests.support.shorthand import (
    config_error,
    data_error,
    each_line,
    parametrize,
    raises,
    text_table,
)

from .conftest import issue, write_tracker
from .working_folder import imported, stored, verdicts

OPENED, CLOSED = "2024-01-30 10:00", "2024-02-02 09:00"


def table(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def tickets(first, second, third, more=""):
    """A table of three tickets, of which the second is closed, and more rows."""
    return f"""\
id,title,body,created_at,closed_at,state
{first},Printer prints twice,It began on Monday.,{OPENED},,open
{second},Two slips for one loan,"Same slip, same number.",2024-01-31 11:30,{CLOSED},closed
{third},Search is slow,Every afternoon.,2024-02-01 12:00,,open
{more}"""


def written(path, text):
    path.write_text(text)
    return path


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "tickets"
    folder.mkdir()
    return folder


@each_line("""
    first, second, link
    1 | 2 | 1, 3
    #1 | 2 | 1
    1 | 2 | 1.0
    1 | 2 | https://desk.example.com/tickets/1/
    SUP-00001 | SUP-00002 | SUP-1
    SUP-00001 | SUP-00002 | SUP-1 (same customer)
    SUP-00001 | SUP-00002 | 与SUP-00001重复
    1 | 2 | 与#1重复
    1 | 2 | 1、3
    SUP-00001 | SUP-00002 | 2 customers, duplicate of SUP 00001
    SUP-00001 | SUP-00002 | 1
    SUP-00001 | SUP-00002 | ticket-1
    SUP-00001 | SUP-00002 | https://acme.example.com/tickets/SUP-00001?tab=1
""")
def test_links_in_any_spelling(root, work, first, second, link):
    lines = tickets(first, second, "3").splitlines()
    cells = ("duplicate_of", "", f'"{link}"', "")
    rows = "\n".join(map(",".join, zip(lines, cells, strict=True)))
    imported(written(root / "t.csv", rows), work)
    (targets,) = (
        targets
        for outcome, targets, _ in verdicts(work).values()
        if outcome == "duplicate"
    )
    assert len(targets) == (2 if link in ("1, 3", "1、3") else 1)


# Cells of links in ticket X-9, and by column (duplicate of, links) the duplicates and originals of its marks.
LINK_CELLS = [
    ("related to X-1; duplicates X-2 | blocks X-3", "92", "92"),
    *text_table(r"""
        X-1 | 91 |
        see X-1 (same customer) | 91 |
        merged into X-1 | 91 |
        duplicate of X-1 | 91 | 91
        Duplicate: X-1, X-2 | 91 92 | 91 92
        Duplicates:\nX-1\nX-2\nRelated:\nX-3 | 91 92 | 91 92
        X-1, X-2 are duplicates | 91 92 | 91 92
        X-1 (duplicate) X-2 (related) | 91 | 91
        duplicate of X-1 and similar to X-2 | 91 | 91
        related to X-1\nX-2 | 92 |
        X-9 duplicates https://acme.example.com/browse/X-1 | 91 | 91
        dup of 1; 2 customers | 91 | 91
        is duplicated by X-1 | 19 | 19
        X-1 is a duplicate of this | 19 | 19
        X-1: Printer may not print, unlike related models | 91 |
        not a duplicate of X-1 or X-2 |  |
        X-1, not a duplicate |  |
        no longer a duplicate of X-1 |  |
        dup? X-1 |  |
        probably the same as X-1 |  |
        clone of X-1 |  |
        caused by X-1 |  |
        is_blocked_by X-1 |  |
        part of X-1 |  |
        Duplikat von X-1 | 91 | 91
        doublon de X-1 | 91 | 91
        es un duplicado de X-1 | 91 | 91
        é uma duplicata de X-1 | 91 | 91
        doppione di X-1 | 91 | 91
        dubbel met X-1 | 91 | 91
        дубликат X-1 | 91 | 91
        duplikat X-1 | 91 | 91
        X-1 kopyası | 91 | 91
        X-1の重複 | 91 | 91
        与X-1重复 | 91 | 91
        X-1와 중복 | 91 | 91
        kein Duplikat von X-1 |  |
        pas un doublon de X-1 |  |
        no es duplicado de X-1 |  |
        não é duplicado de X-1 |  |
        non è un duplicato di X-1 |  |
        не дубликат X-1 |  |
        geen duplicaat van X-1 |  |
        to nie duplikat X-1 |  |
        X-1 kopyası değil |  |
        X-1の重複ではない |  |
        不是X-1的重复 |  |
        X-1의 중복이 아님 |  |
        Folgeticket zu X-1 |  |
        bloqué par X-1 |  |
        ver también X-1 |  |
        см. также X-1 |  |
        causado por X-1 |  |
        vervolg op X-1 |  |
        X-1 nedeniyle |  |
        X-1に関連 |  |
        dupliziert durch X-1 | 19 | 19
        duplicado por X-1 | 19 | 19
        被X-1重复 | 19 | 19
    """),
]


@parametrize("column", ["Duplicate of", "Links"])
def test_the_words_beside_ids_decide_which_links_are_duplicates(root, work, column):
    header = ["id", "title", "created", "closed", "repo", column]
    for number, (cell, *_) in enumerate(LINK_CELLS):
        rows = [
            [f"X-{n}", "Slow", OPENED, CLOSED, f"o/r{number}", cell if n == 9 else ""]
            for n in (1, 2, 3, 9)
        ]
        table(root / f"{number}.csv", header, rows)
    imported(root, work)
    sql = "SELECT repo, number, target_number FROM events WHERE kind = 'marked_as_duplicate' ORDER BY 3"
    marks = {}
    for repo, number, target in stored(work, sql):
        marks[repo] = f"{marks.get(repo, '')} {number}{target}".strip()
    found = {
        cell: marks.get(f"o/r{number}", "")
        for number, (cell, *_) in enumerate(LINK_CELLS)
    }
    assert found == {
        cell: by_column[column == "Links"] for cell, *by_column in LINK_CELLS
    }


def test_a_denied_link_is_kept_and_counted(root, work):
    """Also if the resolution calls the ticket a duplicate, and in a file of links with their relations."""
    header = ["id", "title", "created", "closed", "resolution", "links"]
    cells = ("", "not a duplicate of X-1", "")
    rows = [
        [f"X-{n}", "Slow", OPENED, CLOSED, "Duplicate", cell]
        for n, cell in enumerate(cells, 1)
    ]
    links = table(
        root / "links.csv",
        ["id", "duplicate_of", "relation"],
        [["X-3", "X-1", "blocks"]],
    )
    source = table(root / "t.csv", header, rows)
    imported(source, work, links=links)
    assert stored(
        work, "SELECT number FROM events WHERE kind = 'unmarked_as_duplicate'"
    ) == [2]
    assert {outcome for outcome, *_ in verdicts(work).values()} == {"uncertain"}
    assert pl.read_csv(work / "skipped_links.csv")["reason"].to_list() == [
        "not a duplicate",
        "another relation",
    ]
    seen = gis_builder.preview_import(source, work, links=links).links
    assert [row["words"] for row in seen] == ["not a duplicate of …", "blocks …"]


@each_line("""
    cell, reason
    n/a |
    - |
    None |
    AB-1; see AB-99 | to a ticket outside the import
    XY-1 | to a ticket outside the import
    2 customers | to a ticket outside the import
    the one from May | without an id
    ab-02 | to the ticket itself
    ab-3 | to one of several tickets
    https://desk.example.com/other/issues/1 | to a ticket outside the import
""")
def test_skipped_links_are_listed_by_reason(root, work, cell, reason):
    page = "https://desk.example.com/acme/issues/"
    cells = {"AB-1": "", "AB-2": cell, "AB-3": "", "AB-03": ""}
    rows = [
        [key, "Title", "2024-01-01", link, f"{page}{key}", "a/b"]
        for key, link in cells.items()
    ]
    header = ["id", "title", "created", "duplicate of", "url", "repo"]
    imported(table(root / "t.csv", header, rows), work)
    skipped = work / "skipped_links.csv"
    rest = pl.read_csv(skipped)["reason"].to_list() if skipped.exists() else []
    assert rest == ([reason] if reason else [])


@parametrize(
    "first, date_format, times",
    [
        ("2024-01-31T22:00:00Z", "", "1/31/2024, 10:00:00\u202fp.\xa0m."),
        ("created_at: unknown time", "", f"2024年1月30日 10:00 ({82 * 'x'}) or so"),
        *text_table("""
        2024-04-03T00:00:00Z |  | 03/04/2024 & 31/03/2024
        2024-03-04T13:05:00Z |  | 03/04/2024 1:05 PM & 03/31/2024
        2024-03-04T00:00:00Z | %m/%d/%Y | 03/04/2024 & 04/03/2024
        t.csv: dates such as 03/04/2024 can have the day or the month |  | 03/04/2024 & 04/03/2024
        t.csv: dates such as 03/04/2024 have both orders |  | 03/04/2024 & 31/03/2024 & 03/31/2024
        date_format = '%q': expected such as | %q | 2024-01-31 & x
        date_format = 'dd/mm/yyyy': expected such as | dd/mm/yyyy | 2024-01-31 & x
        2024-01-31T09:00:00Z | %d.%m.%Y %H:%M %z | 31.01.2024 10:00 +0100
        2024-01-31T12:21:41Z |  | Wed, 31 Jan 2024 11:21:41 -0100
        2024-01-31T10:21:41Z |  | Wed Jan 31 2024 11:21:41 GMT+0100 (CET)
        2024-01-30T07:33:20Z |  | 1706600000
        2024-01-30T07:33:20Z |  | 1706600000000
        2024-03-31T10:00:00Z |  | 31. März 2024 10:00 Uhr
        2021-03-05T09:15:00Z |  | 05/Mrz/21 9:15 AM & 05/févr./21 9:15 PM
        2024-07-05T10:00:00Z |  | 5 juillet de 2024 à 10:00
        2024-05-12T00:00:00Z |  | 12-мая-2024
        2021-12-05T21:15:00Z |  | 05/十二月/21 9:15 下午
        2024-01-30T15:05:00Z |  | 2024年1月30日 午後 3:05
        2024-01-31T10:00:00Z |  | 2024. 1. 31. 오전 10:00
        2024-01-31T00:00:00Z | %y-%d-%m | 24-31-01
        2024-01-31T00:00:00Z |  | ３１/０１/２４
        """),
    ],
)
def test_times(root, work, first, date_format, times):
    rows = [[str(n), "x", time] for n, time in enumerate(times.split(" & "), 1)]
    path = table(root / "t.csv", ["id", "title", "created"], rows)
    options = {"date_format": date_format} if date_format else {}
    if first.endswith("Z"):
        imported(path, work, **options)
        assert stored(work, "SELECT created_at FROM issues ORDER BY number")[0] == first
    else:
        with raises((DataError, ConfigError), match=re.escape(first)):
            imported(path, work, **options)


def test_a_later_export_keeps_the_numbers(root, work):
    """Even if the export has older tickets, or tickets whose ids have numbers that are in use."""
    imported(written(root / "t.csv", tickets("b", "a", "7")), work)
    older = "0,Older,It is older than all.,2020-01-01,,open\n"
    imported(
        written(root / "t.csv", tickets("b", "a", "7", older + "8" + older[1:])), work
    )
    rendered = pl.read_parquet(gis_builder.render(work, root / "t.parquet").out)
    numbers = dict(rendered.select("number", "key").iter_rows())
    assert numbers == {7: "7", 8: "b", 9: "a", 10: "0", 11: "8"}
    later = "id,title,created,duplicate of\nc,New,2024-03-01,a\n"
    imported(written(root / "t.csv", later), work)
    assert verdicts(work)["tickets/t#12"][:2] == ("duplicate", ["tickets/t#9"])


def test_ids_in_texts_become_references(root, work):
    said = "As in AB-2, or https://jira.example.com/browse/AB-3, 与AB-2重复, not as UTF-8 or AB-77."
    rows = tickets("AB-1", "AB-2", "AB-3").replace("It began on Monday.", f'"{said}"')
    imported(written(root / "t.csv", rows), work)
    (body,) = stored(work, "SELECT body FROM issues WHERE number = 1")
    assert body == "As in #2, or #3, 与#2重复, not as UTF-8 or AB-77."


@parametrize(
    "text, expected",
    [
        ('{"type": ["doc"], "content": [{"type": {}, "text": "Seen."}]}', "Seen."),
        (
            '{"content": [{"text": {"text": "x"}, "attrs": {"url": "https://a.b"}}]}',
            "https://a.b",
        ),
        ('{"text": ' * 700 + "0" + "}" * 700, ""),
        ("NaN", ""),
    ],
    ids=["types", "an address", "deep", "pandas"],
)
def test_undocumented_rich_text_of_jira(root, work, text, expected):
    start = '{"id": 1, "title": "x", "created_at": "2024-01-01", "body": '
    (root / "t.json").write_text(f"{start}{text}}}")
    imported(root, work)
    assert stored(work, "SELECT body FROM issues") == [expected]


def test_damaged_rows_and_files_are_skipped_and_counted(root, work, capsys):
    damaged = "4,,,,,\n5,x,,soon,,\n6,6,6,6,6,6,6,6,6\n"
    files = {
        "t.csv": tickets("1", "2", "3", damaged),
        "more.jsonl": f'''{{"id": "9", "title": "More", "created_at": "{OPENED}"}}
{{"id": "1", "duplicate_of": 77}}
{{
[]
''',
        "broken.json": '{"issues": [',
        "people.csv": "name,mail\nana,a@b.c\n",
        "labels.json": '[{"name": "bug"}]',
        "bugs.xml": "<bugs/>",
    }
    for name, content in files.items():
        (root / name).write_text(content)
    (root / "spark.parquet").mkdir()
    crawled = imported(root, work, skip_broken=True, progress=True)
    messages = capsys.readouterr().err.splitlines()
    assert crawled.repositories[0].issue_count == 4
    skipped = [
        line.partition(":")[0] for line in messages if line.endswith("; skipped")
    ]
    assert skipped == [f"{root}/bugs.xml", f"{root}/people.csv, {root}/labels.json"]
    (links,) = (line for line in messages if "links skipped" in line)
    assert links.startswith(
        "1 links skipped: 1 to a ticket outside the import; first 1 to 77; "
    )
    listed = Path(links.rpartition("list: ")[2]).read_text()
    assert listed == "id,duplicate_of,reason\n1,77,to a ticket outside the import\n"
    (words,) = (line for line in messages if "damaged rows" in line)
    assert words.startswith("6 damaged rows or files were skipped: ")
    assert words.count("; ") >= 2
    assert ("", words) in crawled.status.warnings
    for name in files.keys() - {"t.csv"}:
        (root / name).unlink()
    written(root / "t.csv", tickets("1", "2", "3"))
    assert imported(root, work).status.warnings == ()
    bare = "id,title,created\n1,Slow,2024-01-01\n"
    imported(written(root / "bare.csv", bare), work)
    path = written(root / "other.csv", tickets("1", "2", "3"))
    ((_, kept),) = imported(path, work).status.warnings
    assert "bare.csv: no column for body" in kept


def test_the_last_occurrence_of_a_ticket_counts(root, work):
    more = """\
2,Two slips again,Same slip.,2024-01-31 11:30,,open
2,Two slips at last,Same slip.,2024-01-31 11:30,,open
"""
    path = written(root / "t.csv", tickets("1", "2", "3", more))
    imported(path, work)
    issues = stored(work, "SELECT title, state FROM issues WHERE number = 2")
    assert issues == [("Two slips at last", "open")]
    assert stored(work, "SELECT * FROM events") == []
    assert gis_builder.preview_import(path, work).lines() == [
        "tickets/t: 3 issues",
        "0 duplicate links",
        "1 tickets occur more than once; the last occurrence counts",
    ]
    other = "2,Another project's,It is another one.,2024-05-05,,open\n"
    with data_error("t.csv: ticket 2 already has another time of creation, in t.csv"):
        imported(written(path, tickets("1", "2", "3", other)), work)


def test_damaged_files_of_github_are_skipped(tmp_path, work):
    folder = tmp_path / "issues"
    folder.mkdir()
    good, odd = json.dumps(issue("o/r", 1)), json.dumps(issue("o/r", 4) | {"state": 7})
    for number, content in enumerate((good, '{"number": 3', odd)):
        (folder / f"{number}.json").write_text(content)
    with data_error(r"1\.json"):
        imported(folder, work)
    crawled = imported(folder, work, skip_broken=True)
    assert crawled.repositories[0].issue_count == 1
    ((_, words),) = crawled.status.warnings
    assert words.startswith("2 damaged")
    lines = written(tmp_path / "a.ndjson", f"{good}\n{{\n{good}\n".replace("1", "2", 1))
    assert imported(lines, work, skip_broken=True).repositories[0].issue_count == 2


def test_objects_without_urls_need_a_repository(root, work):
    bare = [
        {k: v for k, v in issue("o/r", n).items() if "url" not in k} for n in (1, 2)
    ]
    (root / "a.json").write_text(json.dumps(bare))
    write_tracker(root / "lines", "o/r", issues=bare)
    for place in (root / "a.json", root / "lines"):
        (root / "lines" / "o" / "r" / "repo.json").unlink(missing_ok=True)
        with data_error("repo='owner/name'"):
            imported(place, work)
        (row,) = imported(place, work, repo="o/r").repositories
        assert (row.full_name, row.issue_count) == ("o/r", 2)
    path = written(root / "t.csv", tickets("1", "2", "3"))
    assert imported(path, work, repo="my/desk").repositories[0].full_name == "my/desk"


def test_wrong_options_are_refused(root, tmp_path, work):
    path = written(root / "t.csv", tickets("1", "2", "3"))
    absent = tmp_path / "absent.csv"
    wrong = [
        (path, {"columns": {"name": "title"}}, "'name': expected one of id, title"),
        (path, {"columns": {"title": "Titel"}}, "no column 'Titel' for title; the col"),
        (path, {"repo": "desk"}, "expected owner/name"),
        (path, {"links": path}, "t.csv: no column for duplicate_of"),
        (absent, {"links": path}, "absent.csv: no such file"),
    ]
    for source, options, message in wrong:
        with raises((ConfigError, DataError), match=message):
            imported(source, work, **options)
    write_tracker(tmp_path / "dump", "o/r", issues=[issue("o/r", 1)])
    for option in ({"links": path}, {"date_format": "%Y"}):
        with config_error("contains no tickets"):
            imported(tmp_path / "dump", work, **option)


def test_a_preview_shows_columns_times_links_and_tickets(root, work):
    rows = """\
Nr,Betreff,Created,Duplicate of,Cost
A-01,One,31/12/2024,,5
A-02,Two,01/02/2025,see a-1,
A-3,x,1/1/2025,see 9,
"""
    path = written(root / "t.csv", rows)
    seen = gis_builder.preview_import(path, work, columns={"title": "Betreff"})
    assert [tuple(column.values())[1:] for column in seen.columns] == text_table("""
        Nr | id | A-01 |
        Betreff | title | One |
        Created | created_at | 31/12/2024 | 2024-12-31T00:00:00Z
        Duplicate of | duplicate_of | see a-1 |
        Cost | not used | 5 |
    """)
    assert [(row["key"], row["created_at"][:10], row["duplicate_of"]) for row in seen.tickets] == [
        ("A-01", "2024-12-31", ""), ("A-02", "2025-02-01", "A-01"), ("A-3", "2025-01-01", ""),
    ]  # fmt: skip
    (link,) = seen.links
    assert list(link.values()) == ["see …", "2", "duplicate_of", "duplicate"]
    assert seen.lines()[:2] == ["tickets/t: 3 issues", "1 duplicate links"]
    assert "1 to a ticket outside the import; first A-3 to see 9" in seen.lines()[2]
    assert not work.exists()


def test_a_preview_of_many_files_has_a_line_for_each_column_of_a_kind(root, work):
    """A file per ticket, of which some lack a description; tables of other columns; other files."""
    for number in range(1, 41):
        link = {"type": {"outward": "duplicates"}, "outwardIssue": {"key": "AB-1"}}
        fields = {"summary": f"No {number}", "description": None if number % 4 else "x"}
        fields |= {"created": "2024-01-01", "comment": {"comments": []}}
        fields["issuelinks"] = [link] if number == 3 else []
        (root / f"AB-{number:02}.json").write_text(
            json.dumps({"key": f"AB-{number}", "fields": fields})
        )
        (root / f"labels{number}.ndjson").write_text('{"name": "bug"}')
    for number in (1, 2):
        written(
            root / f"t{number}.csv", f"id,title,created\nT-{number},Slow,2024-01-01\n"
        )
    seen = gis_builder.preview_import(root, work)
    assert [tuple(column.values())[:3] for column in seen.columns] == text_table("""
        t1.csv and 1 more | id | id
        t1.csv and 1 more | title | title
        t1.csv and 1 more | created | created_at
        AB-01.json and 39 more | key | id
        AB-01.json and 39 more | summary | title
        AB-01.json and 39 more | created | created_at
        AB-01.json and 39 more | comment | comments
        AB-03.json and 39 more | issuelinks | links
        AB-01.json and 39 more | repo | repo
        AB-01.json and 39 more | web url | url
        AB-04.json and 9 more | description | body
    """)
    (line,) = (line for line in seen.lines() if "no issues, comments or events" in line)
    assert line.startswith(
        f"{root}/labels1.ndjson, {root}/labels10.ndjson, {root}/labels11.ndjson and 37 more:"
    )


def test_a_preview_is_bounded(root, work):
    """Columns that are not used leave room for others."""
    unused = [f"cost {n}" for n in range(120)]
    times = ("created", "opened", "time", "timestamp")
    for number, (key, time) in enumerate(
        product(("id", "key", "iid", "number", "nr", "#"), times)
    ):
        header, row = (
            [key, "title", time, *unused, "priority"],
            ["1", "Slow", "2024-01-01", *unused, "high"],
        )
        table(root / f"{number:02}.csv", header, [row])
    seen = gis_builder.preview_import(root, work, repo="o/r", skip_broken=True)
    names = [column["column"] for column in seen.columns]
    assert names.count("title") == names.count("priority") == 24
    assert sum(column["role"] == "not used" for column in seen.columns) < 200
    assert "not all columns are shown; preview fewer files" in seen.lines()


def test_keys_states_and_priorities_stay(root, tmp_path, work):
    rows = "".join(
        f'SUP-007,Slow search,2024-01-01,solved,High,"a, b",{repo}\n'
        for repo in ("前端", "后端")
    )
    header = "id,title,created,state,priority,labels,repo"
    path = written(root / "t.csv", f"{header}\n{rows}")
    crawled = imported(path, work)
    assert crawled.notes() == []
    assert "points" not in repr(crawled.status)
    rendered = pl.read_parquet(gis_builder.render(work, tmp_path / "t.parquet").out)
    assert rendered["repo"].n_unique() == 2
    kept = rendered.select("key", "state", "priority", "labels").unique()
    assert kept.rows() == [("SUP-007", "closed", "High", "a, b")]
    # The owner is the host of the tracker.
    page = "id,title,created,url\nT-1,Slow,2024-01-01,https://desk.example.com/T-1\n"
    imported(written(root / "p.csv", page), work)
    for repo, key in ((rendered["repo"][0], "SUP-007"), ("desk.example.com/p", "T-1")):
        with config_error(r"no index\.json"):  # the ticket was found
            gis_builder.suggest(repo, key, work=work, index=tmp_path)


def test_states_and_resolutions(root, work):
    """A ticket with a closing time is closed in any state that does not mean open."""
    wrong = text_table("""
        # expected | states of tickets | resolution | closed at
        closed | Done, geschlossen, Fertig, terminé, закрыт, 完成, Duplicate: x, Doublon | |
        open | offen, in progress, nouveau, в работе, 进行中 | |
        open | Abgewiesen, Shipped, 5, | |
        open | Shipped | | 0000-00-00 00:00:00
        open | Shipped | | 0001-01-01T00:00:00Z
        open | Shipped | | 9999-12-31
        open | Shipped | | -
        open | offen, in progress, nouveau, в работе, 进行中 | | 2024-02-02
        open | open | Unresolved |
        open | open | Nicht erledigt |
        open | open | non résolu |
        open | open | не решено |
        open | open | 未解决 |
        open | open | --- | 2024-02-02
        closed | open | Fixed |
        closed | Abgewiesen, Shipped, 5, | | 2024-02-02
    """)
    rows = [
        (
            expected,
            ["Suche", "<p> is bad", "2024-01-01", state.strip(), resolution, closed],
        )
        for expected, states, resolution, closed in wrong
        for state in states.split(",")
    ]
    header = ["id", "title", "body", "created", "state", "Resolution", "closed"]
    numbered = [[str(n), *row] for n, (_, row) in enumerate(rows, 1)]
    imported(table(root / "t.csv", header, numbered), work)
    assert stored(work, "SELECT DISTINCT body FROM issues") == ["<p> is bad"]
    found = stored(work, "SELECT state FROM issues ORDER BY number")
    assert found == [expected for expected, _ in rows]
