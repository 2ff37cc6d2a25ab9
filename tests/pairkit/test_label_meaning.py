import json
import math
import re

import datasets
import polars as pl
import pytest

import pairkit
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    parametrize,
    table,
    text_table,
    values,
)

NLI = ["entailment", "neutral", "contradiction"]
SENTENCES = ("sentence1", "sentence2")


def pairs(labels, *, label="label", texts=SENTENCES):
    return [
        {texts[0]: f"a{row}", texts[1]: f"b{row}", label: value}
        for row, value in enumerate(labels)
    ]


def read(labels, *, user_labels=None, scale=None, **names):
    return pairkit.read(pairs(labels, **names), labels=user_labels, label_range=scale)


def rows_of_json(text):
    """Cases whose cells are JSON but for the last, a text; an empty cell has no options."""
    return [
        (*(json.loads(cell or "{}") for cell in cells), last)
        for *cells, last in text_table(text)
    ]


def numbers(found):
    return found.rows["label"].to_list()


@parametrize(
    "labels",
    [
        json.loads(labels)
        for (labels,) in text_table(r"""
            [1, 0]
            [1.0, 0.0]
            ["1", "0"]
            ["1.0", " 0 "]
            ["1e0", "-0"]
            [true, false]
            ["True", "FALSE"]
            ["t", "f"]
            ["Y", "n"]
            ["accept", "reject"]
            ["yes", "No"]
            ["duplicate", "not_duplicate"]
            ["Duplicate", "non-duplicate"]
            ["equivalent", "not equivalent"]
            ["entailment", "not_entailment"]
            ["entailment", "contradiction"]
            ["E", "C"]
            ["same", "different"]
            ["match", "no match"]
            ["ja", "nein"]
            ["Oui", "non"]
            ["sí", "no"]
            ["да", "нет"]
            ["是", "否"]
            ["はい", "いいえ"]
            ["100 %", "0%"]
            ["１", "０"]
            ["\ufeffsi\u0301", "n\u200bo"]
        """)
    ],
)
def test_certain_labels(labels):
    found = read(labels)
    assert (numbers(found), found.label_kind) == ([1, 0], "binary")
    assert found.rows["label"].dtype == pl.Int64


def test_percentages_are_scores_up_to_1():
    assert numbers(read(["85%", "65,5 %", "7 %"])) == approx([0.85, 0.655, 0.07])


@parametrize("texts", [("premise", "hypothesis"), SENTENCES])
def test_nli_labels_skip_neutral(texts):
    found = read(
        ["neutral", "ENTAILMENT", "contradiction", "-", "neutral"], texts=texts
    )
    assert found.rows.select("text1", "label").rows() == [("a1", 1), ("a2", 0)]
    assert found.labels is not None
    assert found.labels.skipped == {"neutral": 2, "-": 1}
    assert str(found.labels) == (
        "labels: entailment=1, contradiction=0, neutral=skip, -=skip; rows left out: 2 neutral, 1 -"
    )
    assert str(found.labels) in str(found.table())


@parametrize(
    "labels, names, says",
    rows_of_json(r"""
        [1, 0, 2] |  | :3: label 2: 0, 1, 2 may be.* labels='0=1,1=skip,2=0'; for scores .*label_range='LOW,HIGH'
        [1, 2.0, 0] |  | :2: label 2\.0: 0, 1, 2 may be classes
        ["0", "2"] |  | :2: label '2': 0, 2 may be classes .*labels='0=1,2=0'
        [0, 1, -1, 2] |  | :3: label -1: .*labels='-1=skip,0=1,1=skip,2=0'
        [1, -1] |  | :2: label -1: .*labels='-1=X,1=X', where X is 1
        [7.5, 4.5] |  | :1: label 7.5; .*Found 4.5 to 7.5: .*label_range='LOW,HIGH'
        ["E", "N"] |  | :1: label 'E'; .*labels='e=1,n=X', where X is 1
        ["dup", "other"] |  | :1: .*labels='dup=X,other=X', where X is 1
        [0, 3, 1] |  | :2: label 3: 0, 1, 3 may be classes
        [0, 1] | {"texts": ["premise", "hypothesis"]} | :1: label 0 with premise and hypothesis: in NLI
        [1.0] | {"texts": ["Question", "Sentence"]} | :1: label 1\.0 with Question and Sentence
        ["entailment", "neutral"] |  | :1: label 'entailment'; .*Found entailment, neutral: set labels='ent
        ["neutral"] |  | :1: label 'neutral'
        [1, 0, "same"] |  | :3: label 'same'; .*Found 0, 1, same: set labels='same=1'
        ["1", "0", "same"] |  | :3: label 'same'; expected 0 or 1, or a score
        ["true", "yes"] |  | :1: label 'true'; .*labels='true=1,yes=1'
        ["yes", "1", "?"] |  | :3: label '\?'; .*Found 1, \?, yes: .*labels='\?=X,yes=1', where X is 1
        ["-", "true"] |  | :1: label '-'
        [1, null] |  | :2: label None is missing; fill it, drop the row, or leave
        [1.0, NaN] |  | :2: label nan is missing
        ["1", " "] |  | :2: label ' ' is missing
        ["0.5", "nan"] |  | :2: label 'nan' is missing
        [0.5, Infinity] |  | :2: label inf is missing
        [0.5, -0.5] |  | :2: label -0\.5; .*Found -0.5 to 0.5: .*label_range='LOW,HIGH'
        [0, 57] |  | :2: label 57; .*Found 0 to 57: .*label_range='LOW,HIGH'
        ["1_0", "1"] |  | :1: label '1_0';
        # 0 and 1 beside a given meaning of 2 may be classes of NLI.
        [0, 1, 2] | {"user_labels": "2=0"} | :1: label 0 has no meaning among the given ones \(2\)
        [0, 2, -1] | {"user_labels": "-1=skip"} | :2: label 2: 0, 2 may be classes
        ["yes", "dup", "x"] | {"user_labels": "x=skip"} | :2: label 'dup'; .*Found dup, yes: .*'dup=X,yes=1'
        ["low", "high"] | {"user_labels": "low=0,high=20"} | :2: label 'high'; expected 0 or 1, or a score from 0 to 5
        ["50", "yes"] | {"scale": "0,100"} | Found 50, yes: set labels='yes=100', where 100 is similar
        ["85%", "7%"] | {"scale": "0,100"} | :1: label '85%' is a score from 0 to 1; leave out label_range='0,100'
        [1, 101] | {"scale": "0,100"} | :2: label 101 is outside the label range 0,100; widen the range
        ["yes", "no", "dup", "dunno"] |  | :3: label 'dup'; .* labels='dunno=skip,dup=skip,no=0,yes=1'
    """),
)
def test_uncertain_labels_are_refused(labels, names, says):
    with data_error(says) as raised:
        read(labels, **names)
    assert "\n" not in str(raised.value)
    remedies = re.findall(
        r"(labels|label_range)='(\S+=\S+|\S+,\S+)'", str(raised.value)
    )
    for option, value in () if {"user_labels", "scale"} & {*names} else remedies:
        chosen = value.replace("X", "1").replace("LOW", "-100").replace("HIGH", "100")
        keyword = "user_labels" if option == "labels" else "scale"
        assert len(read(labels, **names, **{keyword: chosen}))


@parametrize(
    "labels, names, meaning",
    rows_of_json(r"""
        [0.5, 1, 0] |  | scores from 0 to 1
        [0.5, 4.75, 0] |  | scores from 0 to 5
        [0, 5, 2] |  | scores from 0 to 5
        [0, 1, 2] | {"label": "score"} | scores from 0 to 2, as found
        [2, 0, 1] | {"label": "Relevance", "texts": ["query", "passage"]} | scores from 0 to 2, as found
        [1.5, 5, 4] |  | scores from 1.5 to 5, as found
        [1, 4.5, 5] |  | scores from 1 to 5, as found
        [0.75, 4.125, 2] |  | scores from 0 to 5
        [0.75, 4, 2] |  | scores from 0.75 to 4, as found
        ["0.25", "0.5"] | {"texts": ["premise", "hypothesis"]} | scores from 0 to 1
    """),
)
def test_scores_keep_their_scale(labels, names, meaning):
    found = read(labels, **names)
    assert (numbers(found), found.label_kind) == (list(map(float, labels)), "graded")
    assert found.labels is not None
    assert found.labels.meaning == meaning


def test_scores_of_a_pair_dataset_stay_scores(tmp_path):
    whole = pl.DataFrame(pairs([0, 1, 2])).with_columns(
        pl.col("label").cast(pl.Float32)
    )
    whole.write_parquet(tmp_path / "a.parquet")
    assert pairkit.read(tmp_path / "a.parquet").label_kind == "graded"
    again = pairkit.read(pairkit.read(whole))
    assert numbers(again) == [0, 1, 2]


@parametrize(
    "labels, user_labels, expected, meaning",
    rows_of_json(r"""
        ["Yes", "no", "maybe"] | "maybe=skip" | [1, 0] | maybe=skip, yes=1, no=0
        ["duplicate", "x", "non-duplicate"] | "x=0" | [1, 0, 0] | x=0, duplicate=1, non-duplicate=0
        ["1", "0", "?"] | "?=skip" | [1, 0] | ?=skip, 0 and 1
        [1, 0, -1] | "-1=skip" | [1, 0] | -1=skip, 0 and 1
        ["50%", "?", "75 %"] | "?=skip" | [0.5, 0.75] | ?=skip, scores from 0 to 1
        ["4.5", "n/a", "0"] | "n/a=skip" | [4.5, 0] | n/a=skip, scores from 0 to 5
        ["yes", "no"] | "no=0.5" | [1, 0.5] | no=0.5, yes=1
        ["yes", "no"] | "maybe=skip" | [1, 0] | yes=1, no=0
        [1, 0] | "maybe=skip" | [1, 0] | 0 and 1
        ["entailment", "neutral"] | "contradiction=0" | [1] | entailment=1, neutral=skip
        ["1", "", null, "0"] | {"": "skip", "None": 0} | [1, 0, 0] | =skip, none=0, 0 and 1
    """),
)
def test_other_labels_keep_their_meaning(labels, user_labels, expected, meaning):
    found = read(labels, user_labels=user_labels)
    assert found.labels is not None
    assert (numbers(found), found.labels.meaning) == (expected, meaning)


@parametrize(
    "user_labels, scale, says",
    [
        *values(
            """
                yes | None | labels = 'yes': expected word=number or word=skip
                yes=high | None | labels = .*: 'high' for 'yes'; expected a number or skip
                {'yes': 'nan'} | None | expected a number or skip
                a=1,A=0 | None | two meanings of 'A'
                ['a'] | None | expected a number, or skip, for each word
                None | a,b | label_range = 'a,b'
            """,
        ),
        *(
            (None, wrong, "expected the lowest and the highest score")
            for wrong in ("5,0", "5,5", "5", 5, "1,2,3")
        ),
        (None, (0, math.inf), "label_range"),
    ],
)
def test_invalid_labels_options(user_labels, scale, says):
    with config_error(says) as raised:
        read([1, 0], user_labels=user_labels, scale=scale)
    assert "\n" not in str(raised.value)


def test_label_range():
    found = read([0, 25, 100], scale="0,100")
    assert (numbers(found), found.label_kind) == ([0, 0.25, 1], "graded")
    assert found.labels is not None
    assert found.labels.meaning == "scores from 0 to 100, made 0 to 1"
    assert numbers(read([-1, 0, 0.5], scale=(-1, 1))) == [0, 0.5, 0.75]
    assert numbers(read([0, 1, 2], scale="0,2")) == [0, 0.5, 1]
    words = read(["low", "high"], user_labels="low=10,high=20", scale="0,20")
    assert numbers(words) == [0.5, 1]
    words = read(["yes", "no", "yes"], scale="0,100")
    assert numbers(words) == [1, 0, 1]
    assert words.labels.meaning.startswith("yes=100, no=0, scores from 0 to 100")


def test_labels_are_decided_over_all_tables(tmp_path, caplog):
    for name, labels in (("train-0", [0, 1]), ("train-1", [4, 5]), ("test", [1, 2])):
        pl.DataFrame(pairs(labels)).write_csv(tmp_path / f"{name}.csv")
    found = pairkit.read(tmp_path)
    assert found.label_kind == "graded"
    assert found["test"]["label"].to_list() == [1, 2]
    with data_error(r"test\.csv:3: label '2': 1, 2 may be classes"):
        pairkit.read(tmp_path, split="test")
    pairkit.read(tmp_path, split="train", labels="1=0,5=1,0=0,4=1,2=skip")
    assert "labels=" not in caplog.text
    pairkit.read(tmp_path, labels="0=0,1=0,2=0,4=1,5=1,7=1,x=skip")
    assert "no row has these labels of labels=: 7, x" in caplog.text


def classed(labels, names):
    kinds = {
        "sentence1": datasets.Value("string"),
        "sentence2": datasets.Value("string"),
    }
    features = datasets.Features(kinds | {"label": datasets.ClassLabel(names=names)})
    return datasets.Dataset.from_list(pairs(labels), features=features)


@pytest.fixture(params=["memory", "parquet", "saved"])
def kept(request, tmp_path):
    """Store a Dataset and return the source."""

    def keep(table):
        match request.param:
            case "memory":
                return table
            case "parquet":
                table.to_parquet(tmp_path / "train.parquet")
                return tmp_path / "train.parquet"
            case _:
                table.save_to_disk(tmp_path / "saved")
                return tmp_path / "saved"

    return keep


@table(
    """
        names, expected
        NLI | [('a0', 1), ('a2', 0)]
        # as in CB
        ['entailment', 'contradiction', 'neutral'] | [('a0', 1), ('a1', 0)]
        ['not_entailment', 'entailment', 'x'] | None
        ['0', '1', '2'] | None
    """,
    NLI=NLI,
)
def test_class_names(kept, names, expected):
    source = kept(classed([0, 1, 2, -1], names))
    if expected is None:
        with data_error("label"):
            pairkit.read(source)
        return
    found = pairkit.read(source)
    assert found.rows.select("text1", "label").rows() == expected
    assert found.labels is not None
    assert found.labels.skipped == {"neutral": 1, "-1": 1}


def test_classes_by_name_or_number(kept):
    source = kept(classed([0, 1, 1, -1], ["not_entailment", "entailment"]))
    assert numbers(pairkit.read(source)) == [0, 1, 1]
    assert numbers(pairkit.read(source, labels="0=1,1=0,-1=skip")) == [1, 0, 0]
    assert numbers(
        pairkit.read(source, labels="entailment=0,not_entailment=1,-1=0.5")
    ) == [
        1,
        0,
        0,
        0.5,
    ]


def test_skipped_rows_are_reported(tmp_path):
    words = ["entailment", "contradiction", "neutral", "entailment"]
    output = (
        "labels: entailment=1, contradiction=0, neutral=skip; rows left out: 1 neutral"
    )
    audited = pairkit.audit(pairs(words))
    assert output in str(audited)
    assert audited.to_dict()["labels"]["skipped"] == {"neutral": 1}
    written = pairkit.write(pairs(words), tmp_path / "out")
    assert "left out: skipped label 1" in str(written)
    merged = pairkit.merge([pairs(words), pairs([1, 0])])
    for made in (written, merged, pairkit.split(pairs(words))):
        assert made.statistics["dropped_pairs"]["skipped_label"] == 1
    read = pairkit.read(pairs(words))
    report = pairkit.report(read, tmp_path / "r.html")
    assert report.counts["dropped"] == {"Rows skipped by their label": {"neutral": 1}}
    assert pairkit.read(read).labels == read.labels


def test_scores_of_two_scales_are_not_merged():
    small, large = pairs([0.5, 1.0, 0.25]), pairs([4.5, 0.5, 3.0])
    for first, scale in ((small, "scores from 0 to 1"), (pairs([0, 1]), "0 and 1")):
        with data_error(rf"\(1: {scale}, 2: scores above 1\): convert scores"):
            pairkit.merge([first, large])
    rescaled = pairkit.read(large, label_range=(0, 5))
    assert len(pairkit.merge([small, rescaled], conflicts="first").pairs) == 3
    empty = pl.DataFrame(pairs([0, 1]))[:0]
    assert pairkit.merge([empty, small]).pairs.label_kind == "graded"
