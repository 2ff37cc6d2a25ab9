"""The probability of the same problem, in any script, and the option that drops unlikely pairs."""

import json
from itertools import pairwise
from unittest.mock import Mock, call

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import gis_builder
from gis_builder.cli import app
from gis_builder.pairing import positives
from gis_builder.pairing.positives import SameProblem
from tests.support.linear import assert_linear

# Of each language: a report, the same problem in other words, another problem of the printer, and a third.
REPORTS = {
    "English": (
        "Printer prints twice\n\nSince Monday the printer prints each slip twice. A restart helps.",
        "Slip printed twice\n\nThe printer prints every slip twice since the update on Monday.",
        "Printer ignores the tray\n\nThe printer takes paper from the lower tray since Monday.",
        "Search is slow\n\nA search for an author takes a minute in the afternoon.",
    ),
    "German": (
        "Drucker druckt doppelt\n\nSeit Montag druckt der Drucker jeden Beleg doppelt. Ein Neustart hilft.",
        "Beleg doppelt gedruckt\n\nDer Drucker druckt seit dem Update am Montag jeden Beleg doppelt.",
        "Drucker ignoriert das Fach\n\nDer Drucker nimmt seit Montag Papier aus dem unteren Fach.",
        "Suche ist langsam\n\nEine Suche nach Autoren dauert nachmittags eine Minute.",
    ),
    "Russian": (
        "Принтер печатает дважды\n\nС понедельника принтер печатает каждый чек дважды. Помогает перезапуск.",
        "Чек печатается дважды\n\nПринтер печатает каждый чек дважды после обновления в понедельник.",
        "Принтер не видит лоток\n\nПринтер с понедельника берёт бумагу из нижнего лотка.",
        "Поиск медленный\n\nПоиск по автору днём занимает минуту.",
    ),
    "Chinese": (
        "打印机重复打印小票\n\n从周一开始打印机把每张小票打印两次。重启打印服务后恢复。",
        "小票重复打印\n\n周一更新以后，打印机把每张小票打印两次。",
        "打印机不识别纸盒\n\n从周一开始打印机从下层纸盒取纸。",
        "搜索很慢\n\n下午按作者搜索需要一分钟。",
    ),
    "Japanese": (
        "プリンターが二重に印刷する\n\n月曜日からプリンターが伝票を二回印刷します。再起動すると直ります。",
        "伝票が二重に印刷する\n\n月曜日の更新からプリンターが伝票を二回印刷します。",
        "プリンターが用紙トレイを無視\n\n月曜日からプリンターが下のトレイを使います。",
        "検索が遅い\n\n午後に著者の検索が一分かかります。",
    ),
    "Korean": (
        "프린터가 두 번 인쇄됨\n\n월요일부터 프린터가 영수증을 두 번 인쇄합니다. 다시 시작하면 해결됩니다.",
        "영수증이 두 번 인쇄됨\n\n월요일 업데이트 후 프린터가 영수증을 두 번 인쇄합니다.",
        "프린터가 용지함을 무시함\n\n월요일부터 프린터가 아래 용지함을 사용합니다.",
        "검색이 느림\n\n오후에 저자를 검색하면 일 분이 걸립니다.",
    ),
    "Thai": (
        "เครื่องพิมพ์พิมพ์ซ้ำ\n\nตั้งแต่วันจันทร์เครื่องพิมพ์พิมพ์ใบเสร็จทุกใบสองครั้ง",
        "ใบเสร็จพิมพ์ซ้ำ\n\nเครื่องพิมพ์พิมพ์ใบเสร็จทุกใบสองครั้งหลังอัปเดตวันจันทร์",
        "เครื่องพิมพ์ไม่เห็นถาดกระดาษ\n\nตั้งแต่วันจันทร์เครื่องใช้ถาดล่าง",
        "ค้นหาช้า\n\nการค้นหาผู้แต่งตอนบ่ายใช้เวลาหนึ่งนาที",
    ),
}


@pytest.mark.parametrize("texts", REPORTS.values(), ids=REPORTS)
def test_the_order_of_probabilities_in_any_script(texts):
    every = [text for of_language in REPORTS.values() for text in of_language]
    report, same, related, other = texts
    found = [
        SameProblem(every).probability(report, text)
        for text in (report, same, related, other)
    ]
    assert found == sorted(found, reverse=True)
    assert found[1] > found[2] + 0.05
    assert found[3] < 0.5 < found[1]


@given(
    st.lists(st.text(max_size=80), max_size=4),
    st.text(max_size=80),
    st.text(max_size=80),
)
def test_a_probability_between_0_and_1_the_same_in_both_directions(
    texts, first, second
):
    same_problem = SameProblem([*texts, first, second])
    probability = same_problem.probability(first, second)
    assert 0 <= probability <= 1
    assert probability == same_problem.probability(second, first)
    assert probability <= same_problem.probability(first, first)


def test_more_words_in_common_are_more_probable():
    words = [f"word{n}" for n in range(20)]
    others = [f"other{n}" for n in range(20)]

    def text(count):
        mixed = [*words[:count], *others[count:]]
        return f"{' '.join(mixed[:4])}\n\n{' '.join(mixed[4:])}"

    texts = [text(count) for count in range(21)]
    same_problem = SameProblem(texts)
    found = [same_problem.probability(texts[20], each) for each in texts]
    assert all(lower <= higher for lower, higher in pairwise(found))
    assert found[0] < 0.5 < 0.9 < found[20]


def test_an_original_is_weighed_once(monkeypatch):
    texts = [f"Printer {n} jams\n\nIt stops." for n in range(9)]
    same_problem = SameProblem(texts)
    read = Mock(side_effect=positives.words)
    monkeypatch.setattr(positives, "words", read)
    for text in texts[1:]:
        same_problem.probability(text, texts[0])
    assert read.mock_calls.count(call(texts[0])) == 1


def test_the_words_of_each_title_are_looked_for_in_the_other_text():
    one, reworded = (
        "Printer jams\n\nIt stops.",
        "Paper is stuck\n\nThe printer jams; the paper is stuck.",
    )
    same = SameProblem([one, reworded, "Slow search\n\nIt takes a minute."])
    assert same.similarities(reworded, reworded).title_coverage == 1
    # That of the less covered title.
    assert same.similarities(one, reworded).title_coverage == 0
    both = f"Paper is stuck and printer jams\n\n{one}"
    assert (
        same.similarities(one, both).title_coverage
        == same.similarities(both, one).title_coverage
        > 0.1
    )


def test_frequent_words_count_less():
    titles = [
        f"crash when opening {word}"
        for word in ("report", "printer", "window", "invoice", "picture")
    ]
    same_problem = SameProblem(titles)
    of_template = same_problem.probability(titles[0], titles[1])
    of_content = same_problem.probability(titles[0], "the report is empty")
    assert of_template < of_content


def test_linear_time():
    def compare(text):
        return SameProblem([text]).probability(text, text[::-1])

    assert_linear(
        compare, lambda size: "\n\n" + "".join(f"w{n} " for n in range(size // 8))
    )


@pytest.fixture
def work(tmp_path):
    """A tracker in which two tickets are closed as duplicates, one of them of a related problem."""
    closed = {"state": "closed", "closed_at": "2024-02-01T00:00:00Z"}
    states = [{}, closed | {"duplicate_of": "1"}, closed | {"duplicate_of": "1"}, {}]
    lines = []
    for number, (text, state) in enumerate(
        zip(REPORTS["English"], states, strict=True), 1
    ):
        title, _, body = text.partition("\n\n")
        created = f"2024-01-0{number}T00:00:00Z"
        ticket = {
            "id": str(number),
            "title": title,
            "body": body,
            "created_at": created,
        }
        lines.append(json.dumps(ticket | state))
    path = tmp_path / "tickets.jsonl"
    path.write_text("\n".join(lines))
    folder = tmp_path / "work"
    gis_builder.import_tracker(path, folder)
    gis_builder.detect(folder)
    return folder


def numbers(out):
    """The probability of each positive, by the numbers of its issues."""
    rows = pl.read_parquet(out / "data" / "*.parquet")
    assert rows.filter(pl.col("label") == 0)["same_probability"].is_null().all()
    found = rows.filter(pl.col("label") == 1).select(
        "number1", "number2", "same_probability"
    )
    return {
        frozenset((first, second)): value for first, second, value in found.iter_rows()
    }


def test_the_option_drops_and_counts_unlikely_pairs(work, tmp_path):
    gis_builder.pair(work, tmp_path / "all")
    every = numbers(tmp_path / "all")
    assert every.keys() == {frozenset((1, 2)), frozenset((1, 3))}
    threshold = str(every[frozenset((1, 2))])
    out = tmp_path / "strict"
    flags = ["--work", work, "--out", out, "--min-same-probability", threshold]
    ran = CliRunner().invoke(app, ["pair", *map(str, flags)])
    assert ran.exit_code == 0, ran.output
    assert numbers(out).keys() == {frozenset((1, 2))}
    counts = json.loads((out / "statistics.json").read_text())
    assert counts["dropped_positives"] == {"low_same_probability": 1}
    dropped = pl.read_parquet(work / "dropped.parquet").filter(pl.col("label") == 1)
    assert dropped.select("reason").rows() == [("low_same_probability",)]
    settings = json.loads((out / "run.json").read_text())["settings"]["pair"]
    assert settings["min_same_probability"] == float(threshold)
