from __future__ import annotations

import pytest

from gis_builder.detection import might_matter
from gis_builder.detection.markers import read

from .detect_threads import ref


@pytest.mark.parametrize(
    "text",
    ["It works now.", "See #12 for the log", "Already on it.", "the same here", "I moved it to the tray"],
)
def test_talk_that_can_not_matter(text: str) -> None:
    assert not might_matter(text)
    assert read(text, ref(100)).claims == ()


@pytest.mark.parametrize(
    "text",
    [
        "DUPLICATE OF #1",
        "dpulicate of #1",
        "closing in favor of that",
        "Same as #1",
        "It’s #1.",
        "already reported in GH-1",
        "Doppelt zu #1",
        "#1 と同じ問題です",
    ],
)
def test_claims_pass(text: str) -> None:
    assert might_matter(text)
