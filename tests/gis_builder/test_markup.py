"""Markup of other trackers than GitHub: quoted, coded and struck words are nobody's claim, links are read."""

import csv
import json

import polars as pl

import gis_builder
from gis_builder.trackers.markup import to_markdown
from tests.support.linear import assert_linear, repeated
from tests.support.shorthand import parametrize, text_lines

from .detect_threads import DUPLICATE, decided, said
from .working_folder import imported, stored, verdicts

DAY, CLOSED = "2024-03-01T10:00:00Z", "2024-04-01T10:00:00Z"


def jira(number, body, comment):
    fields = {"summary": f"Crash {number}", "description": body, "created": DAY}
    if comment:
        fields |= {"status": {"name": "Closed"}, "resolutiondate": CLOSED}
        fields["comment"] = {"comments": [{"body": comment, "created": CLOSED}]}
    site = "https://jira.example.com/rest/api/2/issue/"
    return {
        "id": str(number),
        "key": f"APP-{number}",
        "self": f"{site}{number}",
        "fields": fields,
    }


def other(number, body, comment, **keys):
    """A ticket of an unknown tracker."""
    ticket = {
        "id": number,
        "title": f"Crash {number}",
        "body": body,
        "created_at": DAY,
        **keys,
    }
    if comment:
        ticket |= {"state": "closed", "closed_at": CLOSED}
        ticket["comments"] = [{"created_at": CLOSED, "body": comment}]
    return ticket


def trac(number, body, comment):
    return other(number, body, comment, changetime=CLOSED)


def redmine(number, body, comment):
    ticket = {"id": number, "subject": f"Crash {number}", "created_on": DAY}
    ticket |= {"description": body, "done_ratio": 0, "status": {"name": "New"}}
    if comment:
        ticket |= {"status": {"name": "Closed"}, "closed_on": CLOSED}
        ticket["journals"] = [{"notes": comment, "created_on": CLOSED}]
    return ticket


def gitlab(number, body, comment):
    page = f"https://git.example.com/acme/app/-/issues/{number}"
    ticket = {
        "iid": number,
        "title": f"Crash {number}",
        "created_at": DAY,
        "web_url": page,
    }
    ticket |= {"description": body, "state": "closed" if comment else "opened"}
    if comment:
        note = {
            "note": comment,
            "system": False,
            "created_at": CLOSED,
            "author": {"name": "bo"},
        }
        ticket |= {"closed_at": CLOSED, "notes": [note]}
    return ticket


def phabricator(number, body, comment):
    return other(number, body, comment) | {"id": f"T{number}"}


def bulk(root, make, bodies, comments):
    """An import of ticket 30, and of closed tickets from 101 with these bodies and comments."""
    pairs = zip(bodies, comments, strict=True)
    tickets = [make(101 + n, body, comment) for n, (body, comment) in enumerate(pairs)]
    (root / "tickets.json").write_text(
        json.dumps([make(30, "Open it and wait.", ""), *tickets])
    )
    work = root / "work"
    imported(root / "tickets.json", work)
    return work


def rich(*blocks):
    """A text of version 3 of Jira's API, from types and texts of its blocks."""
    content = [
        {"type": kind, "content": [{"type": "text", "text": text}]}
        for kind, text in blocks
    ]
    return {"type": "doc", "version": 1, "content": content}


# By tracker: closing comments that claim to duplicate ticket 30, and others that do not.
CLAIMS = {
    "jira": (
        jira,
        [
            *text_lines(r"""
                Duplicate of [APP-30|https://jira.example.com/browse/APP-30]
                Duplicate of [this one|https://jira.example.com/browse/APP-30|smart-link]
                Duplicate of [https://jira.example.com/browse/APP-30]
                Duplicate of [APP-30]
                Duplicate of {color:#205081}APP-30{color}
                Duplicate of {{APP-30}}
                h3. Duplicate of APP-30
                {quote}Duplicate of APP-30.
                \{quote}Duplicate of APP-30.\{quote}
                {panel:title=Result}\nDuplicate of APP-30\n{panel}
                {html}<p>Duplicate of <a href= "/projects/1/tickets/30" title=\n"x">APP-30</a></p>{html}
            """),
            "{quote}It crashes, too.{quote}\r\nDuplicate of APP-30.",
            rich(("blockquote", "It is APP-7."), ("paragraph", "Duplicate of APP-30.")),
        ],
        [
            *text_lines(r"""
                {quote}Duplicate of APP-30{quote}\nNo, it is another problem.
                He says {quote}Duplicate of APP-30{quote} but I disagree.
                {quote}One.{quote}\n{quote}Duplicate of APP-30.{quote}
                {quote}\n{code}\nx = 1\n{code}\nDuplicate of APP-30.\n{quote}\nReally?
                {code}\nDuplicate of APP-30\n{code}\nfixed in the last release
                {code:java|title=App.java}\n// Duplicate of APP-30\n{code}\nfixed
                {noformat:nopanel=true}Duplicate of APP-30{noformat} is the output
                -Duplicate of APP-30- fixed
                Fixed, {{duplicate of APP-30}} is printed no more.
                {html}<blockquote>Duplicate of APP-30</blockquote><p>No.</p>{html}
            """),
            "{quote}\r\nDuplicate of APP-30\r\n{quote}\r\nNo, it is not.",
            "bq. Duplicate of APP-30\r\n\r\nNo, it is another problem.",
            rich(("blockquote", "Duplicate of APP-30."), ("paragraph", "No.")),
            rich(("codeBlock", "Duplicate of APP-30."), ("paragraph", "fixed")),
            {
                "content": [
                    {"text": "Duplicate of APP-30", "marks": [{"type": "strike"}]}
                ]
            },
        ],
    ),
    "trac": (
        trac,
        [
            "Duplicate of ticket:30",
            "Duplicate of comment:3:ticket:30.",
            "Duplicate of [ticket:30 the crash]",
            "{{{#!div style=red\nDuplicate of #30\n}}}",
            "{{{\n{{{\nx\n}}}\n}}}\nDuplicate of #30",
        ],
        [
            "{{{\nduplicate of #30\n}}}\nfixed",
            "{{{\n#!python\n# duplicate of #30\n}}}\nfixed",
            "{{{\n{{{\nx\n}}}\nDuplicate of #30\n}}}",
            "Prints {{{duplicate of #30}}} no more",
            "> Duplicate of #30\nNo.",
        ],
    ),
    "redmine": (
        redmine,
        [
            'Duplicate of "Bug 30":https://desk.example.com/issues/30',
            "bq. Seen here as well.\n\nDuplicate of #30",
            "@x = 1@\n\nDuplicate of #30",
        ],
        [
            "bq. It crashes as well.\nDuplicate of #30\n\nNo, it is another problem.",
            "bc. duplicate of #30\n\nfixed",
            '<pre><code class="sql">\nduplicate of #30\n</code></pre>\nfixed',
            "-Duplicate of #30- fixed",
            "> Duplicate of #30\n\nNo.",
            "Prints @duplicate of #30@ no more",
        ],
    ),
    "gitlab": (
        gitlab,
        [
            "/duplicate #30\n/close",
            "Duplicate of #30+",
            "Duplicate of acme/app#30",
            "Duplicate of https://git.example.com/acme/app/-/issues/30.",
            "Duplicate of [this one](https://git.example.com/acme/app/-/issues/30)",
            "Duplicate of <a href='https://git.example.com/acme/app/-/issues/30'>this one</a>",
        ],
        [
            "> /duplicate #30\n\nNo.",
            ">>>\nSeen.\n\n/duplicate #30\n>>>\n\nNo.",
            "{quote}\n/duplicate #30\n{quote}\nNo.",
            "Duplicate of https://git.example.com/other/app/-/issues/30",
            "Duplicate of https://git.example.org/acme/app/-/issues/30",
        ],
    ),
    "html": (
        other,
        [
            "<p>Seen.</p><p>Duplicate of #30.</p>",
            '<div><a href="https://example.com/30">Bug #30</a> is the same bug, closing as duplicate.</div>',
            "<blockquote>It crashes.</blockquote><p>Duplicate of #30</p>",
        ],
        [
            "<p>&gt; Duplicate of #30</p><p>No.</p>",
            "<p>This isn&#39;t a duplicate of #30.</p>",
            "<div>He says:<blockquote><p>Duplicate of #30</p></blockquote>No.</div>",
            "<p>Prints <code>duplicate of #30</code> no more</p>",
            "<p><s>Duplicate of #30</s> fixed</p>",
            "<div><pre>duplicate of #30</pre></div>",
        ],
    ),
    "phabricator": (
        phabricator,
        ["Duplicate of T30", "Duplicate of {T30}", "NOTE: Duplicate of T30."],
        ["> Duplicate of T30\n\nNo.", "```lang=c\nDuplicate of T30\n```\nfixed"],
    ),
}


@parametrize("name", CLAIMS)
def test_closing_comments_of_a_known_tracker(tmp_path, name):
    make, claims, others = CLAIMS[name]
    comments = [*claims, *others]
    work = bulk(tmp_path, make, ["Wait."] * len(comments), comments)
    found = {
        ticket.partition("#")[2]: targets
        for ticket, (_, targets, _) in verdicts(work).items()
    }
    named = [str(comment) for n, comment in enumerate(comments) if found[str(101 + n)]]
    assert named == [str(comment) for comment in claims]


def test_comments_in_a_table_of_jira(tmp_path, work):
    header = ["Issue key", "Summary", "Created", "Resolved", "Status", "Comment"]
    comments = [
        "{code}Duplicate of AB-30{code} is printed",
        "-Duplicate of AB-30- fixed",
        "Duplicate of AB-30",
    ]
    rows = [
        [f"AB-{n}", "Crash", DAY, CLOSED, "Closed", f"{CLOSED};bo;{text}"]
        for n, text in enumerate(comments, 31)
    ]
    with (tmp_path / "jira.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [header, ["AB-30", "Crash", DAY, "", "Open", ""], *rows]
        )
    imported(tmp_path / "jira.csv", work)
    assert [targets for _, targets, _ in verdicts(work).values()] == [
        [],
        [],
        [],
        ["tickets/jira#30"],
    ]


# Signs that cannot be anything else count in any text, also of GitHub.
ANYWHERE = text_lines(r"""
    Duplicate of <a href="https://github.com/o/n/issues/30">#30</a>
    Duplicate of <a href="https://github.com/o/n/issues/30">this one</a>
    <p>Duplicate of <a href="https://dev.example.com/_workitems/edit/30" data-vss-mention="1">#30</a></p>
    Duplicate of <a class="external" href="http://tracker.example.com/issues/30">Bug #30</a>
    Duplicate of <a class=x href='/o/n/issues/30'>#30</a>.
    Duplicate of [url=https://github.com/o/n/issues/30]this one[/url]
    [b]Duplicate of #30[/b]
    [quote=bob]It crashes.[/quote]\nDuplicate of #30
    {quote}One{quote} Duplicate of #30. {quote}Two{quote}
    The route /errors/{code} and {code}. Duplicate of #30
    `{quote}` is printed. Duplicate of #30. `{quote}`
    Duplicate of {color:#123}#30{color}
    [quote]It crashes.[quote]\nDuplicate of #30
    <a id="c3"></a>Comment 3:\n\n<pre>Duplicate of <a href="https://example.com/30">issue #30</a>.</pre>
""")
NOWHERE = text_lines(r"""
    {quote}Duplicate of #30{quote}\nNo, it is another problem.
    {code}\nDuplicate of #30\n{code}\nfixed in the last release
    {noformat}\nduplicate of #30\n{noformat}
    bq. Duplicate of #30\n\nNo, it is another problem.
    bc. Duplicate of #30\n\nfixed
    [quote=bob]Duplicate of #30[/quote] No.
    [QUOTE author=bob link=x][quote]Yes.[/quote]Duplicate of #30[/QUOTE] No.
    [code=java]duplicate of #30[/code] fixed
    {{{\nduplicate of #30\n}}}\nfixed
    <blockquote>Duplicate of #30</blockquote> No.
    <pre>duplicate of #30</pre>
    <del>Duplicate of #30</del> fixed
    [s]Duplicate of #30[/s] fixed
    [quote="bob, post:2, topic:30"]\nDuplicate of #30\n[/quote]\nNo.
    The colour is {color:#30}red{color}. Duplicate.
""")


@parametrize("comment", [*ANYWHERE, *NOWHERE])
def test_closing_comments_of_any_tracker(tmp_path, comment):
    expected = (30,) if comment in ANYWHERE else ()
    verdict = decided(said("mia", comment))
    assert tuple(target.number for target in verdict.targets) == expected
    assert (verdict.outcome is DUPLICATE) is bool(expected)
    if "github.com" not in comment:
        work = bulk(tmp_path, other, ["Wait."], [comment])
        assert len(verdicts(work)["tickets/tickets#101"][1]) == len(expected)


# Texts, and what they become.
TEXTS = {
    jira: r"""
        He says {quote}One.\nTwo.{quote} No. => He says \n> One.\n> Two.\n\n No.
        {code:java|title=x}\na = `b`\n{code}\r\nEnd. => ```\na = `b`\n```\nEnd.
        {noformat}\n```\n{noformat} => ````\n```\n````\n
        bq. One.\nTwo. => > One.\n\nTwo.
        [here | https://a.example] [https://b.example] => [here](https://a.example) https://b.example
        [https://a.example|https://a.example|smart-link] => https://a.example
        [^log.txt] !a.png|thumbnail! !my shot.png! [~ann] => log.txt ![](a.png) ![my shot.png]() @ann
        h2. Steps\n{color:#205081}Open{color} {{x.y}}, -not- 2-3, a--b => ## Steps\nOpen `x.y`, ~~not~~ 2-3, a--b
        {panel:title=Log|x=y}\none\n{panel} => **Log**\none\n
        {quote}One {code} two, a[0|1], wow! => {quote}One {code} two, a[0|1], wow!
    """,
    trac: r"""
        == Steps ==\n[https://a.example here] {{{x}}} => ## Steps\n[here](https://a.example) `x`
    """,
    redmine: r"""
        h2. Steps\n\n"here":https://a.example. @x@ !a.png! => ## Steps\n\n[here](https://a.example). `x` ![](a.png)
        Mail @ann and @bob\r\nEnd. => Mail @ann and @bob\r\nEnd.
    """,
    other: r"""
        [quote=bob]One.[quote]Two.[/quote][/quote] No. => > One.\n> > Two.\n\n No.
        [url=https://a.example]here[/url] [i]a[/i] => [here](https://a.example) a
        -a b- {{x}} [a|b] !x! h2. c @d@ {code} x[i] /{code} => -a b- {{x}} [a|b] !x! h2. c @d@ {code} x[i] /{code}
        `{quote}` ```{color:red}```\n```\n[b]a[/b]\n```\n[b]c[/b] => `{quote}` ```{color:red}```\n```\n[b]a[/b]\n```\nc
        <p>One<br>two.</p><ul><li>a</li></ul><pre>x &lt; y</pre> => One\ntwo.\n\n- a\n```\nx < y\n```
        <p><a href="https://a.example">b</a> <s>c</s> <img src="x" alt="d"></p> => [b](https://a.example) ~~c~~ ![d]()
    """,
    gitlab: r"""
        bq. One.\n[b]a[/b] {quote}b{quote}\r\n => bq. One.\n[b]a[/b] {quote}b{quote}
    """,
}


@parametrize("make", TEXTS)
def test_bodies_become_markdown(tmp_path, make):
    own = [line.split(" => ") for line in text_lines(TEXTS[make])]
    texts = [body.replace("\\r", "\r") for body, _ in own]
    work = bulk(tmp_path, make, texts, ["Fixed."] * len(own))
    bodies = stored(work, "SELECT body FROM issues WHERE number > 100 ORDER BY number")
    assert bodies == [expected.replace("\\r", "\r") for _, expected in own]


def test_the_dataset_has_words_and_code_without_markup(tmp_path):
    body = "h2. Steps\n{color:red}Open{color} !a.png!\n{code}\nrun()\n{code}\n{quote}Slow; see APP-30.{quote}"
    work = bulk(tmp_path, jira, [body], ["Fixed."])
    texts = pl.read_parquet(gis_builder.render(work, tmp_path / "texts.parquet").out)
    (text,) = texts.filter(number=101)["text"]
    assert text == "Crash 101\n\n## Steps\nOpen\n```\nrun()\n```\n> Slow."


UNITS = [
    *text_lines(r"""
        {quote}a
        {quote
        {code}\n
        {code:a
        bq. x\n
        bc. x\n\n
        {panel:title=
        [quote]
        [quote][/quote]
        [code]x
        [url=https://x.y/
        [b]x[/
        {{{\n
        {{{#!div\n
        <a href='http://x'>a
        <pre>
        <blockquote>
        <blockquote></blockquote>
        <img alt="a
        [a|http://x
        [^a
        !a
        "a":http://
        {{a
        comment:1:
        {html}<p>
    """),
    "{noformat}x ",
    "<a href ",
    "-a b- ",
    " -a",
    "@a ",
    "= a ",
    "=" + " " * 200,
    "<a " + "href=http://" * 110 + "x" * 1500,
]


@parametrize("kind", ["any", "jira", "trac", "textile", "html"])
def test_hostile_texts_take_linear_time(kind):
    start, end = ("<p>", "</p>") if kind == "html" else ("", "")
    for unit in UNITS:
        assert_linear(
            lambda text: to_markdown(text, kind), repeated(unit, start, end), 16_384
        )


def test_hostile_nesting_is_bounded():
    nested = "[quote]" * 50_000 + "a" + "[/quote]" * 50_000
    assert len(to_markdown(nested, "any")) < 2 * len(nested)
