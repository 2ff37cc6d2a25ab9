"""Settings, text for terminals, tables and progress."""

import io
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from rich.console import Console

from pairkit import ConfigError, Progress
from pairkit.base.cli import progress as module
from pairkit.base.cli.progress import Display, duration
from pairkit.base.cli.result_table import ResultTable
from pairkit.base.printable import (
    APOSTROPHES,
    comparable,
    escape_formulas,
    holds_no_text,
    is_blank,
    normalize,
    one_line,
    printable,
    unescape_formulas,
    without_apostrophes,
)
from pairkit.base.settings import Settings, load_settings
from pairkit.base.system.files import write_json
from pairkit.dataset.table_files import table_bytes, write_table
from tests.support.linear import assert_linear, repeated
from tests.support.shorthand import config_error, each_line, parametrize, raises, table


class Inner(Settings):
    seed: int = 42
    name: str = "a"


class Server(Settings):
    kind: str
    api_key_env: str = Field(default="", max_length=9)
    headers: dict[str, str] = Field(default_factory=dict)


class Outer(Settings):
    inner: Inner = Inner()
    ratio: float = Field(default=1.0, ge=0)
    servers: dict[str, Server] = Field(default_factory=dict)
    other: Inner | None = None


def test_layers(tmp_path):
    file = tmp_path / "c.toml"
    lines = "ratio = 2.0\n[inner]\nseed = 1\nname = 'file'\n"
    file.write_text(lines, encoding="utf-8-sig")  # as Windows' editor does
    none = {"inner.seed": None, "ratio": None}
    words = ["inner.seed=2", "inner.name=plain text"]
    merged = load_settings(Outer, none | {"inner.seed": 3}, config=file, settings=words)
    assert merged == Outer(inner=Inner(seed=3, name="plain text"), ratio=2.0)
    by_key = load_settings(Outer, none, config=str(file), settings={"inner.seed": 2})
    assert by_key.inner.seed == 2
    given = {"inner": {"seed": 4}}
    assert load_settings(Outer, {"inner.name": "b"}, settings=given).inner.name == "b"
    assert given == {"inner": {"seed": 4}}
    with config_error(r"inner\.seed"):
        load_settings(Outer, none | {"inner.seed": "seven"})


@table(
    """
    assignments, message
    ['inner.sed=3'] | unknown setting 'inner.sed'; known here: name, seed
    ['sed=3'] | unknown setting 'sed'; known here: inner, other, ratio, servers
    ['other.sed=3'] | unknown setting 'other.sed'; known here: name, seed
    ['seed=3'] | unknown setting 'seed'; did you mean inner.seed or other.seed
    ['kind=a'] | unknown setting 'kind'; did you mean servers.NAME.kind
    ['servers.x.inner=a'] | unknown setting 'servers.x.inner'; known here: api_key_env, headers
    ['servers.x.kid=a'] | unknown setting 'servers.x.kid'; known here: api_key_env, headers, kind
    ['inner.seed=1\\nratio=2'] | setting 'inner.seed' = '1.*ratio=2': expected a whole number
    ['ratio=DIGITS'] | setting 'ratio' = '999
    ['ratio=-1'] | setting 'ratio' = -1: expected at least 0
    ['inner.seed=x'] | setting 'inner.seed' = 'x': expected a whole number
    ['inner'] | expected key=value
    ['ratio=1', 'ratio.x=2'] | ratio is a value, not a section
""".replace("DIGITS", "9" * 5000)
)
def test_invalid_values(assignments, message):
    with config_error(message):
        load_settings(Outer, settings=assignments)


KEY = "gsk_Ab1cD2eF3gH4"


@parametrize(
    "settings, message",
    [
        (
            {"servers.x": {"api_key": KEY}},
            "setting 'servers.x.kind': needs a value; unknown setting",
        ),
        ({"servers.x": KEY}, "setting 'servers.x': expected names with values"),
        ({"servers": [KEY]}, "setting 'servers': expected names with values"),
        (
            {"servers.x": {"kind": "a", "api_key_env": KEY}},
            "setting 'servers.x.api_key_env': string should",
        ),
        (
            {"servers.x": {"kind": "a", "headers": {"Authorization": [KEY]}}},
            "setting 'servers.x.headers.Authorization': expected text",
        ),
        ({"inner.kye": KEY}, "unknown setting 'inner.kye'; known here"),
        ({1: KEY}, "settings = 1: expected text"),
        (
            [f"servers.x.api_key: {KEY}"],
            "setting 'servers.x.api_key': expected key=value",
        ),
        ([5, KEY], "settings = 5: expected text"),
    ],
)
def test_errors_show_no_other_values_and_no_keys(settings, message):
    with raises(ConfigError) as caught:
        load_settings(Outer, settings=settings)
    assert str(caught.value).startswith(message)
    assert KEY not in str(caught.value)


def test_invalid_toml(tmp_path):
    with config_error("no such configuration file"):
        load_settings(Outer, config=tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("a = = 1")
    with config_error("not readable as TOML"):
        load_settings(Outer, config=bad)


def test_one_line():
    assert printable("a\x1b[2Jb\tc\nd\u202ee\x9b") == "a\ufffd[2Jb\tc\nd\ufffde\ufffd"
    assert not any(map(holds_no_text, ("", "a\tb\r\nc", "\u2028\u202e\U0001f469")))
    controls = "\x00", "a\x0bb", "\x1b[31m", "\x7f", "\x9f", "half \ud83d"
    assert all(map(holds_no_text, controls))
    line = one_line("no\r\nerror: done\x1b[0m\u2028x\u0085y  \tz")
    assert line == "no error: done\ufffd[0m x y z"
    assert one_line("x" * 301) == "x" * 299 + "…"
    assert one_line("x" * 300) == "x" * 300
    assert one_line("x" * 301, None) == "x" * 301
    assert one_line(" " * 1300 + "error") == "error"
    assert one_line("a" + " " * 1199 + "b" * 500) == "a " + "b" * 297 + "…"
    assert one_line("x " * 1000) == "x " * 149 + "x…"
    assert one_line("x " * 200, 400) == "x " * 199 + "x"
    assert all(map(is_blank, ("", " \ufeff", "\U000e0020", "\ufffd")))
    assert comparable("a\x00b") == "ab"
    assert comparable("a\x00bé") == "abé"


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_printed(text):
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    line.encode()
    assert one_line(line) == line
    assert printable(printable(text)) == printable(text)


FORMS = ("NFC", "NFKC")


@parametrize("form", FORMS)
def test_normalize_limits_marks(form):
    assert normalize(form, "x" + "\u0316" * 30 + "y") == "x" + "\u0316" * 30 + "y"
    assert normalize(form, "x" + "\u0316" * 31 + "y") == "x" + "\u0316" * 30 + "y"


@parametrize("form", FORMS)
@parametrize(
    "unit", ["\u0316\u0301", "a\u0316\u0301", "\u0316", "…\u0301\u0316", "ﷺ\u0301"]
)
def test_normalize_takes_linear_time(form, unit):
    assert_linear(lambda text: normalize(form, text), repeated(unit, "same "), 200_000)


_SIGNS = st.text(alphabet="'=+-@\t\r\n＝＋－＠ ab", max_size=6)


@given(st.lists(_SIGNS | st.text(max_size=5), min_size=1, max_size=8))
def test_formulas_are_escaped_and_back(texts):
    rows = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    sheet = escape_formulas(rows)
    assert not any(
        text.startswith(tuple("=+-@\t\r\n＝＋－＠")) for text in sheet["text"]
    )
    # Exactly the texts that would be formulas without their first apostrophe.
    assert [
        re.sub(r"\A'(?='*[=+\-@\t\r\n＝＋－＠])", "", text) for text in sheet["text"]
    ] == texts
    plain = without_apostrophes(pl.col("text"))
    assert sheet.select(plain).equals(rows.select(plain))


def test_formulas_in_categories_and_names_that_differ_by_an_apostrophe(tmp_path):
    formula = "=cmd|' /C calc'!A0"
    for dtype in (pl.Categorical, pl.Enum([formula, "x"])):
        rows = pl.DataFrame({"a": pl.Series([formula, "x"], dtype=dtype)})
        assert escape_formulas(rows)["a"].to_list() == [f"'{formula}", "x"]
        plain = rows.filter(pl.col("a") != formula)
        assert table_bytes(Path("a.csv"), plain) == b"a\nx\n"
    names = ["'=a", "=a", APOSTROPHES]
    table = pl.DataFrame([["'=1"], ["''=1"], [1]], names)
    assert unescape_formulas(table).rows(named=True) == [{"'=a": "=1", "=a": "'=1"}]
    sheet = table.drop(APOSTROPHES)
    write_table(tmp_path / "a.csv", [sheet], sheet.schema)
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert [line.count(",") for line in lines] == [1, 1]


def drawn(table, width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as text:
        console.print(table)
    return [line.rstrip() for line in text.get().splitlines()]


@parametrize("width", [24, *range(60, 121)])
def test_narrow_terminal(width):
    numbers = [*range(1_000_000, 1_000_012), 3]
    table = ResultTable("model", *(f"task {place}" for place in range(12)), "mean")
    table.add_row("a folder with a long name of many words", *numbers)
    lines = drawn(table, width)
    assert max(map(len, lines)) <= width
    shown = "\n".join(lines).split()
    assert {f"{number:,}" for number in numbers} <= {*shown}


def test_cells_are_not_markup():
    table = ResultTable("who", "<b>", title="[red]")
    table.add_row("[bold]dependabot[bot]", "<script>\x1b[2J")
    assert "[bold]dependabot[bot]" in str(table)
    assert "\x1b" not in str(table)
    assert "&lt;script&gt;\ufffd[2J" in table._repr_html_()
    assert "<b>" not in table._repr_html_().replace("<b>[red]</b>", "")


class Clock:
    now = 1000.0


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module.time, "monotonic", lambda: clock.now)
    return clock


def console(*, terminal):
    return Console(
        file=io.StringIO(), force_terminal=terminal, width=120, soft_wrap=True
    )


def written(console):
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_lines_without_terminal(clock):
    log = console(terminal=False)
    with Display(console=log) as show:
        for second in range(200):
            clock.now = 1000.0 + second
            show(Progress("train", second, 400, "loss 0.50"))
    lines = written(log).splitlines()
    assert lines[0] == "train: 10 of 400 (2%), 1.0/s, 6 min 30 s left, loss 0.50"
    assert len(lines) == 4  # at 10, 70, 130 and 190 seconds


def test_bar_on_terminal(clock):
    screen = console(terminal=True)
    with Display(console=screen) as show:
        show(Progress("[b]training[/b]", 0, 10))
        clock.now += 45
        show(Progress("[b]training[/b]", 1, 10, "loss 0.5"))
    assert "[b]training[/b]" in written(screen)
    assert "1 of 10 (10%), 45 s each, 6 min 45 s left, loss 0.5" in written(screen)


def test_durations():
    seconds = (0.0421, 8.4, 65, 7_800, 273_600)
    words = "42 ms, 8 s, 1 min 05 s, 2 h 10 min, 3 d 4 h"
    assert ", ".join(map(duration, seconds)) == words


@each_line("""
    key
    sk-proj-abcdef123456789
    ghp_abcdefghijklmnopqrstuvwxyz012345
    github_pat_11ABCDEFG0abcdefghij
    hf_abcdefghijklmnop1234
    glpat-abcdefghij12345678
    AKIAIOSFODNN7EXAMPLE
    lin_oauth_0123456789ab
    sk-ant-api03-Ab1cD2eF3gH4-iJ5k_L6m
    sk-lf-12345678-90ab-cdef-1234-567890abcdef
    hf_abcdefghijklmnopqrstuvwxyzABCDEFGH
    gsk_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOP
    ghs_123456_eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc
""")
def test_messages_and_records_have_no_keys(tmp_path, key):
    assert (
        str(ConfigError(f"setting {key!r}: expected key=value"))
        == "setting '[key]': expected key=value"
    )
    write_json(tmp_path / "run.json", {"extra": {"user": key}})
    assert '"user": "[key]"' in (tmp_path / "run.json").read_text()


def test_ordinary_words_are_no_keys():
    text = (
        "sk-learn-contrib, hf_transfer_enabled, task-2024-11-28-run and the risk-based-approach-2"
        " data/gsk_2024_trials.csv, my_hf_model_2024_base, models/hf_minilm_v2_finetuned,"
        " sk-learn-contrib-2024, pk_customers_2024_11"
    )
    assert str(ConfigError(text)) == text
