"""Words are found in one place, so that every package treats every script alike."""

import re

import pytest

from tests.support.shorthand import ROOT

# Patterns of whole words, and counts of words between blanks.
SPLITS = re.compile(
    r'compile\(r?"(?:\\w\+|\[\^\\W_\]\+|\\S\+|\[\^\\W\\d_\][+{][^"]*|\\b\\w\+\\b)"|len\([^()]*(?:\(\))?\.split\(\)\)'
)
# Words of English texts or rules, and words compared with themselves only.
ALLOWED = {
    "pairkit/similarity/terms.py",
    "pairkit/similarity/near_duplicates.py",  # whether there is a word at all
    "gis_builder/detection/reading.py",
    "gis_builder/pairing/text.py",  # a title other than "edit"
    "llm_labeler/dataset/texts.py",  # a header or a sentence
    "llm_labeler/parsing/source_text.py",  # the length of an English sentence
}


@pytest.mark.parametrize(
    "package", ["pairkit", "gis_builder", "llm_labeler", "aoe_train"]
)
def test_nothing_else_splits_words(package):
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / package).rglob("*.py")
        if SPLITS.search(path.read_text())
    }
    assert found <= ALLOWED
