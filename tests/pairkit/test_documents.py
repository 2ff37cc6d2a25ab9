from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit.extracting.formats import plain_blocks, read_markdown
from pairkit.extracting.html_blocks import (
    UnreadableDocumentError,
    opening_text,
    read_html,
)
from tests.support.linear import assert_linear, repeated

MARKDOWN = ("[a](b", "![", "*a_ ", "`", "> ", "<!", "[a]: b\n\n[a]\n", "|a")
HTML = (
    "<",
    "<!--",
    "<!",
    "<a ",
    "<a b='",
    "</",
    "<p>",
    "<script>",
    "<title>",
    "<nav>",
    "&",
)


@pytest.mark.parametrize(
    "parse, text, size",
    [
        *((read_markdown, (unit,), 16_000) for unit in MARKDOWN),
        *(
            (read_html, (unit,), 200_000)
            for unit in (*HTML, "<a href=a>x", "<br>", "\n<p")
        ),
        (read_markdown, (" ", "---\ntitle:", "\n---\n# A\n"), 400_000),
    ],
)
def test_hostile_documents_take_linear_time(parse, text, size):
    def read(content):
        with suppress(UnreadableDocumentError):  # for deep nesting
            parse(content)

    assert_linear(read, repeated(*text), size)


@given(st.text(alphabet="<>/!-abph1 =\"'&;\n#*[]()`|?."))
def test_any_text(text):
    for page in (read_html(text), read_markdown(text)):
        assert all(block.text.strip() for block in page.blocks)
    assert all(block.text.strip() for block in plain_blocks(text))


def test_opening_text():
    for text, first in (
        ("It rains, e.g. here. (Or not.) It pours.", "It rains, e.g. here. (Or not.)"),
        (
            "Die Post ist zu, bzw. ändert den Ort. Übrigens",
            "Die Post ist zu, bzw. ändert den Ort.",
        ),
        ("يمطر هنا. يتوقف هناك.", "يمطر هنا."),
        ("下雨了。他说：“走吧。”停了", "下雨了。他说：“走吧。”"),
        ("下雨了。停了", "下雨了。"),
    ):
        assert opening_text(text, len(text) - 1) == first
    assert opening_text("It rains. It pours. It stops.", 20) == "It rains. It pours."
    assert opening_text("It rains and pours", 10) == "It rains"
    assert opening_text("Donaudampfschiff", 5) == "Donau"
