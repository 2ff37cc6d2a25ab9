"""Promise 4: scripts without blanks between words neither leak nor lose texts as too short."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

import gis_builder
import pairkit

# Letters or words to compose texts of, what joins them, and a polite ending, by which two reports differ.
LANGUAGES = {
    "zh": (
        "无法保存文件磁盘已满打开编辑器窗口崩溃网络连接超时用户登录失败菜单显示错误",
        "",
        "谢谢",
    ),
    "ja": (
        "ファイルを保存できない画面が真白になる設定消えた印刷時文字化け接続切断起動遅",
        "",
        "です",
    ),
    "th": ("เปิดไฟล์ไม่ได้หน้าจอดับเครือข่ายหลุดบันทึกข้อมูลพิมพ์ผิดพลาดรหัสผ่าน", "", "ครับ"),
    "ko": (
        "파일 저장 오류 화면 종료 연결 실패 설정 삭제 인쇄 글자 느림 시작 창 메뉴 로그인",
        " ",
        "감사",
    ),
    "en": (
        "file save error screen close network fail setting delete print slow start menu",
        " ",
        "thanks",
    ),
}


def tickets(language: str) -> pl.DataFrame:
    """240 tickets, of which n and n + 120 are twins; every fourth of the first is a duplicate of another."""
    units, blank, ending = LANGUAGES[language]
    drawn = random.Random(language)
    bodies = [
        blank.join(drawn.choices(units.split() if blank else units, k=60))
        for _ in range(120)
    ]
    rows = [
        {
            "id": number,
            "title": body[:30],
            "body": body + blank + (ending if number > 120 else ""),
            "created_at": f"2024-{1 + number % 12:02}-{1 + number % 28:02}T00:00:00Z",
            "duplicate_of": number + 2 if number < 120 and number % 4 == 1 else None,
        }
        for number, body in enumerate([*bodies, *bodies], 1)
    ]
    return pl.DataFrame(rows)


@pytest.mark.parametrize("language", LANGUAGES)
def test_twins_share_a_split_and_are_no_negatives(
    language: str, tmp_path: Path
) -> None:
    tickets(language).write_csv(tmp_path / "tickets.csv")
    gis_builder.import_tracker(
        tmp_path / "tickets.csv", tmp_path / "work", repo="own/desk", progress=False
    )
    gis_builder.detect(tmp_path / "work", progress=False)
    made = gis_builder.pair(tmp_path / "work", tmp_path / "pairs", progress=False)
    assert not made.statistics["rejected_issues"]
    splits: dict[int, set[str]] = {}
    for split in ("train", "validation", "test"):
        rows = pl.read_parquet(tmp_path / "pairs" / "data" / f"{split}-*.parquet")
        for one, other, label in rows.select("number1", "number2", "label").rows():
            assert label == 1 or (one - other) % 120, (
                f"twins {one} and {other} are a negative"
            )
            for number in (one, other):
                splits.setdefault(number % 120, set()).add(split)
    assert len(splits) >= 60
    assert {len(each) for each in splits.values()} == {1}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_audit_finds_a_planted_leak(language: str, tmp_path: Path) -> None:
    texts = tickets(language)["body"].to_list()
    train = pl.DataFrame(
        {"text1": texts[:40], "text2": texts[40:80], "label": [1, 0] * 20}
    )
    test = pl.DataFrame({"text1": [texts[120]], "text2": [texts[119]], "label": [1]})
    for name, rows in {"train": train, "test": test}.items():
        rows.write_parquet(tmp_path / f"{name}.parquet")
    assert pairkit.audit(tmp_path).near_identical.count == 1
    clean = test.with_columns(text1=pl.lit(texts[118]))
    clean.write_parquet(tmp_path / "test.parquet")
    assert not pairkit.audit(tmp_path).leaks
