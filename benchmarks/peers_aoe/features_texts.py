"""Rows for the comparison of behaviour, and a small random BERT; imports what both environments have."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

from runner import answer

STEPS, DIE_AT = 16, 9  # of the run that is killed: 64 rows twice, 8 at a time
WORDS = (
    *("a", "the", "man", "dog", "cat", "bird", "plane", "boat", "car", "is", "was", "playing", "eating"),
    *("running", "red", "blue", "guitar", "bread", "road", "river"),
)
SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}


def sentences(count: int, seed: int = 0) -> list[str]:
    """Different sentences of four to nine words."""
    draw = random.Random(seed)  # noqa: S311 - sentences, not secrets
    found: dict[str, None] = {}
    while len(found) < count:
        found[" ".join(draw.choices(WORDS, k=draw.randint(4, 9)))] = None
    return [*found]


def scored(count: int = 64) -> list[dict]:
    """Pairs of different sentences with scores from 0 to 1."""
    texts = sentences(2 * count)
    pairs = enumerate(zip(texts[::2], texts[1::2], strict=True))
    return [{"text1": one, "text2": other, "label": number % 5 / 4} for number, (one, other) in pairs]


def long_pair() -> dict:
    """A text of hundreds of words beside a short one."""
    return {"text1": " ".join(sentences(80)), "text2": "a cat", "label": 1.0}


def classes(count: int = 64) -> list[dict]:
    """Pairs with classes as NLI has them."""
    return [{**row, "label": number % 3} for number, row in enumerate(scored(count))]


def negatives(count: int = 32) -> list[dict]:
    """Rows with two negatives each."""
    texts, names = sentences(4 * count), ("anchor", "positive", "negative_1", "negative_2")
    return [dict(zip(names, texts[start : start + 4], strict=True)) for start in range(0, len(texts), 4)]


def one_positive() -> list[dict]:
    """Two anchors with the same positive."""
    one, other, positive = sentences(3)
    return [{"anchor": anchor, "positive": positive} for anchor in (one, other)]


def kill(out: Path) -> None:
    """Start the same script on a run that dies, and see that it did."""
    child = subprocess.run([sys.executable, *sys.argv, str(out)], check=False, capture_output=True)
    if child.returncode != -signal.SIGKILL:
        raise SystemExit(child.stderr.decode()[-2000:])


def answers(**found: str) -> None:
    """Answer with one line for each row of the table."""
    answer(**{key: " ".join(text.split()).replace("|", "/") for key, text in found.items()})


def save_bert(folder: str) -> str:
    """A BERT of two layers with random weights and a tokenizer of whole words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate([*SPECIAL.values(), *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=SPECIAL["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=len(vocabulary), **sizes)).save_pretrained(folder)
    return folder
