"""The card of a labelled dataset: what is in it, who labelled it and how, what it is not good for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from llm_labeler._kinds import LLM_KINDS, strategy_of
from llm_labeler._records import POLARITIES
from pairkit.card import dataset_card, table

_LLMS = """
Sentence pairs made from unlabelled sentences with large language models, none of it checked by people. A
*positive* pair is a sentence and another that an LLM wrote to mean the same; in a *negative* one it was asked
for the opposite. Built with `label`.
"""

_RULES = """
Sentence pairs made from unlabelled sentences by rules over a dictionary, none of it checked by people. **No
LLM took part.** A *positive* pair is a sentence and another in which words were replaced by synonyms; in a
*negative* one antonyms or a negation turn its meaning. Built with `label`; meant as a baseline.
"""

_SCHEMA = """
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

_LIMITS = """
* **The labels are machines'.** A positive may have lost or added a detail, and a negative may be unrelated or
  merely different. Measure a sample by hand before you rely on them (`label score`).
* A negative is asked for as the *opposite*, which shares most words and the subject. People who rate
  similarity seldom give such pairs the lowest score, so labels of negatives are no similarity ratings.
* The sentences written for a source inherit the style and the biases of whoever wrote them, and only those of
  the source's domain are covered.
* Evaluation on the test split tells how well a model agrees with these labels, not with people.
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
    limits = _LIMITS.strip()
    if rules:
        are = "is" if len(rules) == 1 else "are"
        limits += _RULES_LIMIT.rstrip().format(names=", ".join(map(_code, rules)), is_are=are)
    if warnings := counts.get("warnings"):
        limits += "".join(f"\n* **Warning.** {warning}." for warning in warnings)
    sections = [
        ("", _RULES if only_rules else _LLMS),
        ("Counts", _counts(counts)),
        ("Columns", _SCHEMA.format(type=label_type, label=label)),
        ("How it was made", _making(run)),
        ("Limitations", limits),
        ("Licence", _LICENCE),
    ]
    return dataset_card(
        "Sentence pairs by rules" if only_rules else "Sentence pairs by LLMs",
        configs=files,
        rows=sum(split["total"] for split in counts["splits"].values()),
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
    return (
        f"{table(['', *splits], lines)}\n\nBy who proposed them; a pair that several did counts for each:\n\n"
        f"{table(['', *POLARITIES], by_llm)}"
    )


def _making(run: Mapping[str, Any]) -> str:
    settings = run["settings"]
    ensemble = settings["ensemble"]
    strategy = ensemble["strategy"]
    llms = [(_code(name), llm["kind"], _code(llm["model"])) for name, llm in run["llms"].items()]
    parts = [
        table(["name", "kind", "model"], llms),
        f"Sentences asked for of each and for each polarity: {settings['size']}.",
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
