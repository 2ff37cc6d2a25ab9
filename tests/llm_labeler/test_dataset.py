"""The dataset folder that a run writes: rows, card, statistics and run.json."""

import json
import random

import polars as pl
import pytest

import llm_labeler
import pairkit
from tests.support.shorthand import config_error, data_error, parametrize, table

from .stored_answers import text_of

TEXTS = [f"Sentence number {number} is about thing {number}." for number in range(30)]
ONLY_TRAIN = {"split.validation": 0.0, "split.test": 0.0}


def ann(prompt):
    text = text_of(prompt)
    if "say the opposite" in prompt:
        return json.dumps([f"It is wrong that {text}", f"Nobody says that {text}"])
    return json.dumps(
        [f"In other words, {text}", f"Put differently, {text}", f"Said again, {text}"]
    )


def bob(prompt):
    return ann(prompt) if "say the opposite" in prompt else "None"


def generate(out, texts=TEXTS, **options):
    given = {"llm": [ann], "out": out, **options}
    return llm_labeler.generate(texts, **given)


def train(result):
    return result.pairs.splits["train"]


def test_labels_and_texts_are_mixed(out):
    texts = [f"Sentence {n} is about the thing with number {n}." for n in range(300)]
    frame = train(generate(out, texts, settings=ONLY_TRAIN))
    assert frame.height == 1500
    batches = [frame[start : start + 32] for start in range(0, frame.height - 32, 32)]
    assert all(5 <= batch["label"].sum() <= 30 for batch in batches)
    assert all(batch["text1"].n_unique() > 20 for batch in batches)


def test_the_order_of_rows_depends_only_on_their_content(tmp_path):
    turned = [TEXTS, TEXTS[::-1], TEXTS[1::2]]
    whole, reverse, few = (
        train(generate(tmp_path / str(turn), texts, settings=ONLY_TRAIN))
        for turn, texts in enumerate(turned)
    )
    assert whole.equals(reverse)
    assert whole.filter(pl.col("text1").is_in(TEXTS[1::2])).equals(few)
    other = train(generate(tmp_path / "other", settings=ONLY_TRAIN, seed=7))
    assert not whole.equals(other)
    assert whole.sort("text1", "text2").equals(other.sort("text1", "text2"))


def drawn(out, task):
    """A run whose LLMs draw from few sentences, so that they often agree, and its kept candidates."""
    draw = random.Random(task)

    def llm(prompt):
        is_negative = "say the opposite" in prompt or "misled" in prompt
        said = text_of(prompt)[:-1] + (", never" if is_negative else ", so")
        kinds = (
            ("negation: ", "entity: ", "")
            if is_negative and task == "triplet"
            else ("",)
        )
        lines = (
            f"- {draw.choice(kinds)}{said} {each}."
            for each in draw.sample("abcd", draw.randint(0, 3))
        )
        return "\n".join(lines)

    result = generate(out, llm={"x": llm, "y": llm}, task=task)
    table = pl.read_parquet(result.work / "candidates.parquet")
    return result, table.filter(pl.col("reason").is_null())


def test_each_kept_candidate_is_one_row_with_its_provenance(out):
    result, kept = drawn(out, "paraphrase")
    rows = pl.concat(result.pairs.splits.values())
    columns = ["text_id", "text2", "polarity", "llms", "votes", "label"]
    kept = kept.rename({"candidate": "text2"}).cast({"label": pl.Int64})
    both = (frame.select(columns).sort(columns[:3]) for frame in (rows, kept))
    assert pl.DataFrame.equals(*both)
    assert rows["llms"].list.len().value_counts().height == 2  # of one LLM, and of both
    for split, rows in result.pairs.splits.items():
        counts = result.statistics["splits"][split]
        assert counts["texts"] == rows["text_id"].n_unique()
        assert counts["positive"] == rows["label"].sum()
        assert counts["negative"] == (1 - rows["label"]).sum()


@parametrize("task", ["paraphrase", "triplet"])
def test_triplets_have_each_sentence_of_texts_with_both_polarities(task, out):
    result, kept = drawn(out, task)
    sides = {}
    for row in kept.iter_rows(named=True):
        of_text = sides.setdefault(row["text"], {"positive": {}, "negative": {}})
        of_text[row["polarity"]][row["candidate"]] = row
    triplets = pl.concat(
        map(pl.read_parquet, (result.out / "triplet").iterdir())
    ).to_dicts()
    assert sum(
        split["triplets"] for split in result.statistics["splits"].values()
    ) == len(triplets)
    for text, by_polarity in sides.items():
        of_anchor = [row for row in triplets if row["anchor"] == text]
        has_both = all(by_polarity.values())
        assert len(of_anchor) == (
            max(map(len, by_polarity.values())) if has_both else 0
        )
        for polarity, candidates in by_polarity.items() if has_both else ():
            assert {row[polarity] for row in of_anchor} == candidates.keys()
        for row in of_anchor if task == "triplet" else ():
            positive, negative = (
                by_polarity[name][row[name]] for name in ("positive", "negative")
            )
            assert row["llms"] == sorted({*positive["llms"], *negative["llms"]})
            assert row["negative_kind"] == negative["change"]
    if task == "triplet":
        names = ("no_negative", "no_positive")
        dropped = sum(result.dropped.get(name, 0) for name in names)
        one_sided = [of_text for of_text in sides.values() if not all(of_text.values())]
        unused = sum(len(side) for of_text in one_sided for side in of_text.values())
        assert dropped == unused > 0


def test_files_of_the_dataset_folder(out):
    result = generate(out, llm=[ann, bob])
    files = {
        path.relative_to(result.out).as_posix()
        for path in result.out.rglob("*")
        if path.is_file()
    }
    assert files == {"README.md", "run.json", "statistics.json"} | {
        f"{config}/{split}-00000-of-00001.parquet"
        for config in ("data", "positive", "triplet")
        for split in ("train", "validation", "test")
    }
    statistics = json.loads((result.out / "statistics.json").read_text())
    assert statistics == result.statistics
    numbers = [statistics[key] for key in ("texts", "proposals", "candidates")]
    assert numbers == [30, 240, 150]
    counts = pl.DataFrame([*statistics["splits"].values()]).sum()
    assert counts.select("positive", "negative", "triplets").row(0) == (90, 60, 90)
    both = {
        "ann": {"positive": 90, "negative": 60},
        "bob": {"positive": 0, "negative": 60},
    }
    assert statistics["llms"] == both


@table("""
    polarity, folders
    positive | ['data', 'positive']
    negative | ['data']
""")
def test_a_configuration_without_rows_is_left_out(polarity, folders, out):
    result = generate(out, polarity=polarity)
    assert (
        sorted(path.name for path in result.out.iterdir() if path.is_dir()) == folders
    )


def test_the_card(tmp_path):
    prompt = tmp_path / "own.toml"
    words = "Say {text} in ```other``` words, {size} times.\nSentence: {json_text}"
    negative = "{size} that say the opposite.\nSentence: {json_text}"
    prompt.write_text(
        f"positive = {json.dumps(words)}\nnegative = {json.dumps(negative)}"
    )
    result = generate(tmp_path / "out", llm=[ann, bob], prompt=str(prompt))
    card = (result.out / "README.md").read_text()
    assert 'pretty_name: "Sentence pairs by LLMs"' in card
    counts = [str(split["positive"]) for split in result.statistics["splits"].values()]
    assert f"| positive | {' | '.join(counts)} |" in card
    assert f"| `bob` | function | `python:{__name__}.bob` |" in card
    assert f"````text\n{words}\n````" in card
    assert "**Aggregation** `union`" in card
    assert "| label | int64 |" in card
    assert "no LLM" not in card
    assert "{" not in card.replace(words, "").replace(negative, "")


@parametrize(
    "llms, says, title",
    [
        (["wordnet"], "**No LLM was used.**", "Sentence pairs by rules"),
        (
            ["wordnet", ann],
            "**`wordnet`: rules over a dictionary, not an LLM.**",
            "Sentence pairs by LLMs",
        ),
    ],
)
def test_the_card_names_rules(out, llms, says, title):
    result = generate(out, ["The doctor treats the child."], llm=llms)
    card = (result.out / "README.md").read_text()
    assert says in card
    assert f'pretty_name: "{title}"' in card
    assert ("Prompt (" in card) == (ann in llms)


@pytest.mark.usefixtures("small_shards")
def test_a_large_dataset_is_written_in_shards_and_read_as_one(tmp_path, monkeypatch):
    shards = generate(tmp_path / "shards", settings=ONLY_TRAIN)
    monkeypatch.undo()
    whole = generate(tmp_path / "whole", settings=ONLY_TRAIN)
    names = {f"train-{number:05}-of-00013.parquet" for number in range(13)}
    assert {path.name for path in (shards.out / "data").iterdir()} == names
    assert len([*(whole.out / "data").iterdir()]) == 1
    for name in ("README.md", "statistics.json", "run.json"):
        assert (whole.out / name).read_bytes() == (shards.out / name).read_bytes()
    for folder in ("", "triplet"):
        one, other = (
            pairkit.read(result.out / folder).splits["train"]
            for result in (whole, shards)
        )
        assert one.equals(other)


@parametrize(
    "answer, options, message",
    [
        (lambda prompt: text_of(prompt), {}, r"no pair is left .*\(echo 6\); a: 3 of 3 negatives repeat"),
        (lambda _: "", {}, r"\(empty_answer 6\); a: 6 of 6 answers have no sentence"),
        (ann, {"max_requests": 0}, r"\(not_answered 6\): no question was answered; .* higher max_cost="),
        # With a warning that ends so, the advice is given once.
        (lambda _: "1. Cats sleep.", {"polarity": "positive", "settings": {"filters.min_shared": 0.3}},
         r"3 of 3 sentences have little to do .*: look at some .*, and try another model or another prompt="),
    ],
)  # fmt: skip
def test_a_dataset_without_pairs_is_refused(out, answer, options, message):
    with data_error(message) as caught:
        generate(out, TEXTS[:3], llm={"a": answer}, **options)
    assert ("[filters]" in str(caught.value)) == ("max_requests" not in options)
    assert str(caught.value).count("look at some") == ("max_requests" not in options)
    assert not (out).exists()


def test_run_json_has_the_settings_without_credentials(tmp_path):
    prompt = tmp_path / "mine.txt"
    prompt.write_text("{size} {polarity} ones.\nSentence: {json_text}")
    settings = {"llm.llama.base_url": "http://user:secret@host/v1"}
    settings |= dict.fromkeys(("llm.ann.price_in", "llm.ann.price_out"), 1)
    result = generate(
        tmp_path / "out",
        settings=settings,
        prompt=prompt,
        polarity="positive",
        max_cost=3,
    )
    run = json.loads((result.out / "run.json").read_text())
    assert run["made_by"].startswith("label (aoe-toolkit ")
    assert run["settings"]["llms"] == ["ann"]
    assert run["settings"]["prompt"]["template"] == "mine.txt"
    function = {"kind": "function", "model": f"python:{__name__}.ann"}
    assert run["llms"] == {"ann": {**function, "parameters": function}}
    assert not {"budget", "breaker", "llm"} & set(run["settings"])
    assert "secret" not in json.dumps(run)


def test_a_moved_file_is_the_same_input_and_another_prompt_another_dataset(
    tmp_path, out
):
    for file in (tmp_path / "s.txt", tmp_path / "moved.txt"):
        file.write_text("\n".join(TEXTS[:3]))
        llm_labeler.generate(file, llm=[ann], out=out)
    for change in ({"size": 9}, {"llm": {"ann": bob}}, {"prompt": "paper"}):
        with config_error("fresh=True"):
            generate(out, TEXTS[:3], **change)
