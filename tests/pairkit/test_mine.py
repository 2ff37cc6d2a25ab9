import json
import random

import polars as pl
import pytest

import pairkit
from pairkit import ConfigError, DataError
from tests.support.shorthand import (
    config_error,
    data_error,
    parametrize,
    raises,
    table,
    values,
)

HANDBOOK = """\
---
title: "The pump handbook"
---
# Pumps

A pump moves water. See [how to repair a pump](sub/repair.md), [here](motors.html) and
[a shop](https://example.org/a.md).

## What is a valve?

It lets water through in *one* direction.

## Care

Clean the pump each week.

Replace the filter each month.

```
not a text
```

| no | text |
|---|---|
| at | all |

**How do I stop it?**
Press the red button.
"""
REPAIR = "# Repair\n\nOpen the case and look for leaks.\n\n- Back to [the book of pumps](../book.md#care)\n"
MOTORS = """\
<!doctype html><html><head><title>Motors &amp; more</title><script>var a = "<p>no text";</script></head>
<body><nav><p>Menu</nav><!-- <p>hidden --><h1>Motors</h1>
<p>A motor turns
<a class="x" href='book.md'>the first pump</a> by a <b>belt</b>.<p>It is loud.
<dl><dt>Can it burn?<dd>Yes, if it runs dry.</dl><table><tr><td>cells</table></body></html>
"""


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "docs"
    (home / "sub").mkdir(parents=True)
    (home / "book.md").write_text(HANDBOOK)
    (home / "sub" / "repair.md").write_text(REPAIR)
    (home / "motors.html").write_text(MOTORS)
    (home / "notes.txt").write_text("The first paragraph.\n\nThe second\nparagraph.\n")
    return home


def mined(source, **more):
    return pairkit.extract(source, **{"split_sizes": (1, 0, 0)} | more)


def found(source, rules, **more):
    rows = mined(source, rules=rules, **more).pairs.rows
    return list(rows.select("text1", "text2").iter_rows())


def test_titles_and_questions(folder):
    assert found(folder, "title-body") == [
        (
            "The pump handbook",
            "A pump moves water. See how to repair a pump, here and a shop.",
        ),
        ("Motors & more", "A motor turns the first pump by a belt. It is loud."),
        ("Repair", "Open the case and look for leaks. Back to the book of pumps"),
    ]
    assert found(folder, "question-answer") == [
        ("What is a valve?", "It lets water through in one direction."),
        ("How do I stop it?", "Press the red button."),
        ("Can it burn?", "Yes, if it runs dry."),
    ]


FAQS = {
    "labels.md": "**Q: Can I swim?**\n\nA: In May.\n\nQ2. And dive?\n\nA2. No.",
    "lines.txt": "Q: Where?\nA: Here.\nQ: When?\nA: Now, or\nlater?",
    "numbers.txt": "1. Where is it?\nHere.\n2) When?\nNow.\nQuestion 3: Why?\nSo.",
    "wrapped.txt": "Bring a coin, can you\nfind one? Then\nwhy not?\n\nWho is A?\nA. Smith wrote it.",
    "chinese.md": "## 怎么付款？\n\n用银行卡。也可以用现金。\n\n问：几点开门？\n\n答：九点。",
    "others.md": "## كيف أدفع؟\n\nنقداً.\n\n## ¿Dónde? ¿Y cuándo?\n\nA.\n\n## ¿Dónde?\n\nAquí.",
    "details.md": "# FAQ\n\n<details><summary>Parking?</summary>\n\nBehind it.\n\n</details>",
    "buttons.html": "<h2><button>Safe?</button></h2>Yes.<button>Accept</button><button>Big?</button><p>No.",
    "breaks.html": "<p><b>Question: Safe?</b><br>Answer: Yes.</p>",
    "word.html": "<p><b>Safe?<o:p></o:p></b></p><p>Yes.<o:p>&nbsp;</o:p></p>",
    "cells.csv": "question,answer\nSafe?,<p>Yes &amp; <b>no</b>.</p>\nBig?,<T> < <b> or </b>.\n",
}


@parametrize(
    "name, pairs",
    {
        "labels.md": {"Can I swim?": "In May.", "And dive?": "No."},
        "lines.txt": {"Where?": "Here.", "When?": "Now, or later?"},
        "numbers.txt": {"Where is it?": "Here.", "When?": "Now.", "Why?": "So."},
        "wrapped.txt": {"Who is A?": "A. Smith wrote it."},
        "chinese.md": {
            "怎么付款？": "用银行卡。也可以用现金。",
            "几点开门？": "九点。",
        },
        "others.md": {"كيف أدفع؟": "نقداً.", "¿Dónde?": "Aquí."},
        "details.md": {"Parking?": "Behind it."},
        "buttons.html": {"Safe?": "Yes.", "Big?": "No."},
        "breaks.html": {"Safe?": "Yes."},
        "word.html": {"Safe?": "Yes."},
        "cells.csv": {"Safe?": "Yes & no.", "Big?": "<T> < <b> or </b>."},
    }.items(),
)
def test_questions_of_faqs(tmp_path, name, pairs):
    (tmp_path / name).write_text(FAQS[name])
    assert dict(found(tmp_path / name, "question-answer")) == pairs


def test_sections_and_links(folder):
    pairs = found(folder, "section")
    assert ("Clean the pump each week.", "Replace the filter each month.") in pairs
    assert ("Motors", "A motor turns the first pump by a belt.") in pairs
    assert not any(
        "not a text" in text or "cells" in text for pair in pairs for text in pair
    )
    made = mined(folder, rules="links")
    rows = {row["text1"]: row for row in made.pairs.rows.iter_rows(named=True)}
    repair = rows.pop("how to repair a pump")
    assert rows.keys() == {"the first pump", "the book of pumps"}
    assert (
        repair["text2"] == "Open the case and look for leaks. Back to the book of pumps"
    )
    assert (repair["url1"], repair["url2"], repair["place"]) == (
        "book.md",
        "sub/repair.md",
        "line 6",
    )
    assert rows["the book of pumps"]["url2"] == "book.md"
    assert made.statistics["dropped_pairs"] == {"idle_words": 1}  # "here"


def test_tables_of_documents(tmp_path):
    path = tmp_path / "faq.csv"
    path.write_text(
        "ask,reply,page\nWhere is it?,In the cellar.,a\nWho knows,The porter.,a\n"
    )
    given = {"question": "ask", "answer": "reply", "document": "page"}
    made = mined(path, columns=given)
    rows = made.pairs.rows
    pairs = rows.select("text1", "text2").rows()
    assert pairs == [("Where is it?", "In the cellar."), ("Who knows", "The porter.")]
    assert rows["url1"].to_list() == ["a", "a"]
    assert rows["place"].to_list() == ["row 2", "row 3"]
    texts = {"Rain": "It falls.\n\nOften.", "Snow": "<p>Seldom.</p>"}
    articles = [{"Title": title, "Abstract": text} for title, text in texts.items()]
    assert found(articles, "title-body") == [
        ("Rain", "It falls. Often."),
        ("Snow", "Seldom."),
    ]
    assert mined(articles).pairs.rows["url1"].n_unique() == 2


@table(r"""
    columns, message
    {'heading': 'a'} | 'heading': expected one of text, title, body
    {'title': 'b'} | no column 'b'
    {'question': 'a'} | 'question': also give answer
    {'text': 'a', 'body': 'b'} | text and body are one role
    {'title': 'a'} | expected title and body, question and answer, or text
    None | question and answer, or text; rename them or give columns=\{'text': 'a'\}
""")
def test_invalid_mappings(columns, message):
    with raises((ConfigError, DataError), match=message):
        mined([{"a": "x"}], columns=columns)
    with data_error(r"columns=\{'question': 'Frage', 'answer': 'Antwort'\}"):
        mined(
            [
                {
                    "Frage": "Wann beginnt die Messe?",
                    "Antwort": "Sie beginnt um neun Uhr.",
                }
            ]
        )
    with data_error("the list given:1: the column body has lists"):
        mined([{"title": "x", "body": ["a"]}])
    for rules in ("sections", ""):
        with config_error(f"rules = '{rules}'"):
            mined([{"text": "x"}], rules=rules)


def test_drop_reasons(tmp_path):
    texts = values(r"""
        Overview | Of pumps.
        # ambiguous
        overview | Of motors.
        Rain | Rain
        '' | Nobody named it.
        No | Too short.
        '1234' | Numbers alone.
        A bell | 'It rings \x07.'
        Snow | It is white.
        Snow | It is white.
    """)
    rows = pl.DataFrame(texts, ["title", "body"], orient="row")
    made = mined(rows, rules="title-body")
    reasons = [
        "no_letters",
        "repeated",
        "same_texts",
        "too_short",
        "unusable_characters",
    ]
    assert made.statistics["dropped_pairs"] == {
        "ambiguous": 2,
        **dict.fromkeys(reasons, 1),
    }
    assert [row["text1"] for row in made.pairs.rows.to_dicts()] == ["Snow"]
    assert made.dropped.filter(left_out="same_texts")["text1"].to_list() == ["Rain"]
    assert made.dropped["place"].to_list()
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.md").write_text("# Pump\n\nIt pumps.\n")
    (tmp_path / "d" / "b.md").write_bytes(b"# P\x81\n")
    (tmp_path / "d" / "c.md").write_bytes(b"# P\n" * (2 << 20))
    (tmp_path / "d" / "d.pdf").write_bytes(b"")
    statistics = mined(tmp_path / "d").statistics
    assert statistics["documents"] == 1
    assert statistics["documents_dropped"] == {
        "damaged_or_encrypted": 1,
        "not_utf8": 1,
        "too_large": 1,
    }


def collection(count):
    draw = random.Random(5)

    def words(number):
        return " ".join(f"w{draw.randrange(999)}" for _ in range(number))

    bodies = ["\n\n".join(words(9) for _ in range(4)) for _ in range(count)]
    return [{"title": words(3), "body": body} for body in bodies]


def test_documents_are_in_one_split(tmp_path):
    how = {}
    made = pairkit.extract(collection(60), tmp_path / "a", **how)
    assert {"train", "validation", "test"} == made.pairs.splits.keys()
    owner = {}
    for split, rows in made.pairs.splits.items():
        for name in (*rows["url1"], *rows["url2"]):
            owner.setdefault(name, set()).add(split)
    assert all(len(splits) == 1 for splits in owner.values())
    assert not pairkit.audit(tmp_path / "a").leaks
    other = pairkit.extract(collection(60), **how, seed=7)
    assert {*other.pairs["train"]["url1"]} != {*made.pairs["train"]["url1"]}


def test_a_single_faq_has_no_title_pair_and_needs_its_split_sizes(tmp_path):
    text = "".join(f"## Is {n} good?\n\nYes, {n} is.\n\n" for n in range(9))
    (tmp_path / "faq.md").write_text(f"# FAQ\n\n{text}")
    with data_error(r"would get 0 rows of \d; give other split_sizes="):
        pairkit.extract(tmp_path / "faq.md")
    assert {*mined(tmp_path / "faq.md").pairs.rows["rule"]} == {"question-answer"}


def test_card_is_not_a_document(tmp_path):
    folder = tmp_path / "articles"
    (folder / "data").mkdir(parents=True)
    body = "Of the {} things that are told here, none is new."
    rows = [{"title": f"Article {n}", "body": body.format(n)} for n in range(9)]
    pl.DataFrame(rows).write_parquet(folder / "data" / "train.parquet")
    (folder / "README.md").write_text(
        "# A dataset\n\nThis is what it holds, in a sentence or two.\n"
    )
    made = mined(folder, rules="title-body")
    assert made.pairs["train"]["text1"].to_list() == [row["title"] for row in rows]
    assert made.statistics["documents_dropped"] == {}
    (folder / "guide.md").write_text("# A guide\n\nHow it is done.\n")
    made = mined(folder, rules="title-body")
    assert made.pairs["train"]["text1"].to_list() == ["A dataset", "A guide"]
    assert made.statistics["documents_dropped"] == {"another_kind_of_file": 1}


def test_written_dataset(folder, tmp_path):
    out = tmp_path / "mined"
    made = mined(folder, out=out)
    names = ["README.md", "positive", "run.json", "statistics.json"]
    assert sorted(path.name for path in out.iterdir()) == names
    (file,) = (out / "positive").iterdir()
    columns = ["anchor", "positive", "rule", "url1", "url2", "place"]
    assert pl.read_parquet(file).columns == columns
    read = pairkit.read(out)
    assert len(read) == len(made.pairs)
    assert read["train"]["label"].to_list() == [1] * len(read)
    card = (out / "README.md").read_text()
    assert "| links | 3 |" in card
    assert "idle words" in card
    assert json.loads((out / "run.json").read_text())["command"] == "extract"
    with config_error("would replace"):
        mined(folder, out=folder)
    for _ in range(2):  # the result isn't among its documents
        inside = mined(folder, out=folder / "mined")
    assert inside.statistics == made.statistics
    output = []
    mined(folder, progress=lambda at: output.append(at.stage))
    assert {"read documents", "extract pairs", "divide into splits"} <= {*output}
