"""References to issues, and notes that an issue is a duplicate, found by their form."""

from gis_builder.pairing.duplicate_notes import find_duplicate_notes
from gis_builder.pairing.references import cut, reference_spans
from tests.support.shorthand import each_line, parametrize, text_lines


def without(text):
    return cut(text, reference_spans(text))


def without_notes(text):
    return cut(text, find_duplicate_notes(text, reference_spans(text)))


@each_line("""
    text, left
    as in (#12, #13 and #14) before | as in before
    in cargo#123 too | in too
    issue#123 |
    GH-12 and gh-13 |
    Issue no. 12 | Issue
    Bug: 77 | Bug
    issues 12, 13 and 14 are | issues are
    http://github.com/o/n/pull/12/files#r43 is | is
    https://github.com/o/n/issues/12#issuecomment-99, then | , then
    api.github.com/repos/o/n/issues/12 |
    ../issues/12 |
    http://localhost:8080/o/n/issues/3 |
    <https://github.com/o/n/issues/12> |
    [this crash](https://github.com/o/n/issues/12) again | this crash again
    [#12](https://github.com/o/n/issues/12) again | again
    cf. pull/77 | cf.
    discussions/5 says so | says so
    与#12重复 | 与重复
    这个issue 12 | 这个issue
    见GH-12 | 见
    issue123 | issue
    [a](https://github.com/o/n/issues/12 b | [a]( b
    a](https://github.com/o/n/issues/12) b | a] b
    1/#12 | 1/
    {a}:#12 b | {a}: b
    a:#12 b | a: b
    '#123 b | ' b
    a; #123; | a;;
    x1issue 13 | x1issue
    (#12x) #12. | (#12x).
""")
def test_references_are_removed(text, left):
    assert without(text) == left


@parametrize(
    "text",
    [
        *text_lines(r"""
        color: #123456
        "#123456"
        C#7 and F#4
        &#39;
        {:#10} {:#010x}
        r#1 a_#1
        #12 0x00007f in main () at a.c:3
        #3  raise () from /lib64/libc.so.6
    """),
        "    frame #2: 0x0000 a`main",
        *text_lines("""
        unnamed_addr #1 {
        tree/bug-2014-09-28
        Result<<generic #15>, E>
        issue 1.5 of the journal
        re-pull/12
        my_pull/12
        a/#12
        a '#123' b
        _pull/12
        #12345678
        color: #123
        a: #123;
        a:#123456;
        '#123'
    """),
    ],
)
def test_other_texts_stay(text):
    assert without(text) == text


def test_a_link_without_words_is_removed_whole():
    assert without("a [](pull/77) b") == without(
        "a [](https://github.com/o/n/pull/77) b"
    )
    assert reference_spans("[](pull/77)") == [(0, 1), (1, 11)]


@each_line("""
    text, left
    [duplicate] Crash on start | Crash on start
    Crash on start (duplicate) | Crash on start
    DUPLICATE: crash on start | crash on start
    Crash on start [dup of #12] | Crash on start
    Crash on start (dup of #12) | Crash on start
    EDIT: duplicate of #12 |
    **Duplicate of #12** |
    Duplicate of owner/name#12. |
    Duplicate of 1234 |
    Closing as duplicate. |
    closing as a dupe of https://github.com/o/n/issues/3 |
    It crashes. This is a duplicate of #12 and #13. It burns. | It crashes. It burns.
    Sorry if this is a duplicate, but the window hangs | but the window hangs
    I couldn't find any duplicates. |
    Possibly a dupilcate of #4 |
    #12, of which this is a duplicate |
    Closing in favour of #12 |
    Superseded by #12. |
    Same issue as #12 |
    Already tracked in #12. |
    Duplicate of [the crash on start](https://github.com/o/n/issues/3) |
    Not a duplicate of #12 |
    Es hängt. Ist das ein Duplikat von #12? Bei mir auch. | Es hängt. Bei mir auch.
    Même problème que #12, mais le journal reste vide | mais le journal reste vide
    打不开。与 #12 重复。 | 打不开。
    #12 と同じ問題です。落ちます。 | 落ちます。
    Sorry, doppelt gemeldet. |
    落ちます。重複でしたらすみません。 | 落ちます。
    抱歉重复提交了 |
    Возможно, дубликат #1 |
    Es hängt. #12 ist ein Duplikat von diesem. | Es hängt.
    #12 это дубликат этой задачи. Падает. | Падает.
""")
def test_notes_are_removed(text, left):
    assert without_notes(text).strip() == left


@parametrize(
    "text",
    [
        "Duplicate symbols when linking",
        "重复点击按钮会崩溃",
        "Die Liste zeigt jeden Eintrag doppelt, danke",
        "数据重复",
        "行が重複します",
    ],
)
def test_texts_without_a_note_stay(text):
    assert without_notes(text) == text
