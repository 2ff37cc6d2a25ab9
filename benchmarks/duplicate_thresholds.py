"""What `aoe duplicates` finds by its minimum cosine, in collections with marked duplicates.

    python benchmarks/duplicate_thresholds.py --work F [--model minilm] [--sets tickets,seamonkey,…]

The collections: the sample tickets, all tickets of SeaMonkey, Hadoop and a Jira, and the questions of the
first 2,500 rows of QQP's dev set, with the marks of all rows. A pair is right if marks connect its texts. The
marks of trackers are incomplete, so the share of right pairs is a lower bound.

Prints for each collection and minimum the number of pairs, the share of right ones, and the share of marked
pairs that are found. Then, for rules that choose the minimum by the collection, it prints their F1 divided by
that of the best minimum. The default was chosen on the four trackers with MiniLM, and tried on QQP. Indexes
in F are reused.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import polars as pl
from gis import DATA, ROOT
from runs import argument_parser
from strict_pairs import tracker

import aoe_train
import gis_builder
from pairkit.similarity.groups import Groups

CHOSEN_ON = ("tickets", "seamonkey", "hadoop", "jira")
SETS = (*CHOSEN_ON, "qqp")
MINIMA = (0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6)
QQP_ROWS = 2500
LEAST = 0.3  # of the cosines that are compared

Rule = Callable[["Collection"], float]


def main() -> None:
    """Index the collections and print both tables."""
    parser = argument_parser(__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--sets", default=",".join(SETS))
    options = parser.parse_args()
    collections = [
        collection(name, options.model, options.work)
        for name in options.sets.split(",")
    ]
    print("collection,texts,marked,minimum,pairs,right,found")
    for each in collections:
        for minimum in (*MINIMA, RULES["default"](each)):
            print(each.row(minimum))
    print("\nrule," + ",".join(each.name for each in collections))
    for name, rule in RULES.items():
        cells = [
            f"{each.f1(rule(each)) / each.best_f1:.2f} ({rule(each):.2f})"
            for each in collections
        ]
        print(f"{name},{','.join(cells)}")


@dataclass(frozen=True)
class Collection:
    """A collection's pairs of texts by falling cosine, and which are marked."""

    name: str
    folder: Path
    nearest: np.ndarray  # the cosine of each text with its nearest neighbour
    cosines: np.ndarray
    is_right: np.ndarray
    marked: int

    @cached_property
    def found(self) -> np.ndarray:
        """Number of right pairs among the first ones."""
        return np.cumsum(self.is_right)

    @cached_property
    def best_f1(self) -> float:
        """The F1 of the best minimum."""
        return float(
            max(2 * self.found / (np.arange(1, len(self.found) + 1) + self.marked))
        )

    def f1(self, minimum: float) -> float:
        """The F1 of a minimum."""
        count = int((self.cosines >= minimum).sum())
        return 2 * int(self.found[count - 1]) / (count + self.marked) if count else 0.0

    def row(self, minimum: float) -> str:
        """Pairs, right ones and found ones of a minimum."""
        count = int((self.cosines >= minimum).sum())
        right = int(self.found[count - 1]) if count else 0
        share = f"{right / count:.2f}" if count else ""
        counts = f"{self.name},{len(self.nearest)},{self.marked},{minimum:.2f},{count}"
        return f"{counts},{share},{right / self.marked:.2f}"


def default(each: Collection) -> float:
    """The minimum that `aoe duplicates` chooses."""
    return aoe_train.duplicates(each.folder, progress=False).min_cosine


def fixed(_: Collection, minimum: float) -> float:
    """The same minimum for all collections."""
    return minimum


def above_mean(each: Collection, deviations: float) -> float:
    """A number of standard deviations above the mean cosine with the nearest text."""
    return float(each.nearest.mean() + deviations * each.nearest.std())


def of_quantile(each: Collection, share: float) -> float:
    """The cosine with the nearest text that this share of the texts do not exceed."""
    return float(np.quantile(each.nearest, share))


RULES: dict[str, Rule] = {"default": default}
RULES |= {f"fixed {minimum:g}": partial(fixed, minimum=minimum) for minimum in MINIMA}
RULES |= {
    f"mean + {each:g} deviations": partial(above_mean, deviations=each)
    for each in (0, 0.5, 0.75, 1, 1.25)
}
RULES |= {
    f"quantile {share:g}": partial(of_quantile, share=share)
    for share in (0.7, 0.75, 0.8, 0.85, 0.9)
}


def collection(name: str, model: str, work: Path) -> Collection:
    """The compared pairs of a collection."""
    table, marks = questions(work) if name == "qqp" else tickets(name, work)
    folder = work / "indexes" / Path(model).name / name
    if not folder.exists():
        aoe_train.index(
            str(table), model=model, out=folder, cache=False, progress=False
        )
    index = aoe_train.open_index(folder, model=model)
    groups = Groups[str]()
    for first, second in marks:
        groups.join(first, second)
    ids = index.rows["id"].to_list()
    kept = set(ids)
    sizes = [len(kept & set(group)) for group in groups.all().values()]
    vectors, known = (
        np.asarray(index.vectors),
        {place for pair in marks for place in pair},
    )
    group = np.array(
        [
            hash(groups.find(each)) if each in known else -1 - place
            for place, each in enumerate(ids)
        ]
    )
    nearest, cosines, is_right = [], [], []
    for start in range(0, len(vectors), 1024):
        products = vectors[start : start + 1024] @ vectors.T
        own = np.arange(start, start + len(products))
        products[np.arange(len(products)), own] = -1
        nearest.append(products.max(axis=1))
        first, second = np.nonzero(products >= LEAST)
        once = own[first] < second
        first, second = first[once], second[once]
        cosines.append(products[first, second])
        is_right.append(group[own[first]] == group[second])
    order = np.argsort(-np.concatenate(cosines), kind="stable")
    return Collection(
        name,
        folder,
        np.concatenate(nearest),
        np.concatenate(cosines)[order],
        np.concatenate(is_right)[order],
        sum(size * (size - 1) // 2 for size in sizes),
    )


def tickets(name: str, work: Path) -> tuple[Path, list[tuple[str, str]]]:
    """All tickets of a tracker, and the pairs that are marked as duplicates."""
    store, table, pairs = work / f"{name}.work", work / f"{name}.parquet", work / name
    if not table.exists():
        source = (
            {"folder": ROOT / "data" / "sample_tickets.csv"}
            if name == "tickets"
            else tracker(name, work)
        )
        gis_builder.import_tracker(**source, work=store, progress=False)
        gis_builder.detect(store, progress=False)
        gis_builder.pair(store, pairs, split_sizes="1,0,0", fresh=True, progress=False)
        gis_builder.render(store, table, progress=False)
    rows = pl.read_parquet(pairs / "data" / "*.parquet").filter(pl.col("label") == 1)
    other = "repo2" if "repo2" in rows.columns else "repo"
    repos = zip(rows["repo"], rows[other].fill_null(rows["repo"]), strict=True)
    numbers = zip(rows["number1"], rows["number2"], strict=True)
    both = zip(repos, numbers, strict=True)
    return table, [
        (f"{a}#{first}", f"{b}#{second}") for (a, b), (first, second) in both
    ]


def questions(work: Path) -> tuple[Path, list[tuple[str, str]]]:
    """The questions of QQP, and the pairs that people marked as duplicates."""
    with gzip.open(DATA / "pairs" / "qqp-dev.tsv.gz", "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()[1:]
    cells = [line.split("\t")[:3] for line in lines]
    texts = list(dict.fromkeys(text for _, *both in cells[:QQP_ROWS] for text in both))
    table = work / "qqp.parquet"
    work.mkdir(parents=True, exist_ok=True)
    pl.DataFrame({"id": texts, "text": texts}).write_parquet(table)
    return table, [(first, second) for label, first, second in cells if label == "1"]


if __name__ == "__main__":
    main()
