from __future__ import annotations

from pairkit.differing import differing


def test_differences_by_hand() -> None:
    there = {"seed": 1, "model": {"name": "a", "layers": [1, 2]}, "gone": True}
    here = {"seed": 2, "model": {"name": "a", "layers": (1, 2)}}
    assert differing(there, here) == ["gone (True there, None now)", "seed (1 there, 2 now)"]
    assert differing(there, there) == []
