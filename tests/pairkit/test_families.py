from __future__ import annotations

import numpy as np

from pairkit.connected import shared
from pairkit.families import joined


def test_families_agree_in_a_band() -> None:
    bands = np.array([[1, 5], [2, 6], [1, 7], [3, 7], [4, 8], [9, 6]], np.uint64)
    assert [family.tolist() for family in shared(joined(iter(bands.T)))] == [[0, 2, 3], [1, 5]]
