"""A model's prompts by name, and prompts of columns."""

import numpy as np
import pytest

from aoe_train.data.column_prompts import column_prompts
from aoe_train.objectives.training_rows import ABSENT, Examples, Kind
from aoe_train.settings.prompt_settings import NamedPrompts, Prompt, read_prompt, written_out
from aoe_train.settings.train_settings import EncoderSettings
from pairkit import ConfigError

PAPERS = "Summarize sentence {text} in one word:"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", Prompt("")),
        ("query: ", Prompt("query: ")),
        ("{text}", Prompt("")),
        ("query: {text}", Prompt("query: ")),
        (PAPERS, Prompt("Summarize sentence ", " in one word:")),
        ("all of {this} and {{that}}", Prompt("all of {this} and {{that}}")),
    ],
)
def test_prompt_before_or_around_the_text(words, expected):
    assert read_prompt(words) == expected
    assert written_out(words, "{text} {0}") == expected.before + "{text} {0}" + expected.after


@pytest.mark.parametrize(
    ("own", "default", "query", "document", "around_all"),
    [
        ({}, None, "", "", None),
        ({"corpus": "c: "}, None, "", "c: ", None),
        ({"query": "q: ", "corpus": "c: ", "passage": "p: "}, None, "q: ", "p: ", None),
        ({"corpus": "c: ", "passage": "p: ", "document": "d: "}, None, "", "d: ", None),
        ({"passage": "p: ", "document": ""}, None, "", "p: ", None),  # as ST saves one that has none
        ({"d": "d: "}, "d", "", "", None),  # as in sentence-transformers, not the default
        # A default prompt with words after the text goes around queries, too.
        ({"default": PAPERS}, "default", PAPERS, PAPERS, PAPERS),
        ({"default": PAPERS}, None, "", "", None),
        ({"default": PAPERS, "query": "q: "}, "default", "q: ", PAPERS, None),
        ({"default": "q: {text}"}, "default", "", "", None),
    ],
)
def test_prompts_of_queries_and_documents(own, default, query, document, around_all):
    prompts = NamedPrompts(own, default)
    assert (prompts.query, prompts.document, prompts.around_all) == (query, document, around_all)
    assert prompts.known["query"] == query
    if len(own) == 2 and default:
        assert prompts.after_text == "default"


PLAIN = EncoderSettings()
NAMED = EncoderSettings(prompts={"query": "q: ", "passage": "p: ", "t": "title: "}, default_prompt_name="t")


def rows(kind: Kind, *numbers: list[int]) -> Examples:
    count = max(max(row) for row in numbers) + 1
    return Examples([f"text {number}" for number in range(count)], np.array(numbers), None, kind)


TRIPLETS = rows("triplet", [0, 1, 2], [1, 0, 3], [0, 2, 4])
NEGATIVES = rows("triplet", [0, 1, 2, 3], [1, 0, 3, ABSENT])
PAIRS = rows("graded", [0, 1], [1, 2])


def prompted(
    given: dict[str, str], examples: Examples, encoder: EncoderSettings = PLAIN
) -> list[list[str | None]]:
    """The prompted texts of each row."""
    found = column_prompts(given, encoder, [examples]).applied(examples)
    prompts = [found.prompts] * len(found.texts) if isinstance(found.prompts, str) else found.prompts
    whole = [prompt + text for prompt, text in zip(prompts, found.texts, strict=True)]
    return [[None if place == ABSENT else whole[place] for place in row] for row in found.rows]


def test_text_in_two_columns_has_two_prompts():
    given = {"anchor": "q: ", "positive": "p: "}
    assert prompted(given, TRIPLETS)[:2] == [
        ["q: text 0", "p: text 1", "text 2"],
        ["q: text 1", "p: text 0", "text 3"],
    ]
    found = column_prompts(given, PLAIN, [TRIPLETS]).applied(TRIPLETS)
    assert len(found.texts) == len({*zip(found.texts, found.prompts, strict=True)}) == 8
    np.testing.assert_array_equal(found.content_ids[found.rows], TRIPLETS.rows)
    np.testing.assert_array_equal(np.array(found.texts)[found.rows], np.array(TRIPLETS.texts)[TRIPLETS.rows])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"query": "q: "}, ["q: text 0", "text 1", "text 2", "text 3"]),
        ({"document": "d: "}, ["text 0", "d: text 1", "d: text 2", "d: text 3"]),
        ({"negative": "n: "}, ["text 0", "text 1", "n: text 2", "n: text 3"]),
        (
            {"document": "d: ", "negative_2": "n: ", "positive": ""},
            ["text 0", "text 1", "d: text 2", "n: text 3"],
        ),
    ],
)
def test_most_specific_column_key_wins(given, expected):
    assert prompted(given, NEGATIVES)[0] == expected
    assert prompted(given, NEGATIVES)[1][3] is None


def test_default_prompt_and_prompts_by_name():
    assert prompted({"anchor": "query", "positive": "passage"}, TRIPLETS, NAMED)[0] == [
        "q: text 0",
        "p: text 1",
        "title: text 2",
    ]
    assert prompted({"text2": "t"}, PAIRS, NAMED)[0] == ["title: text 0", "title: text 1"]


@pytest.mark.parametrize(
    ("given", "encoder", "prompts", "default"),
    [
        ("{text}", NAMED, NAMED.prompts, None),
        ("query: ", PLAIN, {"default": "query: "}, "default"),
        ("q: ", NAMED, NAMED.prompts, "query"),
        ("passage", NAMED, NAMED.prompts, "passage"),
        (None, NAMED, NAMED.prompts, "t"),
    ],
)
def test_prompt_for_all_texts_becomes_the_default(given, encoder, prompts, default):
    found = column_prompts(given, encoder, [PAIRS])
    assert (found.encoder.prompts, found.encoder.default_prompt_name) == (prompts, default)
    expected = "" if default is None else prompts[default]
    assert (found.applied(PAIRS).prompts, found.applied(PAIRS).texts) == (expected, PAIRS.texts)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "prompts: empty"),
        ({"anchor": "{text} {text}"}, "once at most"),
        ({"question": "q: "}, "no column 'question'; expected anchor, positive, negative, query (the first)"),
        ({"anchor": "query"}, "the model doesn't define a prompt 'query'; give its words"),
    ],
)
def test_invalid_column_prompts_are_refused(given, told):
    with pytest.raises(ConfigError) as error:
        column_prompts(given, PLAIN, [TRIPLETS, PAIRS])
    assert told in str(error.value)


def test_dev_rows_without_a_prompt_are_refused():
    found = column_prompts({"anchor": "q: "}, PLAIN, [TRIPLETS, PAIRS])
    with pytest.raises(ConfigError, match="found anchor, but no prompt for rows of text1, text2"):
        found.applied(PAIRS)
    assert column_prompts({"query": "q: "}, PLAIN, [TRIPLETS, PAIRS]).applied(PAIRS).content_ids is not None
