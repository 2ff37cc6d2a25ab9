from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from aoe_train.model.tokens import tokenised as tokens
from aoe_train.model.tokens.special_tokens import special_tokens_of, with_prompt
from aoe_train.model.tokens.tokenised import LongText, TokenStore, pieces, windows
from pairkit import ConfigError, DataError, Progress
from tests import forked
from tests.aoe_train.tiny import bytelevel, wordpiece

TEXTS = ["the cat is running", "a dog", "", "the man on the road is not in the city", "?"]
MAKERS = [wordpiece, bytelevel, lambda: with_prompt(wordpiece(), "a {text} or")]
LISTS = st.lists(
    st.text(max_size=20) | st.lists(st.sampled_from(["cat", "dog", "x!"])).map(" ".join), min_size=1
)


def split(flat: list[int], lengths: list[int]) -> list[list[int]]:
    ends = np.cumsum([0, *lengths])
    return [flat[start:stop] for start, stop in pairwise(ends)]


def texts_of(store: TokenStore, numbers: list[int]) -> list[list[list[int]]]:
    """Each text's pieces, each a list of ids."""
    batch = store.batch(numbers)
    whole = split(batch["input_ids"].tolist(), batch["lengths"].tolist())
    assert sum(map(len, whole)) == len(batch["input_ids"])
    return split(whole, batch["pieces"].tolist())  # type: ignore[return-value,arg-type]


@settings(max_examples=10)
@given(LISTS, st.integers(6, 20), st.sampled_from(MAKERS), st.data())
def test_truncated_texts_equal_the_tokenizers(texts, max_length, maker, data):
    tokenizer = maker()
    store = TokenStore.build(texts, tokenizer, max_length=max_length)
    numbers = data.draw(st.lists(st.integers(0, len(texts) - 1)))
    expected = [tokenizer(texts[n], truncation=True, max_length=max_length).input_ids for n in numbers]
    assert texts_of(store, numbers) == [[ids] for ids in expected]
    assert store.lengths[numbers].tolist() == [len(ids) for ids in expected]
    assert store.truncated == sum(len(tokenizer(text).input_ids) > max_length for text in texts)


@settings(max_examples=15)
@given(LISTS, st.integers(6, 12), st.integers(0, 1), st.sampled_from(MAKERS))
def test_chunks_lose_nothing(texts, max_length, overlap, maker):
    tokenizer = maker()
    before, after = special_tokens_of(tokens.raw_tokenizer(tokenizer))
    store = TokenStore.build(texts, tokenizer, max_length=max_length, long_text="chunks", overlap=overlap)
    assert store.truncated == 0
    for text, found in zip(texts, texts_of(store, list(range(len(texts)))), strict=True):
        own = [piece[len(before) : len(piece) - len(after)] for piece in found]
        rejoined = own[0] + list(chain.from_iterable(part[overlap:] for part in own[1:]))
        assert rejoined == tokenizer(text, add_special_tokens=False).input_ids
        assert all(before + part + after == piece for part, piece in zip(own, found, strict=True))
        assert max(map(len, found)) <= max_length


def test_baked_in_padding_and_truncation_are_ignored(minilm):
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    tokenizer.backend_tokenizer.enable_truncation(8)
    tokenizer.backend_tokenizer.enable_padding(length=128)
    store = TokenStore.build(["cat", "cat " * 300], tokenizer, max_length=256)
    assert store.lengths.tolist() == [3, 256]
    assert store.ids.dtype == np.uint16
    tokenizer = wordpiece()
    tokenizer.add_tokens([f"q{number}" for number in range(1 << 16)])
    store = TokenStore.build(["q65535"], tokenizer, max_length=8)
    assert store.ids.dtype == np.int32  # a large vocabulary needs wider numbers
    assert store.batch([0])["input_ids"].tolist() == tokenizer("q65535").input_ids


def test_texts_without_tokens():
    assert TokenStore.build([" ", "\x00"], wordpiece(), max_length=8).lengths.tolist() == [2, 2]
    store = TokenStore.build([], wordpiece(), max_length=8)
    assert len(store) == sum(len(part) for part in store.batch([]).values()) == 0
    bare = wordpiece()
    bare.backend_tokenizer.post_processor = None
    with pytest.raises(DataError, match=r"text ' ' has no tokens.*\(2 such texts\)"):
        TokenStore.build(["cat", " ", "\t"], bare, max_length=8)


def test_bad_settings():
    with pytest.raises(ConfigError, match="max_length 2 leaves no room"):
        TokenStore.build(["cat"], wordpiece(), max_length=2)
    with pytest.raises(ConfigError, match="expected 0 to 1"):
        TokenStore.build(["cat"], wordpiece(), max_length=4, long_text="chunks", overlap=2)
    with pytest.raises(ConfigError, match="2 prompts for 5 texts"):
        TokenStore.build(TEXTS, wordpiece(), max_length=9, prompts=["", ""])
    with pytest.raises(ConfigError, match="only chunks can overlap"):
        pieces(IDS, 4, "truncate", 1)
    for overlap in (-1, 3, 4):
        with pytest.raises(ConfigError, match="expected 0 to 2, half of"):
            pieces(IDS, 4, "chunks", overlap)


def test_progress_and_several_calls(monkeypatch):
    monkeypatch.setattr(tokens, "_CALL_TEXTS", 2)
    seen: list[Progress] = []
    store = TokenStore.build(TEXTS, wordpiece(), max_length=8, progress=seen.append)
    assert [(at.done, at.total, at.ended) for at in seen] == [
        *((2, 5, False), (4, 5, False), (5, 5, False)),
        (5, 5, True),
    ]
    monkeypatch.undo()
    assert same(store, TokenStore.build(TEXTS, wordpiece(), max_length=8))


def same(one: TokenStore, other: TokenStore) -> bool:
    arrays = all(
        np.array_equal(getattr(one, n), getattr(other, n)) for n in ("ids", "piece_ends", "text_ends")
    )
    return arrays and one.truncated == other.truncated


def build(folder: Path | None, long_text: LongText = "truncate") -> TokenStore:
    return TokenStore.build(TEXTS, wordpiece(), max_length=7, long_text=long_text, cache_dir=folder)


def test_a_prompt_for_each_text(tmp_path):
    prompts = ["the man ", "", "a {text} or", "the man ", ""]
    how = {"max_length": 9, "include_prompt": True, "cache_dir": tmp_path}
    store = TokenStore.build(TEXTS, wordpiece(), prompts=prompts, **how)
    for number, (words, text) in enumerate(zip(prompts, TEXTS, strict=True)):
        alone = TokenStore.build([text], wordpiece(), max_length=9, prompts=words)
        assert texts_of(store, [number]) == texts_of(alone, [0])
    assert "prompt_lengths" not in store.batch([0])
    how |= {"include_prompt": False, "long_text": "chunks", "prompts": ["the man ", "", "a", "the man ", ""]}
    for _ in range(2):  # made, and found again
        store = TokenStore.build(TEXTS, wordpiece(), **how)
        # [CLS] and words, of each piece: pooling is told how long prompts are
        assert store.batch([3, 1, 2])["prompt_lengths"].tolist() == [3, 3, 0, 2]


def test_the_cache_is_reused(tmp_path, monkeypatch):
    first = build(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(tokens, "_tokenise", lambda *_: pytest.fail("tokenised again"))
        again = build(tmp_path)
    assert same(first, again)
    assert same(first, build(None))
    assert not again.ids.flags.writeable  # a view of the file
    assert len(list(tmp_path.iterdir())) == 1


def test_whatever_changes_the_tokens_changes_the_key(tmp_path):
    def make(texts, tokenizer=None, **more):
        how = {"max_length": 7, "cache_dir": tmp_path, **more}
        TokenStore.build(texts, tokenizer or wordpiece(), **how)
        return len(list(tmp_path.iterdir()))

    for texts in (TEXTS, TEXTS[::-1], ["ab", "c"], ["a", "bc"], [f"a {TEXTS[0]}", *TEXTS[1:]]):
        make(texts)
    make(TEXTS, with_prompt(wordpiece(), "a {text}"))
    for more in (
        {"max_length": 8},
        {"long_text": "chunks"},
        {"long_text": "chunks", "overlap": 1},
        {"prompts": "a "},
        {"prompts": "a ", "include_prompt": False},
        {"prompts": ["a ", *[""] * 4]},
        {"prompts": ["", "a ", *[""] * 3]},
    ):
        make(TEXTS, **more)
    used = wordpiece()
    used(TEXTS, truncation=True, max_length=3, padding=True)  # transformers keeps this in the Rust part
    assert make(TEXTS, used) == 13


@pytest.mark.parametrize("harm", ["cut", "missing"])
def test_a_damaged_cache_is_replaced(tmp_path, harm):
    build(tmp_path)
    (folder,) = tmp_path.iterdir()
    ids = folder / "ids.npy"
    data = ids.read_bytes()
    ids.unlink()
    if harm == "cut":
        ids.write_bytes(data[:-3])
    assert same(build(tmp_path), build(None))
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_concurrent_processes_build_the_same_cache(tmp_path):
    with forked.context().Pool(3) as pool:
        stores = pool.map(build, [tmp_path] * 6)
        pool.close()
        pool.join()  # else a signal ends its processes, and under coverage they may hang
    assert all(same(store, build(None)) for store in stores)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_cache_that_cant_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="can't be written"):
        build(tmp_path / "file")


@pytest.mark.parametrize("text", ["\ud800", "a cat " * 2000 + "\ud800"], ids=["short", "long"])
@pytest.mark.parametrize("cached", [True, False])
def test_half_a_surrogate_pair(tmp_path, cached, text):
    with pytest.raises(DataError, match="contains half a surrogate pair"):
        TokenStore.build(["a", text], wordpiece(), max_length=8, cache_dir=tmp_path if cached else None)


@pytest.mark.parametrize("maker", [wordpiece, bytelevel])
@pytest.mark.parametrize("max_length", [8, 300])
@pytest.mark.parametrize(
    "text",
    [
        "the cat is running " * 5000,
        "x" * 30_000 + " the cat" * 2000,  # one token of WordPiece, beyond which the text goes on
        "x" * 4000 + " " + "y" * 150 + " a dog",  # cut within a word that is unknown as a whole
        " " * 20_000 + "a dog" + " " * 20_000,
        "\N{CJK UNIFIED IDEOGRAPH-5B57}" * 20_000,
    ],
    ids=["words", "long word", "cut word", "blanks", "no blanks"],
)
def test_a_long_text_has_the_first_tokens_of_the_whole(text, max_length, maker):
    tokenizer = maker()
    store = TokenStore.build([text, "a dog"], tokenizer, max_length=max_length, prompts="find: ")
    whole = tokenizer("find: " + text, truncation=True, max_length=max_length).input_ids
    assert texts_of(store, [0]) == [[whole]]


@pytest.mark.parametrize(("text", "most"), [("a cat " * 10**6, 10_000), ("x" * 6 * 10**6, 700_000)])
def test_only_the_start_of_a_long_text_is_read(text, most, monkeypatch):
    read, encode = [], tokens._encode
    monkeypatch.setattr(
        tokens, "_encode", lambda raw, texts: read.extend(map(len, texts)) or encode(raw, texts)
    )
    store = TokenStore.build([text], wordpiece(), max_length=256)
    assert (store.lengths <= 256).all()
    assert sum(read) < most


IDS = list(range(10))


@given(st.integers(1, 300), st.integers(1, 40), st.data())
def test_windows_are_even_and_as_few_as_possible(length, room, data):
    overlap = data.draw(st.integers(0, room - 1))
    spans = windows(length, room, overlap)
    sizes = [stop - start for start, stop in spans]
    assert spans[0][0] == 0
    assert spans[-1][1] == length
    assert max(sizes) <= room
    assert max(sizes) - min(sizes) <= 1
    assert all(before[1] - after[0] == overlap for before, after in pairwise(spans))
    fewer = len(spans) - 1
    assert fewer == 0 or fewer * room - (fewer - 1) * overlap < length
