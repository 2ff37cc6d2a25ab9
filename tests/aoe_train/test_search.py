"""Indexes: building, reuse, search and near-duplicates."""

import json
import os
import re
import shutil
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import polars as pl

from aoe_train import Encoder, duplicates, open_index, search
from tests.aoe_train.shorthand import index as build
from tests.aoe_train.tiny import WORDS, cosines_of, edit, save_bert
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    module_fixture,
    parametrize,
    raises,
    table,
    values,
)

TEXTS = [
    "the dog is running",
    "a red boat on the river",
    "the compiler panics",
    "an old house in the city",
]


def sentences(count):
    random = np.random.default_rng(5)
    drawn = (
        " ".join(random.choice(WORDS, random.integers(4, 9))) for _ in range(3 * count)
    )
    return list(dict.fromkeys(drawn))[:count]


def issues(count=60):
    titles, bodies = zip(
        *(text.split(" ", 1) for text in sentences(count)), strict=True
    )
    return pl.DataFrame(
        {
            "number": range(1, count + 1),
            "title": titles,
            "body": bodies,
            "state": ["open" if number % 3 else "closed" for number in range(count)],
            "labels": [["a"]] * count,
        }
    )


def folder_of_issues(bert, factory, **how):
    folder = factory.mktemp("search") / "index"
    build(issues(), bert, folder, **how)
    return folder


@module_fixture
def made(bert, tmp_path_factory):
    return folder_of_issues(bert, tmp_path_factory)


def test_a_search_for_a_key_finds_its_row_first(bert, out):
    # Words of one digit don't count.
    keys = [f"SUP-{number}" for number in range(1, 61)]
    named = {"id": pl.lit("tickets/t#1"), "key": pl.Series(keys)}
    build(issues().drop("number").with_columns(**named), bert, out)
    index = open_index(out)
    for key in keys[::7]:
        for by in ("both", "words"):
            assert index.search(key.lower(), by=by)[0].key == key
    for given in ({"text": "SUP-7"}, {"text": "the compiler", "weight": 0}):
        hits = [(hit.score, hit.cosine) for hit in index.search(**given)]
        assert len(hits) == 10
        assert hits == sorted(hits, reverse=True)  # not in index order


def test_a_key_is_found_before_texts_with_the_same_words(bert, out):
    keys = ["7", "SUP-77", *map(str, range(10, 49))]
    rows = pl.DataFrame({"key": keys, "text": ["SUP-77", *sentences(40)]})
    index = indexed(rows, bert, out)
    assert [hit.key for hit in index.search("sup-77", by="words")] == ["SUP-77", "7"]
    (hit,) = index.search("7", by="words")  # one digit is not a word
    assert (hit.key, hit.score, hit.words) == ("7", 1, 0)
    assert index.search("SUP-77", by="words")[0].words == 1


def test_a_key_of_excluded_rows_is_searched_like_another_text(bert, out):
    rows = {"key": ["boat", *"bcdefg"], "text": WORDS[:7], "is_new": [1] + [0] * 6}
    build(pl.DataFrame(rows), bert, out)
    found = {}
    for by in ("both", "model"):
        hits = open_index(out).search("boat", by=by, where={"is_new": 0})
        found[by] = [hit.place for hit in hits]
    assert found["both"] == found["model"] != sorted(found["model"])


@table(
    r"""
    name, content, columns, key_column, keys
    a.csv | 'text,n\na boat,1\n\n,2\na dog,3\n' | None | row | [2, 5]
    a.txt | 'a boat\n\na dog\n' | None | row | [1, 3]
    a.jsonl | '{"text": "", "row": 8}\n{"text": "a dog", "row": 9}\n' | None | row of the source | [2]
    a.csv | 'a boat,x\na dog,y\n' | {'text': '1'} | row | [1, 2]
    a.csv | 'place,text\nRome,a dog\n' | None | row | [2]
    a.csv | 'Ticket,Subject\nAB-1,a boat\n,a dog\n' | {'id': 'Ticket'} | Ticket or row | ['AB-1', 'row 3']
    """,
)
def test_a_row_is_named_by_its_key_or_its_row_in_the_file(
    bert, out, tmp_path, name, content, columns, key_column, keys
):
    (tmp_path / name).write_text(content)
    index = indexed(tmp_path / name, bert, out, columns=columns)
    assert (index.key_column, index.keys()) == (key_column, keys)
    hit = index.search("a dog", by="words")[0]
    assert (hit.key_column, hit.key) == (key_column, keys[-1])
    found = duplicates(out, min_cosine=-1)
    assert found.to_dict()["groups"] == ([keys] if len(keys) > 1 else [])
    for rows in (found.rows(), index.search_every(by="words").hits):
        assert {*pairs(rows, f"{key_column}_")} <= {(*keys,), (*keys[::-1],)}


@table(
    """
    names, keys
    ['a-1.csv', 'a-2.csv'] | ['a-1.csv:2', 'a-2.csv:2']
    ['old/a.csv', 'new/a.csv'] | ['new/a.csv:2', 'old/a.csv:2']
    """,
)
def test_rows_of_several_files_have_the_name_of_the_file(bert, tmp_path, names, keys):
    for name in names:
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text\na dog of {name}\n")
    pattern = tmp_path / "in" / names[0].replace("1", "*").replace("old", "*")
    assert indexed(pattern, bert, tmp_path / "index").keys() == keys


def test_columns_of_several_files_may_have_different_types(bert, tmp_path):
    (tmp_path / "1.jsonl").write_text('{"text": "a dog", "tags": "b"}\n')
    (tmp_path / "2.jsonl").write_text('{"text": "a boat", "tags": ["c"]}\n')
    index = indexed(tmp_path / "?.jsonl", bert, tmp_path / "index")
    assert index.rows["tags"].to_list() == ["b", '["c"]']


def test_vectors_are_an_array_and_hits_a_table(made, quantized):
    for folder in (made, quantized):
        index = open_index(folder, words_only=True)
        vectors = np.asarray(index.vectors)
        assert (vectors.shape, vectors.dtype) == ((60, 32), np.float32)
        assert len(index.texts()) == len(index.keys()) == 60
    hits = index.search("dog", by="words", top=2)
    assert repr(hits) == repr(hits.table())
    assert [hit.key for hit in hits] == [hit.row["number"] for hit in hits]
    assert hits._repr_html_().startswith("<table>")


@module_fixture
def quantized(bert, tmp_path_factory):
    return folder_of_issues(bert, tmp_path_factory, quantize="int8")


def indexed(rows, model, out, **how):
    build(rows, model, out, **how)
    return open_index(out, words_only=True)


def pairs(rows, name="place"):
    """The values of both columns of this name."""
    return rows.select(f"{name}1", f"{name}2").rows()


def test_rows_without_the_key_of_an_earlier_index_replace_it(bert, out):
    build([{"key": "A-1", "text": "a crash"}], bert, out)
    assert indexed(["a leak"], bert, out, remove_missing=True).key_column == "row"


def test_text_columns_of_a_table(bert, tmp_path, caplog):
    index = indexed(issues(3), bert, tmp_path / "table")
    first = issues(3).row(0, named=True)
    assert index.texts([0]) == [f"{first['title']}\n\n{first['body']}"]
    assert index.rows.columns == issues().columns
    body = indexed(issues(3), bert, tmp_path / "body", columns={"text": "body"})
    assert body.texts([0]) == [first["body"]]
    html = "<p>one <b>word</b></p>\n<ul><li>two</li></ul>"
    generic = "<T> is a type of List<T>"
    index = indexed([{"text": html}, {"text": generic}], bert, tmp_path / "html")
    assert index.texts([0, 1]) == ["one word\ntwo", generic]
    rows = [{"text": "one"}, {"text": " "}, {"text": None}]
    made = build(rows, bert, tmp_path / "empty")
    assert (made.rows, made.empty) == (1, 2)
    odd = {"bytes": b"\xff", "span": timedelta(1), "thing": object()}
    odd["image"] = {"bytes": b"x"}
    kept = {"text": "one", "day": date(2024, 1, 2), "meta": {}, "tags": ["a"]}
    rows = indexed([kept | odd], bert, tmp_path / "odd").rows
    assert rows.rows(named=True) == [kept | {"meta": "{}"}]
    assert "left out the columns bytes, span, thing, image" in caplog.text


@table(
    """
    rows, columns, words
    [{'a': 'x', 'b': 1}, {'c': 2}] | {} | no known text column among a, b, c; name it
    [{'a': 'x'}] | {'text': 'b'} | no column 'b' for text; there are a
    [{'text': ['x']}] | {} | contains List
    [{'text': ' '}] | {} | no row has a text in text
    SPAN | {'text': 'a'} | the column 'a' contains Duration
    """,
    SPAN=[{"a": timedelta(1)}],
)
def test_tables_without_texts_are_refused(rows, columns, words):
    with data_error(words):
        build(rows, "m", "nowhere", columns=columns)


FILTERS = """
where | day | 2024-01-02 | [0]
where | day | DAY | [0]
where | at | 2024-01-02 | [0]
where | at | AT | [0]
where | kind | a | [0]
where | kind | other | []
where | none | x | []
where | score | '1' | [2]
where | score | 1 | [2]
where | score | 2.5 | [1]
where | count | '3' | [0]
where | count | 3.5 | []
where | count | BIG_AND_ONE | []
where | small | -1 | []
where | small | 300 | []
where | price | '1.5' | [0]
where | open | True | [0]
where | open | 'False' | [1]
where | tags | b | [0]
where | tags | c | []
before | day | '2024' | []
before | day | 2024-02 | [0]
before | day | 2024-01-03 | [0]
before | day | DAY | []
before | at | 2024-01-02T00:00:01Z | [0]
before | at | AT | []
before | clock | '09:30' | []
before | clock | '10:00' | [0]
where | clock | '09:30' | [0]
before | score | 2 | [2]
before | score | '2.5' | [2]
before | count | 3.5 | [0]
before | count | BIG | [0]
before | count | BIG_AND_ONE | [0, 1]
before | count | HUGE | [0, 1]
before | small | 300 | [0, 1]
before | price | '1.75' | [0]
before | cells | '30' | [0]
before | cells | 9.5 | []
"""


def test_filters_and_json_of_all_column_types(bert, out):
    day = date(2024, 1, 2)
    columns = values(
        """
            text | ['a dog', 'a dog', 'a dog']
            day | DAYS
            at | TIMES
            clock | CLOCK
            price | PRICES
            score | SCORES
            count | [3, 1152921504606846976, None]
            small | SMALL
            open | [True, False, None]
            kind | KINDS
            none | [None, None, None]
            tags | [['a', 'b'], [], None]
            # as in CSV
            cells | ['9.50', '100', 'n/a']
            german | ['31.12.2023', '2024', None]
            """,
        DAYS=[day, None, None],
        TIMES=[datetime(2024, 1, 2, tzinfo=UTC), None, None],
        CLOCK=[time(9, 30), None, None],
        PRICES=[Decimal("1.50"), Decimal("2.00"), None],
        SCORES=[float("nan"), 2.5, 1.0],
        SMALL=pl.Series([3, 2, None], dtype=pl.UInt8),
        KINDS=pl.Series(["a", "b", "b"], dtype=pl.Enum(["a", "b"])),
    )
    index = indexed(pl.DataFrame(dict(columns)), bert, out)
    named = {"BIG": 2**60, "BIG_AND_ONE": 2**60 + 1, "HUGE": 2**200}
    at = datetime(2024, 1, 2, 2, tzinfo=timezone(timedelta(hours=2)))
    for option, column, value, places in values(FILTERS, DAY=day, AT=at, **named):
        hits = index.search("dog", by="words", **{option: {column: value}})
        assert [hit.place for hit in hits] == places, (option, column, value)
    for column, words in values("""
            count | count=x: expected a number
            day | day=x: expected a time such as 2015
            clock | clock=x: expected a time of day
            open | open=x: expected true or false
            tags | before tags: contains lists
            german | before german: dates such as 31.12.2023 don't sort as text
            """):
        with config_error(words):
            index.search("dog", by="words", before={column: "x"})
    newer = index.search_every(before="cells", by="words")
    assert (newer.undated, pairs(newer.hits)) == (1, [(1, 0)])
    hit, near = (
        json.loads(json.dumps(found.to_dict(), allow_nan=False))
        for found in (
            index.search("dog", by="words")[0],
            duplicates(out, min_cosine=-1),
        )
    )
    row = hit["row"]
    assert (row["day"], row["score"], row["price"]) == ("2024-01-02", None, "1.50")
    assert near["pairs"][0]["score_1"] is None


def test_the_recorded_model_is_relative_to_the_index(bert, tmp_path, monkeypatch):
    shutil.copytree(bert, tmp_path / "model")
    for folder in ("other", "disk/far"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "link").symlink_to("disk/far")
    monkeypatch.chdir(tmp_path)
    texts = pl.Series(["7", "☺"])  # no words
    build(texts, "model", "link/index")
    build(texts, Encoder.load(bert), tmp_path / "unnamed")
    monkeypatch.chdir(tmp_path / "other")
    (hit, _) = search("../link/index", "8")
    assert (hit.score, hit.words) == (0.65, 0)
    shutil.rmtree(tmp_path / "model")
    for folder, model in values(r"""
            ../link/index | (\.\./){3}model
            ../unnamed | an Encoder in memory
            """):
        with config_error(f"its model, {model}, isn't there; give it as model="):
            open_index(folder)


def test_a_single_text_and_repeated_texts(bert, tmp_path):
    build([TEXTS[0]], bert, tmp_path / "one")
    (only,) = search(tmp_path / "one", TEXTS[0], model=bert)
    assert (only.text, only.score) == (TEXTS[0], 1)
    alone = duplicates(tmp_path / "one")
    assert (alone.texts, alone.full, alone.pairs.height, alone.groups) == (1, 0, 0, [])
    assert "try" not in "".join(alone.notes())
    for quantize in ("float32", "int8"):
        out = tmp_path / quantize
        made = build([TEXTS[0]] * 5 + TEXTS[1:], bert, out, quantize=quantize)
        assert (made.rows, made.encoded) == (8, 4)
        hits = search(out, TEXTS[0], where={"text": TEXTS[0]}, model=bert)
        assert [hit.score for hit in hits] == [1] * 5
        found = duplicates(out, min_cosine=1, neighbours=10**6)
        assert pairs(found.pairs) == [*combinations(range(5), 2)]
        assert found.full == 0


@module_fixture
def opened(bert, made):
    return open_index(made, model=bert)


def test_search_by_both_fuses_vectors_and_words(opened):
    for asked in ("the compiler panics", sentences(60)[7], "nothing known"):
        wanted = np.zeros(60)
        for by, weight in values("""
                model | 0.65
                words | 0.35
                """):
            scores = np.zeros(60)
            for hit in opened.search(asked, by=by, top=60):
                scores[hit.place] = hit.score
            wanted += weight * (scores - scores.min()) / max(np.ptp(scores), 1e-9)
        found = opened.search(asked)
        assert [hit.score for hit in found] == approx(
            sorted(wanted, reverse=True)[:10], abs=5e-3
        )
        assert found[0].place == wanted.argmax()
    assert found[0].text == opened.texts([found[0].place])[0]
    assert found[0].row["number"] == found[0].place + 1


def test_search_by_both_finds_what_only_the_words_find(bert, out):
    # The model knows none of the single words, so that their vectors equal that of the query.
    texts = [f"aa{number}" for number in range(400)]
    build([*texts, "the dog is running to the river after zx9981"], bert, out)
    index = open_index(out)
    assert 400 not in [hit.place for hit in index.search("zx9981", by="model", top=200)]
    assert [hit.place for hit in index.search("zx9981", by="words")] == [400]
    assert 400 in [hit.place for hit in index.search("zx9981", weight=0.5)]


def test_search_by_one_ranking_and_with_filters(made, opened):
    asked = opened.texts([9])[0]
    (by_model,) = opened.search(asked, by="model", top=1)
    assert by_model.place == 9
    assert by_model.score == by_model.cosine == approx(1, abs=1e-5)
    (by_words,) = search(made, asked, by="words", top=1)
    assert (by_words.place, by_words.cosine) == (9, None)
    assert 0.5 < by_words.words <= 1
    for where in ({"state": "closed", "number": 10}, ["state=closed", "number=10"]):
        (closed,) = opened.search(asked, where=where)
        assert closed.place == 9
    hits = opened.search(asked, where={"state": "open"})
    assert {hit.row["state"] for hit in hits} == {"open"}
    assert opened.search(asked, where={"state": "lost"}) == []


def test_search_errors(made, opened, other_bert, tmp_path):
    for index, wrong, error, words in values(
        """
            opened | {'by': 'luck'} | ConfigError | by = 'luck': expected 'both', 'model' or 'words'
            words_only | {'by': 'luck'} | ConfigError | by = 'luck': expected 'both', 'model' or 'words'
            words_only | {} | ConfigError | opened without its model
            opened | {'top': 0} | ConfigError | top = 0: expected more than 0
            opened | {'text': None} | ConfigError | text = None: expected text
            opened | {'weight': 2} | ConfigError | weight = 2: expected at most 1
            words_only | {'weight': 0.5, 'by': 'words'} | ConfigError | weight: has no effect with by = words
            opened | {'where': 'state=open'} | ConfigError | where = 'state=open': expected a list
            opened | {'where': {'state': ['a', 'new']}} | ConfigError | where state: found .* 'new'.; expected one value
            opened | {'before': {'number': None}} | ConfigError | before number: found None; expected one value
            opened | {'where': ['state']} | ConfigError | where='state': expected COLUMN=VALUE
            opened | {'where': ['a=1', 'a=2']} | ConfigError | where='a=2': a second value of a; give one
            opened | {'where': {'sha256': 'x'}} | ConfigError | where sha256: no such column; choose from number, title
            opened | {'text': ' '} | DataError | the text is empty
            opened | {'text': '\u200b'} | DataError | the text is empty
            """,
        opened=opened,
        words_only=open_index(made, words_only=True),
    ):
        with raises(error, match=words):
            index.search(**{"text": "a dog", **wrong})
    with config_error(r"no index\.json; make an index first, with `aoe index`"):
        search(tmp_path, "a dog")
    with config_error("differ from those of other; give the same model"):
        open_index(made, model=other_bert)


@module_fixture
def other_bert(tmp_path_factory):
    return save_bert(tmp_path_factory.mktemp("models") / "other", seed=9)


@table(
    """
    damage, files
    MISSING | vectors.npy rows.parquet words/words.json
    TRUNCATED | index.json rows.parquet words/indices.csc.index.npy vectors.npy probe.npy ranges.npy
    WITHOUT_HASHES | rows.parquet
    {'dim': 31} | index.json
    {'rows': 59} | index.json
    {'vectors': 'float32'} | index.json
    {'texts': 59} | words/words.json
    """,
    MISSING=Path.unlink,
    TRUNCATED=lambda path: os.truncate(path, 90),
    WITHOUT_HASHES=lambda path: (
        pl.read_parquet(path).drop("sha256").write_parquet(path)
    ),
)
def test_damaged_indexes(bert, quantized, tmp_path, damage, files):
    for file in files.split():
        copied = shutil.copytree(quantized, tmp_path / file / "index")
        if callable(damage):
            damage(copied / file)
        else:
            edit(copied / file, **damage)
        with data_error(r"index.*: .*build the index again"):
            search(copied, sentences(60)[7], model=bert)
        if file == "index.json":
            assert build(issues(), bert, copied, fresh=True).rows == 60


def test_near_duplicates_equal_a_full_comparison(made, tmp_path):
    cosines = cosines_of(np.load(made / "vectors.npy"))
    least = float(np.quantile(cosines, 0.9))
    wanted = {*map(tuple, np.argwhere(np.triu(cosines, 1) >= least).tolist())}
    found = duplicates(made, min_cosine=least, neighbours=60)
    assert {*pairs(found.pairs)} == wanted
    assert found.pairs["cosine"].is_sorted(descending=True)
    assert found.rows()["number_1"].equals(found.pairs["place1"] + 1)
    assert {*chain(*found.groups)} == {*chain(*wanted)}
    assert found.full == 0
    degrees = (cosines >= least).sum(axis=1)
    nearest = duplicates(made, min_cosine=least, neighbours=1)
    assert nearest.full == (degrees > 1).sum()
    assert {*pairs(nearest.pairs)} == {
        tuple(sorted((place, int(cosines[place].argmax()))))
        for place in np.flatnonzero(degrees)
    }
    for read, suffix in {
        pl.read_parquet: "parquet",
        pl.read_ndjson: "jsonl",
        pl.read_csv: "csv",
    }.items():
        found.write(tmp_path / f"pairs.{suffix}")
        written = read(tmp_path / f"pairs.{suffix}")
        assert written.columns == found.rows().columns
        for row in written.to_dicts():
            assert {row["place1"], row["place2"]} <= {*found.groups[row["group"] - 1]}
    assert pl.read_parquet(tmp_path / "pairs.parquet").equals(found.rows())


def test_the_default_minimum_follows_the_nearest_neighbours(made, bert, tmp_path):
    nearest = cosines_of(np.load(made / "vectors.npy")).max(axis=1)
    found = duplicates(made)
    assert found.min_cosine == round(
        max(0.6, min(0.99, nearest.mean() + 0.75 * nearest.std())), 2
    )
    assert found.to_dict()["min_cosine"] == found.min_cosine
    assert found.notes()[1].startswith(
        "the minimum was chosen by the cosines of these texts; min_cosine="
    )
    assert len(duplicates(made, min_cosine=0.9).notes()) == 1
    few = tmp_path / "few"
    build(issues().head(5), bert, few)
    assert duplicates(few).min_cosine == duplicates(made, against=few).min_cosine == 0.8


def test_without_a_pair_the_highest_cosine_is_reported(bert, tmp_path):
    build(TEXTS, bert, tmp_path)
    found = duplicates(tmp_path, min_cosine=1)
    assert found.pairs.is_empty()
    highest = cosines_of(found.index.vectors).max()
    assert found.highest == approx(highest, abs=1e-6)
    number = float(re.search(r"try min_cosine=([\d.]+)", found.notes()[1])[1])
    assert len(duplicates(tmp_path, min_cosine=number).pairs)


def test_the_table_shows_the_groups(bert, tmp_path):
    long = "the dog\nis \x1b[31mrunning " + "far " * 60
    keys = [f"A-{number}" for number in range(1, 8)]
    texts = [long] * 7 + ["the compiler panics"] * 2
    build(pl.DataFrame({"key": [*keys, "B-0", "B-1"], "text": texts}), bert, tmp_path)
    found = duplicates(tmp_path, min_cosine=0.999999)
    assert [len(group) for group in found.groups] == [7, 2]
    shown = str(found.table())
    first, second, *more = (line for line in shown.splitlines() if "A-" in line)
    assert first.split()[:4] == ["1", "7", "1.000", "A-1"]
    assert second.split()[:4] == ["A-2", "the", "dog", "is"]
    assert len(more) == 3
    assert "2 more" in shown
    assert "the dog is \ufffd[31mrunning far" in second
    assert second.endswith("…")
    assert re.search(r"^ *2 +2 +1.000 +B-0", shown, re.MULTILINE)


def test_near_duplicates_between_two_indexes(made, bert, other_bert, tmp_path):
    build(issues().head(5), bert, tmp_path / "new")
    found = duplicates(made, min_cosine=0.999, against=tmp_path / "new")
    assert {(place, place) for place in range(5)} <= {*pairs(found.pairs)}
    same = found.rows().filter(pl.col("place1") == pl.col("place2"))
    assert same["title_1"].to_list() == same["title_2"].to_list()
    assert found.groups == []
    build(TEXTS, other_bert, tmp_path / "theirs")
    with config_error("another model than"):
        duplicates(made, against=tmp_path / "theirs")
    with config_error("min_cosine = 3: expected at most 1"):
        duplicates(made, min_cosine=3)
    # The nearest text is the first one of its index.
    for name, texts in (("one", TEXTS[:1]), ("two", TEXTS[1:2])):
        build(texts, bert, tmp_path / name)
    far = duplicates(tmp_path / "one", min_cosine=1, against=tmp_path / "two")
    cosine = far.queries.vectors @ far.index.vectors.T
    assert far.highest == approx(cosine.item(), abs=1e-6)


@parametrize("quantize", ["float32", "int8"])
def test_vectors_of_an_earlier_index_are_reused(bert, tmp_path, quantize):
    out = tmp_path / "index"
    whole = tmp_path / "whole"
    how = {"model": bert, "quantize": quantize}
    first = build(sentences(40), out=out, **how)
    assert (first.rows, first.encoded, first.kind, first.recall) == (40, 40, "flat", 1)
    texts = [*sentences(50)[5:], "the dog the dog"]
    again = build(texts, out=out, remove_missing=True, **how)
    exact = quantize == "float32"
    assert (again.rows, again.encoded) == (46, 11 if exact else 46)
    build(texts, out=whole, **how)
    assert (out / "rows.parquet").read_bytes() == (whole / "rows.parquet").read_bytes()
    vectors = np.load(out / "vectors.npy")
    assert vectors == approx(np.load(whole / "vectors.npy"), abs=1e-6)
    assert vectors.dtype == quantize
    assert search(out, texts[11], model=bert)[0].text == texts[11]
    assert build(texts, out=out, **how).encoded == (0 if exact else 46)


def test_other_folders_and_columns_are_not_replaced(bert, tmp_path):
    out = tmp_path / "index"
    (tmp_path / "mine.txt").write_text("mine")
    with config_error("isn't an index of `aoe index`"):
        build(TEXTS, bert, tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    with config_error("kind = 'tree': expected 'flat' or 'hnsw'"):
        build(TEXTS, bert, out, kind="tree")
    with data_error("the column sha256 is reserved"):
        build([{"text": "a dog", "sha256": "mine"}], bert, out)
    build(TEXTS, bert, out)
    assert build(
        out / "rows.parquet",
        bert,
        tmp_path / "anew",
        columns={"text": "text"},
    ).rows == len(TEXTS)
