"""Masking, references and rules."""

import re
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from gis_builder.detection.claim_reader import find_markers
from gis_builder.detection.issue_references import (
    could_refer,
    find_references,
    hide_references,
)
from gis_builder.detection.lexicon import (
    PHRASES,
    Code,
    code_of,
    language_of,
    sentence_spans,
    tokenise,
)
from gis_builder.detection.page import mask, might_matter
from gis_builder.detection.reading import read
from gis_builder.detection.rules import FOREIGN_RULES, RULES, compile_rule
from tests.support.shorthand import each_line, parametrize, text_lines

from .detect_threads import ref

MASKED = [
    "> dup of #1",
    "  > dup of #1",
    *text_lines(r"""
    ```\ndup of #1\n```
    ~~~ text\ndup of #1\n~~~
    ```\ndup of #1 with no end
    `dup of #1`
    ``dup ` of #1``
    <!-- dup of #1 -->
    <pre>dup of #1</pre>
    - [x] dup of #1
    * [ ] dup of #1
    ~~dup of #1~~
"""),
    "    dup of #1",
    "\tdup of #1",
]
PLAIN = text_lines(r"""
    dup of #1
    a > b, dup of #1
    - one\n\n    dup of #1
    1. one\n\n    dup of #1
    text goes on\n    dup of #1
    a ~ b dup of #1 ~ c
    it's `code` but dup of #1 and `more`
    `let x = [];` is enough, dup of #1
""")


@parametrize("text", MASKED)
def test_quotes_and_code_are_masked(text):
    masked = mask(f"Before.\n\n{text}")
    assert "dup" not in masked
    assert "Before." in masked


@parametrize("text", PLAIN)
def test_plain_text_is_not_masked(text):
    assert "dup of #1" in mask(text)


@given(st.text(alphabet="ab #1`~>-[]x<!\n\r\t *", max_size=80))
def test_masking_keeps_positions_and_lines(text):
    masked = mask(text)
    assert len(masked) == len(text)
    assert [i for i, c in enumerate(masked) if c == "\n"] == [
        i for i, c in enumerate(text) if c == "\n"
    ]
    assert all(m in (c, " ") for m, c in zip(masked, text, strict=True))


HOME = "rocket/launcher"


def refs_in(text, *former):
    refs = [reference.ref for reference in find_references(text, HOME, former)]
    return [f"#{ref.number}" if ref.repo == HOME else str(ref) for ref in refs]


@each_line(
    """
        refs, text
        #12 | see #12
        #12 #13 | (#12), #13.
        #12 | GH-12
        other/repo#7 | other/repo#7
        #7 | Rocket/Launcher#7
        rocket/engine#7 | engine#7
        #7 | launcher#7
        #5 | https://github.com/rocket/launcher/issues/5
        #5 | ofhttp://www.github.com/rocket/launcher/pull/5/files
        #5 | github.com/rocket/launcher/issues/5/ and egithub.com/rocket/launcher/issues/6
        #5 | [#5](https://github.com/rocket/launcher/issues/5)
        rocket/engine#5 | [#5](https://github.com/rocket/engine/issues/5)
        #5 #6 | [#5] (https://github.com/rocket/launcher/issues/6)
        #5 #6 | #5](https://github.com/rocket/launcher/issues/6) [
        other/repo#5 | https://github.com/other/repo/issues/5?x=1#issuecomment-9
        #5 | https://github.com/former/launcher/issues/5
        #33 #44 | issue 33 and bug 44
        #12 #13 #14 | issue no.12, bug no.13 and ticket nr.14
        #12 | issue number  12
        #55 | dup of 55
        #12 | duplicate  of 12
        #12 #13 | _#12_ and _dup of #13_
        #13 | #12_a and #13_
         | &#39;quoted&#39;
         | #0 and #012
         | colour #12ab34
         | #1.5
         | RFC #12 says so
         | rfcs issue #12
         | issue 3.4
         | https://example.org/a/b/issues/5
         | path/to/file#L12
         | 50% of 120 files
    """,
    columns=2,
)
def test_references(refs, text):
    assert refs_in(text) == refs.split()


def test_names_of_the_repository():
    nouns = "issue issues bug bugs ticket pr pull no nr gh of see fixes PR"
    for word in nouns.split():  # not a name
        assert refs_in(f"{word}#7") == ["#7"]
    url = "https://github.com/rocket/booster/issues/5"
    assert refs_in(url) == ["rocket/booster#5"]
    assert refs_in(url, "rocket/booster") == ["#5"]


PAGE = "https://github.com/rocket/launcher"


@parametrize(
    "text, is_anchored, is_pull",
    [
        (f"{PAGE}/issues/5#issuecomment-1", True, False),
        (f"{PAGE}/issues/5#issue-123456", False, False),  # its first post
        (f"{PAGE}/pull/6", False, True),
        ("in PR #6", False, True),
        ("pull request #6", False, True),
        ("#6 has landed", False, True),
        ("#6 was closed", False, False),
    ],
)
def test_links_to_comments_and_pull_requests(text, is_anchored, is_pull):
    (reference,) = find_references(text, HOME)
    assert (reference.is_anchored, reference.is_pull) == (is_anchored, is_pull)


@given(st.text(alphabet="#/12 gh-issue.com:", max_size=40))
def test_could_refer_misses_no_reference(text):
    if find_references(text, HOME):
        assert could_refer(text.lower())


def sentences(text):
    references = find_references(text, "o/n")
    hidden = hide_references(text, references).lower()
    by_start = {reference.start: reference for reference in references}
    return [tokenise(hidden, span, by_start) for span in sentence_spans(hidden)]


@each_line("""
    code, words
    DUPLICATE | duplicate dup dupe duplcate dupilcate duplicat duplciate dublicate dulpicate
    DUPLICATE | duplikat duplicado semi-dup duplicate-of
    DUPLICATES | duplicates dupilcates
    DUPLICATED | duplicated
    WORD | duplication duplicating deduplicate duplex replicate dump update double deduplicated
    WORD | duplicity duplicator
""")
def test_typos_and_translations_of_duplicate(code, words):
    assert {code_of(word) for word in words.split()} == {Code[code]}


def marker_starts(rule, codes):
    return [match.start("marker") for match in compile_rule(rule).finditer(codes)]


@parametrize("rule", list(chain(*RULES.values())), ids=lambda rule: rule.example)
def test_each_example_matches_its_rule_and_no_earlier_one(rule):
    kind = next(kind for kind, rules in RULES.items() if rule in rules)
    earlier = RULES[kind][: RULES[kind].index(rule)]
    matches = [
        (s.codes, start)
        for s in sentences(rule.example)
        for start in marker_starts(rule, s.codes)
    ]
    assert any(
        (kind, start) in {(marker.kind, marker.start) for marker in find_markers(codes)}
        and all(start not in marker_starts(other, codes) for other in earlier)
        for codes, start in matches
    )


def test_rules_span_a_bounded_number_of_tokens():
    unbounded = re.compile(r"(?<!\\)[*+]|\{\d+,\}")
    for rule in chain(*RULES.values(), *FOREIGN_RULES.values()):
        assert not unbounded.search(rule.pattern), rule.example


def test_phrases_have_no_unbounded_groups():
    for _, phrase in PHRASES:
        assert not re.search(r"\)[*+](?!\+)", phrase), phrase


@parametrize(
    "text",
    [
        "It works now.",
        "See #12 for the log",
        "Already on it.",
        "the same here",
        "I moved it to the tray",
    ],
)
def test_irrelevant_comments_are_skipped(text):
    assert not might_matter(text)
    assert read(text, ref(100)).claims == ()


def test_frequent_english_words_are_in_no_other_language():
    words = """
    the be to of and a in that have i it for not on with he as you do at this but his by from they we say her
    she or an will my one all would there their what so up out if about who get which go me when make can time
    no just him know take into year your good some could them see other than then now look only come its over
    back after use two how our work first well way even new want because any these give day most us is was
    are been has had war die man hat per non met also door were me on son pour pas car mine here list like
    """
    assert [word for word in words.split() if language_of(word) is not None] == []
