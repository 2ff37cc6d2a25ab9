import pytest

from pairkit._report.markup import link, shown, table
from pairkit.notebook import escape


def test_nothing_stays_markup() -> None:
    assert escape("<b onclick='x'>\"&\x1b\u202e") == "&lt;b onclick=&#x27;x&#x27;&gt;&quot;&amp;\ufffd\ufffd"


def test_an_https_address_becomes_a_link() -> None:
    assert link("https://github.com/a/b/issues/1?a=1&b=2", "#1") == (
        '<a href="https://github.com/a/b/issues/1?a=1&amp;b=2" rel="noopener noreferrer nofollow">#1</a>'
    )


@pytest.mark.parametrize(
    "address",
    [
        "http://github.com/x",
        "javascript:alert(1)",
        " https://github.com",
        "HTTPS:x",
        "https://",
        "https://[bad",
        "https://me@evil.example/",
        "//evil.example",
        None,
        7,
    ],
)
def test_anything_else_does_not(address: object) -> None:
    assert link(address, "<text>") == "&lt;text&gt;"


def test_quotes_do_not_end_an_address() -> None:
    assert 'href="https://a.example/&quot;onclick=&quot;"' in link('https://a.example/"onclick="', "x")


def test_cells() -> None:
    assert [shown(cell) for cell in (1234, 0.6103, None, "<")] == ["1,234", "61.0&#8239;%", "–", "&lt;"]
    assert '<th scope="row">a</th><td>1</td>' in table(["x", "y"], [("a", 1)])
