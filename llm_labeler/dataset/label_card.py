"""Write the dataset folder: its card and its files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from llm_labeler.dataset.label_splits import DatasetRows, DatasetSplits
from llm_labeler.records import POLARITIES
from llm_labeler.settings import AGGREGATIONS, RULES
from pairkit.base.errors import DataError
from pairkit.dataset.making.dataset_card import dataset_card, table
from pairkit.dataset.records import card_files, dataset_folder

_PAIR_SCHEMA = """
Configuration `default`:

| column | type | meaning |
|---|---|---|
| text1 | string | the source sentence |
| text2 | string | the sentence written for it |
| label | {type} | {label} |
| text_id | string | a hash of the source sentence |
| polarity | string | `positive` or `negative` |
| llms | list of string | the LLMs that proposed text2 |
| prompt_hashes | list of string | hashes of the prompts that it answers |
| votes | list of (judge, vote) | votes of judges, which do not see the polarity; may be empty |
| aggregation | string | how proposals became labels, see below |

Configuration `positive`: `anchor` (the source sentence) and `positive`. Configuration `triplet`: `anchor`,
`positive` and `negative`. It has every positive and every negative of a sentence; the less frequent ones are
repeated in turn. Sentences that lack one of them are left out.
"""
_PAIR_LIMITS = """
* **The labels were made by machines.** A positive may have lost or added a detail, and a negative may be
  unrelated or merely different. Check a sample by hand before you rely on the labels (`label evaluate`).
* A negative is requested as the *opposite*, which shares the subject and most words. People who rate
  similarity seldom give such pairs the lowest score, so the labels of negatives are not similarity ratings.
"""
_TRIPLET_SCHEMA = """
One configuration, `triplet`: it has every positive and every negative of a source text; the less frequent
ones are repeated in turn. Texts that lack one of them are left out and counted.

| column | type | meaning |
|---|---|---|
| anchor | string | {anchor} |
| positive | string | {positive} |
| negative | string | {negative} |
| negative_kind | string | {kinds} |
| text_id | string | a hash of the anchor |
| llms | list of string | the LLMs that proposed positive and negative |
| prompt_hashes | list of string | hashes of the prompts that they answer |
| aggregation | string | how proposals became labels, see below |
"""
_TRIPLET_LIMITS = """
* **The triplets were made by machines.** {flaw} Check a sample by hand before you rely on them
  (`label evaluate`).
"""
_LIMITS = """
* The generated sentences have the style and the biases of the LLMs or rules, and cover only the domain of the
  source.
* An evaluation on the test split measures agreement with these labels, not with people.
"""
_KINDS = (
    "what the negative changes: `negation`, `antonym`, `entity`, `number`, `role`, `tense` or `modality`;"
    " null if its writer did not name it"
)


@dataclass(frozen=True, slots=True)
class CardWords:
    """The texts of a card that depend on the task."""

    title: str
    llms: str
    schema: str
    limits: str
    rules: str = ""
    size: str = "Sentences requested from each LLM for each text and polarity"


def _triplet_schema(anchor: str, positive: str, negative: str, kinds: str = "always null") -> str:
    return _TRIPLET_SCHEMA.format(anchor=anchor, positive=positive, negative=negative, kinds=kinds)


CARD_WORDS: Mapping[str, CardWords] = {
    "paraphrase": CardWords(
        "Sentence pairs",
        """
Sentence pairs made from unlabelled sentences with large language models and not checked by people. In a
*positive* pair, an LLM wrote a sentence with the same meaning as the source sentence; in a *negative* one,
with the opposite meaning. Built with `label`.
""",
        _PAIR_SCHEMA,
        _PAIR_LIMITS,
        """
Sentence pairs made from unlabelled sentences by rules over a dictionary and not checked by people.
**No LLM was used.** In a *positive* pair, words of the source sentence are replaced by synonyms; in a
*negative* one, antonyms or a negation reverse its meaning. Built with `label`; meant as a baseline.
""",
    ),
    "triplet": CardWords(
        "Sentence triplets",
        """
Sentence triplets made from unlabelled sentences with large language models and not checked by people: a
sentence, a sentence with the same meaning, and a *hard negative*, which keeps most words and changes the
meaning. Built with `label`.
""",
        _triplet_schema(
            "the source sentence", "a sentence that means the same", "a hard negative of the anchor", _KINDS
        ),
        _TRIPLET_LIMITS.format(
            flaw="A positive may have lost or added a detail, and a negative may still say the same."
        ),
        """
Sentence triplets made from unlabelled sentences by rules over a dictionary and not checked by people.
**No LLM was used.** A *positive* has other words or another word order. A *hard negative* keeps most words
and changes the meaning by a negation, an antonym, another thing of the same kind, another number, or swapped
roles. Built with `label`; meant as a baseline.
""",
    ),
    "query": CardWords(
        "Passages and questions",
        """
Passages with questions that large language models wrote for them, not checked by people. The passage answers
the *positive*; it seems to answer the *negative*, but does not. Built with `label`.
""",
        _triplet_schema("the passage", "a question that it answers", "a question that it does not answer"),
        _TRIPLET_LIMITS.format(
            flaw="A passage may not answer its positive in full, and may well answer its negative."
        ),
        """
Passages with questions that rules made from their first sentences, not checked by people.
**No LLM was used.** A *positive* asks for what the sentence states about an illness: what it is, its causes,
symptoms, treatment, diagnosis or frequency; a *negative* asks for another of these, which the passage doesn't
state. Built with `label`; meant as a baseline.
""",
        size="Questions requested from each LLM for each passage and polarity",
    ),
}


SHARD_ROWS = 250_000

_LABELS = {
    True: ("float32", "from 0 to 1; 1: the same meaning"),
    False: ("int64", "1: the same meaning, 0: the opposite"),
}

_METHOD = """
* **Aggregation** `{aggregation}`: {meaning}.
* **Filters** dropped refusals, copies, other scripts, very different lengths, and sentences proposed as both
  positive and negative; `statistics.json` counts them by reason.
* **Splits** are made by source sentence. Source sentences that are nearly identical, or share a sentence in
  their pairs, are in the same split, so no sentence is in two splits.
* Equal stored answers, settings and seed give equal files. `run.json` has settings, prompts and LLMs.
"""

_RULES_LIMIT = """
* **{names}: rules over a dictionary, not an LLM.** Sentences may sound odd, and a word with several meanings
  may be replaced in the wrong one.
"""

_LICENCE = """
The source sentences keep their licence. Text written by an LLM is subject to the terms of its provider or
weights, some of which restrict training other models on it. Check both before you share or use this dataset.
"""


def label_card(
    counts: Mapping[str, Any], run: Mapping[str, Any], files: Mapping[str, Mapping[str, str]], *, graded: bool
) -> str:
    """The README of the dataset."""
    rules = [name for name, llm in run["llms"].items() if llm["kind"] == RULES]
    only_rules = len(rules) == len(run["llms"])
    label_type, label = _LABELS[graded]
    words = CARD_WORDS[run["settings"].get("task", "paraphrase")]
    limits = words.limits.strip() + _LIMITS.rstrip()
    if rules:
        limits += _RULES_LIMIT.rstrip().format(names=", ".join(map(_code, rules)))
    if warnings := counts.get("warnings"):
        limits += "".join(f"\n* **Warning.** {warning}." for warning in warnings)
    sections = [
        ("", words.rules if only_rules else words.llms),
        ("Counts", _counts(counts)),
        ("Columns", words.schema.format(type=label_type, label=label)),
        ("Method", _method(run, words.size)),
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
    by_change = f"By what the negative changes:\n\n{by_kind}\n\n" if {*kinds} - {"unknown"} else ""
    return (
        f"{table(['', *splits], lines)}\n\n{by_change}By proposing LLM; a pair that several LLMs proposed is"
        f" counted for each:\n\n{table(['', *POLARITIES], by_llm)}"
    )


def _method(run: Mapping[str, Any], size: str) -> str:
    settings = run["settings"]
    ensemble = settings["ensemble"]
    aggregation = ensemble["aggregation"]
    llms = [(_code(name), llm["kind"], _code(llm["model"])) for name, llm in run["llms"].items()]
    parts = [
        table(["name", "kind", "model"], llms),
        f"{size}: {settings['size']}.",
        _METHOD.strip().format(aggregation=aggregation, meaning=AGGREGATIONS[aggregation].meaning),
    ]
    if any(llm["kind"] != RULES for llm in run["llms"].values()):
        parts += [f"Prompt ({name}):\n\n{_fenced(prompt)}" for name, prompt in run["prompts"].items()]
    return "\n\n".join(parts)


def _code(text: str) -> str:
    """Format as inline code, which backticks would end."""
    return f"`{' '.join(text.replace('`', chr(39)).split())}`"


def _fenced(text: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


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
    counts = split_rows.counts() | {"dropped_pairs": dict(sorted(rows.dropped.items()))} | dict(statistics)
    card = label_card(counts, run, card_files(split_rows.frames), graded=split_rows.graded)
    with dataset_folder(out) as folder:
        for config, splits in split_rows.frames.items():
            for split, frame in splits.items():
                count = -(-frame.height // SHARD_ROWS)
                for shard in range(count):
                    indices = pl.int_range(shard * SHARD_ROWS, min((shard + 1) * SHARD_ROWS, frame.height))
                    folder.add(config, split, frame.select(pl.all().gather(indices)), shard, count)
        folder.finish(card=card, statistics=counts, run=run)
    return counts


def _why_empty(dropped: Mapping[str, int], statistics: Mapping[str, Any]) -> str:
    reasons = {**statistics.get("dropped", {}), **dropped}
    listed = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
    problem = f"no pair is left to write ({listed or 'no LLM proposed any'})"
    if reasons.get("not_answered") and not statistics.get("proposals"):
        return (
            f"{problem}: no question was answered; run `label generate` again, with a higher"
            " --max-cost, --max-tokens or --max-requests if a limit stopped it"
        )
    warnings = statistics.get("warnings") or ("look at some with `label show`",)
    return f"{problem}; {'; '.join(warnings)}, and see the [filters] and [ensemble] settings"
