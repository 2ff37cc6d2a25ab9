"""The dev metric of each kind of examples, computed by hand."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import aoe_train
from aoe_train.evaluation.dev import DevMetric, dev_scores
from aoe_train.evaluation.search_results import RetrievalTask, is_nearer, reciprocal_ranks
from aoe_train.evaluation.tasks import TaskVectors
from aoe_train.objectives.training_rows import ABSENT, Examples, Kind
from aoe_train.settings.prompt_settings import NamedPrompts
from pairkit import ConfigError, DataError

# Angles on a circle: the nearer two of them, the larger the cosine.
ANGLES = {"a": 0, "b": 10, "c": 40, "d": 90, "e": 170}


def on_circle(texts: list[str], **_: str) -> np.ndarray:
    turns = np.radians([ANGLES[text] for text in texts])
    return np.stack([np.cos(turns), np.sin(turns)], axis=1).astype(np.float32)


def dev_metric(encode, rows: Examples) -> DevMetric:
    return dev_scores(encode, {"dev": rows}).deciding


def examples(kind: Kind, rows: list[tuple[str, ...]], labels: list[float] | None = None) -> Examples:
    texts = sorted({text for row in rows for text in row})
    numbers = np.array([[texts.index(text) for text in row] for row in rows], np.int64)
    return Examples(texts, numbers, None if labels is None else np.array(labels, np.float32), kind)


@pytest.mark.parametrize(("kind", "labels"), [("graded", [5, 3, 0]), ("binary", [1, 1, 0])])
def test_labelled_pairs_give_spearman(kind, labels):
    metric = dev_metric(on_circle, examples(kind, [("a", "b"), ("b", "d"), ("a", "e")], labels))
    # the binary labels tie two rows: ranks 2.5 2.5 1 against 3 2 1 give 1.5 / sqrt(1.5 * 2)
    assert metric == ("spearman", pytest.approx(1 if kind == "graded" else 1.5 / 3**0.5))


def test_triplets_give_the_share_of_correct_rows():
    rows = [("a", "b", "d"), ("a", "d", "c"), ("a", "c", "c"), ("e", "d", "a")]  # a tie is wrong
    assert dev_metric(on_circle, examples("triplet", rows)) == ("triplet_accuracy", 0.5)
    rows = [("a", "b", "d", "c"), ("a", "c", "d", "b"), ("e", "d", "a", "b"), ("d", "e", "a", "c")]
    wide = examples("triplet", rows)
    # b is 10 from a; c is 40 and b nearer; d is 80 from e, all else farther; from d, c is 50 and e 80
    assert dev_metric(on_circle, wide) == ("triplet_accuracy", 0.5)
    wide.rows[3, 3] = ABSENT  # and a is 90
    assert dev_metric(on_circle, wide) == ("triplet_accuracy", 0.75)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # as above with a second positive of a, which is nearer to d than e is: e is third
        ([("a", "b"), ("c", "d"), ("d", "e"), ("a", "c")], {"mrr": 11 / 18, "recall@1": 1 / 3, "n": 3}),
        # c is 40 from a, and the negative b nearer; d is first of e, whose other negative is not its own
        ([("a", "c", "b"), ("e", "d", "a")], {"mrr": 0.75, "recall@1": 0.5, "triplet_accuracy": 0.5, "n": 2}),
    ],
)
def test_evaluate_ranks_positives_and_triplets(rows, expected):
    data = [dict(zip(("anchor", "positive", "negative"), row, strict=False)) for row in rows]
    ((_, told),) = aoe_train.evaluate(on_circle, data=data, resamples=0, progress=False).to_dict().items()
    assert {name: told[name] for name in expected} == pytest.approx(expected)


def test_evaluate_ranks_texts_of_one_group():
    groups = {"a": "x", "b": "x", "c": "y", "d": "y", "e": "alone"}
    data = [{"text": text, "intent": group} for text, group in groups.items()]
    columns = {"text": "text", "group": "intent"}
    table = aoe_train.evaluate(on_circle, data=data, columns=columns, resamples=0, progress=False)
    ((_, told),) = table.to_dict().items()
    # first are b of a, a of b, b of c (d is third), c of d
    assert (told["P@1"], told["n"]) == (3 / 4, 4)
    assert told["map@10"] == pytest.approx((1 + 1 + 1 / 3 + 1) / 4)
    with pytest.raises(DataError, match="each group has one text"):
        aoe_train.evaluate(on_circle, data=data[3:], columns=columns, progress=False)
    with pytest.raises(ConfigError, match="takes only text and group"):
        aoe_train.evaluate(on_circle, data=data, columns=columns | {"label": "x"}, progress=False)


def test_the_verdict_on_positives_is_by_mrr():
    pairs = [{"anchor": f"question {number} ?", "positive": f"answer {number} ."} for number in range(60)]

    def encode(texts: list[str]) -> np.ndarray:
        return np.eye(60, dtype=np.float32)[[int(text.split()[1]) for text in texts]]

    def worse(texts: list[str]) -> np.ndarray:
        return encode(texts) + 3 * np.random.default_rng(1).random((len(texts), 60), np.float32)

    ((_, gain),) = aoe_train.evaluate(encode, data=pairs, against=worse, progress=False).gains.items()
    assert (gain.word, gain.metric, gain.after) == ("better", "mrr", 1)
    assert re.search(r"^MRR \d.* -> 100.00 \(.*, 60 queries\)$", str(gain))


def test_searches_use_the_prompts_for_queries_and_documents():
    calls = []

    def encode(texts: list[str], prompt: str | None = None) -> np.ndarray:
        calls.append((prompt, texts))
        return on_circle(texts)

    task = RetrievalTask("pairs", examples("positive", [("a", "b"), ("b", "c")]))
    with_prompts = NamedPrompts({"query": "q: ", "document": "d: "})
    prompted = TaskVectors(encode, [task.texts, ["a"]], prompts=with_prompts)
    assert calls == [("q: ", ["a", "b"]), ("d: ", ["b", "c"]), (None, ["a"])]
    plain = TaskVectors(encode, [task.texts, ["a"]], prompts=NamedPrompts({}))
    assert calls[3:] == [(None, ["a", "b", "c"])]
    assert task.measure(prompted).scores() == task.measure(plain).scores()


def slow_mrr(vectors: np.ndarray, pairs: np.ndarray) -> float:
    """A simple implementation, row by row."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    known = {tuple(pair) for pair in pairs.tolist()}
    total = 0.0
    for anchor, positive in pairs.tolist():
        rivals = {other for other in pairs[:, 1].tolist() if other != anchor and (anchor, other) not in known}
        mine = unit[anchor] @ unit[positive]
        total += 1 / (1 + sum(unit[anchor] @ unit[other] >= mine - 1e-12 for other in rivals))
    return total / len(pairs)


@settings(max_examples=20)
@given(
    arrays(np.float64, (300, 3), elements=st.integers(-4, 4)),
    arrays(np.int64, (200, 2), elements=st.integers(0, 299)),
)
def test_mean_reciprocal_rank_equals_a_loop(vectors, pairs):
    vectors += np.array([0.5, 0.25, 0.125])  # no zero vectors
    assert reciprocal_ranks(vectors, pairs).mean() == pytest.approx(slow_mrr(vectors, pairs), abs=1e-12)
    collapsed = np.linspace(1, 2, 300)[:, None] * np.array([[0.3, 0.1, 0.7]])  # one direction
    assert reciprocal_ranks(collapsed, np.arange(20).reshape(10, 2)).mean() == pytest.approx(0.1)
    assert not is_nearer(collapsed, np.arange(18).reshape(6, 3)).any()


def flipped(texts: list[str], **_: str) -> np.ndarray:
    return on_circle(texts)[:, ::-1] * np.array([1, 0.2])


@pytest.mark.parametrize(
    ("kind", "labels", "rows", "is_few"),
    [
        ("binary", [1, 0], 8, True),
        ("graded", [5, 0], 40, False),
        ("triplet", None, 40, False),
        ("positive", None, 40, False),
    ],
)
def test_a_gain_on_held_out_rows_has_an_interval(kind, labels, rows, is_few):
    each: list[tuple[str, ...]] = [("a", "b", "d"), ("e", "c", "d")]
    wide = [row if kind == "triplet" else row[:2] for row in each] * (rows // 2)
    sets = {"dev": examples(kind, wide, labels and labels * (rows // 2))}
    after, before = (dev_scores(encode, sets) for encode in (on_circle, flipped))
    found = after.ahead_of(before, seed=1)
    assert found is not None
    assert found["difference"] == pytest.approx(after.deciding.value - before.deciding.value)
    assert found["ci95"][0] <= found["difference"] <= found["ci95"][1]
    assert (found["rows"], found["too_few"]) == (rows, is_few)
    for without in ({**sets, "two": sets["dev"]}, {"one": examples("triplet", [("a", "b", "d")] * 1001)}):
        scores = dev_scores(on_circle, without)  # several dev sets, or many rows
        assert scores.ahead_of(scores, seed=1) is None
