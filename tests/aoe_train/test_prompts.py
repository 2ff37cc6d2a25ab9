from __future__ import annotations

import pytest

from aoe_train.settings.prompts import NamedPrompts, Prompt, read_prompt, written_out
from pairkit.app.errors import ConfigError

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
def test_a_prompt_stands_before_the_text_or_around_its_place(words: str, expected: Prompt) -> None:
    assert read_prompt(words) == expected
    assert written_out(words, "{text} {0}") == expected.before + "{text} {0}" + expected.after


def test_a_prompt_has_one_place_for_the_text() -> None:
    with pytest.raises(ConfigError, match=r"expected \{text\} in it once at most, .* found 2"):
        read_prompt("{text} or {text}")
    with pytest.raises(ConfigError, match="half a surrogate pair"):
        read_prompt("find \ud800: ")


def test_the_prompt_itself_goes_before_its_name_and_both_before_the_default() -> None:
    prompts = NamedPrompts({"q": "query: ", "d": "passage: "}, "d")
    assert prompts.chosen() == "passage: "
    assert prompts.chosen(name="q") == "query: "
    assert prompts.chosen(name="q", prompt="other: ") == "other: "
    assert prompts.chosen(prompt="") == ""
    assert NamedPrompts({"q": "query: "}).chosen() == ""


def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    prompts = NamedPrompts({"q": "query: "})
    for name in ("Q", ""):
        with pytest.raises(ConfigError, match=f"no prompt '{name}'; this model has 'query', 'document', 'q'"):
            prompts.chosen(name=name)
    with pytest.raises(ConfigError, match="no prompt 'x'; this model has"):
        NamedPrompts({"q": "query: "}, "x")
    with pytest.raises(ConfigError, match="its name is empty"):
        NamedPrompts({" ": "query: "})


def test_query_and_document_are_known_to_all() -> None:
    assert NamedPrompts({}).known == {"query": "", "document": ""}
    assert NamedPrompts({"d": "d: "}, "d").query == ""  # as in sentence-transformers, not the default
    assert NamedPrompts({"query": "q: ", "passage": "p: "}).query == "q: "


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, ""),
        ({"corpus": "c: "}, "c: "),
        ({"corpus": "c: ", "passage": "p: "}, "p: "),
        ({"corpus": "c: ", "passage": "p: ", "document": "d: "}, "d: "),
        ({"passage": "p: ", "document": ""}, "p: "),  # as sentence-transformers saves one that has none
    ],
)
def test_a_document_goes_by_several_names(own: dict[str, str], expected: str) -> None:
    assert NamedPrompts(own).document == expected


def test_a_default_prompt_with_words_after_the_text_goes_around_queries_too() -> None:
    prompts = NamedPrompts({"default": PAPERS}, "default")
    assert prompts.query == prompts.document == prompts.around_all == PAPERS
    assert NamedPrompts({"default": PAPERS}).around_all is None
    more = NamedPrompts({"default": PAPERS, "query": "q: "}, "default")
    assert (more.query, more.around_all, more.after_text) == ("q: ", None, "default")
    assert NamedPrompts({"default": "q: {text}"}, "default").around_all is None
