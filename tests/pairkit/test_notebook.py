from __future__ import annotations

from pairkit.notebook import html_table


def test_a_table_says_what_it_is_given_and_does_nothing() -> None:
    page = html_table(
        ["split", "<pairs>"], [["train", 1234], ["<img onerror=x>", None]], title="a & b", note='"n"'
    )
    assert page == (
        '<table><caption style="text-align:left"><b>a &amp; b</b></caption><thead><tr>'
        '<th style="text-align:left">split</th><th style="text-align:right">&lt;pairs&gt;</th></tr></thead>'
        '<tbody><tr><td style="text-align:left">train</td><td style="text-align:right">1,234</td></tr>'
        '<tr><td style="text-align:left">&lt;img onerror=x&gt;</td><td style="text-align:right">–</td></tr>'
        "</tbody></table><p><small>&quot;n&quot;</small></p>"
    )
