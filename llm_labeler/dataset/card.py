"""The dataset folder: its card, which says who labelled it and how, and its files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from llm_labeler.dataset.splits import DatasetRows, DatasetSplits
from llm_labeler.records import POLARITIES
from llm_labeler.settings import AGGREGATIONS, RULES
from pairkit.app.errors import DataError
from pairkit.dataset.card import dataset_card, table
from pairkit.dataset.records import card_files, dataset_folder

_PAIR_SCHEMA = """
Configuration `default`:

| column | type | meaning |
|---|---|---|
| text1 | string | the source sentence |
| text2 | string | the sentence written for it |
| label | {type} | {label} |
| text_id | string | a digest of the source sentence |
| polarity | string | `positive` or `negative` |
| llms | list of string | who proposed text2 |
| prompt_hashes | list of string | of the prompts that it answers |
| votes | list of (judge, vote) | what judges said, not knowing the polarity; empty where nobody judged |
| strategy | string | how proposals became labels, see below |

Configuration `positive`: `anchor` (the source sentence) and `positive`. Configuration `triplet`: `anchor`,
`positive` and `negative`: every positive and every negative of a sentence, the fewer of which take turns;
sentences that lack either are not in it.
"""
_PAIR_LIMITS = """
* **The labels are machines'.** A positive may have lost or added a detail, and a negative may be unrelated or
  merely different. Measure a sample by hand before you rely on them (`label score`).
* A negative is asked for as the *opposite*, which shares most words and the subject. People who rate
  similarity seldom give such pairs the lowest score, so labels of negatives are no similarity ratings.
"""
_TRIPLET_SCHEMA = """
One configuration, `triplet`: every positive and every negative of a source text, the fewer of which take
turns. Texts that lack either are not in it, and are counted.

| column | type | meaning |
|---|---|---|
| anchor | string | {anchor} |
| positive | string | {positive} |
| negative | string | {negative} |
| negative_kind | string | {kinds} |
| text_id | string | a digest of the anchor |
| llms | list of string | who proposed positive and negative |
| prompt_hashes | list of string | of the prompts that they answer |
| strategy | string | how proposals became rows, see below |
"""
_TRIPLET_LIMITS = """
* **They are machines' work.** {flaw} Measure a sample by hand before you rely on them (`label score`).
"""
_LIMITS = """
* What was written for a source inherits the style and the biases of whoever wrote it, and only the source's
  domain is covered.
* Evaluation on the test split tells how well a model agrees with these labels, not with people.
"""
_KINDS = (
    "what the negative changes: `negation`, `antonym`, `entity`, `number`, `role`, `tense` or `modality`;"
    " null where its writer did not say"
)


@dataclass(frozen=True, slots=True)
class CardWords:
    """A task's part of a card."""

    title: str
    llms: str
    schema: str
    limits: str
    rules: str = ""
    asked: str = "Sentences asked for of each and for each polarity"


def _triplet_schema(anchor: str, positive: str, negative: str, kinds: str = "always null") -> str:
    return _TRIPLET_SCHEMA.format(anchor=anchor, positive=positive, negative=negative, kinds=kinds)


CARD_WORDS: Mapping[str, CardWords] = {
    "papers": CardWords(
        "Sentence pairs",
        """
Sentence pairs made from unlabelled sentences with large language models, none of it checked by people. A
*positive* pair is a sentence and another that an LLM wrote to mean the same; in a *negative* one it was asked
for the opposite. Built with `label`.
""",
        _PAIR_SCHEMA,
        _PAIR_LIMITS,
        """
Sentence pairs made from unlabelled sentences by rules over a dictionary, none of it checked by people. **No
LLM took part.** A *positive* pair is a sentence and another in which words were replaced by synonyms; in a
*negative* one antonyms or a negation turn its meaning. Built with `label`; meant as a baseline.
""",
    ),
    "triplet": CardWords(
        "Sentence triplets",
        """
Sentence triplets made from unlabelled sentences with large language models, none of it checked by people: a
sentence, another that an LLM wrote to mean the same, and a *hard negative*, which keeps most of its words and
changes what it says. Built with `label`.
""",
        _triplet_schema(
            "the source sentence", "a sentence that means the same", "a hard negative of the anchor", _KINDS
        ),
        _TRIPLET_LIMITS.format(
            flaw="A positive may have lost or added a detail, and a negative may still say the same."
        ),
        """
Sentence triplets made from unlabelled sentences by rules over a dictionary, none of it checked by people.
**No LLM took part.** A *positive* says the same in other words or in another order. A *hard negative* keeps
most words and changes what is said: it denies it, or names an opposite, another thing of the same kind or
another number, or swaps who does what to whom. Built with `label`; meant as a baseline.
""",
    ),
    "query": CardWords(
        "Passages and questions",
        """
Passages with questions that large language models wrote for them, none of it checked by people. A *positive*
is a question that the passage answers; a *negative* one that it looks like it answers and does not. Built
with `label`.
""",
        _triplet_schema("the passage", "a question that it answers", "a question that it does not answer"),
        _TRIPLET_LIMITS.format(
            flaw="A passage may not answer its positive in full, and may well answer its negative."
        ),
        """
Passages with questions that rules made of their first sentences, none of it checked by people. **No LLM
took part.** A *positive* asks for what the sentence says: what an illness is, what causes it, how it shows,
is treated or diagnosed, how common it is; a *negative* asks for another of these, on which the passage says
nothing. Built with `label`; meant as a baseline.
""",
        asked="Questions asked for of each and for each polarity",
    ),
}


SHARD_ROWS = 250_000

_LABELS = {
    True: ("float32", "from 0 to 1; 1 the same meaning"),
    False: ("int64", "1 the same meaning, 0 the opposite"),
}

_MAKING = """
* **Aggregation** `{aggregation}`: {meaning}.
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
    """The README of the dataset."""
    rules = [name for name, llm in run["llms"].items() if llm["kind"] == RULES]
    only_rules = len(rules) == len(run["llms"])
    label_type, label = _LABELS[graded]
    words = CARD_WORDS[run["settings"].get("task", "papers")]
    limits = words.limits.strip() + _LIMITS.rstrip()
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
    by_change = f"By what the negative changes:\n\n{by_kind}\n\n" if {*kinds} - {"unknown"} else ""
    return (
        f"{table(['', *splits], lines)}\n\n{by_change}By who proposed them; a pair that several did counts"
        f" for each:\n\n{table(['', *POLARITIES], by_llm)}"
    )


def _making(run: Mapping[str, Any], asked: str) -> str:
    settings = run["settings"]
    ensemble = settings["ensemble"]
    aggregation = ensemble["aggregation"]
    llms = [(_code(name), llm["kind"], _code(llm["model"])) for name, llm in run["llms"].items()]
    parts = [
        table(["name", "kind", "model"], llms),
        f"{asked}: {settings['size']}.",
        _MAKING.strip().format(aggregation=aggregation, meaning=AGGREGATIONS[aggregation].meaning),
    ]
    if any(llm["kind"] != RULES for llm in run["llms"].values()):
        parts += [f"Prompt ({name}):\n\n{_fenced(prompt)}" for name, prompt in run["prompts"].items()]
    return "\n\n".join(parts)


def _code(text: str) -> str:
    """As code in a line; backticks of its own would end it."""
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
                for place in range(count):
                    rows_of = pl.int_range(place * SHARD_ROWS, min((place + 1) * SHARD_ROWS, frame.height))
                    folder.add(config, split, frame.select(pl.all().gather(rows_of)), place, count)
        folder.finish(card=card, statistics=counts, run=run)
    return counts


def _why_empty(dropped: Mapping[str, int], statistics: Mapping[str, Any]) -> str:
    reasons = {**statistics.get("dropped", {}), **dropped}
    listed = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
    what = f"no pair is left to write ({listed or 'no LLM proposed any'})"
    if reasons.get("not_answered") and not statistics.get("proposals"):
        return (
            f"{what}: no question was answered; run `label generate` again, with a higher max_cost "
            "(--max-cost), max_tokens (--max-tokens) or max_requests (--max-requests) if that ended it"
        )
    doubts = statistics.get("warnings") or ("look at some with `label show`",)
    return f"{what}; {'; '.join(doubts)}, and see the [filters] and [ensemble] settings"
