from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import llm_labeler
from llm_labeler import _sharded
from llm_labeler._records import Text, Usage
from llm_labeler._settings import LabelSettings
from llm_labeler._shards import divided, shard_folder, shards_beside, share_of
from llm_labeler._store import Batch, Store
from pairkit.errors import ConfigError, DataError, PairkitError, RemoteError
from pairkit.shards import Shard
from tests.contract.label_command import tree
from tests.llm_labeler.test_face import counting

THINGS = ("nurse", "doctor", "aunt", "child", "patient", "man", "brother", "cook", "pilot", "singer", "judge")
TEXTS = [f"The {thing} takes a pill number {place}." for place, thing in enumerate(THINGS)]
OF = 3
SHARDS = [f"{number}/{OF}" for number in range(1, OF + 1)]


def voting(name: str) -> Callable[[str], str]:
    """Proposes in words of its own, and judges what others proposed."""

    def llm(prompt: str) -> str:
        if "Input sentence" in prompt:
            return "\n".join(f"{line} {name} says" for line in counting([])(prompt).splitlines())
        said = json.loads(prompt[prompt.rindex('{"text"') :])["sentences"]
        return json.dumps({number: "opposite" if "wrong" in s else "same" for number, s in said.items()})

    return llm


def run(out: Path, shard: str | None = None, source: Any = TEXTS, **more: Any) -> Any:
    given = {"llms": {"mine": counting([])}, "settings": {"llm.mine.local": True}, "progress": False, **more}
    return llm_labeler.generate(source, out=out, shard=shard, **given)


def all_shards(out: Path, **more: Any) -> list[llm_labeler.ShardDone]:
    return [run(out, shard, **more) for shard in SHARDS]


@given(st.sets(st.text(min_size=1, max_size=5), max_size=40), st.integers(1, 9))
def test_each_sentence_is_of_one_shard_whatever_others_there_are(said: set[str], of: int) -> None:
    texts = [Text.of(sentence, row) for row, sentence in enumerate(sorted(said), start=1)]
    shares = [share_of(texts, Shard(number, of)) for number in range(1, of + 1)]
    assert sorted(place for places, _ in shares for place in places) == list(range(len(texts)))
    assert all(
        texts[place] == text for places, some in shares for place, text in zip(places, some, strict=True)
    )
    for number, (_, some) in enumerate(shares, start=1):
        assert share_of(texts[::2], Shard(number, of))[1] == tuple(t for t in some if t in texts[::2])


@given(st.integers(9, 10**9), st.integers(9, 10**12), st.integers(9, 10**6), st.integers(1, 9))
def test_limits_are_divided_to_the_last(requests: int, tokens: int, millionths: int, of: int) -> None:
    cost = millionths / 10**6
    tree = {
        "llms": ["chatgpt"],
        "llm": {"chatgpt": {"rpm": requests, "tpm": tokens}},
        "budget": {"max_requests": requests, "max_tokens": tokens, "max_cost": cost},
    }
    parts = [divided(LabelSettings.model_validate(tree), Shard(number, of)) for number in range(1, of + 1)]
    assert sum(part.budget.max_requests or 0 for part in parts) == requests
    assert sum(part.budget.max_tokens or 0 for part in parts) == tokens
    assert sum(round((part.budget.max_cost or 0) * 10**6) for part in parts) == millionths
    assert sum(part.llm["chatgpt"].rpm or 0 for part in parts) == requests
    assert sum(part.llm["chatgpt"].tpm or 0 for part in parts) == tokens
    assert {part.llm["chatgpt"].concurrency for part in parts} == {16}


def test_a_limit_that_leaves_a_shard_nothing() -> None:
    tree = {"llms": ["chatgpt"], "budget": {"max_requests": 2}, "llm": {"chatgpt": {}, "llama": {"rpm": 1}}}
    settings = LabelSettings.model_validate(tree)
    with pytest.raises(
        ConfigError, match=r"max_requests \(--max-requests\) 2: leaves nothing for shard 1/3; give 3 or"
    ):
        divided(settings, Shard(1, 3))
    assert divided(settings, Shard(2, 3)).budget.max_requests == 1
    assert divided(settings, Shard(2, 3)).llm["llama"].rpm == 1  # which is not asked
    free = LabelSettings.model_validate({"llms": ["wordnet"], "budget": {"max_cost": 0}})
    assert divided(free, Shard(1, 3)).budget.max_cost == 0


def test_names_of_folders(tmp_path: Path) -> None:
    assert shard_folder(Path("a/pairs.v1.work"), Shard(2, 8)) == Path("a/pairs.v1-2-of-8.work")
    assert shard_folder(Path("answers"), Shard(2, 8)) == Path("answers-2-of-8")
    for name in (
        "p-2-of-2.work",
        "p-1-of-2.work",
        "p-1-of-3.tmp",
        "q-1-of-2.work",
        "p-x-of-2.work",
        "p-0-of-0.work",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / "p-1-of-9.work").touch()
    assert shards_beside(tmp_path / "p.work") == [Shard(1, 2), Shard(2, 2)]


@pytest.mark.parametrize(
    "asked",
    [
        {"llms": {name: voting(name) for name in ("ann", "bob", "cat")}, "strategy": "weighted"},
        {"llms": "wordnet", "task": "triplet"},
    ],
    ids=["judges", "rules"],
)
def test_shards_make_what_one_run_makes(tmp_path: Path, asked: dict[str, Any]) -> None:
    more = {**asked, "settings": None}
    alone = run(tmp_path / "alone", **more)
    for _ in range(2):
        done = all_shards(tmp_path / "shared", **more)
        assert sum(each.texts for each in done) == len(TEXTS) == done[0].texts_in_all
        assert [each.left for each in done] == [0] * OF
    assert not (tmp_path / "shared").exists()
    merged = llm_labeler.merge(out=tmp_path / "shared", progress=False)
    assert tree(merged.out) == tree(alone.out)
    assert merged.spent_in_all == alone.spent_in_all
    assert pl.read_parquet(merged.work / "texts.parquet").equals(
        pl.read_parquet(alone.work / "texts.parquet")
    )
    assert (merged.work / "run.json").read_text() == (alone.work / "run.json").read_text()


def test_more_shards_than_sentences(tmp_path: Path) -> None:
    done = [run(tmp_path / "out", f"{number}/5", TEXTS[:2]) for number in range(1, 6)]
    assert sorted(each.texts for each in done)[-3:] in ([0, 1, 1], [0, 0, 2])
    assert llm_labeler.merge(out=tmp_path / "out", progress=False).statistics["texts"] == 2


def test_what_is_spent_is_counted_once_however_often_it_is_merged(tmp_path: Path) -> None:
    asked: list[str] = []
    more = {"llms": {"mine": counting(asked)}}
    done = all_shards(tmp_path / "out", max_requests=7, **more)
    assert len(asked) == sum(each.asked.spent.requests for each in done) == 7
    assert {each.asked.stopped for each in done} == {"max_requests"}
    assert sum(each.left for each in done) == 2 * len(TEXTS) - 7
    assert "run the same command again with a higher max_requests (--max-requests)" in done[0].summary()
    with pytest.raises(DataError, match=r"questions have no answer; run shard 1/3 again \(--shard 1/3\), or"):
        llm_labeler.merge(out=tmp_path / "out", progress=False)
    partial = llm_labeler.merge(out=tmp_path / "out", keep_going=True, progress=False)
    assert (partial.statistics["answers"], partial.spent_in_all.requests) == (7, 7)
    assert partial.dropped["not_answered"] == 2 * len(TEXTS) - 7
    all_shards(tmp_path / "out", **more)
    for _ in range(2):
        merged = llm_labeler.merge(out=tmp_path / "out", progress=False)
        assert merged.spent_in_all.requests == len(asked) == 2 * len(TEXTS)
    assert run(tmp_path / "out", **more).spent.requests == 0
    assert Counter(asked).most_common(1)[0][1] == 1


def test_what_is_spent_is_counted_once_of_shards_that_are_copied_again(tmp_path: Path) -> None:
    away, here = tmp_path / "away", tmp_path / "here"
    for limit in (7, None):
        all_shards(away / "out", max_requests=limit)
        shutil.copytree(away, here, dirs_exist_ok=True)
        merged = llm_labeler.merge(out=here / "out", keep_going=True, progress=False)
        assert merged.spent_in_all.requests == (limit or 2 * len(TEXTS))


def test_a_merge_that_was_cut_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = run(tmp_path / "alone")
    all_shards(tmp_path / "out")
    take_in, taken = Store.take_in, []

    def breaks(store: Store, other: Store) -> None:
        take_in(store, other)
        taken.append(other)
        if len(taken) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Store, "take_in", breaks)
    with pytest.raises(KeyboardInterrupt):
        llm_labeler.merge(out=tmp_path / "out", progress=False)
    merged = llm_labeler.merge(out=tmp_path / "out", progress=False)
    assert tree(merged.out) == tree(alone.out)
    assert merged.spent_in_all == alone.spent_in_all


def test_hundreds_of_shards_are_merged_with_few_files_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_shards(tmp_path / "out")
    take_in, opened = Store.take_in, []

    def watched(store: Store, other: Store) -> None:
        take_in(store, other)
        files = [entry.readlink() for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
        opened.append({file.parent.name for file in files if file.name == "answers.sqlite"})

    monkeypatch.setattr(Store, "take_in", watched)
    llm_labeler.merge(out=tmp_path / "out", progress=False)
    assert opened == [{"out.work", f"out-{number}-of-{OF}.work"} for number in range(1, OF + 1)]


def edited(folder: Path, **fields: Any) -> None:
    path = folder / "run.json"
    found = {**json.loads(path.read_text()), **fields}
    path.write_text(json.dumps({name: value for name, value in found.items() if value is not None}))


def other_sentence(folder: Path) -> None:
    path = folder / "texts.parquet"
    frame = pl.read_parquet(path)
    frame.with_columns(pl.col("text") + ".").write_parquet(path)


def lost_sentence(folder: Path) -> None:
    path = folder / "texts.parquet"
    pl.read_parquet(path).head(1).write_parquet(path)


def in_a_batch(folder: Path) -> None:
    with Store.open(folder / "answers.sqlite") as store:
        (answer, *_) = store.answers(("positive",))
        store.save_batch(Batch("mine", "b", "in_progress", {"a": answer.key}, Usage(1, 1), None))


@pytest.mark.parametrize(
    ("done_to", "error", "message"),
    [
        (lambda f: (f / "run.json").unlink(), DataError, "2-of-3.work: was not begun; run shard 2/3"),
        (lambda f: f.rename(f.parent / "away"), DataError, "2-of-3.work: is missing; run shard 2/3"),
        (lambda f: edited(f, shard="1/3"), DataError, "2-of-3.work: is shard 1/3 by its run.json; run"),
        (lambda f: edited(f, shard=None), DataError, "2-of-3.work: is no shard by its run.json; run"),
        (lambda f: edited(f, shard="x"), DataError, "damaged"),
        (lambda f: edited(f, sha256="0"), ConfigError, "2-of-3.work: differs from .* in input.sha"),
        (
            lambda f: edited(f, parameters={"mine": ["0", '{"kind": "function"}']}),
            ConfigError,
            r"2-of-3.work: differs from .* in llms.mine.parameters",
        ),
        (other_sentence, DataError, "texts.parquet: holds a sentence that is not of its share"),
        (lost_sentence, DataError, "together not those of their input"),
        (lambda f: (f.parent / "out-1-of-2.work").mkdir(), ConfigError, "shards of 2 and of 3; remove"),
        (in_a_batch, ConfigError, r"2-of-3.work: 1 questions wait in a batch; .*3\) with batch"),
        (lambda f: (f / "answers.sqlite").write_bytes(b"no database"), DataError, "answers.sqlite"),
    ],
)  # fmt: skip
def test_shards_that_make_no_run(
    done_to: Callable[[Path], object], error: type[PairkitError], message: str, tmp_path: Path
) -> None:
    all_shards(tmp_path / "out", source=TEXTS[:8])
    done_to(tmp_path / "out-2-of-3.work")
    with pytest.raises(error, match=message):
        llm_labeler.merge(out=tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()


def test_shards_of_other_settings_are_named(tmp_path: Path) -> None:
    run(tmp_path / "out", "1/2")
    run(tmp_path / "out", "2/2", size=4)
    with pytest.raises(ConfigError, match=r"out-2-of-2.work: differs .* settings.size \(3 there, 4 now\)"):
        llm_labeler.merge(out=tmp_path / "out", progress=False)
    with pytest.raises(DataError, match=r"no shards, such as nothing-1-of-4.work; make them by shard"):
        llm_labeler.merge(out=tmp_path / "nothing", progress=False)


def test_a_shard_makes_no_dataset_by_itself(tmp_path: Path) -> None:
    done = run(tmp_path / "out", "1/2")
    with pytest.raises(ConfigError, match=r"holds shard 1/2 alone; .* `label merge`"):
        llm_labeler.parse(done.work, out=tmp_path / "x", progress=False)
    with pytest.raises(ConfigError, match="such as 2/8"):
        run(tmp_path / "out", "3/2")
    with pytest.raises(ConfigError, match="a shard makes no dataset; give it to `label merge`"):
        run(tmp_path / "out", "1/2", fresh=True)
    assert llm_labeler.plan(TEXTS, llms="wordnet", out=tmp_path / "p", shard="1/2").texts == done.texts


def test_a_question_that_failed_ends_a_shard_unless_it_is_to_keep_going(tmp_path: Path) -> None:
    def failing(prompt: str) -> str:
        if "nurse" in prompt:
            raise llm_labeler.CallFailed("rejected", "not now", retry=False)
        return counting([])(prompt)

    (number,) = (n for n in range(1, OF + 1) if share_of([Text.of(TEXTS[0], 1)], Shard(n, OF))[0])
    more: dict[str, Any] = {"llms": {"mine": failing}}
    with pytest.raises(RemoteError, match=r"2 questions got no answer \(rejected 2\); run the same command"):
        run(tmp_path / "out", f"{number}/{OF}", **more)
    kept = run(tmp_path / "out", f"{number}/{OF}", keep_going=True, **more)
    assert (kept.left, str(kept.problem)) == (
        2,
        f"{kept.work}: lacks all answers of 2 questions (rejected 2); run the same command again",
    )
    assert run(tmp_path / "out", f"{number}/{OF}").problem is None


def test_a_strategy_of_ones_own_is_given_again(tmp_path: Path) -> None:
    def mine(proposed: llm_labeler.Proposed) -> bool:
        return "wrong" not in proposed.candidate

    alone = run(tmp_path / "alone", strategy=mine)
    all_shards(tmp_path / "out", strategy=mine)
    with pytest.raises(ConfigError, match=r"strategy .* is a function: give it from Python"):
        llm_labeler.merge(out=tmp_path / "out", progress=False)
    merged = llm_labeler.merge(out=tmp_path / "out", strategy=mine, progress=False)
    assert tree(merged.out) == tree(alone.out)


def test_nobody_merges_what_is_at_work(tmp_path: Path) -> None:
    from pairkit.folders import held_folder

    all_shards(tmp_path / "out")
    with (
        held_folder(tmp_path / "out-2-of-3.work", ""),
        pytest.raises(ConfigError, match=r"out-2-of-3.work: another label process works in it"),
    ):
        _sharded.merge(tmp_path / "out", None, progress=False)
