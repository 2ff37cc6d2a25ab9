"""Stand-ins for the data and models of the recipes' scale `full`: the Hub's columns, splits and labels."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from papers.suites import nli, retrieval, transfer
from tests.aoe_train.tiny import (
    WORDS,
    save_bert,
    save_generator,
    save_llama,
    save_ran,
    save_words,
)
from tests.published import write_sts, write_table

ROWS, PROBED = 24, 66  # rows for training, and for classifiers
_TEXT = Value("string")
_GLUE = {
    "mrpc": ("sentence1", "sentence2", ["not_equivalent", "equivalent"]),
    "qqp": ("question1", "question2", ["not_duplicate", "duplicate"]),
    "qnli": ("question", "sentence", ["entailment", "not_entailment"]),
}
_NLI = ["entailment", "neutral", "contradiction"]


def texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.sample(WORDS, draw.randint(3, 7))) for _ in range(count)]


def table(**columns: int) -> Dataset:
    """Columns of texts; each value is a seed."""
    return Dataset.from_dict(
        {name: texts(ROWS, seed) for name, seed in columns.items()}
    )


def classes(
    first: str, second: str, names: Sequence[str], seed: int, *, hidden: bool = False
) -> Dataset:
    """Pairs of texts with classes; hidden ones are -1."""
    features = Features(
        {first: _TEXT, second: _TEXT, "label": ClassLabel(names=[*names])}
    )
    labels = [-1 if hidden else row % len(names) for row in range(ROWS)]
    columns = {first: texts(ROWS, seed), second: texts(ROWS, seed + 9), "label": labels}
    return Dataset.from_dict(columns, features)


def glue(config: str) -> DatasetDict:
    """GLUE, whose test labels are hidden, except MRPC's."""
    hidden = config != "mrpc"
    return DatasetDict(
        train=classes(*_GLUE[config], 0),
        validation=classes(*_GLUE[config], 1),
        test=classes(*_GLUE[config], 2, hidden=hidden),
    )


def issues() -> DatasetDict:
    """The papers' GIS, whose validation split is named `valid`."""
    labels = [row % 2 for row in range(ROWS)]
    made = [
        table(text1=seed, text2=seed + 9).add_column("label", labels)
        for seed in range(3)
    ]
    return DatasetDict(zip(("train", "valid", "test"), made, strict=True))


def inference() -> DatasetDict:
    rows = classes("premise", "hypothesis", _NLI, 4)
    return DatasetDict(train=rows, dev=rows, test=rows)


HUB = {
    **{("nyu-mll/glue", config): partial(glue, config) for config in _GLUE},
    ("WhereIsAI/github-issue-similarity", None): issues,
    ("sentence-transformers/all-nli", "pair-class"): inference,
    ("sentence-transformers/nli-for-simcse", "triplet"): lambda: DatasetDict(
        train=table(anchor=1, positive=2, negative=3)
    ),
    ("sentence-transformers/wikipedia-en-sentences", None): lambda: DatasetDict(
        train=Dataset.from_dict({"sentence": texts(200, 4)})
    ),
}


def load_dataset(name: str, config: str | None = None) -> DatasetDict:
    """Stands in for `datasets.load_dataset`; another dataset is an error."""
    return HUB[name, config]()


def few_rows(monkeypatch):
    """Accept files of the papers' suites with fewer rows than the published ones."""
    for module in (transfer, nli, retrieval):
        monkeypatch.setattr(module, "check_size", lambda *_: None)


def write_data(folder: Path) -> Path:
    """The files of `--data-dir`; the STS sets have as many rows as published, but few distinct texts."""
    write_sts(folder)
    known = texts(60, 5)
    for file in folder.rglob("*.tsv"):
        head, *lines = file.read_text().splitlines()
        draw = random.Random(file.name)
        rows = ((*line.split("\t")[:-2], *draw.sample(known, 2)) for line in lines)
        write_table(file, head, rows)
    for part in ("train", "dev"):
        scores = [0, 1, 2, 3, 4, 5] * ROWS
        rows = zip(scores, texts(ROWS, 6), texts(ROWS, 7), strict=False)
        head = "score\tsentence1\tsentence2"
        write_table(folder / f"stsb/stsb-{part}.tsv", head, rows)
    for name, _ in chain(*transfer._FILES.values()):
        head, labels = "label\ttext", (0, 1)
        if "mrpc" in name:
            head = "label\tsentence1\tsentence2"
        if "TREC" in name:
            head, labels = "coarse\ttext", ("NUM", "HUM")
        columns = head.count("\t") * [texts(PROBED, 8)]
        rows = zip(labels * PROBED, *columns, strict=False)
        write_table(folder / name, head, rows)
    for name in nli._ROWS:
        rows = zip(_NLI * ROWS, texts(PROBED, 3), texts(PROBED, 2), strict=False)
        write_table(folder / f"nli/{name}.tsv.gz", "label\tpremise\thypothesis", rows)
    captions = zip(*(texts(ROWS, seed) for seed in range(10, 15)), strict=True)
    head = "caption1\tcaption2\tcaption3\tcaption4\tcaption5"
    write_table(folder / "flickr30k/flickr30k-test.tsv.gz", head, captions)
    sentences = folder / "domain/medquad-sentences.txt.gz"
    write_table(sentences, "", zip(known, strict=True))
    (folder / "word-vectors").mkdir()
    save_words(folder / "word-vectors/glove.840B.300d.txt")
    save_ran(folder / "ran")
    return folder


def write_labelled(folder: Path):
    """A dataset of `label`."""
    for seed, split in enumerate(("train", "validation", "test")):
        columns = texts(ROWS, seed), texts(ROWS, seed + 9), [0, 1] * ROWS
        rows = zip(*columns, strict=False)
        write_table(folder / f"{split}.tsv", "text1\ttext2\tlabel", rows)


def write_models(folder: Path):
    """Tiny models at the Hub ids, as paths below `folder`, which has to be the current one."""
    bert = save_bert(
        folder / "google-bert/bert-base-uncased",
        layers=1,
        dim=136,
        spread=0.2,
        length=512,
    )
    save_generator(bert, folder / "distilbert/distilbert-base-uncased")
    save_generator(bert, folder / "distilbert/distilroberta-base")
    (folder / "FacebookAI").mkdir()
    (folder / "FacebookAI/roberta-base").symlink_to(bert)
    for size in ("7b", "13b"):
        save_llama(folder / f"NousResearch/Llama-2-{size}-hf", layers=1, length=512)
    for name in (
        "WhereIsAI/UAE-Large-V1",
        "BAAI/bge-large-en-v1.5",
        "llmrails/ember-v1",
    ):
        (folder / name).parent.mkdir()
        (folder / name).symlink_to(bert)
