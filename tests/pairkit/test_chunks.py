"""Documents of all formats as chunks."""

import io
import zipfile
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit.extracting.chunks import split_into_chunks
from pairkit.extracting.documents import Document, read_documents
from pairkit.extracting.formats import plain_blocks, read_markdown
from pairkit.extracting.html_blocks import (
    Block,
    UnreadableDocumentError,
    opening_text,
    read_html,
)
from tests.support.linear import assert_linear, repeated
from tests.support.shorthand import config_error, parametrize, values


def words(texts):
    return [len(text.split()) for text in texts]


def chunks_of(folder, max_tokens=200):
    documents, _ = read_documents(folder, None, lambda _: None)
    return {
        each.name: list(split_into_chunks(each, words, max_tokens))
        for each in documents
    }


def rows_of(tmp_path, name, content):
    """Title, text, anchor and lines of each chunk."""
    (tmp_path / name).write_text(content)
    (chunks,) = chunks_of(tmp_path).values()
    return [
        (each.title, each.text, each.anchor, f"{each.first}-{each.last}")
        for each in chunks
    ]


MARKDOWN = """\
---
title: "The guide"
---
# Pumps {#all-pumps}

A pump moves
water.

## Parts

* a valve
* a `Vec<T>`

```python
/// not a box
run()
```

/// tip | Look

Oil it.

///

!!! note "Mind"
    Not by night.

{* docs_src/a.py hl[1] *}

| no | part |
|----|------|
| 1  | lid  |

## Empty
"""
RST = """\
Pumps
=====

.. note:: Mind the :ref:`lid <the-lid>` of :class:`~pumps.Pump`.

.. option:: --fast

   Runs *fast*.

.. code-block:: python
   :caption: a.py

   run()

.. toctree::

   other

.. _the-lid:

Parts
-----

Has a lid.
"""
HTML = """\
<html><head><title>Pumps - The guide</title><link rel=canonical href="https://a.example/p"></head><body>
<header><h2>Shop</h2></header><nav>Menu</nav><div class="breadcrumbs">Home / Pumps</div>
<main><header><h1 id=p>Pumps <a href="#p">#</a></h1></header><p>A pump moves water.</p>
<details><summary>More?</summary><p>It is <b>loud</b>.</details>
<section id=parts><h2>Parts</h2><table><tr><th>no<th>part<tr><td>1<td>lid</table><pre>run()
  stop()</pre><aside>A hint.</aside></section>
<div class="edit-page">Edit this page</div></main><footer>Imprint</footer></body></html>
"""


@parametrize(
    "name, content, rows",
    [
        (
            "a.md",
            MARKDOWN,
            [
                ("The guide > Pumps", "A pump moves\nwater.", "all-pumps", "6-7"),
                (
                    "The guide > Pumps > Parts",
                    "a valve\n\na Vec<T>\n\n/// not a box\nrun()\n\nLook\n\nOil it.\n\nMind\n\nNot by night."
                    "\n\nno | part\n1 | lid",
                    "parts",
                    "11-32",
                ),
                ("The guide > Pumps > Empty", "", "empty", "34-34"),
            ],
        ),
        (
            "a.rst",
            RST,
            [
                (
                    "Pumps",
                    "Mind the lid of Pump.\n\n--fast\n\nRuns fast.\n\nrun()",
                    "pumps",
                    "4-13",
                ),
                ("Pumps > Parts", "Has a lid.", "parts", "24-24"),
            ],
        ),
        (
            "a.html",
            HTML,
            [
                ("Pumps", "A pump moves water.", "p", "3-3"),
                ("Pumps > More?", "It is loud.", "p", "4-4"),
                (
                    "Pumps > Parts",
                    "no | part\n1 | lid\n\nrun()\n  stop()\n\nA hint.",
                    "parts",
                    "5-6",
                ),
            ],
        ),
        (
            "b.html",
            """<title></title><h1>All<br>of it</h1>
<table><caption>Sizes</caption><tr><td>one<br>two<td>a<ul><li>b<li>c</ul><style>p{}</style></table>
<pre><span class=linenos>1</span>run()<br>stop()
<div>end()</div></pre>
Line<br>break.""",
            [
                (
                    "All of it",
                    "Sizes\n\none two | a b c\n\nrun()\nstop()\nend()\n\nLine\nbreak.",
                    "",
                    "2-5",
                )
            ],
        ),
        ("b.md", "# A\n\n\n```\nrun()\n```\n", [("A", "run()", "a", "4-4")]),
        (
            "c.html",
            "<h1>A</h1>\n" + "<br>\n" * 70_000 + "<p>B</p>",
            [("A", "B", "", "70002-70002")],
        ),
        (
            "d.html",  # of ASP.NET; the form below is a form
            "<body class=toc><form><h1>A</h1><p>B</p></form><form><p>C</p></form>",
            [("A", "B", "", "1-1")],
        ),
        ("a.txt", "One.\n\nTwo,\nthree.\n", [("", "One.\n\nTwo,\nthree.", "", "1-4")]),
    ],
)
def test_chunks_have_headings_anchors_and_lines(tmp_path, name, content, rows):
    assert rows_of(tmp_path, name, content) == rows


def test_what_most_pages_repeat_is_left_out_and_counted(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.html").write_text(
            f"<title>Acme wiki help | Part {number}</title><h1>Acme wiki</h1><p>Signed in as Ann.</p>"
            f"<h2>Part {number}</h2><p>Fact {number}.</p><p>All rights reserved.</p>"
        )
    documents, dropped = read_documents(tmp_path, None, lambda _: None)
    assert dropped == {"repeated_paragraphs": 10}
    assert [page.title for page in documents] == [f"Part {n}" for n in range(5)]
    chunks = [
        chunk
        for document in documents
        for chunk in split_into_chunks(document, words, 99)
    ]
    assert [(chunk.title, chunk.text) for chunk in chunks] == [
        (f"Part {n}", f"Fact {n}.") for n in range(5)
    ]


def test_pages_of_other_encodings_and_damaged_files(tmp_path):
    page = "<meta charset=gb18030><h1>指南</h1><p>水泵输送水。</p>"
    (tmp_path / "zh.html").write_bytes(page.encode("gb18030"))
    page = "<meta charset=windows-1250><p>Tiskárna nefunguje dobře."
    (tmp_path / "cs.html").write_bytes(page.encode("cp1250"))
    for name in ("a.pdf", "a.docx", "b.docx"):
        (tmp_path / name).write_bytes(b"PK" if name == "a.docx" else b"")
    (tmp_path / "deep.html").write_text("<div>" * 5_000)
    nested = "\n\n".join(f"{'  ' * depth}* item" for depth in range(300))
    (tmp_path / "deep.rst").write_text(nested)
    (tmp_path / "faults.rst").write_text("a_ b\n\n" * 5_001)
    (tmp_path / "long.rst").write_text("*a*\n" * 1_300)
    (tmp_path / "bomb.docx").write_bytes(
        zipped("word/document.xml", b"\0" * (65 << 20))
    )
    documents, dropped = read_documents(tmp_path, None, lambda _: None)
    czech, long, chinese = [[block.text for block in page.blocks] for page in documents]
    assert long[0].startswith("*a* *a*")  # without its markup, for linear time
    assert czech == ["Tiskárna nefunguje dobře."]
    assert chinese == ["指南", "水泵输送水。"]
    assert dropped == {
        "damaged_or_encrypted": 3,
        "nested_too_deeply": 2,
        "too_large": 1,
        "too_many_faults": 1,
    }


def zipped(name, content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def test_columns_are_refused_for_documents(tmp_path):
    (tmp_path / "a.md").write_text("# A\n")
    with config_error("only for tables"):
        read_documents(tmp_path, {"text": "a"}, lambda _: None)


def document(*blocks):
    return Document("a.md", blocks)


def paragraph(text, line=1):
    return Block("paragraph", text, line, line)


def test_chunks_of_a_section_overlap_by_sentences():
    sentences = [f"Sentence {number} has five words." for number in range(30)]
    first, second, *_ = split_into_chunks(
        document(*map(paragraph, sentences)), words, 80
    )
    assert second.text.startswith(first.text.rpartition("\n\n")[2])
    long = paragraph(" ".join(sentences))
    first, second, *_ = split_into_chunks(document(long), words, 60)
    assert first.text.endswith("words.")
    assert second.text.partition(".")[0] in first.text


def test_a_long_table_is_cut_between_rows_below_its_header():
    lines = [f"{number} | value {number}" for number in range(60)]
    table = Block("table", "\n".join(["no | value", *lines]), 10, 70)
    chunks = list(split_into_chunks(document(table), words, 60))
    assert all(chunk.text.startswith("no | value\n") for chunk in chunks)
    assert [line for chunk in chunks for line in chunk.text.split("\n")[1:]] == lines
    assert chunks[0].first == 10
    assert all(one.last + 1 == other.first for one, other in pairwise(chunks))
    whole = Block("table", "\n".join(["no | value", *lines[:9]]), 1, 10)
    assert [chunk.text for chunk in split_into_chunks(document(whole), words, 60)] == [
        whole.text
    ]


def characters(texts):
    return list(map(len, texts))


@parametrize("count", [words, characters])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["paragraph", "code", "table", "heading"]),
            st.text(st.sampled_from("ab .\n|。字"), min_size=1, max_size=400).filter(
                lambda text: text.strip()
            ),
        ),
        max_size=6,
    ),
    st.integers(32, 80),
)
def test_chunks_keep_all_words_within_the_limit(count, parts, limit):
    blocks = [
        Block(kind, text, 1, 9, (text,) if kind == "heading" else ())
        for kind, text in parts
    ]
    chunks = list(split_into_chunks(document(*blocks), count, limit))
    for chunk in chunks:
        assert (
            sum(count([chunk.title, chunk.text]))
            <= limit + chunk.text.count("\n\n") * 2
        )
    letters = "".join(chunk.text for chunk in chunks)
    for block in blocks:
        if block.kind != "heading":
            assert all(word in letters for word in block.text.split() if len(word) < 8)


HOSTILE_MARKDOWN = ("[a](b", "![", "*a_ ", "`", "> ", "<!", "[a]: b\n\n[a]\n", "|a")
HOSTILE_HTML = ["<", "<!--", "<!", "</", "<p>", "<script>", "<title>", "<nav>", "&"]


@pytest.mark.parametrize(
    "parse, text, size",
    [
        *((read_markdown, (unit,), 16_000) for unit in HOSTILE_MARKDOWN),
        *(
            (read_html, (unit,), 200_000)
            for unit in (*HOSTILE_HTML, "<a ", "<a b='", "<a href=a>x", "<br>", "\n<p")
        ),
        (read_html, ("<article><p>x</p>",), 24_000),
        (read_markdown, (" ", "---\ntitle:", "\n---\n# A\n"), 400_000),
        (read_markdown, (" ", "# a", "b"), 64_000),
        (read_markdown, (" ", "::: a b", "c"), 64_000),
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
    for text, first in values("""
        It rains, e.g. here. (Or not.) It pours. | It rains, e.g. here. (Or not.)
        Die Post ist zu, bzw. ändert den Ort. Übrigens | Die Post ist zu, bzw. ändert den Ort.
        يمطر هنا. يتوقف هناك. | يمطر هنا.
        下雨了。他说：“走吧。”停了 | 下雨了。他说：“走吧。”
        下雨了。停了 | 下雨了。
    """):
        assert opening_text(text, len(text) - 1) == first
    assert opening_text("It rains. It pours. It stops.", 20) == "It rains. It pours."
    assert opening_text("It rains and pours", 10) == "It rains"
    assert opening_text("Donaudampfschiff", 5) == "Donau"
