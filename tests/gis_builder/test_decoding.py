"""What is wrong with a value is told in words that people use."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.json import Decoder

from gis_builder.store.decoding import DecimalId, Login, Malformed, RepoName, Word, convert, decode


@pytest.mark.parametrize(
    ("kind", "words"),
    [(RepoName, "owner/name"), (Login, "a login"), (Word, "a word"), (DecimalId, "digits")],
)
def test_a_form_is_called_by_its_name(kind: Any, words: str) -> None:
    with pytest.raises(Malformed) as caught:
        convert(" ", kind)
    assert str(caught.value) == f"expected {words}"


def test_json_is_written_in_capitals() -> None:
    with pytest.raises(Malformed, match=r"\AJSON is malformed"):
        decode(b"{a", Decoder(dict))
