"""Small random models with real tokenizers, data to train them on, and comparisons of their vectors."""

import json
import random
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
import torch
import transformers
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


POOLINGS = ["cls", "last", "avg", "max", "cls-avg", "first-last-avg", "weighted-mean"]
POSITIVES = [
    {"anchor": f"the man {n} is eating", "positive": f"a man eats {n}"}
    for n in range(20)
]


class Wrapped(Encoder):
    """A copy of an encoder, for changes by subclasses."""

    def __init__(self, real):
        super().__init__(real.model, real.tokenizer, real.settings)


class Recorded(Wrapped):
    """Records its calls, and is stopped before one of them."""

    def __init__(self, folder, stop_before=None, **settings):
        super().__init__(load(folder, **settings))
        self.calls = []
        self.stop_before = stop_before

    def record(self, call):
        if len(self.calls) == self.stop_before:
            raise KeyboardInterrupt
        self.calls.append(call)


def sentence_transformer(folder, **options):
    """A folder as sentence-transformers loads it."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), **options)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def read_json(path):
    return json.loads(path.read_text())


def card_of(folder):
    """The model card in a folder."""
    return (folder / "README.md").read_text()


def write_pairs(path, rows, seed):
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
    return write_lines(path, lines)


def write_triplets(path, rows, seed):
    """Rows with one to three negatives."""
    words = random.Random(seed)
    names = ["anchor", "positive", "negative_0", "negative_1", "negative_2"]
    drawn = []
    for number in range(rows):
        some = names[: 3 + number % 3]
        drawn.append(
            {name: " ".join(words.sample(WORDS, words.randint(2, 7))) for name in some}
        )
    return write_rows(path, drawn)


def refusal(message):
    """Expect a ConfigError with this message, or none."""
    return (
        nullcontext() if message is None else pytest.raises(ConfigError, match=message)
    )


def edit(path, **fields):
    """Set fields of a JSON file."""
    whole = json.loads(path.read_text()) if path.is_file() else {}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**whole, **fields}))
    return path


def weights(folder):
    return load_file(folder / "model.safetensors")


def same_weights(one, other):
    first, second = weights(one), weights(other)
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def on_circle(degrees):
    """Vectors of length 1 in the plane."""
    turns = np.radians(degrees)
    return np.stack([np.cos(turns), np.sin(turns)], axis=1).astype(np.float32)


def scored(texts):
    """Graded pairs of the first text and each one."""
    return [
        {"text1": texts[0], "text2": text, "score": place % 6}
        for place, text in enumerate(texts)
    ]


def write_lines(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def write_rows(path, rows):
    return write_lines(path, map(json.dumps, rows))


def write_texts(path, count):
    """Write and return lines of some of WORDS."""
    choose = random.Random(0)
    drawn = (choose.choices(WORDS, k=choose.randint(1, 12)) for _ in range(count))
    texts = [*map(" ".join, drawn)]
    write_lines(path, texts)
    return texts


def wordpiece(max_length=64):
    """A lower-casing WordPiece tokenizer, like BERT's, with WORDS and single letters."""
    letters = [*"abcdefghijklmnopqrstuvwxyz0123456789.,!?'-"]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    entries = [*special, *WORDS, *letters, *(f"##{c}" for c in letters)]
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(entries))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
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


def bytelevel(max_length=64):
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
    folder,
    *,
    dim=32,
    layers=2,
    dropout=0.1,
    spread=0.02,
    seed=0,
    length=64,
):
    """A BERT with its tokenizer; with its default `spread` of weights all texts have similar vectors."""
    return _save(
        folder,
        partial(BertModel, add_pooling_layer=False),
        BertConfig,
        wordpiece(length),
        seed,
        **_sizes(dim, layers),
        max_position_embeddings=length,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        initializer_range=spread,
    )


def save_generator(backbone, folder, seed=0):
    """A small masked language model with the tokenizer of `backbone`."""
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    _save(folder, BertForMaskedLM, BertConfig, tokenizer, seed, **_sizes(16, 1))


def save_words(path):
    """A file of random vectors of WORDS."""
    vectors = torch.randn(len(WORDS), 5, generator=seeded(0)).tolist()
    lines = [
        " ".join(map(str, [word, *vector]))
        for word, vector in zip(WORDS, vectors, strict=True)
    ]
    return write_lines(path, lines)


def save_llama(folder, dim=32, layers=2, seed=0, length=64):
    """A LLaMA with grouped queries, and its tokenizer."""
    sizes = _sizes(dim, layers) | {"num_key_value_heads": 2}
    more = {"max_position_embeddings": 2 * length, "bos_token_id": 0, "eos_token_id": 1}
    return _save(
        folder, LlamaModel, LlamaConfig, bytelevel(length), seed, **sizes, **more
    )


def save_t5(folder, layers=2, kind="T5Encoder"):
    """The encoder of a T5, or a whole model such as `MT5`, and a tokenizer."""
    return _save(
        folder,
        getattr(transformers, f"{kind}Model"),
        getattr(transformers, f"{kind.removesuffix('Encoder')}Config"),
        wordpiece(),
        0,
        feed_forward_proj="gated-gelu",
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=layers,
        num_heads=4,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=16,
    )


def save_ran(folder):
    """A Recurrent Attention Network with its tokenizer."""
    return _save(
        folder,
        ran.RanModel,
        ran.RanConfig,
        wordpiece(),
        0,
        window_size=4,
        min_window_size=2,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        head_dim=4,
    )


def save_gemma(folder, layers=3):
    """A Gemma 3 with bidirectional attention and a window, like EmbeddingGemma."""
    return _save(
        folder,
        Gemma3TextModel,
        Gemma3TextConfig,
        wordpiece(),
        0,
        **_sizes(32, layers),
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=64,
        pad_token_id=0,
        sliding_window=4,
        layer_types=["sliding_attention"] * (layers - 1) + ["full_attention"],
        use_bidirectional_attention=True,
    )


def _sizes(dim, layers):
    heads = {"num_attention_heads": 4, "intermediate_size": 2 * dim}
    return {"hidden_size": dim, "num_hidden_layers": layers, **heads}


def _save(folder, kind, config, tokenizer, seed, **sizes):
    """A model with random weights, and its tokenizer."""
    torch.manual_seed(seed)
    kind(config(vocab_size=len(tokenizer), **sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def around(words):
    """Encoder settings with this default prompt."""
    return {"prompts": {"default": words}, "default_prompt_name": "default"}


_SENTENCE = "The compiler panics when a file is opened from the menu, but not when it is saved. "


def probes(max_length):
    """Texts to encode: short ones, several scripts, and one longer than `max_length` tokens."""
    return [
        "crash",
        "A man is playing a flute.",
        "naïve Straße 東京 🙂",
        _SENTENCE,
        _SENTENCE * max_length,
    ]


def difference(vectors, expected):
    """The largest distance between two vectors of a text, relative to the expected one's length."""
    assert vectors.shape == expected.shape
    expected = expected.astype(np.float64)
    return float((norm(vectors - expected, axis=1) / norm(expected, axis=1)).max())


def unit(vectors):
    """The vectors, scaled to length 1."""
    return vectors / norm(vectors, axis=1, keepdims=True)


def cosines_of(units):
    """The cosines of vectors of length 1; a vector's own is -1."""
    cosines = units @ units.T
    np.fill_diagonal(cosines, -1)
    return cosines
