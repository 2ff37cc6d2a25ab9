"""Tokens of prompts: before a text, around it, or in the tokenizer's template.

A prompt before the text is tokenised together with it, as in sentence-transformers. If a prompt has words
after the text, both of its parts are tokenised separately and put around the text, like [CLS],
so that truncation never removes the end. WordPiece and sentencepiece insert a space before each text, so
spaces next to the text are omitted; the tokens equal those of the whole string. For byte-level tokenizers
the space before `{text}` becomes a separate token; the tokens decode to the whole string.

A saved tokenizer can contain one prompt in its template, so that every program that loads it uses the prompt.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from tokenizers import Tokenizer, normalizers, processors
from transformers import PreTrainedTokenizerFast

from aoe_train.model.folder_checks import panics_as_errors
from aoe_train.settings.train_settings import Prompt, read_prompt
from pairkit.base.errors import ConfigError

# Names of a prompt's tokens in tokenizer.json.
_PREFIX = "prompt_prefix"
_SUFFIX = "prompt_suffix"


class SpecialTokens(NamedTuple):
    """Token ids before and after those of a text."""

    before: list[int]
    after: list[int]

    def text_limit(self, max_length: int) -> int:
        """The number of text tokens that fit into `max_length` tokens."""
        size = len(self.before) + len(self.after)
        if size >= max_length:
            raise ConfigError(
                f"max_length {max_length} leaves no room for text: prompt and special tokens take {size};"
                " raise it or shorten the prompt"
            )
        return max_length - size


def raw_tokenizer(tokenizer: PreTrainedTokenizerFast) -> Tokenizer:
    """The tokenizer's Rust part, without truncation and padding, which transformers sets in each call."""
    if not tokenizer.is_fast:
        raise ConfigError(
            f"{type(tokenizer).__name__} has no tokenizer.json; use one with a fast tokenizer"
        )
    raw = tokenizer.backend_tokenizer
    raw.no_truncation()
    raw.no_padding()
    return raw


def special_tokens_of(raw: Tokenizer) -> SpecialTokens:
    """The special tokens that a tokenizer adds to the letter a."""
    with panics_as_errors("on the letter 'a'"):
        encoding = raw.encode("a")
    positions = enumerate(encoding.sequence_ids)
    of_text = [position for position, sequence in positions if sequence is not None]
    if not of_text:
        raise ConfigError(
            "the tokenizer has no token for the letter 'a', not even an unknown one; use another tokenizer"
        )
    before = encoding.ids[: min(of_text)]
    after = encoding.ids[max(of_text) + 1 :]
    return SpecialTokens(before, after)


@dataclass(frozen=True)
class PromptTokens:
    """A prompt: `text` is put before each text and has the tokens `ids`; `special` are added around them."""

    text: str
    ids: list[int]
    special: SpecialTokens

    def shared(self, ids: list[int]) -> int:
        """The number of leading tokens of prompt and text together that equal the prompt's own tokens."""
        count = len(self.ids)
        while self.ids[:count] != ids[:count]:
            count -= 1
        return count


def prompt_tokens(raw: Tokenizer, words: str) -> PromptTokens:
    """Tokenise the prompt `words`, which may be empty."""
    prompt = read_prompt(words)
    special = special_tokens_of(raw)
    if prompt.after:
        prefix, suffix = _prefix_and_suffix(raw, prompt)
        around = SpecialTokens([*special.before, *prefix], [*suffix, *special.after])
        return PromptTokens("", [], around)
    return PromptTokens(prompt.before, _ids(raw, prompt.before), special)


def with_prompt(
    tokenizer: PreTrainedTokenizerFast, words: str
) -> PreTrainedTokenizerFast:
    """A copy of `tokenizer` that puts a prompt around each text; it replaces a previous prompt."""
    raw = copy.deepcopy(raw_tokenizer(tokenizer))
    around = _prefix_and_suffix(raw, read_prompt(words))
    before, after = special_tokens_of(raw)
    for step in _post_processor(raw):
        previous = step.get("special_tokens", {})
        if _PREFIX in previous:
            before = before[: -len(previous[_PREFIX]["ids"])]
        if _SUFFIX in previous:
            after = after[len(previous[_SUFFIX]["ids"]) :]
    special = SpecialTokens(before, after)
    raw.post_processor = _template(raw, special, around)
    special_tokens_of(raw).text_limit(tokenizer.model_max_length)
    return generic_tokenizer(tokenizer, raw)


def holds_prompt(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether a tokenizer contains a prompt from `with_prompt`."""
    steps = _post_processor(tokenizer.backend_tokenizer)
    names = {_PREFIX, _SUFFIX}
    return any(names & step.get("special_tokens", {}).keys() for step in steps)


def _prefix_and_suffix(raw: Tokenizer, prompt: Prompt) -> SpecialTokens:
    before, after = prompt
    anchor = _ids(raw, "a")
    if _ids(raw, "a a") != anchor * 2:  # spaces are characters, as in byte-level BPE
        return SpecialTokens(_ids(raw, before), _ids(raw, after))
    prefix = _ids(raw, before.strip(" "))
    joined = _ids(raw, "a" + after)
    # The words after the text were tokenised as the continuation of a word, so that no space is inserted.
    if joined[: len(anchor)] == anchor:
        return SpecialTokens(prefix, joined[len(anchor) :])
    return SpecialTokens(prefix, _ids(raw, after))


def _ids(raw: Tokenizer, text: str) -> list[int]:
    return list(raw.encode(text, add_special_tokens=False).ids)


def _post_processor(raw: Tokenizer) -> list[dict[str, Any]]:
    """The post-processing steps, as in tokenizer.json."""
    if raw.post_processor is None:
        return []
    # `raw.to_str` would also serialise the vocabulary.
    whole: dict[str, Any] = json.loads(raw.post_processor.__getstate__())
    if whole["type"] != "Sequence":
        return [whole]
    steps: list[dict[str, Any]] = whole["processors"]
    return steps


def _template(
    raw: Tokenizer,
    special: SpecialTokens,
    around: SpecialTokens,
) -> processors.PostProcessor:
    """[special tokens] prefix TEXT suffix [special tokens]; keeps a ByteLevel step, which trims offsets."""
    parts = {
        "special_before": special.before,
        _PREFIX: around.before,
        "$A": None,
        _SUFFIX: around.after,
        "special_after": special.after,
    }
    entries = []
    for name, ids in parts.items():
        if ids:
            tokens = [raw.id_to_token(token) for token in ids]
            entries.append({"id": name, "ids": ids, "tokens": tokens})
    single = " ".join(name for name, ids in parts.items() if ids is None or ids)
    pair = f"{single} {single.replace('$A', '$B')}"
    template = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=entries
    )
    if any(step.get("trim_offsets") for step in _post_processor(raw)):
        return processors.Sequence([processors.ByteLevel(trim_offsets=True), template])
    return template


def generic_tokenizer(
    tokenizer: PreTrainedTokenizerFast,
    raw: Tokenizer,
) -> PreTrainedTokenizerFast:
    """`raw` in a class that loads tokenizer.json as it is; others replace template and normalizer."""
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


def lower_casing(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """A copy that lower-cases texts first, also after it was saved and loaded."""
    raw = copy.deepcopy(raw_tokenizer(tokenizer))
    steps = [normalizers.Lowercase()]
    if raw.normalizer:
        steps.append(raw.normalizer)
    raw.normalizer = normalizers.Sequence(steps)
    return generic_tokenizer(tokenizer, raw)


def add_padding(tokenizer: PreTrainedTokenizerFast) -> None:
    """Set a missing padding token to another special token; padding is masked, so any will do."""
    if tokenizer.pad_token is not None:
        return
    token = tokenizer.eos_token or tokenizer.unk_token or tokenizer.bos_token
    if token is None:
        raise ConfigError(
            "the tokenizer has no padding token, and no end, unknown or beginning token to use instead;"
            ' set "pad_token" in tokenizer_config.json'
        )
    tokenizer.pad_token = token
