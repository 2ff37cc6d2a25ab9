"""Write the dataset folder: its card and its files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_labeler.dataset.dataset_rows import DatasetRows, DatasetSplits
from llm_labeler.records import POLARITIES, format_counts
from llm_labeler.settings import AGGREGATIONS
from llm_labeler.settings.llms import RULES
from llm_labeler.settings.tasks import TASKS
from pairkit.base.errors import DataError
from pairkit.dataset.making.dataset_folder import (
    card_files,
    dataset_card,
    dataset_folder,
    table,
)

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
    limits += [f"* **Warning.** {warning}." for warning in counts.get("warnings", ())]
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
        (_code(name), *(llm[p] for p in POLARITIES))
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
    run: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the dataset folder."""
    if not rows.rows:
        reasons = {**statistics.get("dropped", {}), **rows.dropped}
        message = f"no pair is left to write ({format_counts(reasons)})"
        if reasons.get("not_answered") and not statistics.get("proposals"):
            message += (
                ": no question was answered; run `label generate` again, with a higher --max-cost,"
                " --max-tokens or --max-requests if a limit stopped it"
            )
        else:
            warnings = statistics.get("warnings") or ["look at some with `label show`"]
            message += f"; {'; '.join(warnings)}, and see the [filters] and [ensemble] settings"
        raise DataError(message, path=out)
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
