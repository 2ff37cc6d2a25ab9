from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit.openai_api.waits import retry_after_s

NOW = 1_790_000_000.0


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": formatdate(NOW + 90, usegmt=True)}, 90.0),
        ({"retry-after": formatdate(NOW - 90, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m12.5s"}, 72.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
        # the limit that did not run out does not matter
        ({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "6m0s"}, None),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "2s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "3s",
            },
            3.0,
        ),
        ({"x-ratelimit-reset": "15"}, 15.0),
        ({"x-ratelimit-reset": str(int(NOW) + 30)}, 30.0),
        ({"x-ratelimit-reset": str((int(NOW) + 30) * 1000)}, 30.0),
        ({"x-ratelimit-reset": "1h30m"}, 5400.0),
        ({"x-ratelimit-reset": "1h30"}, None),
        # what no server means
        ({"x-ratelimit-reset": "1" * 20_000}, None),
        ({"x-ratelimit-reset": "1" * 20_000 + "s"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "9" * 60}, 1e9),
        ({"retry-after": "1e400"}, None),
    ],
)
def test_waits(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after_s(headers, NOW) == (None if expected is None else pytest.approx(expected, abs=1e-6))


def test_above_a_thousand_billion_a_moment_is_in_milliseconds() -> None:
    assert retry_after_s({"x-ratelimit-reset": "1000500000000"}, 1e9) == 500_000
    assert retry_after_s({"x-ratelimit-reset": "1000500000"}, 1e9) == 500_000


NAMES = ["retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-reset-tokens"]


@given(st.dictionaries(st.sampled_from([*NAMES, "x-ratelimit-remaining-tokens"]), st.text(max_size=20)))
def test_any_header_gives_a_wait_or_none(headers: dict[str, str]) -> None:
    wait = retry_after_s(headers, NOW)
    assert wait is None or 0 <= wait < float("inf")
