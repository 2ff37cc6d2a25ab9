"""The same tracker gives the same verdicts, whether imported or crawled with either strategy."""

import polars as pl
from typer.testing import CliRunner

from tests.conftest import command_line
from tests.support.shorthand import text_lines

from .conftest import closed, comment, event, issue, write_tracker

HOME = "acme/probe"


TALKS = """
    10 This is rather #1. | The design is in elsewhere/rfcs#7. | Closing in favour of that.
    11 Is it #2? | Surely #5. | Closing as a duplicate of that one.
    12 It's basically #2 and elsewhere/rfcs#7. | Closing since it's a duplicate.
    13 Looks like #1. | Then #4 came. | Closing as a duplicate of that one.
    14 It's a duplicate, but I can't find of what. | #3, and there is #4 for it.
    15 See #1. | See #6. | Closing in favour of that.
    16 Duplicate of #5.
    17 Duplicate of acme/sonde#2.
    18 Duplicate of #6, closing.
    19 Duplicate of #4, closing.
    20 See #3 and elsewhere/rfcs#9. | Same as that one, closing.
    21 Perhaps #2? Or #4? | Thanks!
    22 Duplicate of #90, closing.
"""
FIELDS = {
    "20": {"title": "[dup] It stops"},
    "21": {"labels": [{"name": "duplicate"}]},
}


def talk(number, *remarks, **fields):
    """An issue that max closed with the last of `remarks`, and one comment a day."""
    first = 20 - len(remarks)
    comments = [
        comment(HOME, number, 100 * number + index, words, day=first + index)
        for index, words in enumerate(remarks)
    ]
    return issue(HOME, number, **closed("max", 19), **fields), comments


def write_probe(root):
    """A tracker with references to missing and moved issues, other repositories and pull requests.

    #1 to #3 are issues, #4 is a pull request, #5 was deleted, #6 was moved to acme/other#1.
    """
    talks = []
    for line in text_lines(TALKS):
        number, remarks = line.split(maxsplit=1)
        fields = FIELDS.get(number, {})
        talks.append(talk(int(number), *remarks.split(" | "), **fields))
    write_tracker(
        root,
        HOME,
        {"previous_names": ["acme/sonde"]},
        issues=[
            *(issue(HOME, number) for number in (1, 2, 3)),
            issue(HOME, 4, pull_request={"merged_at": None}, **closed("max", 9)),
            *(row for row, _ in talks),
            issue(HOME, 23, **closed("max", 23, "duplicate")),
        ],
        comments=[row for _, rows in talks for row in rows],
        events=[
            *(
                event(HOME, row["number"], "closed", 19, state_reason="completed")
                for row, _ in talks
            ),
            event(HOME, 23, "marked_as_duplicate", 22, canonical=f"{HOME}#1"),
            event(HOME, 23, "closed", 23, state_reason="duplicate"),
        ],
        missing=[
            {"number": 5, "status": "deleted"},
            {"number": 6, "status": "transferred", "to": "acme/other#1"},
        ],
    )
    write_tracker(root, "acme/other", issues=[issue("acme/other", 1)])
    return root


def gis(*arguments):
    done = CliRunner().invoke(
        command_line("gis_builder"),
        [str(argument) for argument in arguments],
        env={"GITHUB_TOKEN": "t"},
    )
    assert done.exit_code == 0, done.output


def detected(work):
    gis("detect", "--work", work)
    rows = pl.read_parquet(work / "verdicts.parquet").drop("evidence").iter_rows()
    return {(repo, number): tuple(map(str, rest)) for repo, number, *rest in rows}


def imported(folder, work):
    gis("import", folder, "--work", work, "-q")
    return detected(work)


def crawled(url, repos, work, *flags):
    gis("crawl", "--repos", repos, "--work", work, "--api-url", url, "-q", *flags)
    return detected(work)


def test_verdicts_of_the_probe(tmp_path):
    verdicts = imported(write_probe(tmp_path / "probe"), tmp_path / "work")
    of = {number: values for (repo, number), values in verdicts.items() if repo == HOME}
    # Not #1, which is mentioned before.
    assert of[10][::4] == ("uncertain", "cross_repository")
    assert of[11][::4] == ("uncertain", "target_missing")  # not #2
    # Of two references, the one to the same repository.
    assert of[12][:2] == ("duplicate", "[2]")
    assert of[13][:2] == ("duplicate", "[1]")  # not the pull request
    assert of[14][:2] == ("duplicate", "[3]")
    assert of[15][::4] == ("uncertain", "target_missing")
    assert of[17][:2] == ("duplicate", "[2]")  # by a former name
    assert of[23][:2] == ("duplicate", "[1]")
