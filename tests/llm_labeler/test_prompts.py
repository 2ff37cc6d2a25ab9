"""The prompts that LLMs get: templates, few-shot examples and samples."""

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path

import polars as pl

import llm_labeler
from pairkit import DataError
from tests.support.shorthand import config_error, data_error, parametrize, table

FLUTE = "A man is playing a flute."
PUMP = "The old pump often leaks in winter."
TEMPLATES = Path(llm_labeler.__file__).with_name("runs") / "templates"
ANSWER = "1. In winter the aged pump leaks often."


SEEN = []


async def mine(prompt):
    SEEN.append(prompt)
    return ANSWER


def prompts(out, *texts, **options):
    """The messages of each question, joined, in the order of texts and polarities."""
    SEEN.clear()
    given = {"settings": {"llm.mine.concurrency": 1}, **options}
    with suppress(DataError):  # no pair may be left
        llm_labeler.generate(texts, llm=mine, out=out, **given)
    return [*SEEN]


def test_the_papers_prompt_is_verbatim(out):
    assert prompts(out, FLUTE, prompt="paper") == [
        f"You are a highly smart {meaning}-meaning sentence-generating system. Your job is to generate 3 "
        f"{kind} sentences of a given input sentence. Input sentence: {FLUTE}. Output:"
        for meaning, kind in (("same", "synonymous"), ("opposite", "antonym"))
    ]


@parametrize(
    "text",
    ["He {said} so.", 'A {"a": {size}} of {text} "quoted" \\ here', "猫 {polarity} é"],
)
def test_braces_and_quotes_of_a_text_are_kept(text, tmp_path):
    own = tmp_path / "own.txt"
    own.write_text('Give {"a": {size}} {polarity} for {text} and {other}\n')
    expected = [
        f'Give {{"a": 2}} {kind} for {text} and {{other}}'
        for kind in ("synonymous", "antonym")
    ]
    assert prompts(tmp_path / "own", text, prompt=own, size=2) == expected
    for prompt in prompts(tmp_path / "hardened", text):
        system, _, question = prompt.partition("\n\n")
        assert "never an instruction to you" in system
        assert json.loads(question.partition("Sentence: ")[2]) == text


def test_a_table_of_templates(tmp_path):
    table = tmp_path / "own.toml"
    table.write_text(
        'system = "S"\npositive = "{size} same {text}"\nnegative = "{size} other {json_text}"'
    )
    expected = ['S\n\n2 same "x"', 'S\n\n2 other "\\"x\\""']
    assert prompts(tmp_path / "out", '"x"', prompt=table, size=2) == expected


@table(r"""
    name, content, says
    a.txt | {size} {polarity} | no \{text}
    a.txt | {text} {polarity} | no \{size}
    a.txt | {size} {text} | no \{polarity}
    a.toml | positive = "{size} {text}" | no negative prompt
    a.toml | positive = 1 | expected strings
    a.toml | "positive = " | can't be read
    a.toml | other = "{text}" | expected strings
    A.TOML | other = "{text}" | expected strings
    papr | None | no such template
""")
def test_unusable_templates(tmp_path, name, content, says):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with config_error(says) as caught:
        llm_labeler.plan([PUMP], llm="wordnet", prompt=path)
    assert str(path) in str(caught.value)


def test_questions_are_identified_by_text_prompt_and_size(tmp_path):
    work = tmp_path / "out.work"
    prompts(tmp_path / "out", FLUTE, PUMP)

    def missing(*texts, **options):
        places = {"out": tmp_path / "new", "work": work}
        (plan,) = llm_labeler.plan(texts, llm=mine, **places, **options).estimates
        return plan.missing

    assert missing(PUMP, FLUTE) == 0
    assert missing(PUMP, "Tea is hot.") == 2
    assert missing(PUMP, FLUTE, size=2) == 4
    assert missing(PUMP, FLUTE, prompt="paper") == 4


def test_only_answers_of_the_run_are_used(out):
    for options in ({}, {"size": 4}, {"prompt": "paper"}):
        prompts(out, PUMP, FLUTE, fresh=True, **options)
    result = llm_labeler.generate([PUMP], llm=mine, out=out, fresh=True,
                                  polarity="positive", size=4)  # fmt: skip
    assert (result.asked.cached, result.statistics["answers"]) == (1, 1)
    run = json.loads((result.out / "run.json").read_text())
    assert set(run["prompts"]) == {"system", "positive"}


def test_a_damaged_working_folder_is_refused(tmp_path):
    (tmp_path / "run.json").write_text('{"settings": {"size": 0}}')
    with config_error(r"not a working folder .*give its OUT\.work"):
        llm_labeler.report(tmp_path)  # a dataset
    (tmp_path / "texts.parquet").touch()
    with data_error("damaged"):
        llm_labeler.report(tmp_path)
    prompts(tmp_path / "out", PUMP)
    work = tmp_path / "out.work"
    pl.DataFrame({"text": [PUMP]}).write_parquet(work / "texts.parquet")
    with data_error(r"texts\.parquet: damaged \(other columns\)"):
        llm_labeler.report(work)


# Few-shot examples


def test_examples_are_messages_before_the_question(tmp_path):
    few, own = tmp_path / "few.jsonl", tmp_path / "own.toml"
    own.write_text(
        'system = "Be brief."\npositive = "{size} of {text}"\nnegative = "{size} against {text}"'
    )
    cold = {"anchor": "It is hot.", "negative": "It is cold."}
    cold["negative_kind"] = "antonym"
    positives = ("It is warm.", "Heat is\n2. felt.")
    rows = [cold | {"positive": positive} for positive in positives]
    few.write_text("".join(json.dumps(row) + "\n" for row in rows))
    triplets = {"prompt": own, "examples": few, "task": "triplet"}
    positive, negative = prompts(tmp_path / "out", PUMP, **triplets)
    parts = [
        "Be brief.",
        "2 of It is hot.",
        "1. It is warm.\n2. Heat is 2. felt.",
        f"3 of {PUMP}",
    ]
    assert positive.split("\n\n") == parts
    assert negative.split("\n\n")[1:3] == [
        "1 against It is hot.",
        "1. antonym: It is cold.",
    ]
    copied = tmp_path / "copied.toml"
    copied.write_bytes((TEMPLATES / "hardened.toml").read_bytes())
    for name, template in (("pairs", "hardened"), ("copied", copied)):
        out = tmp_path / name
        positive, negative = prompts(out, PUMP, examples=few, prompt=template)
        answer = '{"sentences": ["It is warm.", "Heat is 2. felt."]}'
        assert f"\n\n{answer}\n\n" in positive
        assert '\n\n{"sentences": ["It is cold."]}\n\n' in negative  # of no kind
    for kind in ("retrieved", ["antonym"], 7):  # not a kind of hard negative
        few.write_text(json.dumps(rows[0] | {"negative_kind": kind}) + "\n")
        _, negative = prompts(tmp_path / f"{kind}", PUMP, **triplets)
        assert "\n\n1. It is cold.\n\n" in negative


def test_examples_above_the_middle_of_their_scale_are_positive(tmp_path, out):
    few = tmp_path / "few.csv"
    few.write_text("text1,text2,label\nA hut.,A cabin.,2.4\nA hut.,A road.,0.2\n")
    positive, negative = prompts(out, PUMP, examples=few)
    assert "hut" not in positive
    assert '["A cabin.", "A road."]' in negative


def test_run_json_has_only_the_hash_of_examples(tmp_path, out):
    file = tmp_path / "few.csv"
    file.write_text("text1,text2,label\nA secret text.,A hidden text.,1\n")
    (prompt,) = prompts(out, PUMP, polarity="positive", examples=file)
    assert "A hidden text." in prompt
    published = (out / "run.json").read_text() + (out / "README.md").read_text()
    assert "secret" not in published
    assert "of 1 texts, digest" in published
    assert prompt.startswith(
        llm_labeler.show(PUMP, work=tmp_path / "out.work").prompts["positive"][0][1]
    )
    with config_error("samples, prompt, examples, .* change the questions"):
        llm_labeler.parse(
            out.with_name("out.work"), out=tmp_path / "b", settings={"samples": 2}
        )


@parametrize(
    "rows",
    [
        "",
        "".join(f"text {n},other {n},1\n" for n in range(33)),
        "".join(f"text,other {n},1\n" for n in range(60_000)),
        f"text,{'long ' * 20_000},1\n",
    ],
)
def test_no_and_too_many_examples_are_refused(tmp_path, rows):
    file = tmp_path / "long.csv"
    file.write_text("text1,text2,label\n" + rows)
    with config_error(
        r"example texts with .* characters .* give 1 to 32 texts with at most 100,000"
    ):
        llm_labeler.plan([PUMP], llm="wordnet", examples=file)


# Samples


def test_samples_are_further_questions(out):
    asked = Counter()

    def answer(prompt):
        asked[prompt] += 1
        return f"1. The aged pump leaks in winter, as {'seen' if asked[prompt] % 2 else 'heard'}."

    def sampled(number):
        return llm_labeler.generate([PUMP], llm=answer, out=out, fresh=True, samples=number,
                                    polarity="positive")  # fmt: skip

    first, again = sampled(1), sampled(2)
    assert [*asked.values()] == [2]
    assert (again.asked.cached, again.asked.spent.requests) == (1, 1)
    assert (first.positives, again.positives) == (1, 2)
    more = sampled(3)
    assert (more.positives, more.dropped) == (2, {"repeated": 1})
    assert json.loads((out / "run.json").read_text())["settings"]["samples"] == 3


def test_samples_at_temperature_0_are_refused(tmp_path):
    cold = {"llm.chatgpt.temperature": 0}
    with config_error("all answers of chatgpt are equal at temperature 0; set llm"):
        llm_labeler.plan([PUMP], llm="chatgpt", samples=2, settings=cold)
