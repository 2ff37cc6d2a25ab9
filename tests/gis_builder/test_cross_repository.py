"""Duplicates across repositories: the projects of imported tickets, and repositories of GitHub on request."""

import json
from itertools import product

import polars as pl

import gis_builder
from pairkit import audit, read, show
from tests.support.shorthand import module_fixture, parametrize, text_lines

from .conftest import closed, comment, event, issue, write_tracker
from .working_folder import imported, verdicts

WORDS = text_lines("""
    upload
    login
    export
    theme
    search
    print
    sound
    menu
    cursor
    backup
""")
ORIGINALS = range(1, 11)
DUPLICATES = range(11, 21)  # 11 of 1, 12 of 2, …


def texts(number):
    """Title and body of an issue; those of a duplicate and its original have a word in common."""
    word = WORDS[number % 10]
    body = " ".join(
        f"{word}{step} fails{number} since{step * number}" for step in range(12)
    )
    return f"The {word} broke in case {number}", body


def write_tickets(path, projects=("alpha", "beta")):
    """Duplicates in `alpha` of originals in `beta`: half have links, half comments that name the key."""
    header = "Key,Title,Description,Created,Closed,Project key,Duplicate of,Comment\n"
    rows = []
    for number in ORIGINALS:
        title, body = texts(number)
        rows.append(f"BETA-{number},{title},{body},2024-01-{number:02} 10:00,,beta,,")
    for number in DUPLICATES:
        title, body = texts(number)
        original = f"BETA-{number - 10}"
        link = original if number % 2 else ""
        remark = "" if link else f"2024-02-01 09:00;max;Duplicate of {original}."
        times = f"2024-01-{number:02} 10:00,2024-02-01 09:00"
        rows.append(
            f"ALPHA-{number},{title},{body} see {original},{times},alpha,{link},{remark}"
        )
    kept = [row for row in rows if any(f",{project}," in row for project in projects)]
    path.write_text(header + "\n".join(kept) + "\n")
    return path


def write_repositories(root, *more):
    """Duplicates in `o/a` of originals in `o/b`; half name it by its former name, or in another case.

    `more` are further comments.
    """
    named = ((number, *texts(number)) for number in ORIGINALS)
    originals = [
        issue("o/b", number, title=title, body=body) for number, title, body in named
    ]
    write_tracker(
        root, "o/b", {"full_name": "o/b", "previous_names": ["o/old"]}, issues=originals
    )
    issues, comments, events = [], [], []
    for number in DUPLICATES:
        title, body = texts(number)
        home = ("o/b", "o/old", "O/B")[number % 3]
        issues.append(issue("o/a", number, title=title, body=body, **closed("max", 25)))
        comments.append(
            comment(
                "o/a", number, number, f"Duplicate of {home}#{number - 10}.", day=25
            )
        )
        events.append(event("o/a", number, "closed", 25))
    comments += more
    write_tracker(root, "o/a", issues=issues, comments=comments, events=events)
    return root


def next_texts(texts):
    """A strategy of a user."""
    return [
        [other for other in range(len(texts)) if other != index]
        for index in range(len(texts))
    ]


STRATEGIES = [*product(("random", "hard", "mixed", next_texts), ("time", "none"))]


def check_pairs(work, out, first, second, settings):
    """All ten duplicates are positives, and each negative is within one repository; both are used."""
    built = gis_builder.pair(work, out, settings=settings)
    rows = pl.concat(built.pairs.splits.values())
    ends = (
        {(row["repo"], row["number1"]), (row["repo2"], row["number2"])}
        for row in rows.filter(label=1).iter_rows(named=True)
    )
    assert sorted(map(sorted, ends)) == [
        [(first, n), (second, n - 10)] for n in DUPLICATES
    ]
    negatives = rows.filter(label=0)
    assert (negatives["repo"] == negatives["repo2"]).all()
    assert set(negatives["repo"]) == {first, second}
    assert negatives.height + sum(built.statistics["missing_negatives"].values()) == 10
    audit(out).check()


@module_fixture
def tickets(tmp_path_factory):
    root = tmp_path_factory.mktemp("tickets")
    imported(write_tickets(root / "t.csv"), root / "work")
    return root


@parametrize("negatives, match", STRATEGIES)
def test_projects_of_one_import_are_one_tracker(tickets, out, negatives, match):
    detected = gis_builder.detect(tickets / "work")
    assert (detected.duplicates, detected.notes()) == (10, [])
    settings = {"pair.negatives": negatives, "pair.match": match}
    check_pairs(tickets / "work", out, "tickets/alpha", "tickets/beta", settings)
    rows = pl.concat(read(out).splits.values())
    assert not rows["text1"].str.contains("(?i)(beta|alpha)").any()
    shown = repr(show(out, label=1))
    assert "tickets/alpha#1" in shown
    assert "tickets/beta#" in shown


@parametrize(
    "said",
    [
        "https://gitlab.example.com/g/api/-/issues/1",
        "https://gitlab.example.com/g/api/-/issues/1#note_77.",
        "g/api#1",
        "api#1",
    ],
)
def test_comments_name_tickets_of_other_projects(tmp_path, work, said):
    page = "https://gitlab.example.com/g/{}/-/issues/1"
    note = {
        "note": f"Duplicate of {said}",
        "created_at": "2024-02-01",
        "author": {"username": "max"},
    }
    rows = [
        {
            "iid": 1,
            "title": texts(n)[0],
            "description": texts(n)[1],
            "web_url": page.format(project),
        }
        | {"created_at": f"2024-01-0{n}"}
        for n, project in ((1, "api"), (2, "web"))
    ]
    rows[1] |= {"state": "closed", "closed_at": "2024-02-01", "notes": [note]}
    path = tmp_path / "t.json"
    path.write_text(json.dumps(rows))
    imported(path, work)
    assert verdicts(work)["g/web#1"][:2] == ("duplicate", ["g/api#1"])


def test_a_project_that_is_imported_later_changes_the_verdicts(tmp_path, work):
    imported(write_tickets(tmp_path / "t.csv", ["alpha"]), work)
    assert gis_builder.detect(work).duplicates == 0
    imported(write_tickets(tmp_path / "t.csv"), work)
    assert gis_builder.detect(work).duplicates == 10


@parametrize("negatives, match", STRATEGIES)
def test_repositories_of_github_on_request(tmp_path, work, negatives, match):
    imported(write_repositories(tmp_path / "dump"), work)
    detected = gis_builder.detect(work)
    assert detected.duplicates == 0
    assert detected.notes() == [
        "10 closed issues name an original in another repository, so they are uncertain;"
        " --set detect.allow_cross_repository=true makes them duplicates"
    ]
    accepted = {"detect.allow_cross_repository": True}
    assert gis_builder.detect(work, settings=accepted).notes() == []
    settings = accepted | {"pair.negatives": negatives, "pair.match": match}
    check_pairs(work, tmp_path / "out", "o/a", "o/b", settings)


def test_a_pair_has_the_evidence_that_names_its_former_repository(tmp_path, work):
    second = comment("o/a", 13, 113, "Also a duplicate of o/b#9.", day=26)
    imported(write_repositories(tmp_path / "dump", second), work)
    settings = {"detect.allow_cross_repository": True, "pair.match": "none"}
    gis_builder.detect(work, settings=settings)
    built = gis_builder.pair(work, tmp_path / "out", settings=settings)
    rows = pl.concat(built.pairs.splits.values()).filter(label=1)
    evidence = rows.select("number1", "number2", pl.col("evidence").struct["url"])
    found = {
        (min(numbers), url.partition("/13#issuecomment-")[2])
        for *numbers, url in evidence.iter_rows()
    }
    assert {(3, "13"), (9, "113")} <= found


def test_tickets_of_a_github_dump_keep_the_setting(tmp_path, work):
    """Only repositories with tickets are one tracker."""
    imported(write_tickets(tmp_path / "t.csv"), work)
    issues = [issue("o/a", 1, **closed("max", 25))]
    comments = [comment("o/a", 1, 1, "Duplicate of tickets/beta#1.", day=25)]
    events = [event("o/a", 1, "closed", 25)]
    write_tracker(
        tmp_path / "dump", "o/a", issues=issues, comments=comments, events=events
    )
    imported(tmp_path / "dump", work)
    assert verdicts(work)["o/a#1"] == (
        "uncertain",
        ["tickets/beta#1"],
        "cross_repository",
    )


def test_a_dataset_within_repositories_has_no_second_one(tmp_path, work):
    path = tmp_path / "t.json"
    rows = [
        {
            "id": n,
            "title": texts(n)[0],
            "body": texts(n)[1],
            "created_at": f"2024-01-{n:02}",
        }
        for n in (1, 2, 3, 4)
    ]
    rows[1] |= {"duplicate_of": 1, "closed_at": "2024-02-01"}
    path.write_text(json.dumps(rows))
    imported(path, work)
    gis_builder.detect(work)
    built = gis_builder.pair(work, tmp_path / "out")
    assert "repo2" not in next(iter(built.pairs.splits.values())).columns
