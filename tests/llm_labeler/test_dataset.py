from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_labeler.dataset.label_card import write
from llm_labeler.dataset.label_splits import DatasetRows, DatasetSplits
from llm_labeler.records import Candidate, JudgeVote, LabelledPair, Polarity, Text
from llm_labeler.runs.label_folder import RunRecord, check_out
from llm_labeler.runs.prompts import Template
from llm_labeler.settings import LabelSettings
from pairkit.base.errors import ConfigError, DataError

SETTINGS = LabelSettings(llms=("chatgpt", "llama"))
PARAMETERS = {"llama": '{"temperature": 0.7}', "chatgpt": "{}"}
PROMPTS: dict[Polarity, str] = {
    "positive": "Say {text} in ```other``` words, {size} times.",
    "negative": "Say the opposite of {text}.",
}


def text(number: int) -> Text:
    return Text.of(f"Sentence number {number}.", number)


def pair(
    of: Text,
    candidate: str,
    polarity: Polarity,
    label: float | None = None,
    llms: tuple[str, ...] = ("chatgpt",),
    reason: str | None = None,
    votes: tuple[JudgeVote, ...] = (),
) -> LabelledPair:
    hard = float(polarity == "positive")
    source = Candidate(of.text_id, candidate, polarity, llms, ("aa", "bb"))
    return LabelledPair(source, polarity, hard if label is None else label, votes, reason)


def pairs_of(of: Text, positives: int = 3, negatives: int = 2) -> list[LabelledPair]:
    return [pair(of, f"{of.text} Same {n}.", "positive") for n in range(positives)] + [
        pair(of, f"{of.text} Other {n}.", "negative", llms=("chatgpt", "llama")) for n in range(negatives)
    ]


def collected(texts: Sequence[Text], **kinds: int) -> DatasetRows:
    rows = DatasetRows("union", 42)
    for each in texts:
        rows.add(each, pairs_of(each, **kinds))
    return rows


def split_of(texts: Sequence[Text]) -> dict[str, str]:
    return {each.text_id: "test" if each.row % 5 == 0 else "train" for each in texts}


def frames(
    rows: DatasetRows, split_of: Mapping[str, str], *, graded: bool = False
) -> dict[str, dict[str, pl.DataFrame]]:
    """Rows by configuration and split, without empty splits."""
    result = DatasetSplits(rows, split_of, graded=graded).frames
    return {
        config: {split: rows for split, rows in splits.items() if rows.height}
        for config, splits in result.items()
    }


def record(
    settings: LabelSettings = SETTINGS,
    *,
    parameters: Mapping[str, str] = PARAMETERS,
    prompts: Mapping[Polarity, str] = PROMPTS,
    source: str = "s.txt",
    sha256: str = "f00",
) -> dict[str, Any]:
    known = {name: ("digest", words) for name, words in parameters.items()}
    return RunRecord(settings, Template("own", prompts), known, source, sha256, {}).run_json()


def write_sample(out: Path, **changes: Any) -> dict[str, Any]:
    texts = [text(number) for number in range(1, 31)]
    given = {"graded": False, "statistics": {"texts": 30}, "run": record()} | changes
    return write(out, collected(texts), split_of(texts), **given)


def test_rejected_and_repeated_pairs_are_counted() -> None:
    one = text(1)
    rows = DatasetRows("vote", 0)
    rows.add(
        one,
        [
            pair(one, "a", "positive"),
            pair(one, "a", "negative"),
            pair(one, "b", "negative", reason="outvoted"),
            pair(one, "c", "negative", reason="outvoted"),
        ],
    )
    assert rows.rows == 1
    assert rows.dropped == {"repeated_pair": 1, "outvoted": 2}


def test_labels_and_texts_are_mixed() -> None:
    texts = [text(number) for number in range(400)]
    rows = collected(texts, positives=2, negatives=2)
    frame = frames(rows, dict.fromkeys((each.text_id for each in texts), "train"))["default"]["train"]
    labels = frame["label"].to_list()
    assert max(len(list(run)) for _, run in groupby(labels)) < 25  # a run of 25 has probability 2 ** -25
    batches = [frame[start : start + 32] for start in range(0, frame.height, 32)]
    assert all(5 <= batch["label"].sum() <= 27 for batch in batches)
    assert all(batch["text1"].n_unique() > 24 for batch in batches)


@settings(max_examples=10)
@given(st.permutations(range(12)), st.integers(0, 3))
def test_the_order_of_rows_depends_only_on_their_content(order: list[int], seed: int) -> None:
    texts = [text(number) for number in range(12)]

    def rows_of(numbers: Sequence[int]) -> pl.DataFrame:
        rows = DatasetRows("union", seed)
        for number in numbers:
            rows.add(texts[number], pairs_of(texts[number]))
        split = dict.fromkeys((each.text_id for each in texts), "train")
        return frames(rows, split)["default"]["train"]

    everything = rows_of(order)
    assert everything.equals(rows_of(range(12)))
    few = [number for number in order if number % 2]
    assert everything.filter(pl.col("text1").is_in([texts[n].text for n in few])).equals(rows_of(few))


@pytest.mark.parametrize(("label", "graded", "dtype"), [
    (0.0, False, pl.Int64), (0.0, True, pl.Float32), (0.3, False, pl.Float32),
])  # fmt: skip
def test_labels_are_integers_unless_graded(label: float, graded: bool, dtype: pl.DataType) -> None:
    one = text(1)
    rows = DatasetRows("union", 0)
    rows.add(one, [pair(one, "a", "positive"), pair(one, "b", "negative", label)])
    frame = frames(rows, {one.text_id: "train"}, graded=graded)["default"]["train"]
    assert frame["label"].dtype == dtype
    assert sorted(frame["label"]) == pytest.approx([label, 1.0])


def test_a_configuration_without_rows_is_left_out() -> None:
    texts = [text(1)]
    assert set(frames(collected(texts, negatives=0), split_of(texts))) == {"default", "positive"}
    assert set(frames(collected(texts, positives=0), split_of(texts))) == {"default"}


def test_files_of_the_dataset_folder(tmp_path: Path) -> None:
    statistics = write_sample(tmp_path / "out")
    files = {p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    shards = {
        f"{c}/{s}-00000-of-00001.parquet" for c in ("data", "positive", "triplet") for s in ("train", "test")
    }
    assert files == shards | {"README.md", "run.json", "statistics.json"}
    assert json.loads((tmp_path / "out/statistics.json").read_text()) == statistics
    assert statistics["texts"] == 30
    assert json.loads((tmp_path / "out/run.json").read_text()) == record()


def test_the_card(tmp_path: Path) -> None:
    write_sample(tmp_path / "out")
    card = (tmp_path / "out/README.md").read_text()
    assert "pretty_name: Sentence pairs by LLMs" in card
    assert "| positive | 72 | 0 | 18 |" in card
    assert "| `llama` | openai_compatible | `meta-llama/Llama-3.1-8B-Instruct` |" in card
    assert "````text\n" + PROMPTS["positive"] + "\n````" in card
    assert "**Aggregation** `union`" in card
    assert "| label | int64 |" in card
    assert "no LLM" not in card
    assert "{" not in card.replace(PROMPTS["positive"], "").replace(PROMPTS["negative"], "")


@pytest.mark.parametrize(
    ("llms", "says", "title"),
    [
        (("wordnet",), "**No LLM was used.**", "Sentence pairs by rules"),
        (
            ("wordnet", "llama"),
            "**`wordnet`: rules over a dictionary, not an LLM.**",
            "Sentence pairs by LLMs",
        ),
    ],
)
def test_the_card_names_rules(tmp_path: Path, llms: tuple[str, ...], says: str, title: str) -> None:
    run = record(LabelSettings(llms=llms), parameters=dict.fromkeys(llms, "{}"))
    write_sample(tmp_path / "out", run=run, graded=True)
    card = (tmp_path / "out/README.md").read_text()
    assert all(words in card for words in (says, f"pretty_name: {title}", "| label | float32 |"))
    assert ("Prompt (" in card) == ("llama" in llms)


def test_equal_input_gives_equal_bytes_in_any_process(tmp_path: Path) -> None:
    write_sample(tmp_path / "one")
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\nfrom pathlib import Path\n"
        "from tests.llm_labeler.test_dataset import write_sample\n"
        f"write_sample(Path({str(tmp_path / 'other')!r}))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    for path in sorted(p for p in (tmp_path / "one").rglob("*") if p.is_file()):
        assert path.read_bytes() == (tmp_path / "other" / path.relative_to(tmp_path / "one")).read_bytes(), (
            path
        )


def test_a_dataset_without_pairs_is_refused(tmp_path: Path) -> None:
    one = text(1)
    rows = DatasetRows("vote", 0)
    rows.add(one, [pair(one, "a", "positive", reason="outvoted")])
    with pytest.raises(DataError, match=r"no pair is left to write \(copy 2, outvoted 1\).*label show"):
        write(tmp_path / "out", rows, {}, graded=False, statistics={"dropped": {"copy": 2}}, run=record())
    with pytest.raises(DataError, match="no LLM proposed any"):
        write(tmp_path / "out", DatasetRows("vote", 0), {}, graded=False, statistics={}, run=record())
    unasked = {"dropped": {"not_answered": 6}, "proposals": 0}
    with pytest.raises(DataError, match=r"not_answered 6\): no question was answered; .*max_cost=") as caught:
        write(tmp_path / "out", DatasetRows("vote", 0), {}, graded=False, statistics=unasked, run=record())
    assert "[filters]" not in str(caught.value)
    quality = {"warnings": ["a: it answers: look at some with `label show`, and try --prompt hardened"]}
    with pytest.raises(DataError) as caught:
        write(tmp_path / "out", DatasetRows("vote", 0), {}, graded=False, statistics=quality, run=record())
    assert str(caught.value).count("look at some") == 1
    assert not (tmp_path / "out").exists()


def test_run_json_has_the_settings_without_credentials() -> None:
    settings = LabelSettings.model_validate(
        {
            "llms": ["ensemble"],
            "budget": {"max_cost": 3},
            "prompt": {"template": "/home/someone/mine.txt"},
            "llm": {"llama": {"base_url": "http://user:secret@host/v1"}},
        }
    )
    run = record(settings, parameters={"llama": '{"temperature": 0.7}'})
    assert run["made_by"].startswith("label (aoe-toolkit ")
    assert run["settings"]["llms"] == ["chatgpt", "llama", "chatglm"]
    assert run["settings"]["prompt"]["template"] == "mine.txt"
    assert run["llms"]["llama"]["parameters"] == {"temperature": 0.7}
    assert run["input"] == {"name": "s.txt", "sha256": "f00"}
    assert not {"budget", "breaker", "llm"} & set(run["settings"])
    assert "secret" not in json.dumps(run)


@pytest.mark.parametrize(
    "changes",
    [
        {"sha256": "other"},
        {"settings": LabelSettings(llms=("chatgpt", "llama"), size=9)},
        {"parameters": {**PARAMETERS, "llama": "{}"}},
        {"prompts": {**PROMPTS, "negative": "No, {text}."}},
    ],
)
def test_another_dataset_is_replaced_only_with_fresh(tmp_path: Path, changes: dict[str, Any]) -> None:
    write_sample(tmp_path / "out")
    check_out(tmp_path / "out", record(source="moved.txt"), fresh=False)
    with pytest.raises(ConfigError, match="fresh=True"):
        check_out(tmp_path / "out", record(**changes), fresh=False)
    check_out(tmp_path / "out", record(**changes), fresh=True)
