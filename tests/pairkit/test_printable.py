from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit import terminal
from pairkit.errors import RemoteError
from pairkit.printable import holds_no_text, one_line, printable


def test_escapes_are_made_visible() -> None:
    assert printable("a\x1b[2Jb\tc\nd\u202ee\x9b") == "a\ufffd[2Jb\tc\nd\ufffde\ufffd"


def test_a_quotation_is_one_line() -> None:
    assert one_line("no\r\nerror: done\x1b[0m\u2028x\u0085y  \tz") == "no error: done\ufffd[0m x y z"
    assert one_line("half \ud83d") == "half \ufffd"
    assert one_line("x" * 301) == "x" * 299 + "…"
    assert one_line("x" * 300) == "x" * 300
    assert one_line("x" * 301, None) == "x" * 301


def test_what_no_text_holds() -> None:
    assert not any(map(holds_no_text, ("", "a\tb\r\nc", "\u2028\u202e\U0001f469")))
    assert all(map(holds_no_text, ("\x00", "a\x0bb", "\x1b[31m", "\x7f", "\x9f", "half \ud83d")))


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_printed(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    line.encode()
    assert one_line(line) == line
    assert printable(printable(text)) == printable(text)


def test_an_error_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise RemoteError("the server says: no\n\x1b]0;title\x07error: all is well \ud800")

    with pytest.raises(SystemExit):
        terminal.run(fail)
    said = capsys.readouterr().err
    assert said == "error: the server says: no \ufffd]0;title\ufffderror: all is well \ufffd\n"
