"""A prompt's tokens: before a text's own, around them, or as part of a tokenizer's template.

A prompt that ends where the text begins is tokenised together with the text, as sentence-transformers does.
The halves of a prompt with words after the text are tokenised on their own and put around each piece of the
text, like [CLS], so that truncation never cuts the end. Where a tokenizer reads a text as if a space stood
before it (WordPiece, sentencepiece), spaces at the seams are left out, as it puts them there itself: the
result is that of tokenising the written-out prompt. A byte-level tokenizer takes spaces for what they are:
the one before `{text}` becomes a token of its own, and decoding gives the written-out prompt.

A saved tokenizer can hold one prompt in its template: whoever loads it gets the prompt without knowing of it.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tokenizers import processors
from transformers import PreTrainedTokenizerFast

from aoe_train.settings.prompts import Prompt, read_prompt
from pairkit.app.errors import ConfigError, DataError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class SpecialTokens(NamedTuple):
    """Token ids before and after a text's own."""

    before: list[int]
    after: list[int]

    def text_limit(self, max_length: int) -> int:
        """How many tokens of its own a text may have in a piece of `max_length` tokens."""
        size = len(self.before) + len(self.after)
        if size >= max_length:
            raise ConfigError(
                f"max_length {max_length} leaves no room for text: prompt and special tokens take {size};"
                " raise it or shorten the prompt"
            )
        return max_length - size


def raw_tokenizer(tokenizer: PreTrainedTokenizerFast) -> Tokenizer:
    """The tokenizer's Rust part, set not to cut and not to pad: many a saved one does both unasked.

    That is no lasting change: transformers sets both anew on every call.
    """
    if not tokenizer.is_fast:
        raise ConfigError(
            f"{type(tokenizer).__name__} has no tokenizer.json; use a model with a fast tokenizer"
        )
    raw = tokenizer.backend_tokenizer
    raw.no_truncation()
    raw.no_padding()
    return raw


def is_panic(error: BaseException) -> bool:
    """Whether the tokenizer gave up within: a rule of its own is damaged, or takes too long over a text."""
    return type(error).__name__ == "PanicException"  # of pyo3, which has no name for it to import


def special_tokens_of(raw: Tokenizer) -> SpecialTokens:
    """The tokens that a tokenizer adds, seen in how it encodes a letter."""
    try:
        encoding = raw.encode("a")
    except BaseException as error:
        if is_panic(error):
            raise DataError("the tokenizer's rules can't read the letter 'a'; use another") from error
        raise
    own = [place for place, sequence in enumerate(encoding.sequence_ids) if sequence is not None]
    if not own:
        raise ConfigError(
            "the tokenizer has no token for the letter 'a', not even an unknown one; use another"
        )
    return SpecialTokens(encoding.ids[: own[0]], encoding.ids[own[-1] + 1 :])


_PREFIX, _SUFFIX = "prompt_prefix", "prompt_suffix"  # their names in tokenizer.json


@dataclass(frozen=True)
class PromptTokens:
    """How texts with one prompt become tokens."""

    joined: str
    alone: list[int]
    special: SpecialTokens

    def lead(self, ids: list[int]) -> int:
        """How many of the first tokens of the joined words and text belong to the words alone."""
        count = len(self.alone)
        while self.alone[:count] != ids[:count]:
            count -= 1
        return count


def prompt_tokens(raw: Tokenizer, words: str) -> PromptTokens:
    """How `raw` reads texts with the prompt `words`; an empty one is none."""
    prompt, special = read_prompt(words), special_tokens_of(raw)
    if prompt.after:
        halves = _halves(raw, prompt)
        around = SpecialTokens([*special.before, *halves.before], [*halves.after, *special.after])
        return PromptTokens("", [], around)
    return PromptTokens(prompt.before, _ids(raw, prompt.before), special)


def with_prompt(tokenizer: PreTrainedTokenizerFast, words: str) -> PreTrainedTokenizerFast:
    """A copy of `tokenizer` that puts a prompt around each text, in place of one that it may hold."""
    raw = copy.deepcopy(raw_tokenizer(tokenizer))
    halves = _halves(raw, read_prompt(words))
    special = _without_prompt(special_tokens_of(raw), _post_processor(raw))
    raw.post_processor = _template(raw, special, halves)
    special_tokens_of(raw).text_limit(tokenizer.model_max_length)
    return generic_tokenizer(tokenizer, raw)


def holds_prompt(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether `with_prompt` put a prompt into a tokenizer."""
    steps = _post_processor(tokenizer.backend_tokenizer)
    return any({_PREFIX, _SUFFIX} & step.get("special_tokens", {}).keys() for step in steps)


def _halves(raw: Tokenizer, prompt: Prompt) -> SpecialTokens:
    before, after = prompt
    anchor = _ids(raw, "a")
    if _ids(raw, "a a") != anchor * 2:  # a space is a character, as in byte-level BPE
        return SpecialTokens(_ids(raw, before), _ids(raw, after))
    joined = _ids(raw, "a" + after)
    if joined[: len(anchor)] == anchor:  # read as what follows a word: no space where none is written
        return SpecialTokens(_ids(raw, before.strip(" ")), joined[len(anchor) :])
    return SpecialTokens(_ids(raw, before.strip(" ")), _ids(raw, after))


def _ids(raw: Tokenizer, text: str) -> list[int]:
    return list(raw.encode(text, add_special_tokens=False).ids)


def _post_processor(raw: Tokenizer) -> list[dict[str, Any]]:
    """The steps of what the tokenizer does after tokenising, as tokenizer.json has them."""
    if raw.post_processor is None:
        return []
    whole = json.loads(raw.post_processor.__getstate__())  # alone: `to_str` would write the vocabulary too
    steps: list[dict[str, Any]] = whole["processors"] if whole["type"] == "Sequence" else [whole]
    return steps


def _without_prompt(special: SpecialTokens, steps: list[dict[str, Any]]) -> SpecialTokens:
    named = {name: entry["ids"] for step in steps for name, entry in step.get("special_tokens", {}).items()}
    prefix, suffix = len(named.get(_PREFIX, ())), len(named.get(_SUFFIX, ()))
    return SpecialTokens(special.before[: len(special.before) - prefix], special.after[suffix:])


def _template(raw: Tokenizer, special: SpecialTokens, halves: SpecialTokens) -> processors.PostProcessor:
    """[special tokens] prefix TEXT suffix [special tokens]; a ByteLevel step, which trims offsets, stays."""
    parts = {
        "special_before": special.before,
        _PREFIX: halves.before,
        "$A": None,
        _SUFFIX: halves.after,
        "special_after": special.after,
    }
    parts = {name: ids for name, ids in parts.items() if ids is None or ids}
    entries = [
        {"id": name, "ids": ids, "tokens": [raw.id_to_token(i) for i in ids]}
        for name, ids in parts.items()
        if ids
    ]
    single = " ".join(parts)
    template = processors.TemplateProcessing(
        single=single, pair=f"{single} {single.replace('$A', '$B')}", special_tokens=entries
    )
    trims = [step for step in _post_processor(raw) if step.get("trim_offsets")]
    return processors.Sequence([processors.ByteLevel(trim_offsets=True), template]) if trims else template


def generic_tokenizer(tokenizer: PreTrainedTokenizerFast, raw: Tokenizer) -> PreTrainedTokenizerFast:
    """`raw` with the settings of `tokenizer`, in the class that loads tokenizer.json as it is.

    BertTokenizer, for one, makes template and normalizer anew.
    """
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw,
        model_max_length=tokenizer.model_max_length,
        padding_side=tokenizer.padding_side,
        truncation_side=tokenizer.truncation_side,
        model_input_names=tokenizer.model_input_names,
        split_special_tokens=tokenizer.split_special_tokens,
        clean_up_tokenization_spaces=tokenizer.clean_up_tokenization_spaces,
        extra_special_tokens=tokenizer.extra_special_tokens,
        **tokenizer.special_tokens_map,
    )
