import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gis_builder.pairing.references import cut
from gis_builder.pairing.text import clean, render, render_issues, template_lines
from gis_builder.settings import TextSettings
from gis_builder.store.issue_records import Issue
from tests.support.linear import assert_linear, repeated
from tests.support.shorthand import (
    each_line,
    parametrize,
    table,
    text_lines,
    text_table,
    values,
)

REPO = "o/n"


def issue(number=1, title="Crash on start", body="It dies at once.", *, pull=False):
    return Issue(
        REPO,
        number,
        title,
        body,
        "open",
        None,
        "a",
        "NONE",
        "2020-01-01T00:00:00Z",
        "",
        None,
        None,
        pull,
    )


def test_a_text_is_title_empty_line_body():
    assert render(issue()).text == "Crash on start\n\nIt dies at once."
    assert render(issue(body="")).text == "Crash on start"
    assert render(issue(title="[duplicate]")).text == "It dies at once."
    assert render(issue(title=" Crash\r\non  start ")).text.startswith(
        "Crash on start\n\n"
    )


@parametrize(
    "raw, cleaned",
    [
        *values(
            r"""
                "cafe\u0301" | café
                "a\r\nb\rc\u2028d" | "a\nb\nc\nd"
                "nul\x00 bell\x07 half\ud83d tab\tstays" | "nul bell half tab\tstays"
                c:\users\ann\y, C:\\Users\\ann\\y | c:\users\user\y, C:\\Users\\user\\y
                C:\Documents and Settings\Ann Lee\y | C:\Documents and Settings\user\y
                C:\Users\Jane van Doe\y and C:\Users\ann or D:\x | C:\Users\user\y and C:\Users\user or D:\x
                "ＡＢ ＃１２ (＃１３) and #\u200b14, as #1\xad5 does" | ＡＢ, as another issue does
            """,
        ),
        *text_table(r"""
        emoji 😀 stays | emoji 😀 stays
        - [x] I searched for duplicates\n- [ ] fix the parser | - [ ] fix the parser
        ## Check for duplicates\n- [x] By posting this, I agree to it\nDies | Dies
        ## Have you searched?\n- [x] Confirmed that it isn't known\nDies | Dies
        ### Is there an existing issue for this?\n- [X] I have searched the existing issues\nDies | Dies
        ![the stack](https://e.x/a.png) and <img src='a' alt='b'> | the stack and b
        by **rob.p**:\n\n<pre>if a &lt; b &amp;&amp; c</pre> | if a < b && c
        see <a href="http://e.x/cl/1">http://e.x/cl/1</a> | see http://e.x/cl/1
        `<pre>` and Vec<T> stay; `&amp;` is written out | `<pre>` and Vec<T> stay; `&` is written out
        &lt;br&gt;, &lt;img src="x"&gt;, &amp;lt;p&amp;gt; | &lt;br&gt;, &lt;img src="x"&gt;, &lt;p&gt;
        &amp;amp; or <br>&amp;lt; | &amp; or &lt;
        `x <br> y` and ``a ` <p>``<br>end | `x <br> y` and ``a ` <p>`` end
        `![x](y)` or<br>`<img alt="z">` | `![x](y)` or `<img alt="z">`
        a Vec<a> and a List<p>, in Java<p>it fails | a Vec<a> and a List<p>, in Java it fails
        <Img alt="a logo" src="y"> <img data-alt="x" alt='y'> | a logo y
        <img alt="a &gt; b" src="y"> is shown | a > b is shown
        one.<br>two <br/> three<br>\nfour <a href='x'>five</a>s | one. two  three\nfour fives
        <p>one</p><div>two</div> | one  two
        ```html\n<pre>&lt;</pre>\n``` | ```html\n<pre>&lt;</pre>\n```
        What steps will reproduce the problem?\n1. run it | 1. run it
        What is the expected output? What do you see instead?\nA crash | A crash
        It dies.\n\ncc @ann, @bob and @zoe | It dies.
        /home/user-ann/x and /home/user.bo/y, /home/user. | /home/user/x and /home/user/y, /home/user.
        https://docs.e.x/home/install.html, GET /Users/search | https://docs.e.x/home/install.html, GET /Users/search
        http://localhost:80/@fs/home/ann/x https://e.x/?f=/home/ann | http://localhost:80/@fs/home/user/x https://e.x/?f=/home/user
        d:/users/ann/y, /Users/Ann Lee/y | d:/users/user/y, /Users/user/y
        ann@thinkpad:~$ make\nit dies | user@host:~$ make\nit dies
        > root@3f2a:/var/log# tail\nann@mac> | > user@host:/var/log# tail\nuser@host>
        ```py\nx = 1  # 2\n\n\n#\n``` | ```py\nx = 1  # 2\n\n#\n```
        - #12\n- #13 |
        It dies. Ｄｕｐｌｉｃａｔｅ ｏｆ ＃１２. | It dies.
        """),
        ("\n \n    if cc @ann:\n        die\n", "    if cc @ann:\n        die"),
        ("\n  It dies.\n", "It dies."),
    ],
)
def test_the_rules(raw, cleaned):
    assert clean(raw) == cleaned


@each_line("""
    line
    - [ ] Implement full-text search
    - [ ] Confirm dialog appears twice
    - [ ] Search box loses focus
    - [ ] Checked rows are lost if the file already exists
    - [ ] Cannot read the file
    ## Crash when merging duplicates
    ### Rows are duplicated
    ## Only the first page is searched
""")
def test_tasks_and_headings_of_an_issue_stay(line):
    assert clean(f"It dies.\n{line}\nAlways.") == f"It dies.\n{line}\nAlways."


PEOPLE = [  # `ann` and `bob-7` are people
    *text_lines(r"""
    It dies. cc @ann and @bob-7
    Thanks to @ann for the report
    @ann, could you look?
    @ann and @bob-7 reported it
    As @ann said above
    It dies (hat tip: @ann)
    I talked to @ann about it
    This is @ann's patch
    *Updated by @ann*
    Hello @ann! It dies
    谢谢@ann的报告
    It dies.\n\n@ann\n\nAlways.
    It dies. -- @ann
"""),
    "It dies.\r\n\r\n@ann\r\n",
    "Legal (from @ann): no. @bob-7 Are you sure?",
    "_From @ann on March 3, 2016 10:00_",
    "It dies. @ann ^^",
    "[via @ann](http://e.x/a)",
]
PROGRAMS = [  # nobody
    *text_lines("""
    Use @property instead
    The @media query is ignored
    @types/node and @babel/core, you know
    @Override on the method, please
    Meet at @ 10:00
    @Component has no effect
    @Inject, I get an error
    Thanks to @property it's cached
    `cc @ann` and `@ann said`
"""),
    "It dies\n\n    @ann, you\n",
    *text_lines(r"""
    @Test(timeout=3) hangs
    @property\ndef foo(self): pass
    npm i @angular/cli@1.2.3, please
    domain main @0x7f8a7b815e10 said
    since @c5194740a78e, can you see
    @foo.bar is a decorator, can you
    https://e.x/@ann, you
    git@e.x:a/b.git
    install @latest, you get an error
    Fixed by @JsonIgnore
    @ts-ignore, please remove
    an @Trait object, a @mut one
    ```\ncc @ann\n```
"""),
]


@parametrize("text", [*PEOPLE, *PROGRAMS])
def test_login_names_of_people_are_replaced(text):
    counts = Counter()
    expected = re.sub("@(ann|bob-7)", "@user", text) if text in PEOPLE else text
    assert clean(text, counts) == expected.replace("\r", "").strip()
    assert counts["person"] == (text in PEOPLE and text.count("@"))


@each_line(r"""
    text, left
    Signed-off-by: Ann Lee <a@b.org> | Signed-off-by: user <[email]>
    From: Éva O'Hara-Ito <a@b.org> | From: user <[email]>
    ```\nAuthor: 张伟 <a@b.org>\n``` | ```\nAuthor: user <[email]>\n```
    authors = ["Ann <a@b.org>"] | authors = ["user <[email]>"]
    Ask [~ann.lee] or [~accountid:5f:a-b] | Ask [~user] or [~user]
    write to <a@b.org> | write to <[email]>
""")
def test_names_before_addresses_are_replaced(text, left):
    assert clean(text) == left


def test_removed_parts_are_counted_by_kind():
    body = (
        "<!-- x -->\nDuplicate of #2.\nSee #2, o/n#2 and #7. Write to a@b.org.\n![i](u)"
    )
    rendered = render(issue(body=body))
    once = dict.fromkeys(("duplicate_note", "email", "html_comment", "image"), 1)
    assert rendered.removed == once | {"issue_reference": 3}
    assert rendered.text == "Crash on start\n\nWrite to [email].\ni"


WORDS = "duplicate| of |#12|issue |12|dup|same as |this is a |, |. |[x]|](|see |cf. |a/b#12 |related |to |crash "
MARKUP = "```\n|<!--|-->|\n| |(|)|- [ ] |a@b.org |@ann |Ann <a@b.org>|cc |&lt;|&gt;|<br>|Vec<a>|`|    "
TOKENS = ["https://github.com/o/n/issues/3 ", "ghp_" + "a1" * 15 + " "]


@given(
    st.text(st.sampled_from("ab1#/[]()<>!-`~ \n\x00:@.*_é\u0301"), max_size=80)
    | st.lists(
        st.sampled_from([*WORDS.split("|"), *MARKUP.split("|"), *TOKENS]), max_size=14
    ).map("".join)
)
def test_cleaning_removes_references_and_is_idempotent(text):
    once = clean(text)
    assert clean(once) == once
    assert "github.com" not in once
    assert "ghp_" not in once


@given(st.text(max_size=200), st.text(max_size=300))
def test_rendering_never_raises_and_gives_valid_text(title, body):
    text = render(issue(title=title, body=body)).text
    assert text == text.strip()
    assert text.encode().decode() == text
    assert not set(text) & set("\x00\r\ufeff")


TEMPLATE = text_lines("""
    ### Expected behavior
    **Describe the bug**
    What version do you use?
    - Steps to reproduce:
    Please answer these questions before submitting.
    Before filing a bug:
    提交前请回答以下问题。
    操作系统是什么？
""")
OWN_LINES = [
    "Thanks!",
    "Windows 10",
    "- OS: Windows",
    "package main",
    "谢谢！",
    "Example:",
    "    What is indented?",
    "```\nWhat is in code?\n```",
    "It is 3 days old now again",
]


@parametrize("line", [*TEMPLATE, *OWN_LINES])
def test_lines_of_templates_are_removed(line):
    is_removed = line in TEMPLATE
    body = "Crash {}.\n```\nfn main()\n```\n{}\nIt ends."
    bodies = [body.format(n, line if n % 20 == 0 else "") for n in range(1, 2_501)]
    line_ends = ("\r\n", "\r", "\n")
    issues = [
        issue(n, body=text.replace("\n", line_ends[n % 3]))
        for n, text in enumerate(bodies)
    ]
    template = template_lines(issues)
    text = render(issues[19], template=template).text
    assert text == f"Crash on start\n\n{body.format(20, '' if is_removed else line)}"
    rendered = render_issues(issues[19:20], {REPO: template}, TextSettings())
    assert rendered.removed["template_line"] == is_removed


def test_a_rare_line_and_a_small_repository_have_no_template():
    asking = [
        issue(n, body="What did you expect?" if n % 10 == 0 else f"Crash {n}")
        for n in range(99)
    ]
    assert template_lines(asking) == frozenset()
    assert template_lines([*asking, issue(pull=True)]) == frozenset()
    assert template_lines([*asking, issue()]) == {"What did you expect?"}
    assert (
        template_lines([*asking, *(issue(n, body=f"Crash {n}") for n in range(200))])
        == frozenset()
    )


@table(r"""
    before, unit
    issue | " "
    "" | issues/1-
    "" | "dup #1\n"
    "# " | duplicat
    "" | "\u0301\u0316"
    "" | "<!--\n```\n```\n"
    "" | "<a "
    "" | "&lt;a "
    "" | "Vec`a`<p>"
    "" | "- [ ] I search, "
    "" | "- [ ] search\n"
    "" | "## is duplicates "
    "" | "https://a/home/"
    "" | &amp;
    "" | "cc @a, @b\n"
    cc | " @a"
    "" | "@a, "
    "" | "x @a and "
    "" | "spoke "
    "" | "\n@a\n"
    "" | "A <a@b.org> "
    "" | `@a
    "" | /home/
    "" | "a clear and concise description of "
    "" | "same as #1 "
    "" | ![a](
    "Hello\n@ann" | " "
    "" | "issues 1, "
    "" | "C:\\Users\\a b "
    "" | a@b:
""")
def test_hostile_bodies(before, unit):
    assert_linear(clean, repeated(unit, before))


def test_a_replacement_is_not_merged_with_a_removed_reference():
    text = "It fails (see #12), and #13 broke it"
    assert cut(text, [(9, 18), (24, 27)], {24: "another issue"}) == (
        "It fails, and another issue broke it"
    )


# Words that only introduce a removed reference are removed with it.
PREPOSITIONS = ("about", "by", "in", "of", "since", "via", "with")
CLAUSES = text_lines(r"""
    blocked
    follow-up
    it's
    might
    part
    probably
    these
    tracking
""")


@parametrize(
    "text, left",
    [
        *text_table(r"""
        It fails (see also issue #12 and #13). | It fails.
        It fails (cf. #12), always. | It fails, always.
        It fails. (See #12.) Always. | It fails. Always.
        It fails ( #12 ) always. | It fails always.
        It fails. Possibly related to #12, #13. It is bad. | It fails. It is bad.
        It fails, see #12. | It fails.
        It fails.\n\nThis is related to https://github.com/a/b/issues/12 | It fails.
        See #12 for details. |
        The parser fails (see #12 for more details). | The parser fails.
        # The clause has other content: only the preposition is removed.
        This portion of #12. | This portion.
        It fails such as in issue #12. | It fails.
        We hit this bug #12. | We hit this bug.
        It fails. Spawned off of (#12). | It fails.
        It fails on start (#12). | It fails on start.
        # The sentence needs the reference.
        Since PR #12 the parser fails. | Since another issue the parser fails.
        #12 broke this, pull request #13 did not. | Another issue broke this, another issue did not.
        My patch fixes #12 and #13. | My patch fixes another issue.
        Unlike #12, it fails. | Unlike another issue, it fails.
        I think #12 broke this. | I think another issue broke this.
        Since yesterday #12 fails. | Since yesterday another issue fails.
        This and o/n#12 fail. | This and another issue fail.
        Bugs #12 and #13 were closed. | Another issue were closed.
        - #12 parser fails | - parser fails
        It fails in #12 5 times. Fixing #12: 5 tests. | It fails in 5 times. Fixing: 5 tests.
        See [this comment](https://github.com/o/n/issues/1) for it. | See this comment for it.
        # Nothing introduces the reference.
        The parser #12 fails. | The parser fails.
        Do you see the window? | Do you see the window?
        I can not see. | I can not see.
        What this is related to. | What this is related to.
        """),
        *((f"It crashes {word} #12.", "It crashes.") for word in PREPOSITIONS),
        *(
            (f"It crashes. {word} #12.", "It crashes.")
            for word in (*PREPOSITIONS, *CLAUSES)
        ),
        *(
            (f"It crashes ({word}. #12).", "It crashes.")
            for word in ("cf", "ref", "refs", "re")
        ),
    ],
)
def test_introductions_of_references_are_removed(text, left):
    assert clean(text) == left
