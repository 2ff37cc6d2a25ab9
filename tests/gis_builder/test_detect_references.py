from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.detection.tokens import could_refer, find_references
from gis_builder.store.records import IssueRef

HOME = "rocket/launcher"


def found(text: str, *former: str) -> list[str]:
    refs = [reference.ref for reference in find_references(text, HOME, former)]
    return [f"#{ref.number}" if ref.repo == HOME else str(ref) for ref in refs]


@pytest.mark.parametrize(
    ("text", "refs"),
    [
        ("see #12", ["#12"]),
        ("(#12), #13.", ["#12", "#13"]),
        ("GH-12", ["#12"]),
        ("other/repo#7", ["other/repo#7"]),
        ("Rocket/Launcher#7", ["#7"]),
        ("engine#7", ["rocket/engine#7"]),
        ("launcher#7", ["#7"]),
        ("issue#7 and PR#8", ["#7", "#8"]),
        ("https://github.com/rocket/launcher/issues/5", ["#5"]),
        ("http://www.github.com/rocket/launcher/pull/5/files", ["#5"]),
        ("[#5](https://github.com/rocket/launcher/issues/5)", ["#5", "#5"]),
        ("https://github.com/other/repo/issues/5?x=1#issuecomment-9", ["other/repo#5"]),
        ("https://github.com/former/launcher/issues/5", ["#5"]),
        ("issue 33 and bug 44", ["#33", "#44"]),
        ("dup of 55", ["#55"]),
    ],
)
def test_references_of_every_form(text: str, refs: list[str]) -> None:
    assert found(text) == refs


@pytest.mark.parametrize(
    "text",
    [
        "&#39;quoted&#39;",
        "#0 and #012",
        "colour #12ab34",
        "#1.5",
        "RFC #12 says so",
        "rfcs issue #12",
        "issue 3.4",
        "https://example.org/a/b/issues/5",
        "path/to/file#L12",
        "50% of 120 files",
    ],
)
def test_what_only_looks_like_one(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "word",
    ["issue", "issues", "bug", "bugs", "ticket", "pr", "pull", "no", "nr", "gh", "of", "see", "fixes", "PR"],
)
def test_a_word_written_against_the_number_is_no_repository(word: str) -> None:
    assert found(f"{word}#7") == ["#7"]


def test_a_former_name_is_home() -> None:
    url = "https://github.com/rocket/booster/issues/5"
    assert found(url) == ["rocket/booster#5"]
    assert found(url, "rocket/booster") == ["#5"]


def test_a_link_to_a_comment_and_to_a_pull_page_are_told() -> None:
    base = "https://github.com/rocket/launcher"
    anchored, pull = find_references(f"{base}/issues/5#issuecomment-1 {base}/pull/6", HOME)
    assert (anchored.is_anchored, anchored.is_pull) == (True, False)
    assert (pull.is_anchored, pull.is_pull) == (False, True)


@pytest.mark.parametrize(
    ("text", "is_pull"),
    [("in PR #6", True), ("pull request #6", True), ("#6 has landed", True), ("#6 was closed", False)],
)
def test_what_the_text_calls_a_pull_request(text: str, is_pull: bool) -> None:
    (reference,) = find_references(text, HOME)
    assert reference.is_pull is is_pull


@given(st.integers(1, 9_999_999), st.text(alphabet="ab ,.\n", max_size=20))
def test_the_span_is_the_reference(number: int, filler: str) -> None:
    text = f"{filler} #{number} {filler}"
    (reference,) = find_references(text, HOME)
    assert text[reference.start : reference.end] == f"#{number}"
    assert reference.ref == IssueRef(HOME, number)


@given(st.text(alphabet="#/12 gh-issue.com:", max_size=40))
def test_no_reference_escapes_the_cheap_look(text: str) -> None:
    if find_references(text, HOME):
        assert could_refer(text.lower())
