"""Share of positives about the same problem by `--min-same-probability`, on pairs that were read.

    python benchmarks/strict_pairs.py --work F              # the tables, with 95 % Wilson intervals
    python benchmarks/strict_pairs.py --work F --fit        # first fit and write same_problem.toml
    python benchmarks/strict_pairs.py --work F --draw 25    # print pairs to read
    python benchmarks/strict_pairs.py --work F --train      # search on rust after training on strict pairs

One reader, an LLM, judged titles, the first 500 characters of both bodies and the closing comment, without
seeing the similarities: `same` (a fix or answer of one is also that of the other), `related` (a part, a
symptom of a general cause, a sibling, a successor), `wrong` or `unclear`. `benchmarks/pair_judgements.tsv`
has the ids, and as `weight` the number of pairs that a judged pair stands for, because similar pairs were
read more often. Precision and recall are weighted by it, without unclear pairs.

Features, weights and threshold were chosen on the trackers of `CHOSEN_ON`. The table evaluates each of these
with weights that were fitted to the other three. Nothing was fitted to the trackers of `KEPT_APART`, but
their results were seen for several sets of features. The texts are in `../shared/data`; after a change of
detection or texts, delete F.
"""

from __future__ import annotations

import csv
import gzip
import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from gis import DATA, RUST
from relations import wilson
from runs import argument_parser

import gis_builder
from gis_builder.pairing.positives import (
    WEIGHTS,
    SameProblem,
    Similarities,
    read_weights,
)
from pairkit.base.system.seeded import keyed_hash
from pairkit.dataset.making.dataset_folder import write_dataset

JUDGEMENTS = Path(__file__).resolve().parent / "pair_judgements.tsv"
CHOSEN_ON = {"GitHub": ("rust", "go"), "bug trackers": ("eclipse", "openoffice")}
KEPT_APART = {"bug trackers": ("firefox", "hadoop", "seamonkey"), "Jira": ("jira",)}
THRESHOLDS = (0.0, 0.6, 0.7, 0.8, 0.9)
STRICT = 0.9
NEAR_IDENTICAL = 0.8  # TF-IDF cosine
OTHER_REPORTS = 500  # that are in no pair, for a quick search
L2 = 1.0  # penalty of the squared weights of standardised features

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """A positive of the detector, and what a reader said of it."""

    source: str
    ids: frozenset[str]
    similarities: Similarities
    judgement: str = ""
    weight: float = 0.0

    @property
    def is_decided(self) -> bool:
        """Whether it was read and is clear."""
        return self.judgement not in ("", "unclear")


@dataclass
class Model:
    """A logistic regression on the similarities."""

    intercept: float
    weights: Vector

    def probabilities(self, pairs: Sequence[Pair]) -> Vector:
        """The probability of each pair; (pair,)."""
        features = np.array([pair.similarities for pair in pairs])
        result: Vector = 1 / (1 + np.exp(-(features @ self.weights + self.intercept)))
        return result


def main() -> None:
    """Fit, draw, train, or print the tables."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--work",
        type=Path,
        required=True,
        help="folder for imported trackers and datasets",
    )
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--draw", type=int, help="number of pairs of each tracker")
    parser.add_argument("--train", action="store_true")
    parser.add_argument(
        "--threshold", type=float, default=STRICT, help="the strict pairs of --train"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not RUST.is_dir():
        sys.exit(f"{RUST}: no such folder; it must have the texts of the judged pairs")
    if options.train:
        print(trained(options.work, options.threshold, options.seed))
        return
    judged = read_judgements()
    sources = [
        *(
            name
            for names in (*CHOSEN_ON.values(), *KEPT_APART.values())
            for name in names
        )
    ]
    if options.draw is not None:
        for source in sources:
            draw(dataset(source, options.work), source, options.draw, options.seed)
        return
    pairs = {source: positives(source, options.work, judged) for source in sources}
    chosen_on = {name: pairs[name] for names in CHOSEN_ON.values() for name in names}
    if options.fit:
        write_weights(fitted(pair for found in chosen_on.values() for pair in found))
    weights = read_weights()
    model = Model(
        weights["intercept"], np.array([weights[name] for name in Similarities._fields])
    )
    probabilities = {
        source: model.probabilities(found) for source, found in pairs.items()
    }
    for name, found in chosen_on.items():
        others = (
            pair for other in chosen_on if other != name for pair in chosen_on[other]
        )
        probabilities[name] = fitted(others).probabilities(found)
    print(precision_table(pairs, probabilities))
    print(similarity_table(pairs, probabilities))


def read_judgements() -> dict[tuple[str, frozenset[str]], tuple[str, float]]:
    """The judgement and weight of each pair, by source and ids."""
    with JUDGEMENTS.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {
            (row["source"], frozenset((row["issue1"], row["issue2"]))): (
                row["judgement"],
                float(row["weight"]),
            )
            for row in rows
        }


def dataset(source: str, work: Path) -> pl.DataFrame:
    """All rows of a tracker's dataset, which is made on the first call."""
    out = work / source
    if not (out / "run.json").exists():
        store = work / f"{source}.work"
        gis_builder.import_tracker(**tracker(source, work), work=store, progress=False)
        gis_builder.detect(store, progress=False)
        gis_builder.pair(store, out, split_sizes="1,0,0", fresh=True, progress=False)
    return pl.read_parquet(out / "data" / "*.parquet")


def tracker(source: str, work: Path) -> dict[str, Any]:
    """The arguments that import a tracker."""
    bugs = DATA / "dup-bugs"
    match source:
        case "rust":
            return {"folder": RUST}
        case "go":
            return {"folder": DATA / "go-issues"}
        case "jira":
            return {"folder": DATA / "jira" / "tickets.jsonl.gz"}
        case "hadoop" | "seamonkey":
            links = pl.read_csv(
                bugs / f"{source}-duplicate-pairs.gitbugs.tsv", separator="\t"
            )
            tickets = bugs / f"{source}-issues.gitbugs.jsonl.gz"
            named = links.select(
                pl.col("id1").alias("id"), pl.col("id2").alias("duplicate_of")
            )
            return {
                "folder": tickets,
                "links": table(named, work / f"{source}-links.csv"),
                "repo": f"bugs/{source}",
            }
        case _:
            return given_pairs(source, work)


def given_pairs(source: str, work: Path) -> dict[str, Any]:
    """Tickets and links from a file of pairs with texts, which has no dates and no other tickets."""
    name = (
        "openoffice-duplicate-pairs.dutta"
        if source == "openoffice"
        else "bugzilla-duplicate-pairs.sigmajahan"
    )
    systems = {
        "eclipse": ("Eclipse",),
        "firefox": ("Firefox", "Mobile"),
        "openoffice": ("OpenOffice",),
    }[source]
    with gzip.open(
        DATA / "dup-bugs" / f"{name}.jsonl.gz", "rt", encoding="utf-8"
    ) as lines:
        rows = [row for row in map(json.loads, lines) if row["system"] in systems]
    texts: dict[str, tuple[str, str]] = {}
    for row in rows:
        texts.setdefault(row["bug_id"], (row["title1"], row["body1"]))
        texts.setdefault(row["dup_id"], (row["title2"], row["body2"]))
    day = "2010-01-01T00:00:00Z"
    tickets = pl.DataFrame(
        [
            (id_, *text, "RESOLVED", "DUPLICATE", day, day)
            for id_, text in texts.items()
        ],
        schema=[
            "id",
            "title",
            "body",
            "status",
            "resolution",
            "created_at",
            "closed_at",
        ],
        orient="row",
    )
    links = pl.DataFrame(
        {"id": [r["bug_id"] for r in rows], "duplicate_of": [r["dup_id"] for r in rows]}
    )
    return {
        "folder": table(tickets, work / f"{source}.csv"),
        "links": table(links, work / f"{source}-links.csv"),
        "repo": f"bugs/{source}",
    }


def table(frame: pl.DataFrame, path: Path) -> Path:
    """Write a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.write_csv(path)
    return path


def positives(
    source: str, work: Path, judged: dict[tuple[str, frozenset[str]], tuple[str, float]]
) -> list[Pair]:
    """The positives of a tracker with their similarities and judgements."""
    rows = dataset(source, work)
    same_problem = SameProblem(
        pl.concat([rows["text1"], rows["text2"]]).unique(maintain_order=True)
    )
    pairs = []
    for row in rows.filter(pl.col("label") == 1).iter_rows(named=True):
        ids = frozenset(row[url].rpartition("/")[2] for url in ("url1", "url2"))
        similarities = same_problem.similarities(row["text1"], row["text2"])
        pairs.append(
            Pair(source, ids, similarities, *judged.get((source, ids), ("", 0.0)))
        )
    return pairs


def draw(rows: pl.DataFrame, source: str, count: int, seed: int) -> None:
    """Print positives, evenly from all reasons and similarities, in random order."""
    same_problem = SameProblem(
        pl.concat([rows["text1"], rows["text2"]]).unique(maintain_order=True)
    )
    found = rows.filter(pl.col("label") == 1).to_dicts()
    found.sort(
        key=lambda row: (
            row["reason"],
            same_problem.similarities(row["text1"], row["text2"]),
        )
    )
    step = len(found) / count
    chosen = [found[int((index + 0.5) * step)] for index in range(count)]
    for row in sorted(
        chosen, key=lambda row: keyed_hash(seed, "strict", row["url1"], row["url2"])
    ):
        print(source, row["url1"], row["url2"], row["evidence"]["url"])
        for text in (row["text1"], row["text2"]):
            title, _, body = text.partition("\n\n")
            print("*", title[:200], "|", " ".join(body.split())[:500])


def fitted(pairs: Iterable[Pair]) -> Model:
    """The regression on the clear judgements, by Newton's method with an L2 penalty."""
    read = [pair for pair in pairs if pair.is_decided]
    features = np.array([pair.similarities for pair in read])
    is_same = np.array([pair.judgement == "same" for pair in read], float)
    mean, spread = features.mean(axis=0), features.std(axis=0)
    columns = np.column_stack([(features - mean) / spread, np.ones(len(read))])
    penalty = np.diag([L2] * features.shape[1] + [0.0])
    solution = np.zeros(columns.shape[1])
    for _ in range(50):
        estimate = 1 / (1 + np.exp(-columns @ solution))
        gradient = columns.T @ (estimate - is_same) + penalty @ solution
        hessian = (columns * (estimate * (1 - estimate))[:, None]).T @ columns + penalty
        solution -= np.linalg.solve(hessian, gradient)
    weights = solution[:-1] / spread
    return Model(float(solution[-1] - weights @ mean), weights)


def write_weights(model: Model) -> None:
    """Write the weights into the package."""
    values = {
        "intercept": model.intercept,
        **dict(zip(Similarities._fields, model.weights, strict=True)),
    }
    lines = [f"{name} = {value:.3f}" for name, value in values.items()]
    WEIGHTS.write_text(
        "\n".join(["# Written by benchmarks/strict_pairs.py --fit.", *lines, ""]),
        "utf-8",
    )
    read_weights.cache_clear()


def precision_table(
    pairs: dict[str, list[Pair]], probabilities: dict[str, Vector]
) -> str:
    """A row for each kind of tracker, tracker and threshold."""
    head = "| trackers | threshold | pairs kept | read | unclear | same | precision | 95 % | recall |"
    lines = [head, "|" + "---|" * 9]
    for part, kinds in (("chosen on", CHOSEN_ON), ("kept apart", KEPT_APART)):
        for kind, sources in kinds.items():
            groups = (
                [sources]
                if len(sources) == 1
                else [sources, *((source,) for source in sources)]
            )
            for group in groups:
                name = f"{kind}, {part}" if group == sources else group[0]
                every = [pair for source in group for pair in pairs[source]]
                estimates = np.concatenate([probabilities[source] for source in group])
                lines += [
                    row(name, every, estimates, threshold) for threshold in THRESHOLDS
                ]
    return "\n".join(lines)


def row(name: str, pairs: Sequence[Pair], estimates: Vector, threshold: float) -> str:
    """Counts and shares of the pairs from a threshold on."""
    is_kept = estimates >= threshold
    read = [
        pair
        for pair, kept in zip(pairs, is_kept, strict=True)
        if kept and pair.judgement
    ]
    decided = [pair for pair in read if pair.is_decided]
    same = [pair for pair in decided if pair.judgement == "same"]
    all_same = sum(pair.weight for pair in pairs if pair.judgement == "same")
    # Similar pairs were read more often, which matters where nothing is left out.
    precision = sum(pair.weight for pair in same) / sum(pair.weight for pair in decided)
    low, high = wilson(precision * len(decided), len(decided))  # type: ignore[arg-type]
    recall = sum(pair.weight for pair in same) / all_same
    counts = f"| {name} | {threshold:g} | {is_kept.mean():.2f} | {len(read)} | {len(read) - len(decided)} "
    return f"{counts}| {len(same)} | {precision:.3f} | {low:.3f} to {high:.3f} | {recall:.2f} |"


def similarity_table(
    pairs: dict[str, list[Pair]], probabilities: dict[str, Vector]
) -> str:
    """TF-IDF cosines of all pairs and of those that are kept, by tracker."""
    lines = [
        "",
        "| tracker | pairs | mean | quartiles | near-identical |",
        "|" + "---|" * 5,
    ]
    for source, found in pairs.items():
        cosines = np.array([pair.similarities.text_cosine for pair in found])
        for name, kept in (
            ("all", cosines),
            ("strict", cosines[probabilities[source] >= STRICT]),
        ):
            quartiles = ", ".join(
                f"{value:.2f}" for value in np.quantile(kept, [0.25, 0.5, 0.75])
            )
            near = float((kept >= NEAR_IDENTICAL).mean())
            lines.append(
                f"| {source} | {name}, {len(kept):,} | {kept.mean():.2f} | {quartiles} | {near:.2f} |"
            )
    return "\n".join(lines)


def trained(work: Path, threshold: float, seed: int) -> str:
    """R@5 on rust's test issues of MiniLM, trained on all, the strict or as many random positives."""
    import aoe_train

    dataset("rust", work)
    store, split, reports = (
        work / "rust.work",
        work / "rust-split",
        work / "rust-reports.parquet",
    )
    gis_builder.pair(
        store, split, split_sizes="0.5,0.1,0.4", fresh=True, progress=False
    )
    gis_builder.render(store, reports, fresh=True, progress=False)
    of_pairs = pl.read_parquet(split / "data" / "*.parquet")
    numbers = pl.concat([of_pairs["number1"], of_pairs["number2"]]).unique()
    every = pl.read_parquet(reports)
    others = every.filter(~pl.col("number").is_in(numbers.implode())).sample(
        OTHER_REPORTS, seed=seed
    )
    pl.concat(
        [every.filter(pl.col("number").is_in(numbers.implode())), others]
    ).write_parquet(reports)
    lines = []
    for name in ("strict", "random", "all"):
        subset, count = training_subset(
            split, work / f"rust-{name}", name, threshold, seed
        )
        model = work / f"model-{name}-{seed}"
        aoe_train.train(
            subset,
            out=model,
            epochs=2,
            max_length=64,
            seed=seed,
            fresh=True,
            progress=False,
        )
        evaluated = aoe_train.evaluate(
            str(model),
            suite="tracker",
            data=split,
            reports=reports,
            resamples=0,
            progress=False,
        )
        lines.append(f"{name}, {count} positives\n{evaluated}")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def training_subset(
    split: Path, out: Path, name: str, threshold: float, seed: int
) -> tuple[Path, int]:
    """All training positives, the strict ones or as many random ones, with as many negatives."""
    train = pl.read_parquet(split / "data" / "train-*.parquet")
    validation = pl.read_parquet(split / "data" / "validation-*.parquet")
    found = train.filter(pl.col("label") == 1)
    strict = found.filter(pl.col("same_probability") >= threshold)
    chosen = {
        "all": found,
        "strict": strict,
        "random": found.sample(strict.height, seed=seed),
    }[name]
    negatives = train.filter(pl.col("label") == 0)
    negatives = negatives.sample(min(negatives.height, chosen.height), seed=seed)
    rows = pl.concat([chosen, negatives]).sample(fraction=1.0, shuffle=True, seed=seed)
    shutil.rmtree(out, ignore_errors=True)
    splits = {"train": rows, "validation": validation}
    write_dataset(
        out,
        {"default": splits},
        card="",
        statistics={},
        run={"made_by": "strict_pairs.py"},
    )
    return out, chosen.height


if __name__ == "__main__":
    main()
