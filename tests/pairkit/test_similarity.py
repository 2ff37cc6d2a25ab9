"""Terms, BM25, groups and near-duplicates."""

import random
from itertools import combinations
from math import log

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pairkit.base.printable import comparable
from pairkit.similarity import jaccard_join
from pairkit.similarity import near_duplicates as similar
from pairkit.similarity.bm25 import Bm25, best
from pairkit.similarity.groups import Groups, connected, shared, singletons
from pairkit.similarity.jaccard_join import tied_sets
from pairkit.similarity.measures import (
    estimated_tokens,
    gap_auc,
    opening_times,
    share_long,
)
from pairkit.similarity.near_duplicates import jaccard, near_identical, shingle_sets
from pairkit.similarity.terms import (
    common_words,
    distinct_words,
    first_of_same,
    places,
    split_at_words,
    terms,
)
from tests.support.linear import assert_linear
from tests.support.shorthand import approx, parametrize, table, text_lines, values


@parametrize(
    "text, expected",
    [
        *values(
            r"""
                Can't open the_file 12 times! | ['can', 't', 'open', 'the_file', '12', 'times']
                Straße, café | ['straße', 'café']
                "cafe\u0301 \ufeff\uff21\uff11\u200b\uff76\uff9e x\xb2" | ['café', 'a1', 'ガ', 'x²']
                # Korean has blanks
                합병 #1 중복 | ['합병', '1', '중복']
                合并至 #1 | ['合并', '并至', '1']
                字 | ['字']
                カードが届く。 | ['カー', 'ード', 'ドが', 'が届', '届く']
                打开 Excel文件 | ['打开', 'excel', '文件']
                ?! … | []
                "" | []
            """,
        ),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("เปิดไม่ได้", ["เป", "ปิ", "ิด", "ดไ", "ไม", "ม่", "่ไ", "ได", "ด้"]),
    ],
)
def test_terms_by_script(text, expected):
    assert terms(text) == expected


@given(st.text())
def test_places_are_those_of_the_terms(text):
    found = [*places(text)]
    assert [comparable(text[start:end]).lower() for _, start, end in found] == [
        term for term, _, _ in found
    ]
    if comparable(text).lower() == text:
        assert [term for term, _, _ in found] == terms(text)


@given(st.text())
def test_every_letter_and_digit_is_in_a_term(text):
    found = set("".join(terms(text)))
    assert {letter for letter in comparable(text).lower() if letter.isalnum()} <= found


def frame(*rows):
    """Rows of (day of the first, day of the second, label)."""
    times = [
        (f"2020-01-{one:02}T00:00:00Z", f"2020-01-{other:02}T00:00:00Z", y)
        for one, other, y in rows
    ]
    return pl.DataFrame(
        times, schema=["created_at1", "created_at2", "label"], orient="row"
    )


SAME = [
    *text_lines("""
        Hello, World! | “hello”  world…
        don’t | do n't
        你好，世界！ | 你好 世界
        用 Python 写 | 用Python写。
        ΟΔΟΣ | οδος.
        GPT-4 | gpt 4
        U.S. law | US law
        a = b | a=b
        مرحبا؟ | مرحبا
        안녕, 세상 | 안녕 세상
        ... | ...
    """),
    "Ｆｕｌｌ　ｗｉｄｔｈ | full width",
    "Cafe\u0301 | CAFÉ",
    "สวัสดี ครับ | สวัสดีครับ",
    "हैं। | हैं",
]
DIFFERENT = text_lines("""
    C | C++
    C | C#
    F | F#
    1.5 | 15
    -5 | 5
    10² | 102
    gpt-3 | gpt-4
    iPhone 4 | iPhone 5
    it is | it is not
    isn't | is
    $5 | €5
    5% | 5
    a != b | a = b
    ? | !
    MX-10 | MX-100
    the rapist | therapist
    resume | résumé
    we'll | well
    是 | 不是
    12:30 | 1230
    1 2 | 12
""")


def test_same_texts():
    for listed, differ in ((SAME, False), (DIFFERENT, True)):
        first = [first_of_same(pair.split(" | ")).tolist() for pair in listed]
        assert dict(zip(listed, first, strict=True)) == {
            pair: [0, int(differ)] for pair in listed
        }


def test_gap_auc():
    """Gaps 1 and 5 of positives against 3 and 5 of negatives: 1 < 3, 1 < 5, 5 > 3, 5 = 5."""
    assert (
        gap_auc(frame((1, 2, 1), (9, 4, 1), (1, 4, 0), (7, 2, 0)))
        == (1 + 1 + 0 + 0.5) / 4
    )
    assert gap_auc(frame((1, 2, 1), (1, 9, 0))) == 1.0
    assert gap_auc(frame((1, 9, 1), (1, 2, 0))) == 0.0
    first, second = opening_times()
    times = frame((1, 2, 1), (1, 9, 0)).with_columns(
        created_at1=first, created_at2=second.dt.replace_time_zone("UTC")
    )
    assert gap_auc(times) == 1.0


def test_estimated_tokens():
    frame = pl.DataFrame({"t": ["", "a cat", "compilation", "x += 12345;"]})
    # Two special tokens; six letters, two digits or one sign each.
    assert frame.select(estimated_tokens(pl.col("t"))).to_series().to_list() == [
        2,
        4,
        4,
        9,
    ]
    long, short = "a " * 511, "a " * 510
    rows = pl.DataFrame({"one": [long, short], "other": [long, long]})
    assert share_long(rows, "one", "other") == 0.75
    assert share_long(rows.clear(), "one") == 0.0


def test_common_words():
    texts = (
        [f"the parser{n}" for n in range(400)]
        + ["rare word"] * 20
        + ["often seen"] * 24
    )
    # More than a twentieth of 444 texts.
    assert common_words(texts) == {"the", "often", "seen"}
    assert common_words(["startup crash"] * 10) == frozenset()
    assert common_words(["startup crash"] * 11) == {"startup", "crash"}
    assert distinct_words("We 保存文件 now") == {"now", "保存", "存文", "文件"}


def test_split_at_words():
    assert split_at_words("Crash, crashes", {"crash"}) == [
        ("Crash", True),
        (", crashes", False),
    ]
    assert split_at_words("", {"crash"}) == []
    pieces = [("文件保", True), ("存", False), ("失败", True)]
    assert split_at_words("文件保存失败", {"文件", "件保", "失败"}) == pieces
    # As in `terms`, letters may be decomposed, wide, or have invisible characters.
    for text in (
        "Cafe\u0301",
        "ｃａｆé",
        "ca\u00adfé",
        "ｶﾌ",
        "เปิด\u200bไม่ได้",
        "字\u200b",
    ):
        assert split_at_words(text, distinct_words(text)) == [(text, True)]


@settings(max_examples=40)
@given(st.text(), st.sets(st.text(max_size=5), max_size=5))
def test_pieces_join_to_the_text(text, marked):
    marked |= set(sorted(distinct_words(text))[:2])
    pieces = split_at_words(text, marked)
    assert "".join(piece for piece, _ in pieces) == text
    assert all(
        comparable(piece).lower() in marked for piece, is_marked in pieces if is_marked
    )


TIES = st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=25)


@settings(max_examples=40)
@given(TIES)
def test_groups_are_connected_components(ties):
    groups = Groups(range(16))
    near = {n: {n} for n in range(16)}
    for one, other in ties:
        groups.join(one, other)
        merged = near[one] | near[other]
        for member in merged:
            near[member] = merged
    for one in range(16):
        assert groups.find(one) == min(near[one])
        assert all(
            (groups.find(one) == groups.find(other)) == (other in near[one])
            for other in range(16)
        )


PAIRS = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=30)


@settings(max_examples=40)
@given(PAIRS, PAIRS)
def test_connected_equals_union_find(some, more):
    expected, groups = Groups(range(20)), singletons(20)
    for pairs in (some, more):
        for one, other in pairs:
            expected.join(one, other)
        before = groups.copy()
        ends = np.array(pairs, np.int64).reshape(-1, 2)
        found = connected(groups, ends[:, 0], ends[:, 1])
        assert np.array_equal(groups, before)
        groups = found
    assert groups.tolist() == [expected.find(place) for place in range(20)]
    assert [members.tolist() for members in shared(groups)] == [
        members for members in expected.all().values() if len(members) > 1
    ]


BOATS = ["red boat", "red car red", "blue", "..."]


def test_score():
    """As Lucene: idf * tf / (tf + k1 * (1 - b + b * length / mean length)); lengths 2, 3, 1, 0."""
    scores = Bm25(BOATS).scores("RED red")
    idf = log(1 + (4 - 2 + 0.5) / (2 + 0.5))
    by_hand = [
        idf * tf / (tf + 1.5 * (0.25 + 0.75 * length / 1.5))
        for tf, length in ((1, 2), (2, 3))
    ]
    assert scores == approx([*by_hand, 0, 0], abs=1e-6)
    for text in ("green", "", "!"):
        assert Bm25(BOATS).scores(text).tolist() == [0, 0, 0, 0]
    assert Bm25([]).scores("red").tolist() == []


def test_best():
    scores = np.array([0, 2, 1, 2, 1, 0.5], np.float32)
    assert best(scores, 3).tolist() == [1, 3, 2]
    assert best(scores, 6).tolist() == best(scores, 99).tolist() == [1, 3, 2, 4, 5]


def test_a_search_by_words_finds_a_reworded_chinese_sentence_first():
    texts = [
        "无法保存文件，磁盘已满",
        "打开编辑器时窗口崩溃",
        "网络连接超时，请检查设置",
    ]
    assert best(Bm25(texts).scores("磁盘满了，文件保存不了"), 1).tolist() == [0]


VOCABULARY = [f"w{n}" for n in range(300)]


def text(seed, words=60):
    return " ".join(random.Random(seed).choices(VOCABULARY, k=words))


def changed(original, *places):
    words = original.split()
    for place in places:
        words[place] = "other"
    return " ".join(words)


def similarity(*texts):
    return jaccard(*shingle_sets(texts))


def test_similarity():
    # abc bcd cde | abc bcd cdf: two of four triples are common.
    assert similarity("a b c d e", "a b c d f") == approx(2 / 4)
    assert similarity("A, b c!", "a b c") == 1.0
    assert similarity("a b", "b a") == 0.0
    assert similarity("ra\u0301pido aqui", "rápido \u200baqui") == 1.0
    assert similarity("", "a") == similarity("!!", "!!") == 0.0
    chinese = (
        "无法保存文件，因为磁盘已满，请重试一次",
        "无法保存文件，因为磁盘已满，请重试两次",
    )
    assert similarity(*chinese) > 0.6


def test_near_identical():
    texts = [text(n) for n in range(200)]
    texts += [
        changed(texts[3], 30),
        texts[7].upper(),
        changed(texts[9], 5, 15, 25, 35, 45, 55),
    ]
    assert near_identical(texts) == [[3, 200], [7, 201]]
    assert near_identical(["", "", "!!!", "!!!", "..."]) == near_identical([]) == []


@parametrize("others", [0, 8])  # small families are compared pair by pair
def test_a_pair_at_the_threshold_is_near_identical(others):
    shorter = text(4, 82)  # 80 triples
    at, below = (f"{shorter} {text(5, more)}" for more in (20, 21))
    assert [similarity(shorter, longer) for longer in (at, below)] == [0.8, 80 / 101]
    variants = [
        changed(shorter, 0, 20, 40, 60, place) for place in range(22, 22 + others)
    ]
    for longer, is_found in ((at, True), (below, False)):
        found = near_identical([shorter, longer, *variants])
        assert ([0, 1] in found) is is_found


def of_template(seed, slots, *, values):
    """A text of 90 words with a number of slots, each with one of several values."""
    words, random_ = text(1, 90).split(), random.Random(seed)
    for slot in range(slots):
        words[90 // slots * slot] = f"value{random_.randrange(values)}"
    return " ".join(words)


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 200), min_size=2, max_size=40),
    st.integers(1, 8),
    st.sampled_from([2, 1000]),
    st.randoms(use_true_random=False),
)
def test_template(seeds, slots, values, random_):
    """Groups need similarity, don't depend on order, and a subset has no additional ones."""
    texts = [of_template(seed, slots, values=values) for seed in seeds]
    exact = Groups(range(len(texts)))
    for one, other in combinations(range(len(texts)), 2):
        if similarity(texts[one], texts[other]) >= 0.8:
            exact.join(one, other)
    found = near_identical(texts)
    assert all(
        exact.find(group[0]) == exact.find(place) for group in found for place in group
    )
    order = random_.sample(range(len(texts)), len(texts))
    moved = near_identical([texts[place] for place in order])
    assert sorted(sorted(order[place] for place in group) for group in moved) == sorted(
        found
    )
    whole = {place: number for number, group in enumerate(found) for place in group}
    for group in near_identical(texts[: len(texts) // 2]):
        assert len({whole[place] for place in group}) == 1


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 59)), max_size=40),
    st.integers(0, 3000),
)
def test_texts_on_disk(kinds, in_memory):
    texts = [changed(text(kind), place) for kind, place in kinds]
    expected = near_identical(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similar, "_IN_MEMORY", in_memory)
        patch.setattr(similar, "_CHUNK", 3)
        assert near_identical(texts) == expected


@table("""
    changes, share, threshold, least
    3 | 0.9 | 0.8 | 0.99
    6 | 0.8 | 0.8 | 0.93
    14 | 0.6 | 0.6 | 0.9
    14 | 0.6 | 0.5 | 0.99
""")
def test_recall_at_the_threshold(changes, share, threshold, least):
    """Pairs at the threshold with probability 0.94 or more, above it almost surely."""
    count = 300
    first = [" ".join(f"p{n}w{k}" for k in range(170)) for n in range(count)]
    step = 162 // max(changes, 6)
    other = [changed(one, *range(5, 5 + step * changes, step)) for one in first]
    shares = {round(similarity(*pair), 1) for pair in zip(first, other, strict=True)}
    assert shares == {share}
    assert len(near_identical(first + other, threshold)) >= least * count


def test_texts_need_no_index_error():
    class Endless:
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return text(0)

    assert near_identical(Endless()) == [[0, 1]]


THRESHOLDS = [0.05, 0.5, 2 / 3, 0.75, 0.8, 0.9, 1.0]


def hashes(elements):
    return np.unique(np.array([*elements], np.uint64) * np.uint64(0x9E3779B97F4A7C15))


def by_pairs(sets, threshold):
    groups = Groups(range(len(sets)))
    for one, other in combinations(range(len(sets)), 2):
        if len(sets[one] & sets[other]) / len(sets[one] | sets[other]) >= threshold:
            groups.join(one, other)
    return [groups.find(place) for place in range(len(sets))]


def joined(sets, threshold):
    labels = tied_sets([hashes(elements) for elements in sets], threshold).tolist()
    first = {}
    return [first.setdefault(label, place) for place, label in enumerate(labels)]


@st.composite
def families(draw):
    """Random sets, variants of a template, and sets with slots of few values."""
    count = draw(st.integers(2, 40))
    random_ = random.Random(draw(st.integers(0, 2**32)))
    size = draw(st.sampled_from([4, 12, 40]))
    kept, values = (
        draw(st.sampled_from([0.6, 0.85, 0.95, 1.0])),
        draw(st.integers(2, 6)),
    )
    kind = draw(st.sampled_from(["any", "template", "slots"]))
    found = []
    for _ in range(count):
        if kind == "any":
            found.append(set(random_.sample(range(size), random_.randint(1, size))))
            continue
        elements = {element for element in range(size) if random_.random() < kept}
        for slot in range(3 if kind == "slots" else 0):
            value = 1000 + 100 * slot + 10 * random_.randrange(values)
            elements |= {value, value + 1, value + 2}
        found.append(elements | {500 + random_.randrange(30)})
    return found


@settings(max_examples=60)
@given(
    sets=families(),
    threshold=st.sampled_from(THRESHOLDS),
    few=st.sampled_from([0, 2, 12]),
    product=st.sampled_from([0.0, 7e-11, 1.0]),
    entries=st.sampled_from([8, 1 << 22]),
)
# The last set has exactly the needed weight in common with others.
@example([{1}, {1, 9}, {1, 2}, {0, 1, 2, 9}], 0.5, 12, 1.0, 8)
def test_groups_equal_those_of_all_pairs(sets, threshold, few, product, entries):
    with pytest.MonkeyPatch.context() as patch:  # so that every method is used
        patch.setattr(jaccard_join, "_FEW", few)
        patch.setattr(jaccard_join, "_SECONDS_PER_PRODUCT", product)
        patch.setattr(jaccard_join, "_BATCH_ENTRIES", entries)
        assert joined(sets, threshold) == by_pairs(sets, threshold)


def test_pair_at_the_threshold():
    assert joined([], 0.8) == []
    # Four of five elements; 17 of 20.
    assert joined([{1, 2, 3, 4}, {1, 2, 3, 4, 5}, {9}], 0.8) == [0, 0, 2]
    assert joined([set(range(17)), set(range(20)), {99}], 0.85) == [0, 0, 2]
    assert joined([set(range(17)), set(range(20)), {99}], 0.8500001) == [0, 1, 2]


@parametrize("own", [5, 12, 30])
def test_similar_sets_are_not_compared_pairwise(own):
    """A template of 100 elements plus own elements: above, just below and far below the threshold."""
    sets = [{*range(100), *range(1000 * n, 1000 * n + own)} for n in range(1, 8001)]
    assert len(set(joined(sets[:50], 0.8))) == (1 if own <= 12 else 50)
    given_ = [hashes(elements) for elements in sets]
    assert_linear(
        lambda some: tied_sets(some, 0.8), lambda size: given_[:size], len(given_)
    )
