"""What `ran_pretraining.py` reads: pairs of rust-lang/rust issues built by `gis`, and plain texts.

No text of the validation and test splits is pre-trained on; what they measure is new in every respect.
"""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gis import emulator, measured
from peers_aoe.texts import write

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SPLITS = ("train", "validation", "test")
# Larger held-out splits than the papers' tenth: these 3,231 pairs are to be cut into buckets of length.
SHARES = "0.7,0.15,0.15"


@dataclass(frozen=True)
class Texts:
    """The files of a run."""

    pairs: dict[str, Path]
    corpus: list[Path]
    held_out: dict[str, Path]


def build_pairs(dump: Path, out: Path) -> Path:
    """`gis build` over HTTP from the dump, once; the dataset's folder."""
    if not out.exists():
        with emulator(dump) as url:
            repository = ["--repos", "rust-lang/rust", "--strategy", "sweep", "--api-url", url]
            built = measured("build", *repository, "--split", SHARES, "--out", str(out))
        print({name: built.result[name] for name in ("positives", "negatives", *SPLITS)}, flush=True)
    return out


def lay_out(
    data: Path, out: Path, tokenizer: PreTrainedTokenizerFast, *, tokens: int, sentences: int, pairs: int
) -> Texts:
    """Write all files of a run."""
    found = {split: rows(build_pairs(data / "rust-issues", out / "pairs"), split) for split in SPLITS}
    draw = random.Random(0)  # noqa: S311 - a sample, not a secret
    found["train"] = draw.sample(found["train"], min(pairs, len(found["train"])))
    with gzip.open(data / "domain" / "medquad-sentences.txt.gz", "rt", encoding="utf-8") as lines:
        medical = draw.sample(lines.read().splitlines(), sentences + 1000)
    folder = out / "texts"
    folder.mkdir(exist_ok=True)
    train, validation = (texts_of(found[split]) for split in ("train", "validation"))
    return Texts(
        {split: write(cut(found[split], tokenizer, tokens), folder / f"{split}.jsonl") for split in SPLITS},
        [plain(train, folder / "issues.jsonl"), plain(medical[1000:], folder / "medquad.jsonl")],
        {
            "MedQuAD": plain(medical[:1000], folder / "held-out-medquad.jsonl"),
            "issues": plain(validation, folder / "held-out-issues.jsonl"),
        },
    )


def rows(dataset: Path, split: str) -> list[dict]:
    """A split's pairs: text1, text2, label."""
    import polars

    table = polars.read_parquet(dataset / "data" / f"{split}-*.parquet")
    return table.select("text1", "text2", "label").to_dicts()


def texts_of(pairs: list[dict]) -> list[str]:
    """Each distinct text of some pairs, in the order they come in."""
    return list(dict.fromkeys(pair[side] for pair in pairs for side in ("text1", "text2")))


def plain(texts: list[str], path: Path) -> Path:
    """Texts as JSON lines: an issue has line breaks."""
    return write([{"text": text} for text in texts], path)


def cut(pairs: list[dict], tokenizer: PreTrainedTokenizerFast, tokens: int) -> list[dict]:
    """The pairs with texts of at most `tokens` tokens, and the uncut `length` of the longer text."""
    texts = texts_of(pairs)
    ends = tokenizer(texts, return_offsets_mapping=True, verbose=False)["offset_mapping"]
    end = dict(zip(texts, ends, strict=True))

    def shown(text: str) -> str:
        return text if len(end[text]) <= tokens else text[: end[text][tokens - 1][1]]

    return [
        {
            "text1": shown(pair["text1"]),
            "text2": shown(pair["text2"]),
            "label": pair["label"],
            "length": max(len(end[pair["text1"]]), len(end[pair["text2"]])),
        }
        for pair in pairs
    ]
