"""The candidates of a run, and the dataset that is made of them.

`DatasetRows` collects the candidates text by text and chooses which of them become rows. `DatasetSplits` divides
the rows by configuration and split. `write` writes them with a card.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from llm_labeler.records import (
    POLARITIES,
    LabelledPair,
    Polarity,
    Text,
    format_counts,
)
from llm_labeler.settings import AGGREGATIONS, TASKS
from llm_labeler.settings.llms import RULES
from pairkit.base.errors import DataError
from pairkit.base.system.seeded import keyed_hash
from pairkit.dataset.making.dataset_folder import (
    card_files,
    dataset_card,
    dataset_folder,
    table,
)
from pairkit.dataset.records import SPLITS
from pairkit.dataset.table_files import write_parquet
from pairkit.similarity.groups import Indices

NAMES = pl.List(pl.String)
VOTES = pl.List(pl.Struct({"judge": pl.String, "vote": pl.String}))
_BATCH = 20_000  # candidates that are collected before they become a table

_CANDIDATES: dict[str, Any] = {
    "text": pl.UInt32,  # index of the text
    "candidate": pl.String,
    "proposed": pl.String,  # the polarity that it was proposed as
    "llms": NAMES,
    "votes": VOTES,
    "label": pl.Float64,
    "reason": pl.String,  # why it is not a pair; null: it is one
    "change": pl.String,  # kind of a hard negative
    "prompts": NAMES,
    "polarity": pl.String,
    "key": pl.UInt64,  # sort key of the rows of a split; null: not a row
}
# The rows of a split are sorted by hash, which mixes labels and texts.
_ORDER = ("split", "key", "id")
SHARD_ROWS = 250_000

CARD_TEXTS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("card_texts.toml").read_text("utf-8")
)
# The type and the meaning of labels in the card, by whether they are graded.
_LABELS = {
    True: ("float32", "from 0 to 1; 1: the same meaning"),
    False: ("int64", "1: the same meaning, 0: the opposite"),
}


class _Row(NamedTuple):
    """A pair that becomes a row of the dataset."""

    key: int  # rows are sorted by it
    number: int  # index among the pairs of its text
    polarity: Polarity


class _Triplet(NamedTuple):
    """A triplet; its positive and its negative are indices of candidates."""

    key: int  # triplets are sorted by it, then by `id`
    id: int  # index of the candidate that has only this triplet
    positive: int
    negative: int


class DatasetRows:
    """The candidates of a run; with `only_triplets`, a text needs a positive and a negative."""

    def __init__(self, aggregation: str, seed: int, *, only_triplets: bool) -> None:
        self.aggregation = aggregation
        self.only_triplets = only_triplets
        self.texts: list[Text] = []
        self.candidate_count = 0
        self.row_count = 0
        self.dropped: Counter[str] = Counter()  # pairs that are not rows, by reason
        self.triplets: list[_Triplet] = []
        self._seed = seed
        self._pending: list[dict[str, Any]] = []
        self._tables = [pl.DataFrame(schema=_CANDIDATES)]

    def add(self, text: Text, pairs: Sequence[LabelledPair]) -> None:
        """Add all pairs of one text."""
        rows = self._sorted_rows(text, pairs)
        self._add_triplets(rows)
        keys = {row.number: row.key for row in rows}
        for number, pair in enumerate(pairs):
            candidate = pair.candidate
            self._pending.append(
                {
                    "text": len(self.texts),
                    "candidate": candidate.candidate,
                    "proposed": candidate.polarity,
                    "llms": candidate.llms,
                    "votes": [
                        {"judge": vote.judge, "vote": vote.vote} for vote in pair.votes
                    ],
                    "label": pair.label,
                    "reason": pair.reason,
                    "change": candidate.change,
                    "prompts": candidate.prompt_hashes,
                    "polarity": pair.polarity,
                    "key": keys.get(number),
                }
            )
        self.texts.append(text)
        self.candidate_count += len(pairs)
        self.row_count += len(rows)
        if len(self._pending) >= _BATCH:
            self._flush()

    def table(self) -> pl.DataFrame:
        """All candidates with their texts, in the order in which they were added."""
        self._flush()
        candidates = pl.concat(self._tables)
        self._tables = [candidates]
        ids_and_texts = [(text.text_id, text.text) for text in self.texts]
        schema = {"text_id": pl.String, "text1": pl.String}
        texts = pl.DataFrame(ids_and_texts, schema=schema, orient="row")
        return candidates.hstack(texts[candidates["text"]])

    def sentences(self, texts: Sequence[Text]) -> tuple[pl.Series, Indices]:
        """All texts, then the candidates that the aggregation kept; and the index of the text of each."""
        sources = pl.Series([text.text for text in texts], dtype=pl.String)
        kept = self.table().filter(pl.col("reason").is_null())
        positions = {text.text_id: index for index, text in enumerate(texts)}
        own = np.array([positions[text.text_id] for text in self.texts], np.int64)
        sentences = pl.concat([sources, kept["candidate"].alias("")])
        return sentences, np.concatenate([np.arange(len(texts)), own[kept["text"]]])

    def write_candidates(self, path: Path) -> None:
        """Write all candidates with the reasons of their rejection."""
        written = self.table().select(
            "text_id",
            pl.col("text1").alias("text"),
            "candidate",
            pl.col("proposed").alias("polarity"),
            "llms",
            "votes",
            "label",
            "reason",
            "change",
        )
        if not self.only_triplets:
            written = written.drop("change")
        write_parquet(path, written, private=True)

    def _sorted_rows(self, text: Text, pairs: Sequence[LabelledPair]) -> list[_Row]:
        """The pairs that become rows, sorted by key."""
        rows = []
        for number, pair in enumerate(pairs):
            if pair.reason is not None:
                self.dropped[pair.reason] += 1
                continue
            sentence = pair.candidate.candidate
            key = keyed_hash(self._seed, "row", text.text_id, sentence)
            rows.append(_Row(key, number, pair.polarity))
        polarities = {row.polarity for row in rows}
        if self.only_triplets and len(polarities) == 1:
            missing = "no_negative" if "positive" in polarities else "no_positive"
            self.dropped[missing] += len(rows)
            return []
        return sorted(rows)

    def _add_triplets(self, rows: Sequence[_Row]) -> None:
        """Make a triplet for each row of the more frequent polarity; rows of the other repeat in turn."""
        positives = [row for row in rows if row.polarity == "positive"]
        negatives = [row for row in rows if row.polarity == "negative"]
        if not positives or not negatives:
            return
        first = self.candidate_count  # index of this text's first candidate
        frequent = positives if len(positives) >= len(negatives) else negatives
        for turn, row in enumerate(frequent):
            triplet = _Triplet(
                key=row.key,
                id=first + row.number,
                positive=first + positives[turn % len(positives)].number,
                negative=first + negatives[turn % len(negatives)].number,
            )
            self.triplets.append(triplet)

    def _flush(self) -> None:
        self._tables.append(pl.DataFrame(self._pending, schema=_CANDIDATES))
        self._pending = []


class DatasetSplits:
    """The rows of the dataset by configuration and split."""

    def __init__(
        self, rows: DatasetRows, split_of: Mapping[str, str], *, graded: bool
    ) -> None:
        self._source = rows
        split_numbers = [SPLITS.index(split_of[text.text_id]) for text in rows.texts]
        splits = pl.Series(split_numbers, dtype=pl.UInt8)
        candidates = rows.table().with_row_index("id")
        candidates = candidates.with_columns(split=splits.gather(candidates["text"]))
        self._rows = candidates.filter(pl.col("key").is_not_null()).sort(_ORDER)
        self.graded = graded or not self._rows["label"].is_in([0.0, 1.0]).all()

        schema = dict.fromkeys(_Triplet._fields, pl.UInt32()) | {"key": pl.UInt64()}
        triplets = pl.DataFrame(rows.triplets, schema=schema, orient="row")
        split_of_triplet = candidates["split"].gather(triplets["id"])
        triplets = triplets.with_columns(split=split_of_triplet).sort(_ORDER)
        # The candidates of each triplet.
        self._positives = candidates[triplets["positive"]]
        self._negatives = candidates[triplets["negative"]]

        configs = {}
        if not rows.only_triplets:
            configs["default"] = self._default_config()
            configs["positive"] = self._positive_config()
        configs["triplet"] = self._triplet_config()
        self.frames = {
            name: _by_split(frame) for name, frame in configs.items() if frame.height
        }

    def counts(self) -> dict[str, object]:
        """Counts by split and polarity, and by LLM; a pair is counted for each LLM that proposed it."""
        by_llm: dict[str, dict[str, int]] = {}
        for llms, polarity in self._rows.select("llms", "polarity").iter_rows():
            for name in llms:
                by_llm.setdefault(name, dict.fromkeys(POLARITIES, 0))[polarity] += 1
        counts: dict[str, Any] = {
            "splits": {
                split: self._counts_of(number) for number, split in enumerate(SPLITS)
            },
            "llms": dict(sorted(by_llm.items())),
        }
        if self._source.only_triplets:
            kinds = self._negatives["change"].fill_null("unknown")
            changes = Counter(kinds)
            counts["negative_kinds"] = dict(sorted(changes.items()))
        return counts

    def _counts_of(self, split: int) -> dict[str, int]:
        rows = self._rows.filter(split=split)
        by_polarity = Counter(rows["polarity"])
        return {
            "texts": rows["text"].n_unique(),
            **{polarity: by_polarity[polarity] for polarity in POLARITIES},
            "total": rows.height,
            "triplets": self._positives.filter(split=split).height,
        }

    def _default_config(self) -> pl.DataFrame:
        return self._rows.select(
            "text1",
            pl.col("candidate").alias("text2"),
            pl.col("label").cast(pl.Float32 if self.graded else pl.Int64),
            "text_id",
            "polarity",
            "llms",
            pl.col("prompts").alias("prompt_hashes"),
            "votes",
            pl.lit(self._source.aggregation).alias("aggregation"),
            "split",
        )

    def _positive_config(self) -> pl.DataFrame:
        return self._rows.filter(polarity="positive").select(
            pl.col("text1").alias("anchor"),
            pl.col("candidate").alias("positive"),
            "split",
        )

    def _triplet_config(self) -> pl.DataFrame:
        """The triplets, in tasks that make only triplets with their provenance."""
        positives = self._positives
        negatives = self._negatives
        triplets = positives.select(
            pl.col("text1").alias("anchor"),
            pl.col("candidate").alias("positive"),
            negatives["candidate"].alias("negative"),
            "split",
        )
        if not self._source.only_triplets:
            return triplets

        def merged(column: str) -> pl.Expr:
            names = pl.concat_list(positives[column], negatives[column])
            return names.list.unique().list.sort()

        return triplets.with_columns(
            negatives["change"].alias("negative_kind"),
            positives["text_id"],
            llms=merged("llms"),
            prompt_hashes=merged("prompts"),
            aggregation=pl.lit(self._source.aggregation),
        )


def _by_split(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    return {
        split: frame.filter(split=number).drop("split")
        for number, split in enumerate(SPLITS)
    }


def label_card(
    counts: Mapping[str, Any],
    run: Mapping[str, Any],
    files: Mapping[str, Mapping[str, str]],
    *,
    graded: bool,
) -> str:
    """The README of the dataset."""
    rules = [name for name, llm in run["llms"].items() if llm["kind"] == RULES]
    by_rules = len(rules) == len(run["llms"])
    task = TASKS[run["settings"]["task"]]
    label_type, label = _LABELS[graded]
    texts = {
        **CARD_TEXTS["common"],
        **task.card,
        "type": label_type,
        "label": label,
        "names": ", ".join(map(_code, rules)),
    }
    limits = [texts["limits"].format_map(texts), texts["further_limits"]]
    if rules:
        limits.append(texts["rules_limit"].format_map(texts))
    limits += [f"* **Warning.** {warning}." for warning in counts["warnings"]]
    sections = [
        ("", texts["rules" if by_rules else "llms"]),
        ("Counts", _counts(counts)),
        ("Columns", texts["columns"].format_map(texts)),
        ("Method", _method(run, texts, by_rules=by_rules)),
        ("Limitations", "\n".join(limits)),
        ("Licence", texts["licence"]),
    ]
    total = "total" if "default" in files else "triplets"
    return dataset_card(
        f"{texts['title']} by {'rules' if by_rules else 'LLMs'}",
        configs=files,
        rows=sum(split[total] for split in counts["splits"].values()),
        sections=sections,
        tags=("rule-based",) if by_rules else ("llm-labelled", "synthetic"),
    )


def _counts(counts: Mapping[str, Any]) -> str:
    splits = counts["splits"]
    lines = []
    for key in ("texts", *POLARITIES, "total", "triplets"):
        title = "source sentences" if key == "texts" else key
        lines.append((title, *(split[key] for split in splits.values())))
    parts = [table(["", *splits], lines)]

    changes = counts.get("negative_kinds", {})
    if changes.keys() - {"unknown"}:
        parts += [
            "By what the negative changes:",
            table(["", "triplets"], changes.items()),
        ]

    by_llm = [
        (_code(name), *(llm[polarity] for polarity in POLARITIES))
        for name, llm in counts["llms"].items()
    ]
    parts += [
        "By proposing LLM; a pair that several LLMs proposed is counted for each:",
        table(["", *POLARITIES], by_llm),
    ]
    return "\n\n".join(parts)


def _method(run: Mapping[str, Any], texts: Mapping[str, str], *, by_rules: bool) -> str:
    settings = run["settings"]
    aggregation = settings["ensemble"]["aggregation"]
    llms = [
        (_code(name), llm["kind"], _code(llm["model"]))
        for name, llm in run["llms"].items()
    ]
    parts = [
        table(["name", "kind", "model"], llms),
        f"{texts['size']}: {settings['size']}.",
        texts["method"].format(
            aggregation=aggregation, meaning=AGGREGATIONS[aggregation].meaning
        ),
    ]
    if by_rules:
        return "\n\n".join(parts)
    for name, prompt in run["prompts"].items():
        longest = max(map(len, re.findall("`+", prompt)), default=0)
        fence = "`" * max(3, longest + 1)
        parts.append(f"Prompt ({name}):\n\n{fence}text\n{prompt}\n{fence}")
    return "\n\n".join(parts)


def _code(text: str) -> str:
    """Format as inline code, which backticks would end."""
    return f"`{' '.join(text.replace('`', chr(39)).split())}`"


def write(
    out: Path,
    rows: DatasetRows,
    split_of: Mapping[str, str],
    *,
    graded: bool,
    statistics: Mapping[str, Any],
    run: Mapping[str, object],
) -> dict[str, object]:
    """Write the dataset folder."""
    if not rows.row_count:
        raise DataError(_why_no_rows(rows.dropped, statistics), path=out)
    split_rows = DatasetSplits(rows, split_of, graded=graded)
    dropped = dict(sorted(rows.dropped.items()))
    counts = {**split_rows.counts(), "dropped_pairs": dropped, **statistics}
    card = label_card(
        counts, run, card_files(split_rows.frames), graded=split_rows.graded
    )
    with dataset_folder(out) as folder:
        for config, splits in split_rows.frames.items():
            for split, frame in splits.items():
                shards = list(frame.iter_slices(SHARD_ROWS))
                for number, shard in enumerate(shards):
                    folder.add(config, split, shard, number, len(shards))
        folder.finish(card=card, statistics=counts, run=run)
    return counts


def _why_no_rows(dropped: Mapping[str, int], statistics: Mapping[str, Any]) -> str:
    reasons = {**statistics["dropped"], **dropped}
    message = f"no pair is left to write ({format_counts(reasons)})"
    if "not_answered" in reasons and not statistics["proposals"]:
        return (
            f"{message}: no question was answered; run `label generate` again, with a higher --max-cost,"
            " --max-tokens or --max-requests if a limit stopped it"
        )
    if "not_judged" in reasons and not statistics["judges"]["by_name"]:
        return f"{message}: judges have not answered; run `label generate` with the same --aggregation"
    advice = statistics["warnings"] or ["look at some with `label show`"]
    return (
        f"{message}; {'; '.join(advice)}, and see the [filters] and [ensemble] settings"
    )
