"""Published datasets: the folder of the real files, and invented tables in their layouts.

Tests use the invented tables, and also the real files if these are beside the repository.
"""

import gzip
import random
from pathlib import Path

import pytest

from tests.support.shorthand import text_lines

REAL = Path(__file__).parents[2] / "shared" / "data"
real_data = pytest.mark.skipif(
    not REAL.is_dir(), reason="extra: the published data is not at ../shared/data"
)

STS_SIZES = {
    "STS12": 3108,
    "STS13": 1500,
    "STS14": 3750,
    "STS15": 3000,
    "STS16": 1186,
    "STS-B": 1379,
    "SICK-R": 4927,
}
WORDS = text_lines("""
    miller
    sailor
    baker
    fox
    heron
    owl
    teacher
    pilot
    child
    goat
    nurse
    elk
    mends
    paints
    finds
    hides
    buys
    drops
    washes
    lifts
    guards
    sells
    sees
    kicks
    ladder
    kettle
    drum
    lantern
    boat
    quilt
    violin
    jar
    wheel
    cake
    map
    hat
""")


def write_table(path, head, rows):
    """Write a table like the published ones: tabs, no quoting, an optional header; gzip by suffix."""
    lines = [*([head] if head else []), *("\t".join(map(str, row)) for row in rows)]
    data = ("\n".join(lines) + "\n").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path


def graded_pairs(count, seed):
    """Pairs whose score from 0 to 5 is their number of common words."""
    draw = random.Random(seed)
    for _ in range(count):
        first, second = draw.choices(WORDS, k=5), draw.choices(WORDS, k=5)
        score = draw.randint(0, 5)
        yield float(score), " ".join(first), " ".join(first[:score] + second[score:])


def write_sts(folder):
    """Write all seven tasks, each with its published number of pairs."""
    for seed, (name, count) in enumerate(STS_SIZES.items()):
        pairs = graded_pairs(count, seed)
        if name == "STS-B":
            write_table(
                folder / "stsb/stsb-test.tsv", "score\tsentence1\tsentence2", pairs
            )
        elif name == "SICK-R":
            rows = (
                (row, score, "NEUTRAL", *texts)
                for row, (score, *texts) in enumerate(pairs)
            )
            write_table(
                folder / "sick/sick-test.tsv",
                "pair_id\tscore\tentailment\tsentence1\tsentence2",
                rows,
            )
        else:
            rows = (
                (name[3:], ("news", "forum")[row % 2], row, *pair)
                for row, pair in enumerate(pairs)
            )
            write_table(
                folder / f"sts/{name}.tsv",
                "year\tsubset\tline\tscore\tsentence1\tsentence2",
                rows,
            )
    return folder


def write_pairs(folder):
    """Write a few rows in each other layout, with unbalanced quotes, which are ordinary characters."""
    two = [
        ('He said "no', "He said nothing"),
        ("The owl sleeps , it seems", "An owl's asleep"),
        ("a 語", "b"),
    ]
    write_table(
        folder / "stsb/stsb-dev.tsv",
        "score\tsentence1\tsentence2",
        [(5.0, *two[0]), (2.75, *two[1])],
    )
    write_table(
        folder / "stsb/stsb-train.tsv",
        "score\tsentence1\tsentence2",
        [(3.8, *two[0]), (0.0, *two[1])],
    )
    labelled = [(row % 2, *pair, f"{row}-9") for row, pair in enumerate(two)]
    write_table(
        folder / "pairs/mrpc-test.tsv", "label\tsentence1\tsentence2\tids", labelled
    )
    write_table(
        folder / "pairs/qqp-dev.tsv.gz", "label\tquestion1\tquestion2\tid", labelled
    )
    write_table(
        folder / "pairs/qnli-dev.tsv.gz", "label\tquestion\tsentence\tindex", labelled
    )
    sick = [(6, 3.3, "NEUTRAL", *two[0]), (7, 4, "ENTAILMENT", *two[1])]
    write_table(
        folder / "sick/sick-test.tsv",
        "pair_id\tscore\tentailment\tsentence1\tsentence2",
        sick,
    )
    triplets = [
        (*two[0], "He said yes"),
        (*two[1], "No owl sleeps"),
        (two[0][0], "No , he said", "Yes !"),
    ]
    write_table(
        folder / "nli/nli-triplets.derived.tsv.gz",
        "anchor\tpositive\tnegative",
        triplets,
    )
    write_table(
        folder / "domain/medquad-sentences.txt.gz",
        "",
        [["Owls sleep ."], ['A "hat , 語'], ["x\u2028y"]],
    )
    return folder
