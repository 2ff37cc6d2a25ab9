"""What the papers say of their own GitHub Issues Similarity dataset, to stand beside ours."""

from __future__ import annotations

from collections.abc import Mapping

# ACL 2024, Table 7; the shares of texts over 512 tokens from the section that introduces the dataset.
SPLITS: Mapping[str, Mapping[str, float]] = {
    "train": {"positive": 9457, "negative": 9108, "total": 18565, "long_share": 0.6103},
    "validation": {"positive": 774, "negative": 773, "total": 1547, "long_share": 0.6085},
    "test": {"positive": 807, "negative": 741, "total": 1548, "long_share": 0.6050},
}

# ACL 2024, Appendix B: mean overlap of 1-, 2- and 3-grams. Both triples are printed as "non-duplicate"; by
# the sentence before them the higher one must be the duplicates'. How overlap was measured is not said.
OVERLAP: Mapping[str, tuple[float, float, float]] = {"negative": (22, 12, 9), "positive": (26, 16, 13)}
