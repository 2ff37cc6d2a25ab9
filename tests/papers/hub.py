"""Stand-ins for the data and models of the recipes' scale `full`: the Hub's columns, splits and labels."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from tests.aoe_train.tiny import WORDS, save_bert, save_generator, save_llama, save_ran, save_words
from tests.published import write_sts, write_table

ROWS = 24
_TEXT = Value("string")
_CLASSES = {
    "mrpc": ("sentence1", "sentence2", ["not_equivalent", "equivalent"]),
    "qqp": ("question1", "question2", ["not_duplicate", "duplicate"]),
    "qnli": ("question", "sentence", ["entailment", "not_entailment"]),
}


def texts(count: int, seed: int) -> Iterator[str]:
    draw = random.Random(seed)
    return (" ".join(draw.sample(WORDS, draw.randint(3, 7))) for _ in range(count))


def glue(config: str) -> DatasetDict:
    """GLUE: classes with names, and the label -1 in the test split unless it is MRPC's."""
    first, second, names = _CLASSES[config]
    features = Features(
        {first: _TEXT, second: _TEXT, "label": ClassLabel(names=names), "idx": Value("int32")}
    )
    splits = {}
    for seed, split in enumerate(("train", "validation", "test")):
        hidden = split == "test" and config != "mrpc"
        columns = {first: [*texts(ROWS, seed)], second: [*texts(ROWS, seed + 9)]}
        columns |= {"label": [-1 if hidden else row % 2 for row in range(ROWS)], "idx": [*range(ROWS)]}
        splits[split] = Dataset.from_dict(columns, features)
    return DatasetDict(splits)


def table(**columns: int) -> Dataset:
    """Columns of texts; each value is a seed."""
    return Dataset.from_dict({name: [*texts(ROWS, seed)] for name, seed in columns.items()})


def issues() -> DatasetDict:
    """The papers' GIS, whose validation split is named `valid`."""
    return DatasetDict(
        {
            split: table(text1=seed, text2=seed + 9).add_column("label", [row % 2 for row in range(ROWS)])
            for seed, split in enumerate(("train", "valid", "test"))
        }
    )


HUB: dict[tuple[str, str | None], Callable[[], DatasetDict]] = {
    **{("nyu-mll/glue", config): lambda config=config: glue(config) for config in _CLASSES},
    ("WhereIsAI/github-issue-similarity", None): issues,
    ("sentence-transformers/nli-for-simcse", "triplet"): lambda: DatasetDict(
        train=table(anchor=1, positive=2, negative=3)
    ),
    ("sentence-transformers/wikipedia-en-sentences", None): lambda: DatasetDict(train=table(sentence=4)),
}


def load_dataset(name: str, config: str | None = None) -> DatasetDict:
    """Stands in for `datasets.load_dataset`; another dataset is an error."""
    return HUB[name, config]()


def write_data(folder: Path) -> Path:
    """The files of `--data-dir` with the published numbers of rows, but few distinct texts."""
    write_sts(folder)
    known = [*texts(60, 5)]
    for file in [*folder.rglob("*.tsv")]:
        lines = file.read_text().splitlines()
        draw = random.Random(file.name)
        rows = (line.split("\t")[:-2] + draw.sample(known, 2) for line in lines[1:])
        write_table(file, lines[0], rows)
    graded = [
        (5 * (row % 6) / 5, *pair)
        for row, pair in enumerate(zip(texts(ROWS, 6), texts(ROWS, 7), strict=True))
    ]
    for part in ("train", "dev"):
        write_table(folder / f"stsb/stsb-{part}.tsv", "score\tsentence1\tsentence2", graded)
    write_table(folder / "domain/medquad-sentences.txt.gz", "", ((text,) for text in known))
    (folder / "word-vectors").mkdir()
    save_words(folder / "word-vectors/glove.840B.300d.txt")
    save_ran(folder / "ran")
    return folder


def write_models(folder: Path) -> None:
    """Tiny models at the Hub ids, as paths below `folder`, which has to be the current one."""
    bert = save_bert(folder / "google-bert/bert-base-uncased", layers=1, length=512)
    save_generator(bert, folder / "distilbert/distilbert-base-uncased")
    for size in ("7b", "13b"):
        save_llama(folder / f"NousResearch/Llama-2-{size}-hf", layers=1, length=512)
