"""A prompt around every text, kept in the tokenizer itself.

The prompt's tokens become part of the tokenizer's template, like [CLS]: truncation reserves room for them,
and whoever loads the saved tokenizer gets them without knowing of prompts.

The two halves are tokenised on their own. Where a tokenizer reads a text as if a space stood before it
(WordPiece, sentencepiece), spaces at the seams are left out, as it puts them there itself: the result is that
of tokenising the written-out prompt. A byte-level tokenizer takes spaces for what they are: the one before
`{text}` becomes a token of its own, and decoding gives the written-out prompt.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from tokenizers import processors
from transformers import PreTrainedTokenizerFast

from aoe_train._frame import Frame, frame_of, raw_tokenizer
from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PLACE = "{text}"
_PREFIX, _SUFFIX = "prompt_prefix", "prompt_suffix"  # their names in tokenizer.json


def with_prompt(tokenizer: PreTrainedTokenizerFast, prompt: str) -> PreTrainedTokenizerFast:
    """A copy of `tokenizer` that puts `prompt` around each text, in place of a prompt that it may have.

    Args:
        tokenizer: Any fast tokenizer.
        prompt: Holds `{text}` once, such as `Summarize sentence {text} in one word:`; `{text}` alone is no
            prompt.

    Raises:
        ConfigError: `{text}` is not there once, the prompt is no valid Unicode, or it leaves no room in
            `model_max_length` tokens.
    """
    if prompt.count(PLACE) != 1:
        raise ConfigError(f"prompt {prompt!r}: expected {PLACE} in it once, found {prompt.count(PLACE)}")
    try:
        prompt.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"prompt {prompt!r} holds half a surrogate pair; expected valid Unicode") from error
    raw = copy.deepcopy(raw_tokenizer(tokenizer))
    special = _without_prompt(frame_of(raw), _post_processor(raw))
    halves = _halves(raw, prompt)
    raw.post_processor = _template(raw, special, halves)
    frame_of(raw).room(tokenizer.model_max_length)
    return generic_tokenizer(tokenizer, raw)


def _halves(raw: Tokenizer, prompt: str) -> Frame:
    def ids(text: str) -> list[int]:
        return list(raw.encode(text, add_special_tokens=False).ids)

    prefix, suffix = prompt.split(PLACE)
    anchor = ids("a")
    if ids("a a") != anchor * 2:  # a space is a character, as in byte-level BPE
        return Frame(ids(prefix), ids(suffix))
    joined = ids("a" + suffix)
    if joined[: len(anchor)] == anchor:  # read as what follows a word: no space where none is written
        return Frame(ids(prefix.strip(" ")), joined[len(anchor) :])
    return Frame(ids(prefix.strip(" ")), ids(suffix))


def _post_processor(raw: Tokenizer) -> list[dict[str, Any]]:
    """The steps of what the tokenizer does after tokenising, as tokenizer.json has them."""
    whole = json.loads(raw.to_str())["post_processor"] or {"type": "Sequence", "processors": []}
    steps: list[dict[str, Any]] = whole["processors"] if whole["type"] == "Sequence" else [whole]
    return steps


def _without_prompt(frame: Frame, steps: list[dict[str, Any]]) -> Frame:
    named = {name: entry["ids"] for step in steps for name, entry in step.get("special_tokens", {}).items()}
    prefix, suffix = len(named.get(_PREFIX, ())), len(named.get(_SUFFIX, ()))
    return Frame(frame.before[: len(frame.before) - prefix], frame.after[suffix:])


def _template(raw: Tokenizer, special: Frame, halves: Frame) -> processors.PostProcessor:
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
