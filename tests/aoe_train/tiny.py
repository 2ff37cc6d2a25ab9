"""Small random models with real tokenizers, data to train them on, and comparisons of their vectors."""

import json
import random
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.linalg import norm
from safetensors.torch import load_file
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    Gemma3TextConfig,
    Gemma3TextModel,
    LlamaConfig,
    LlamaModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5EncoderModel,
    T5Model,
)

from aoe_train import Encoder, ran
from pairkit import ConfigError

_WORDS = """
a the man woman child dog cat bird plane boat car is are was playing eating running flying taking off
large small red blue flute guitar bread apple road river city house crash error file compiler panics when
opening saving closing duplicate of not and or with on in at to from fast slow old new
"""
WORDS = _WORDS.split()


load = Encoder.load


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def read_json(path):
    return json.loads(path.read_text())


def card_of(folder: Path) -> str:
    """The model card in a folder."""
    return (folder / "README.md").read_text()


def write_pairs(path: Path, rows: int, seed: int) -> Path:
    """Graded pairs: the score is the share of common words."""
    words = random.Random(seed)
    lines = ["sentence1\tsentence2\tscore"]
    for _ in range(rows):
        one = words.sample(WORDS, words.randint(3, 9))
        kept = words.sample(one, words.randint(0, len(one)))
        other = [*kept, *words.sample(WORDS, words.randint(1, 4))]
        lines.append(
            f"{' '.join(one)}\t{' '.join(other)}\t{5 * len(kept) / len(one):.1f}"
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def write_triplets(path: Path, rows: int, seed: int) -> Path:
    """Rows with one to three negatives."""
    words = random.Random(seed)
    with path.open("w") as file:
        for number in range(rows):
            texts = [
                " ".join(words.sample(WORDS, words.randint(2, 7)))
                for _ in range(3 + number % 3)
            ]
            row = {"anchor": texts[0], "positive": texts[1]}
            row |= {f"negative_{place}": text for place, text in enumerate(texts[2:])}
            file.write(json.dumps(row) + "\n")
    return path


def refusal(message: str | None) -> AbstractContextManager[Any]:
    """Expect a ConfigError with this message, or none."""
    return (
        nullcontext() if message is None else pytest.raises(ConfigError, match=message)
    )


def edit(path: Path, **fields) -> Path:
    """Set fields of a JSON file."""
    whole = json.loads(path.read_text()) if path.is_file() else {}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**whole, **fields}))
    return path


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def same_weights(one: Path, other: Path) -> bool:
    first, second = weights(one), weights(other)
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def write_texts(path: Path) -> Path:
    """Ninety lines of some of WORDS."""
    choose = random.Random(0)
    path.write_text(
        "".join(
            " ".join(choose.choices(WORDS, k=choose.randint(1, 9))) + "\n"
            for _ in range(90)
        )
    )
    return path


def wordpiece(max_length: int = 64) -> PreTrainedTokenizerFast:
    """A lower-casing WordPiece tokenizer, like BERT's, with WORDS and single letters."""
    letters = [*"abcdefghijklmnopqrstuvwxyz0123456789.,!?'-"]
    entries = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *WORDS,
        *letters,
        *(f"##{c}" for c in letters),
    ]
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(entries))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=max_length,
    )


def bytelevel(max_length: int = 64) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer without merges, like LLaMA 3's: no padding token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {
        word: number for number, word in enumerate(["<s>", "</s>", *alphabet])
    }
    tokenizer = Tokenizer(models.BPE(vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        model_max_length=max_length,
    )


def save_bert(
    folder: Path,
    *,
    dim: int = 32,
    layers: int = 2,
    dropout: float = 0.1,
    spread: float = 0.02,
    seed: int = 0,
    length: int = 64,
) -> Path:
    """A BERT with its tokenizer; with its default `spread` of weights all texts have similar vectors."""
    more = {
        "max_position_embeddings": length,
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
        "initializer_range": spread,
    }
    kind = partial(BertModel, add_pooling_layer=False)
    return _save(
        folder, kind, BertConfig, wordpiece(length), seed, **_sizes(dim, layers), **more
    )


def save_generator(backbone: Path, folder: Path, *, seed: int = 0):
    """A small masked language model with the tokenizer of `backbone`."""
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    more = {
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 64,
    }
    _save(folder, BertForMaskedLM, BertConfig, tokenizer, seed, **_sizes(16, 1) | more)


def save_words(path: Path, *, dim: int = 5) -> Path:
    """A file of random vectors of WORDS."""
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(len(WORDS), dim, generator=generator).tolist()
    lines = [
        f"{word} {' '.join(map(str, vector))}\n"
        for word, vector in zip(WORDS, vectors, strict=True)
    ]
    path.write_text("".join(lines))
    return path


def save_llama(
    folder: Path, *, dim: int = 32, layers: int = 2, seed: int = 0, length: int = 64
) -> Path:
    """A LLaMA with grouped queries, and its tokenizer."""
    more = {"max_position_embeddings": 2 * length, "bos_token_id": 0, "eos_token_id": 1}
    sizes = {**_sizes(dim, layers), "num_key_value_heads": 2, **more}
    return _save(folder, LlamaModel, LlamaConfig, bytelevel(length), seed, **sizes)


def save_t5(
    folder: Path,
    *,
    dim: int = 32,
    layers: int = 2,
    seed: int = 0,
    decoder: bool = False,
) -> Path:
    """The encoder of a T5, or the whole model with `decoder`, and a tokenizer."""
    sizes = {
        "d_model": dim,
        "d_kv": dim // 4,
        "d_ff": 2 * dim,
        "num_layers": layers,
        "num_heads": 4,
    }
    more = {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 16}
    kind = T5Model if decoder else T5EncoderModel
    return _save(
        folder,
        kind,
        T5Config,
        wordpiece(),
        seed,
        feed_forward_proj="gated-gelu",
        **sizes,
        **more,
    )


def save_ran(folder: Path) -> Path:
    """A Recurrent Attention Network with its tokenizer."""
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "head_dim": 4,
    }
    return _save(
        folder,
        ran.RanModel,
        ran.RanConfig,
        wordpiece(),
        0,
        window_size=4,
        min_window_size=2,
        **sizes,
    )


def save_gemma(folder: Path, *, dim: int = 32, layers: int = 3, seed: int = 0) -> Path:
    """A Gemma 3 with bidirectional attention and a window, like EmbeddingGemma."""
    attention = ["sliding_attention"] * (layers - 1) + ["full_attention"]
    more = {
        "num_key_value_heads": 2,
        "head_dim": dim // 4,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
    }
    more |= {
        "sliding_window": 4,
        "layer_types": attention,
        "use_bidirectional_attention": True,
    }
    return _save(
        folder,
        Gemma3TextModel,
        Gemma3TextConfig,
        wordpiece(),
        seed,
        **_sizes(dim, layers),
        **more,
    )


def _sizes(dim: int, layers: int) -> dict[str, int]:
    heads = {"num_attention_heads": 4, "intermediate_size": 2 * dim}
    return {"hidden_size": dim, "num_hidden_layers": layers, **heads}


def _save(
    folder: Path, kind, config, tokenizer: PreTrainedTokenizerFast, seed: int, **sizes
) -> Path:
    """A model with random weights, and its tokenizer."""
    torch.manual_seed(seed)
    kind(config(vocab_size=len(tokenizer), **sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def around(words: str) -> dict[str, object]:
    """Encoder settings with this default prompt."""
    return {"prompts": {"default": words}, "default_prompt_name": "default"}


_SENTENCE = "The compiler panics when a file is opened from the menu, but not when it is saved. "


def probes(max_length: int) -> list[str]:
    """Texts to encode: short ones, several scripts, and one longer than `max_length` tokens."""
    return [
        "crash",
        "A man is playing a flute.",
        "naïve Straße 東京 🙂",
        _SENTENCE,
        _SENTENCE * max_length,
    ]


def difference(vectors: np.ndarray, expected: np.ndarray) -> float:
    """The largest distance between two vectors of a text, relative to the expected one's length."""
    assert vectors.shape == expected.shape
    distances = norm(vectors.astype(np.float64) - expected, axis=1)
    return float((distances / norm(expected.astype(np.float64), axis=1)).max())


def unit(vectors: np.ndarray) -> np.ndarray:
    """The vectors, scaled to length 1."""
    return vectors / norm(vectors, axis=1, keepdims=True)
