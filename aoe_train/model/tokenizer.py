"""What a tokenizer adds to a text, such as prompts, and whether it knows the language of texts.

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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tokenizers import Tokenizer, normalizers, processors
from transformers import PreTrainedTokenizerFast

from aoe_train.model.folder_checks import panics_as_errors
from aoe_train.settings.train_settings import Prompt, read_prompt
from pairkit.base.errors import ConfigError

# Fewer letters show nothing.
_MIN_LETTERS = 20
_MAX_UNKNOWN_SHARE = 0.05
# Letters a token, below which a backbone hardly knows a language. With an English vocabulary, English and code
# have 3.5 or more, German and French less than 2.8. A multilingual one has 3.8 for German, 1.3 for Chinese and
# 1.9 for Korean; others split these scripts into single characters or bytes.
_MIN_LATIN_LETTERS = 3.0
_MIN_OTHER_LETTERS = 1.2
_LAST_LATIN = "\u024f"
# Names of a prompt's tokens in tokenizer.json.
_PREFIX = "prompt_prefix"
_SUFFIX = "prompt_suffix"


class SpecialTokens(NamedTuple):
    """Token ids before and after those of a text."""

    before: list[int]
    after: list[int]


def _check_room(special: SpecialTokens, prompt: list[int], max_length: int) -> None:
    """Refuse special tokens and a prompt that leave no room for a text."""
    size = len(special.before) + len(prompt) + len(special.after)
    if size >= max_length:
        raise ConfigError(
            f"max_length {max_length} leaves no room for text: prompt and special tokens take {size};"
            " raise it or shorten the prompt"
        )


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

    def cut(self, ids: list[int], max_length: int) -> tuple[list[int], bool]:
        """Add special tokens to those of prompt and text; truncate the text, but never the prompt.

        Also returns whether the text was truncated.
        """
        shared = len(self.ids)
        # The prompt's last token may differ before a text.
        while self.ids[:shared] != ids[:shared]:
            shared -= 1
        before = [*self.special.before, *ids[:shared]]
        text = ids[shared:]
        limit = max_length - len(before) - len(self.special.after)
        return [*before, *text[:limit], *self.special.after], len(text) > limit

    def length(self, end_tokens: Sequence[int]) -> int:
        """The prompt's tokens as sentence-transformers counts them: without a final one of `end_tokens`."""
        if not self.text:
            return 0
        ids = [*self.special.before, *self.ids, *self.special.after]
        return len(ids) - (ids[-1] in end_tokens)


def prompt_tokens(raw: Tokenizer, words: str, max_length: int) -> PromptTokens:
    """Tokenise the prompt `words`, which may be empty, for texts of at most `max_length` tokens."""
    prompt = read_prompt(words)
    before, after = special_tokens_of(raw)
    if prompt.after:
        prefix, suffix = _prefix_and_suffix(raw, prompt)
        special = SpecialTokens([*before, *prefix], [*suffix, *after])
        tokens = PromptTokens("", [], special)
    else:
        special = SpecialTokens(before, after)
        tokens = PromptTokens(prompt.before, _ids(raw, prompt.before), special)
    _check_room(special, tokens.ids, max_length)
    return tokens


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
    _check_room(special_tokens_of(raw), [], tokenizer.model_max_length)
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
    steps: list[dict[str, Any]] = whole.get("processors", [whole])
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


def language_warning(tokenizer: Any, texts: Sequence[str], name: str) -> str | None:
    """A warning if the texts' language is not the backbone's; None if it is, or too few texts tell."""
    from pairkit.similarity.measures import sampled  # imports polars

    sample = sampled(texts)
    letters = "".join(filter(str.isalpha, "".join(sample)))
    unknown = 0
    tokens = 0
    raw = raw_tokenizer(tokenizer)
    for encoding in raw.encode_batch(sample, add_special_tokens=False):
        for token in encoding.tokens:
            if token == tokenizer.unk_token:
                unknown += 1
            elif any(map(str.isalpha, token)):
                tokens += 1
    tokens += unknown
    if len(letters) < _MIN_LETTERS or not tokens:
        return None
    min_letters = _MIN_OTHER_LETTERS
    latin = sum(letter <= _LAST_LATIN for letter in letters)
    if 2 * latin > len(letters):
        min_letters = _MIN_LATIN_LETTERS
    size = len(letters) / tokens
    if size >= min_letters and unknown <= _MAX_UNKNOWN_SHARE * tokens:
        return None
    return (
        f"warning: {name} hardly knows the language of these texts ({size:.1f} letters a token,"
        f" {unknown / tokens:.0%} unknown tokens); use a multilingual model, such as"
        " intfloat/multilingual-e5-small (118M weights, prompt 'query: '),"
        " sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2 (118M, no prompt) or BAAI/bge-m3 (568M,"
        " no prompt)"
    )
