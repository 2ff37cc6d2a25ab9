from __future__ import annotations

from math import log
from pathlib import Path

import numpy as np
import pytest

from pairkit.similarity.bm25 import Bm25, best, words

TEXTS = ["red boat", "red car red", "blue", "..."]


def test_score() -> None:
    """As Lucene: idf * tf / (tf + k1 * (1 - b + b * length / mean length)); lengths 2, 3, 1, 0."""
    scores = Bm25(TEXTS).scores("RED red")
    idf = log(1 + (4 - 2 + 0.5) / (2 + 0.5))
    by_hand = [idf * tf / (tf + 1.5 * (0.25 + 0.75 * length / 1.5)) for tf, length in ((1, 2), (2, 3))]
    assert scores == pytest.approx([*by_hand, 0, 0], abs=1e-6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Can't open x_1 in 3 of 12", ["can", "t", "open", "x_1", "in", "of", "12"]),
        ("Größe geöffnet", ["größe", "geöffnet"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("打开 Excel文件", ["打开", "excel", "文件"]),
    ],
)
def test_words_by_script(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_unknown_words() -> None:
    index = Bm25(TEXTS)
    for text in ("green", "", "!"):
        assert index.scores(text).tolist() == [0, 0, 0, 0]
    assert Bm25([]).scores("red").tolist() == []


def test_best() -> None:
    scores = np.array([0, 2, 1, 2, 1, 0.5], np.float32)
    assert best(scores, 3).tolist() == [1, 3, 2]
    assert best(scores, 6).tolist() == best(scores, 99).tolist() == [1, 3, 2, 4, 5]


def test_save_and_load(tmp_path: Path) -> None:
    texts = ["panic when saving", "", "E0277 when saving", "the window is red"]
    index = Bm25(texts)
    index.save(tmp_path)
    again = Bm25.load(tmp_path, 4)
    for asked in ("E0277 saving", "window", "unknown", ""):
        assert again.scores(asked).tolist() == index.scores(asked).tolist()


def test_a_search_by_words_finds_a_reworded_chinese_sentence_first() -> None:
    texts = [
        "无法保存文件，磁盘已满",
        "打开编辑器时窗口崩溃",
        "网络连接超时，请检查设置",
        "菜单里的文字显示错误",
    ]
    assert best(Bm25(texts).scores("磁盘满了，文件保存不了"), 1).tolist() == [0]
