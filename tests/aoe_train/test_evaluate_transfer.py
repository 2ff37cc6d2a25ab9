"""SentEval's transfer tasks: their files in both layouts, their order, their figures."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from aoe_train._evaluate import SUITES, Vectors, find_tasks, summarise
from aoe_train._evaluate.suites import transfer
from aoe_train._evaluate.suites.classification import ClassTask
from aoe_train._evaluate.suites.transfer import Transfer
from pairkit.errors import DataError
from tests.published import REAL, real_data, write_transfer

GOOD = ["a fine film", "good", "well done indeed , it is"]
BAD = ["a dull film", "bad", "", "café closed , a pity"]
SST = {
    "train": [("good film", 1), ("bad", 0), ("a fine day", 1)],
    "dev": [("dull", 0), ("fine", 1)],
    "test": [("a pity", 0), ("well done", 1)],
}
TREC = {
    "train": [("NUM", "dist", "How far ?"), ("HUM", "ind", "Who is José ?")],
    "test": [("DESC", "def", "Why ?")],
}
MRPC = {
    "train": [(1, "it rains a lot", "rain falls"), (0, 'he said "no"', "cows")],
    "test": [(1, "a b", "b a")],
}
SIZES = {
    "MR": (7,),
    "CR": (7,),
    "SUBJ": (7,),
    "MPQA": (7,),
    "SST2": (3, 2, 2),
    "TREC": (2, 1),
    "MRPC": (2, 1),
}


def write(path: Path, lines: list[str], encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = ("\n".join(lines) + "\n").encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def tables(folder: Path, suffix: str = ".gz") -> Path:
    """Our layout."""
    rows = [f"1\t{text}" for text in GOOD] + [f"0\t{text}" for text in BAD]
    for task in ("MR", "CR", "SUBJ", "MPQA"):
        write(folder / "senteval" / f"{task}.tsv{suffix}", ["label\ttext", *rows])
    for part, some in SST.items():
        lines = [f"{label}\t{text}" for text, label in some]
        write(folder / "senteval" / f"SST2-{part}.tsv{suffix}", ["label\ttext", *lines])
    for part, questions in TREC.items():
        lines = ["\t".join(row) for row in questions]
        write(folder / "senteval" / f"TREC-{part}.tsv{suffix}", ["coarse\tfine\ttext", *lines])
    for part, pairs in MRPC.items():
        lines = [f"{label}\t{one}\t{other}\t1-2" for label, one, other in pairs]
        write(folder / "pairs" / f"mrpc-{part}.tsv{suffix}", ["label\tsentence1\tsentence2\tids", *lines])
    return folder


def originals(folder: Path) -> Path:
    """SentEval's layout."""
    for name in ("MR/rt-polarity.{}", "CR/custrev.{}", "MPQA/mpqa.{}"):
        write(folder / name.format("pos"), GOOD)
        write(folder / name.format("neg"), BAD)
    write(folder / "SUBJ/subj.subjective", GOOD)
    write(folder / "SUBJ/subj.objective", BAD)
    for part, some in SST.items():
        write(folder / f"SST/binary/sentiment-{part}", [f"{text}\t{label}" for text, label in some])
    for part, name in (("train", "train_5500"), ("test", "TREC_10")):
        lines = [f"{coarse}:{fine} {text}" for coarse, fine, text in TREC[part]]
        write(folder / f"TREC/{name}.label", lines, "latin-1")
    for part, pairs in MRPC.items():
        lines = [f"{label}\t1\t2\t{one}\t{other}" for label, one, other in pairs]
        write(
            folder / f"MRPC/msr_paraphrase_{part}.txt",
            ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", *lines],
        )
    return folder


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of the small files above in place of the published ones."""
    monkeypatch.setattr(transfer, "_ROWS", SIZES)


def read(folder: Path, name: str) -> ClassTask:
    ((task,), _) = find_tasks(SUITES["transfer"](), folder, names=[name])
    assert isinstance(task, ClassTask)
    return task


def seen(task: ClassTask) -> list[tuple[object, list[int]]]:
    return [(part.columns, part.classes.tolist()) for part in task.parts]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", Transfer.tasks)
def test_all_layouts_give_the_same_examples(name: str, tmp_path: Path) -> None:
    packed = read(tables(tmp_path / "packed"), name)
    assert [len(part.classes) for part in packed.parts] == list(SIZES[name])
    assert seen(packed) == seen(read(tables(tmp_path / "plain", ""), name))
    assert seen(packed) == seen(read(originals(tmp_path / "originals"), name))


@pytest.mark.usefixtures("small")
def test_ordered_by_words_and_class_and_a_full_stop_for_nothing(tmp_path: Path) -> None:
    (part,) = read(tables(tmp_path), "MR").parts
    (texts,) = part.columns
    assert texts == [".", "bad", "good", "a dull film", "a fine film", "café closed , a pity", GOOD[2]]
    assert part.classes.tolist() == [0, 0, 1, 0, 1, 0, 1]


@pytest.mark.usefixtures("small")
def test_pairs_are_compared_by_difference_and_product(tmp_path: Path) -> None:
    task = read(tables(tmp_path), "MRPC")
    vectors = Vectors(lambda texts: np.float32([[len(text), 2] for text in texts]), [task.texts])
    features, classes = task.parts[0].labelled(vectors)
    assert classes.tolist() == [0, 1]
    assert features.tolist() == [[12 - 4, 0, 12 * 4, 4], [14 - 10, 0, 14 * 10, 4]]


def test_the_published_number_of_rows_or_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"MR\.tsv\.gz: 7 rows, but 10,662 are published"):
        read(tables(tmp_path), "MR")


@pytest.mark.usefixtures("small")
def test_a_class_that_is_none(tmp_path: Path) -> None:
    path = tables(tmp_path) / "senteval" / "CR.tsv.gz"
    write(path, ["label\ttext", "1\tgood", "2\tbad"])
    with pytest.raises(DataError, match=r"CR\.tsv\.gz:3: class '2'; expected 0, 1"):
        read(tmp_path, "CR")
    write(path, ["text", "good"])
    with pytest.raises(DataError, match="no column label; there are text"):
        read(tmp_path, "CR")


@pytest.mark.usefixtures("small")
def test_a_line_that_is_none_of_senteval(tmp_path: Path) -> None:
    write(originals(tmp_path) / "SST/binary/sentiment-dev", ["fine\t1", "no class"])
    with pytest.raises(DataError, match=r"sentiment-dev:2: not a line of SentEval's SST2: 'no class'"):
        read(tmp_path, "SST2")


@pytest.mark.usefixtures("small")
def test_what_is_missing_is_told(tmp_path: Path) -> None:
    tables(tmp_path)
    (tmp_path / "senteval" / "SST2-dev.tsv.gz").unlink()
    tasks, missing = find_tasks(Transfer(), tmp_path)
    assert [task.name for task in tasks] == [name for name in Transfer.tasks if name != "SST2"]
    assert missing["SST2"].endswith("SST2-dev.tsv.gz")
    with pytest.raises(DataError, match="has no dev split"):
        find_tasks(Transfer(), tmp_path, split="dev")


def test_figures_of_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors that know the class of three texts in four."""
    monkeypatch.setattr(transfer, "_ROWS", {**SIZES, "MR": (120,)})
    lines = [f"{row % 2}\ttext {row}" for row in range(120)]
    write(tmp_path / "senteval" / "MR.tsv.gz", ["label\ttext", *lines])
    task = read(tmp_path, "MR")

    def encode(texts: list[str]) -> np.ndarray:
        rows = [int(text.split()[1]) for text in texts]
        return np.float32([[(row % 2) ^ (row % 8 < 2), 1] for row in rows])

    result = summarise(task.judge(Vectors(encode, [task.texts])), draws=200)
    assert result.n == 120
    assert result.scores == {"accuracy": 0.75}
    assert result.intervals["accuracy"].low < 0.75 < result.intervals["accuracy"].high


@pytest.mark.parametrize("published", [False, pytest.param(True, marks=real_data)])
def test_files_of_the_published_sizes(tmp_path: Path, published: bool) -> None:
    tasks, missing = find_tasks(Transfer(), REAL if published else write_transfer(tmp_path))
    assert missing == {}
    assert [task.name for task in tasks] == ["MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC"]
    assert tasks[1].texts.count(".") == 4


@pytest.mark.slow
@real_data
def test_a_real_model_within_a_standard_error_of_sentevals_loop() -> None:
    from aoe_train._encoder import Encoder

    task = read(REAL, "CR")
    vectors = Vectors(Encoder.load("minilm", precision="fp32").encode, [task.texts])
    x, y = task.parts[0].labelled(vectors)

    def folds(y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        return list(StratifiedKFold(10, shuffle=True, random_state=1111).split(y, y))

    def score(c: float, x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
        return float(LogisticRegression(C=c).fit(x[a], y[a]).score(x[b], y[b]))

    regs, reached = [2.0**t for t in range(-2, 4)], []
    for a, b in folds(y):
        inner = [np.mean([score(c, x[a], y[a], *fold) for fold in folds(y[a])]) for c in regs]
        reached.append(score(regs[int(np.argmax(np.round(np.array(inner) * 100, 2)))], x, y, a, b))
    accuracy = summarise(task.judge(vectors)).scores["accuracy"]
    assert abs(accuracy - np.mean(reached)) < np.sqrt(accuracy * (1 - accuracy) / len(y))
