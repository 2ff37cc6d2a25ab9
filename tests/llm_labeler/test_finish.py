from __future__ import annotations

import pytest

from llm_labeler.records import Ending, ending_of


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (
            "complete",
            "stop STOP end_turn eos_token stop_sequence COMPLETE endTurn FINISH_REASON_STOP reason_stop",
        ),
        (
            "cut",
            "length MAX_TOKENS model_length model_context_window_exceeded max-tokens maxTokens token_limit"
            " CONTINUATION",
        ),
        ("refused", "refusal"),
        (
            "filtered",
            "content_filter SAFETY sensitive RECITATION PROHIBITED_CONTENT guardrail_intervened ESCALATION",
        ),
        ("failed", "error ERROR abort network_error cancelled MALFORMED_FUNCTION_CALL"),
        ("unknown", "tool_calls function_call tool_use OTHER FINISH_REASON_UNSPECIFIED null pause_turn 停止"),
    ],
)
def test_words_of_many_servers(ending: Ending, words: str) -> None:
    assert {word: ending_of(word) for word in words.split()} == dict.fromkeys(words.split(), ending)


@pytest.mark.parametrize("finish", ["", " ", "stop now", "x" * 100_000, "\ud800"])
def test_only_known_words_are_known(finish: str) -> None:
    assert ending_of(finish) == "unknown"
