"""Samples for people: which pairs are drawn, what people see, and that their answers can be scored."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

import llm_labeler
import pairkit
from llm_labeler._sample import draw
from llm_labeler._sample.page import answer_page
from pairkit.errors import ConfigError
from tests.pairkit.review_material import Reviewer

SENTENCES = [
    "Stress can often cause insomnia in children.",
    "The doctor should often see the patients with asthma.",
    "Most of these lumps are usually benign.",
    "The new pump usually needs 5 days to cool down.",
]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "out"
    return llm_labeler.generate(SENTENCES, llms="wordnet", task="triplet", out=out, progress=False).work


def candidates(rows: list[tuple[str, str, list[str], list[str], str | None]]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "text": f"text {number}",
                "candidate": f"candidate {number}",
                "polarity": polarity,
                "change": change or None,
                "llms": llms,
                "votes": [{"judge": str(place), "vote": vote} for place, vote in enumerate(votes)],
                "reason": reason,
            }
            for number, (polarity, change, llms, votes, reason) in enumerate(rows)
        ],
        schema_overrides={"change": pl.String, "reason": pl.String},
    )


def test_strata_take_turns_so_that_the_rare_are_seen() -> None:
    common = ("positive", "", ["a"], ["same", "same"], None)
    rare = [
        ("negative", "role", ["a"], ["same", "same"], None),
        ("positive", "", ["b"], ["same", "same"], None),
        ("positive", "", ["a"], ["same", "opposite"], None),
        ("positive", "", ["a"], ["unsure"], None),
        ("positive", "", ["a"], [], "outvoted"),
    ]
    drawn = draw(candidates([common] * 50 + rare), 8, seed=1)
    counts = dict(drawn["stratum"].value_counts().iter_rows())
    assert counts == {
        "positive, a, judges agree, kept": 3,
        "role, a, judges agree, kept": 1,
        "positive, b, judges agree, kept": 1,
        "positive, a, judges differ, kept": 1,
        "positive, a, judges unsure, kept": 1,
        "positive, a, not judged, turned down": 1,
    }


def test_the_seed_decides_and_the_order_of_rows_does_not() -> None:
    rows = candidates([("positive", "", ["a"], [], None)] * 40)
    one = draw(rows, 10, seed=1).sort("text")["text"].to_list()
    assert draw(rows.reverse(), 10, seed=1).sort("text")["text"].to_list() == one
    assert draw(rows, 10, seed=2).sort("text")["text"].to_list() != one


def test_people_see_neither_labels_nor_who_made_them(work: Path, tmp_path: Path) -> None:
    found = llm_labeler.sample(work, out=tmp_path / "page.html", size=12)
    page = (tmp_path / "page.html").read_text()
    assert found.pairs == 12
    assert "Do both texts say the same?" in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    assert len(data["pairs"]) == 12
    assert {text for text, _ in data["pairs"]} <= {*SENTENCES}
    assert all(word not in page for word in ("wordnet", "negation", "polarity"))
    assert "default-src 'none'" in page
    assert "--paper" in page  # the look that all our pages have


def test_no_text_ends_the_script_that_it_stands_in() -> None:
    page = answer_page([("</script><script>alert(1)</script>", "<!-- x")], "Same?", "s")
    assert page.count("<script") == 2
    assert "alert(1)</script>" not in page


def test_answers_are_kept_for_the_very_pairs_that_they_were_given_to() -> None:
    key = re.compile(r'"key": "[^"]+"')
    samples = [[("a", "b"), ("c", "d")], [("a", "b"), ("c", "e")], [("a", "b"), ("c", "d")]]
    one, other, again = (key.search(answer_page(pairs, "Same?", "s"))[0] for pairs in samples)  # type: ignore[index]
    assert one != other
    assert one == again


def test_answers_in_a_sheet_can_be_scored(work: Path, tmp_path: Path) -> None:
    llm_labeler.sample(work, out=tmp_path / "sheet.csv", size=10)
    sheet = pl.read_csv(tmp_path / "sheet.csv")
    assert sheet.columns == ["text1", "text2", "label"]
    assert sheet["label"].is_null().all()
    known = pl.read_parquet(work / "candidates.parquet").select("text", "candidate", "polarity")
    filled = sheet.drop("label").join(
        known, left_on=["text1", "text2"], right_on=["text", "candidate"], how="left"
    )
    gold = filled.select("text1", "text2", label=(pl.col("polarity") == "positive").cast(pl.Int64))
    scored = llm_labeler.score(gold, work=work)
    assert all(row.precision == 1.0 for row in scored.rows if row.by == "llm" and row.n)


def test_a_page_with_answers_is_not_written_over(work: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("answers")
    with pytest.raises(ConfigError, match="there already, perhaps with answers"):
        llm_labeler.sample(work, out=tmp_path / "page.html")
    with pytest.raises(ConfigError, match=r"a page \(.html\) or a sheet \(.csv\)"):
        llm_labeler.sample(work, out=tmp_path / "page.txt")


def test_a_sheet_runs_nothing_and_its_answers_are_found_again(tmp_path: Path) -> None:
    odd = [f"{mark}{text}" for mark, text in zip("=+-@", SENTENCES, strict=True)]
    made = llm_labeler.generate(odd, llms="wordnet", task="triplet", out=tmp_path / "out", progress=False)
    llm_labeler.sample(made.work, out=tmp_path / "sheet.csv", size=60)
    sheet = pl.read_csv(tmp_path / "sheet.csv")
    cells = [*sheet["text1"], *sheet["text2"]]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    assert {cell[:2] for cell in sheet["text1"]} >= {"'=", "'+", "'@"}
    answered = tmp_path / "answered.csv"
    sheet.with_columns(label=pl.lit(1)).write_csv(answered)
    scored = llm_labeler.score(str(answered), work=made.work)
    assert scored.found == scored.gold > 0
    assert scored.not_found.count == 0


def test_the_page_hands_its_answers_on_without_formulas() -> None:
    assert r"/^'*[=+\-@\t\r\n＝＋－＠]/" in answer_page([("a", "b")], "Same?", "s")


def test_what_people_said_of_the_dataset_in_a_browser_can_be_scored(work: Path, tmp_path: Path) -> None:
    review = pairkit.review(work.with_name("out"), tmp_path / "people.review", n=6, again=0)
    with review.serve(["ann"], port=0) as server:
        ann = Reviewer(server.links["ann"])
        for answer in ("yes", "no", "unsure", "yes", "yes", "yes"):
            ann.say(answer)
    scored = llm_labeler.score(review.path, work=work)
    assert (scored.gold, scored.found) == (5, 5)
