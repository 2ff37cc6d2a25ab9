from __future__ import annotations

import pytest

from llm_labeler._parse.quotes import unquote


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('"It is shut."', "It is shut."),
        ('"It is shut".', "It is shut."),
        ("“It is shut”", "It is shut"),
        ("“It is shut”,", "It is shut"),
        ("“‘It is shut.’”", "It is shut."),
        ("「桥关了」。", "桥关了。"),
        # Quotes and apostrophes of its own.
        ("“He said “no” to it.”", "He said “no” to it."),
        ("“Yes” or “no”", "“Yes” or “no”"),
        ('"Yes" or "no"', '"Yes" or "no"'),
        ('"He said "no" to it."', 'He said "no" to it.'),
        ("'It's the dog's bowl.'", "It's the dog's bowl."),
        ("‘It’s the dog’s bowl.’", "It’s the dog’s bowl."),
        ("'Yes' or 'no'", "'Yes' or 'no'"),
        # One that has no partner.
        ('"It is shut.', "It is shut."),
        ('It is shut."', "It is shut."),
        ('"It is shut""', '"It is shut""'),
        ("“It is shut””", "“It is shut””"),
        ('The "old" bridge', 'The "old" bridge'),
        ('"', '"'),
        ("", ""),
    ],
)
def test_quotes_by_hand(said: str, expected: str) -> None:
    assert unquote(said) == expected
