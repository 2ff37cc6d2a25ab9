"""The card of a labelled dataset: what is in it, who labelled it and how, what it is not good for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from llm_labeler._card_words import CARD_WORDS
from llm_labeler._kinds import LLM_KINDS, strategy_of
from llm_labeler._records import POLARITIES
from pairkit.card import dataset_card, table

_LABELS = {
    True: ("float32", "from 0 to 1; 1 the same meaning"),
    False: ("int64", "1 the same meaning, 0 the opposite"),
}

_MAKING = """
* **Strategy** `{strategy}`: {meaning}.
* **Filters** dropped refusals, copies, other scripts, lengths far from the source's and what was proposed as
  both positive and negative; `statistics.json` counts them by reason.
* **Splits** go by source sentence. Sentences that are nearly identical, or have a sentence in common with one
  another's pairs, are never parted; no sentence stands in two splits.
* The seed and the stored answers decide everything else; equal input gives equal files. `run.json` holds
  settings, prompts and LLMs.
"""

_RULES_LIMIT = """
* **{names} {is_are} no LLM** but rules over a dictionary: sentences may sound odd, and words of several
  meanings are often replaced in the wrong one.
"""

_LICENCE = """
The source sentences keep the terms they came with. What an LLM wrote is subject to the terms of its provider
or of its weights, some of which restrict training other models on it. Check both before you share or use this
dataset.
"""


def label_card(
    counts: Mapping[str, Any], run: Mapping[str, Any], files: Mapping[str, Mapping[str, str]], *, graded: bool
) -> str:
    """The README of the dataset.

    Args:
        counts: `splits`, `llms` and `warnings` of the statistics.
        run: What made it, see `llm_labeler._folders.run_record`.
        files: Configuration to split to file pattern.
        graded: Whether labels are other than 0 and 1.
    """
    rules = [name for name, llm in run["llms"].items() if not LLM_KINDS[llm["kind"]].is_llm]
    only_rules = len(rules) == len(run["llms"])
    label_type, label = _LABELS[graded]
    words = CARD_WORDS[run["settings"].get("task", "papers")]
    limits = words.limits.strip()
    if rules:
        are = "is" if len(rules) == 1 else "are"
        limits += _RULES_LIMIT.rstrip().format(names=", ".join(map(_code, rules)), is_are=are)
    if warnings := counts.get("warnings"):
        limits += "".join(f"\n* **Warning.** {warning}." for warning in warnings)
    sections = [
        ("", words.rules if only_rules else words.llms),
        ("Counts", _counts(counts)),
        ("Columns", words.schema.format(type=label_type, label=label)),
        ("How it was made", _making(run, words.asked)),
        ("Limitations", limits),
        ("Licence", _LICENCE),
    ]
    return dataset_card(
        f"{words.title} by {'rules' if only_rules else 'LLMs'}",
        configs=files,
        rows=sum(split["total" if "default" in files else "triplets"] for split in counts["splits"].values()),
        sections=sections,
        tags=("rule-based",) if only_rules else ("llm-labelled", "synthetic"),
    )


def _counts(counts: Mapping[str, Any]) -> str:
    splits: Mapping[str, Mapping[str, int]] = counts["splits"]
    lines = [
        (name, *(split[key] for split in splits.values()))
        for name, key in (
            ("source sentences", "texts"),
            ("positive", "positive"),
            ("negative", "negative"),
            ("total", "total"),
            ("triplets", "triplets"),
        )
    ]
    by_llm = [(_code(name), *(llm[p] for p in POLARITIES)) for name, llm in counts["llms"].items()]
    kinds = counts.get("negative_kinds", {})
    by_kind = table(["", "triplets"], [*kinds.items()])
    told = f"By what the negative changes:\n\n{by_kind}\n\n" if {*kinds} - {"unknown"} else ""
    return (
        f"{table(['', *splits], lines)}\n\n{told}By who proposed them; a pair that several did counts for"
        f" each:\n\n{table(['', *POLARITIES], by_llm)}"
    )


def _making(run: Mapping[str, Any], asked: str) -> str:
    settings = run["settings"]
    ensemble = settings["ensemble"]
    strategy = ensemble["strategy"]
    llms = [(_code(name), llm["kind"], _code(llm["model"])) for name, llm in run["llms"].items()]
    parts = [
        table(["name", "kind", "model"], llms),
        f"{asked}: {settings['size']}.",
        _MAKING.strip().format(strategy=strategy, meaning=strategy_of(strategy).meaning.format(**ensemble)),
    ]
    if any(LLM_KINDS[llm["kind"]].is_llm for llm in run["llms"].values()):
        parts += [f"Prompt ({name}):\n\n{_fenced(prompt)}" for name, prompt in run["prompts"].items()]
    return "\n\n".join(parts)


def _code(text: str) -> str:
    """As code in a line; backticks of its own would end it."""
    return f"`{' '.join(text.replace('`', chr(39)).split())}`"


def _fenced(text: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"
