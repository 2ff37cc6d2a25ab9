"""What cards say of each task: what its texts are, what its columns mean, what its rows are not good for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
* The sentences written for a source inherit the style and the biases of whoever wrote them, and only those of
  the source's domain are covered.
* Evaluation on the test split tells how well a model agrees with these labels, not with people.
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
* What was written for a source inherits the style and the biases of whoever wrote it, and only the source's
  domain is covered.
* Evaluation on the test split tells how well a model agrees with these rows, not with people.
"""
_KINDS = (
    "what the negative changes: `negation`, `antonym`, `entity`, `number`, `role`, `tense` or `modality`;"
    " null where its writer did not say"
)


@dataclass(frozen=True, slots=True)
class CardWords:
    """A task's part of a card.

    Attributes:
        title: What the dataset is called, before who made it.
        llms: What it is where LLMs wrote it.
        rules: The same where rules did.
        schema: Its columns; `{type}` and `{label}` are those of labels.
        limits: What it is not good for.
        asked: What was asked for.
    """

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
    "answer": CardWords(
        "Questions and answers",
        """
Questions with short answers that large language models wrote, none of it checked by people. A *positive* was
asked for as a right answer; a *negative* as one that sounds right and is wrong. Built with `label`.
""",
        _triplet_schema("the question", "an answer asked for as right", "an answer asked for as wrong"),
        _TRIPLET_LIMITS.format(
            flaw="**No answer was checked**: a positive may be wrong. They are no source of knowledge."
        ),
        asked="Answers asked for of each and for each polarity",
    ),
}
