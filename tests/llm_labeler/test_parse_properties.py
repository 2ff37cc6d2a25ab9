import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from llm_labeler.judging.questions import read_votes
from llm_labeler.parsing.answer import MAX_CHARS, REASONS, parse_answer
from llm_labeler.parsing.data import _RULE
from llm_labeler.parsing.phrases import CORRECTS, THINKS
from llm_labeler.parsing.sentence import _LINK, without_emphasis
from llm_labeler.parsing.source_text import SourceText
from llm_labeler.records import Ask, AskKey, Candidate
from tests.support.linear import assert_linear, repeated
from tests.support.shorthand import parametrize, text_lines, text_table

TEXT = "A man is playing a guitar."
SMALL = text_lines("""
    dog
    plays
    well-known
    it's
    quickly
    β-blocker
    naïve
    10:30
    3.5
    C++
    x_1
    A/B
""")
TRICKY = text_lines("""
    see fig. 1. for more
    takes 3.5 mg daily
    has 1) one and 2) two
    says "yes" twice
    says “no” once
    (n = 3) wins
    e.g. Dr. Smith
    costs $5 - 7
    is 5 * 3
    uses A [1] and B
    follows these: red, green
""")
FIRST = ["The", "Every", "Über", "Somebody's", "Its", "Sarah", "Fifty", "В"]


def kept(raw, text=TEXT):
    items = parse_answer(raw, text=text)
    return [item.text for item in items if item.reason is None]


def tidy(sentence):
    return " ".join(sentence.split())


words = st.lists(st.sampled_from(SMALL), min_size=1, max_size=6).map(" ".join)
middle = st.one_of(words, st.sampled_from(TRICKY))
# The last word keeps "Smith." from ending a sentence.
english = st.builds(
    lambda first, parts, last, stop: f"{first} {' '.join(parts)} {last}{stop}",
    st.sampled_from(FIRST),
    st.lists(middle, min_size=1, max_size=4),
    st.sampled_from(["dog", "quickly", "home"]),
    st.sampled_from([".", "!", "?"]),
)
chinese = st.lists(
    st.sampled_from(list("一个男人在弹吉他有正奏子着")), min_size=4, max_size=20
).map(lambda characters: "他" + "".join(characters) + "。")
sentences = st.lists(english, min_size=1, max_size=6)
simple = st.lists(
    st.builds(
        lambda first, rest: f"{first} {rest} home.", st.sampled_from(FIRST), words
    ),
    min_size=2,
    max_size=6,
)


def numbered(form):
    return lambda texts: "\n".join(
        form.format(n=n, s=s) for n, s in enumerate(texts, start=1)
    )


def around(form):
    return lambda texts: form.replace("{list}", numbered("{n}. {s}")(texts))


def lettered(form):
    return lambda texts: "\n".join(
        form.format(n="abcdef"[n], s=s) for n, s in enumerate(texts)
    )


def wrapped(texts):
    """Sentences over two lines, broken before the last word."""
    return "\n".join(
        f"{n}. " + "\n   ".join(s.rsplit(" ", 1)) for n, s in enumerate(texts, start=1)
    )


def drifting(texts):
    forms = ["{n}. {s}", "{n}) {s}", "{n}: {s}", "- {s}", "* {s}", "({n}) {s}"]
    return "\n".join(
        forms[n % len(forms)].format(n=n + 1, s=s) for n, s in enumerate(texts)
    )


NUMBERED = text_table(r"""
    1. | {n}. {s}
    1) | {n}) {s}
    (1) | ({n}) {s}
    1: | {n}: {s}
    1、 | {n}、{s}
    （1） | （{n}）{s}
    blank lines | {n}. {s}\n
    bold | **{n}.** {s}
    all bold | **{n}. {s}**
    quoted | {n}. "{s}"
    curly | {n}. “{s}”
    corner | {n}. 「{s}」
    label | Sentence {n}: {s}
    long label | {n}. Synonymous sentence {n}: {s}
    bold label | - **Option {n}:** {s}
    - | - {s}
    * | * {s}
    • | • {s}
""")
AROUND = text_table(
    r"""
    fence | Here you go:\n```text\n{list}\n```\nI hope this helps!
    preamble | Sure! Here are some synonymous sentences:\n\n{list}
    closing | {list}\n\nLet me know if you need more sentences!
    echo | Input sentence: A man is playing a guitar.\nOutput:\n{list}
    llama | <s>[INST] Write. [/INST] {list}</s>
    qwen | <think>\n1. Hm.\n</think>\n\n{list}<|im_end|>
    runaway | {list}\n\nInput sentence: A dog.\nOutput:\n1. Dogs.
    """,
    columns=2,
)
SHAPES = {
    **{name: numbered(form) for name, form in NUMBERED},
    **{name: around(form) for name, form in AROUND},
    "circled": lambda texts: "\n".join(
        f"{chr(0x245F + n)} {s}" for n, s in enumerate(texts, start=1)
    ),
    "a)": lettered("{n}) {s}"),
    "wrapped": wrapped,
    "drifting": drifting,
    "lines": "\n".join,
    "blocks": "\n\n".join,
    "json": json.dumps,
    "json object": lambda texts: json.dumps(
        {"sentences": texts}, indent=2, ensure_ascii=False
    ),
    "json objects": lambda texts: json.dumps(
        [{"id": n, "sentence": s} for n, s in enumerate(texts)]
    ),
    "json lines": lambda texts: "\n".join(json.dumps({"text": s}) for s in texts),
    "json fence": lambda texts: (
        "Sure!\n\n```json\n" + json.dumps(texts) + "\n```\n\nLet me know."
    ),
    "json string": lambda texts: json.dumps(json.dumps(texts)),
    "python": repr,
    "html": lambda texts: "<ol>" + "".join(f"<li>{s}</li>" for s in texts) + "</ol>",
    "table": lambda texts: (
        "| # | Sentence |\n|---|---|\n" + numbered("| {n} | {s} |")(texts)
    ),
    "arrows": lambda texts: "\n".join(
        f"{n}. {TEXT} -> {s}" for n, s in enumerate(texts, start=1)
    ),
    "two lines": lambda texts: "\n\n".join(
        f"Original: {TEXT}\nAntonym: {s}" for s in texts
    ),
}


@parametrize("shape", SHAPES)
@settings(max_examples=25)
@given(sentences)
def test_rendered_sentences_are_parsed(shape, texts):
    assert kept(SHAPES[shape](texts)) == [tidy(sentence) for sentence in texts]


@parametrize(
    "shape", [name for name in SHAPES if name not in ("wrapped", "arrows", "two lines")]
)
@settings(max_examples=15)
@given(st.lists(chinese, min_size=2, max_size=5))
def test_rendered_chinese_sentences_are_parsed(shape, texts):
    assert kept(SHAPES[shape](texts), "一个男人在弹吉他。") == texts


@settings(max_examples=50)
@given(simple)
def test_one_line_of_several_sentences(texts):
    for raw in (
        " ".join(texts),
        " ".join(f"{n}. {s}" for n, s in enumerate(texts, start=1)),
    ):
        assert kept(raw) == [tidy(sentence) for sentence in texts]


LINES = (
    "\n¦\n\n¦ ¦1. ¦2) ¦- ¦* ¦**¦\"¦“¦”¦'¦`¦```¦[¦]¦{¦}¦:¦, ¦|¦\\¦<li>¦</s>¦[INST]¦[/INST]¦<think>¦</think>",
    "Sentence 1: ¦Original: ¦Output:¦Sure! ¦Here are synonymous sentences: ",
    "I'm sorry, but I can't generate that.¦I hope this helps!¦Note: ¦->¦(note ¦)¦\x00¦\ud83d",
    "好的，以下是同义句：¦The cat sat.¦A dog¦3.5¦.",
)
PIECES = [*(piece for line in LINES for piece in line.split("¦")), TEXT]
rubble = st.lists(
    st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=30
).map("".join)
anything = st.one_of(rubble, st.text(st.characters(), max_size=60))


@settings(max_examples=150)
@given(
    anything,
    st.one_of(st.just(TEXT), anything),
    st.sampled_from(["stop", "length", "refusal", "content_filter", "x"]),
    st.one_of(st.none(), st.integers(1, 4)),
)
def test_any_string_is_parsed(raw, text, finish, size):
    items = parse_answer(raw, text=text, finish=finish, size=size)
    assert items
    assert items == parse_answer(raw, text=text, finish=finish, size=size)
    assert {item.reason for item in items} <= {None, *REASONS}
    good = [item.text for item in items if item.reason is None]
    assert all(
        texts == tidy(texts) and any(c.isalnum() for c in texts) for texts in good
    )
    assert size is None or len(good) <= size
    assert finish != "refusal" or not good
    for item in items:
        item.text.encode()  # can be stored


@settings(max_examples=150)
@given(rubble)
@example("**I'm sorry, but I can't generate that.** 1. ")
def test_parsing_is_stable(raw):
    good = kept(raw)
    # Labels and echoes of the source would be removed.
    is_plain = all(
        ":" not in text and "：" not in text and TEXT[:-1] not in text for text in good
    )
    assert not good or not is_plain or kept(json.dumps(good)) == good


UNITS = [
    unit
    for line in (
        'word ¦1. ¦1.\n¦[¦["¦{"a":¦: ["¦<think>¦</think>¦[/INST]a¦a\n¦ ¦ \n¦*a ¦a *b¦"a" ¦\'a ¦`¦```\n¦<br ¦|a|\n',
        "1. x (Note: a¦Here is ¦Sentence 1: ¦Original: ¦a -> ¦I'm sorry ¦1. A. 2. B. ¦. ¦A. ¦中。¦\ud800¦1. a.\n",
        "a\n**¦the the , , ¦| a | 中 |\n¦ﷺ1. ¦<a> b ¦</a> b¦- a: b\n  ¦antonym: a\n",
    )
    for unit in line.split("¦")
]
# The text before a unit, and the unit.
BEFORE = [
    ("a|b\n", "-"),
    ("<p", " "),
    ('"', "\\"),
    ("[", "'x', "),
    ("Same ?", '"'),
    *(("Same ", unit) for unit in ("?", ".", "?。", '?"')),
]


def test_a_run_of_emoji_within_a_sentence_takes_linear_time():
    source = SourceText.of("A dog runs.")
    assert_linear(
        lambda text: without_emphasis(text, source), repeated("✅", "Same", "x"), 16_000
    )


def test_a_run_of_wide_stops_before_a_letter_takes_linear_time():
    assert_linear(
        lambda raw: parse_answer(raw, text=TEXT, size=3),
        repeated("！", "Same ", "x"),
        24_000,
    )


@parametrize("before, unit", [*(("", unit) for unit in UNITS), *BEFORE])
def test_hostile_answers_take_linear_time(before, unit):
    def parse(answer):
        return parse_answer(answer, text=TEXT, size=3)

    assert_linear(parse, repeated(unit, before), 24_000)


@parametrize(
    "make",
    [
        repeated("ab\n", "{"),
        repeated(" ", "1) the man sings. 2) and", "the man plays."),
        repeated("a b\n", "I'm sorry, I can't help with this request.\n"),
    ],
)
def test_lines_that_continue_each_other_take_linear_time(make):
    assert_linear(
        lambda raw: parse_answer(raw, text=TEXT, size=3, polarity="positive"),
        make,
        96_000,
    )


@parametrize(
    "pattern, unit, end",
    [
        (CORRECTS, "hmmm, ", "x"),
        (CORRECTS, "oh well no ", "x"),
        (THINKS, "ok... hmmm ", "x"),
        (THINKS, "to write a b ", "x"),
        (_LINK, "--> ", " "),
        (_LINK, "vs. - *_ ", " "),
        (_RULE, "-", "x|"),
        (_RULE, ":-- --: |", "x"),
        (_RULE, " -- ", ":"),
    ],
)
def test_nested_repeats_take_linear_time(pattern, unit, end):
    match = pattern.fullmatch if pattern is _RULE else pattern.match
    assert_linear(match, repeated(unit, after=end))


@parametrize("unit", ["[", '{"a":', "1", "1: ", "<think>", "`", " "])
def test_votes_are_read_in_linear_time(unit):
    ask = Ask(AskKey("t", "judge", "judge", "", ""), ())
    pair = (Candidate("t", "a", "positive", ()), Candidate("t", "b", "positive", ()))
    assert_linear(lambda raw: read_votes(ask, pair, raw, "stop"), repeated(unit))


def test_characters_beyond_a_million_are_ignored():
    items = parse_answer(
        "1. One.\n2. Two.\n" + " " * MAX_CHARS + "3. Three.", text=TEXT
    )
    found = [(item.text, item.reason) for item in items]
    assert found == [("One.", None), ("Two.", "cut_off"), ("3. Three.", "unread")]
