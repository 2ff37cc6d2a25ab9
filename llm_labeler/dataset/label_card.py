"""Write the dataset folder: its card and its files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from llm_labeler.dataset.label_splits import DatasetRows, DatasetSplits
from llm_labeler.records import POLARITIES, format_counts
from llm_labeler.settings import AGGREGATIONS, RULES
from pairkit.base.errors import DataError
from pairkit.dataset.making.dataset_card import dataset_card, table
from pairkit.dataset.records import card_files, dataset_folder

CARD_TEXTS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("card_texts.toml").read_text(encoding="utf-8")
)
SHARD_ROWS = 250_000

_LABELS = {
    True: ("float32", "from 0 to 1; 1: the same meaning"),
    False: ("int64", "1: the same meaning, 0: the opposite"),
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
    only_rules = len(rules) == len(run["llms"])
    label_type, label = _LABELS[graded]
    texts = {**CARD_TEXTS["common"], **CARD_TEXTS[run["settings"].get("task", "paraphrase")]}
    texts |= {"type": label_type, "label": label, "names": ", ".join(map(_code, rules))}
    limits = "\n".join((texts["limits"].format_map(texts), texts["further_limits"]))
    if rules:
        limits += "\n" + texts["rules_limit"].format_map(texts)
    if warnings := counts.get("warnings"):
        limits += "".join(f"\n* **Warning.** {warning}." for warning in warnings)
    sections = [
        ("", texts["rules" if only_rules else "llms"]),
        ("Counts", _counts(counts)),
        ("Columns", texts["columns"].format_map(texts)),
        ("Method", _method(run, texts)),
        ("Limitations", limits),
        ("Licence", texts["licence"]),
    ]
    return dataset_card(
        f"{texts['title']} by {'rules' if only_rules else 'LLMs'}",
        configs=files,
        rows=sum(
            split["total" if "default" in files else "triplets"]
            for split in counts["splits"].values()
        ),
        sections=sections,
        tags=("rule-based",) if only_rules else ("llm-labelled", "synthetic"),
    )


def _counts(counts: Mapping[str, Any]) -> str:
    splits: Mapping[str, Mapping[str, int]] = counts["splits"]
    lines = [
        ("source sentences" if key == "texts" else key, *(split[key] for split in splits.values()))
        for key in ("texts", *POLARITIES, "total", "triplets")
    ]
    by_llm = [(_code(name), *(llm[p] for p in POLARITIES)) for name, llm in counts["llms"].items()]
    kinds = counts.get("negative_kinds", {})
    by_kind = table(["", "triplets"], [*kinds.items()])
    by_change = f"By what the negative changes:\n\n{by_kind}\n\n" if {*kinds} - {"unknown"} else ""
    return (
        f"{table(['', *splits], lines)}\n\n{by_change}By proposing LLM; a pair that several LLMs proposed is"
        f" counted for each:\n\n{table(['', *POLARITIES], by_llm)}"
    )


def _method(run: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    settings = run["settings"]
    ensemble = settings["ensemble"]
    aggregation = ensemble["aggregation"]
    llms = [(_code(name), llm["kind"], _code(llm["model"])) for name, llm in run["llms"].items()]
    parts = [
        table(["name", "kind", "model"], llms),
        f"{texts['size']}: {settings['size']}.",
        texts["method"].format(aggregation=aggregation, meaning=AGGREGATIONS[aggregation].meaning),
    ]
    if any(llm["kind"] != RULES for llm in run["llms"].values()):
        for name, prompt in run["prompts"].items():
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", prompt)), default=0))
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
    run: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the dataset folder."""
    if not rows.rows:
        raise DataError(_why_empty(rows.dropped, statistics), path=out)
    split_rows = DatasetSplits(rows, split_of, graded=graded)
    counts = (
        split_rows.counts()
        | {"dropped_pairs": dict(sorted(rows.dropped.items()))}
        | dict(statistics)
    )
    card = label_card(counts, run, card_files(split_rows.frames), graded=split_rows.graded)
    with dataset_folder(out) as folder:
        for config, splits in split_rows.frames.items():
            for split, frame in splits.items():
                count = -(-frame.height // SHARD_ROWS)
                for shard in range(count):
                    indices = pl.int_range(
                        shard * SHARD_ROWS, min((shard + 1) * SHARD_ROWS, frame.height)
                    )
                    folder.add(config, split, frame.select(pl.all().gather(indices)), shard, count)
        folder.finish(card=card, statistics=counts, run=run)
    return counts


def _why_empty(dropped: Mapping[str, int], statistics: Mapping[str, Any]) -> str:
    reasons = {**statistics.get("dropped", {}), **dropped}
    problem = f"no pair is left to write ({format_counts(reasons)})"
    if reasons.get("not_answered") and not statistics.get("proposals"):
        return (
            f"{problem}: no question was answered; run `label generate` again, with a higher"
            " --max-cost, --max-tokens or --max-requests if a limit stopped it"
        )
    warnings = statistics.get("warnings") or ("look at some with `label show`",)
    return f"{problem}; {'; '.join(warnings)}, and see the [filters] and [ensemble] settings"
