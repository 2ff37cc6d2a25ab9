"""The rows that every library gets: STS-B (short) and pairs of rust-lang/rust issues (long)."""

from __future__ import annotations

import csv
import gzip
import json
import random
from pathlib import Path


def table(path: Path) -> list[dict[str, str]]:
    """Read a TSV without quoting, gzipped or not."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as lines:
        return [*csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]


def stsb(data: Path, split: str) -> list[dict]:
    """A split of STS-B with scores from 0 to 5."""
    return [
        {
            "text1": row["sentence1"],
            "text2": row["sentence2"],
            "label": float(row["score"]),
        }
        for row in table(data / "stsb" / f"stsb-{split}.tsv")
    ]


def issues(data: Path) -> list[str]:
    """Title and body of each issue that has a body."""
    with gzip.open(
        data / "rust-issues" / "issues.raw.jsonl.gz", "rt", encoding="utf-8"
    ) as lines:
        found = (json.loads(line) for line in lines)
        return [
            f"{issue['title']}\n{issue['body']}" for issue in found if issue["body"]
        ]


def short_rows(data: Path, count: int, seed: int = 0) -> list[dict]:
    """Random rows of STS-B train."""
    return random.Random(seed).sample(stsb(data, "train"), count)  # noqa: S311 - a sample, not a secret


def long_rows(data: Path, count: int, seed: int = 0) -> list[dict]:
    """Random pairs of distinct issues with random labels; only their length matters."""
    draw = random.Random(seed)  # noqa: S311 - a sample, not a secret
    texts = draw.sample(issues(data), 2 * count)
    return [
        {"text1": left, "text2": right, "label": float(draw.randrange(2))}
        for left, right in zip(texts[::2], texts[1::2], strict=True)
    ]


def write(rows: list[dict], path: Path) -> Path:
    """Write rows as JSON lines, which every library reads without quoting problems."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
