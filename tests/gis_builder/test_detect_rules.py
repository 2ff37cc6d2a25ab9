from __future__ import annotations

import re

import pytest

from gis_builder.detection.grammar import find_markers
from gis_builder.detection.lexicon import __doc__ as lexicon_table
from gis_builder.detection.references import find_references
from gis_builder.detection.rules import RULES, Rule
from gis_builder.detection.tokens import hide_references, sentence_spans, tokenise


def codes_of(text: str) -> list[str]:
    references = find_references(text, "o/n")
    hidden = hide_references(text, references).lower()
    by_start = {reference.start: reference for reference in references}
    return [tokenise(hidden, span, by_start).codes for span in sentence_spans(hidden)]


def marker_starts(rule: Rule, codes: str) -> list[int]:
    groups = re.compile(rule.pattern).groupindex
    return [match.start("c" if "c" in groups else "m") for match in re.finditer(rule.pattern, codes)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.example)
def test_the_example_is_read_by_the_rule_and_no_earlier_one(rule: Rule) -> None:
    earlier = RULES[: RULES.index(rule)]
    read = [(codes, start) for codes in codes_of(rule.example) for start in marker_starts(rule, codes)]
    assert read
    assert any(
        (rule.kind, start) in {(find.kind, find.start) for find in find_markers(codes)}
        and all(start not in marker_starts(other, codes) for other in earlier if other.kind == rule.kind)
        for codes, start in read
    )


def test_rules_are_written_in_codes_of_the_table() -> None:
    table = set(re.findall(r"^\| `(.)` \|", lexicon_table or "", re.MULTILINE))
    for rule in RULES:
        bare = re.sub(r"\(\?P<.>|\(\?<?[=!:]|\{[\d,]*\}|[\\()|*+$^?]|\[\^?|\]", "", rule.pattern)
        assert set(bare) <= table | {".", ":", "-"}, rule.example
