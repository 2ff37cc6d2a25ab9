import gzip
import os
import random
import re
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit.base.system import text_lines as lines
from pairkit.base.system.text_lines import (
    read_lines,
    read_objects,
    read_text,
    read_text_lines,
    read_whole,
)
from pairkit.dataset.reading.tables import read_table
from tests.pairkit.peak import peak_mib
from tests.support.shorthand import data_error, parametrize

MIB = 1 << 20


def bomb(path, unit, mib):
    """A gzip file that decompresses to `mib` MiB of one repeated unit."""
    member = gzip.compress(unit * (16 * MIB // len(unit)), mtime=0)
    path.write_bytes(member * (mib // 16))
    return path


def one_line(path, mib):
    """A long line that compresses like text."""
    block = random.Random(1).randbytes(MIB).hex().encode()[:MIB]
    with gzip.open(path, "wb", 1) if path.suffix == ".gz" else path.open("wb") as file:
        for _ in range(mib):
            file.write(block)
    return path


@given(st.binary(max_size=200), st.booleans())
def test_lines(tmp_path_factory, data, packed):
    path = tmp_path_factory.getbasetemp() / ("any.gz" if packed else "any.txt")
    path.write_bytes(gzip.compress(data) if packed else data)
    found = list(read_lines(path))
    assert b"".join(line for _, line in found) == data == read_whole(path)
    assert [row for row, _ in found] == list(range(1, len(found) + 1))
    assert all(line.endswith(b"\n") for _, line in found[:-1])


def test_lines_before_damage_are_read(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n") + b"rubbish")
    found = read_lines(path)
    assert [line for _, line in islice(found, 2)] == [b"one\n", b"two\n"]
    with data_error(r"a\.txt\.gz:3: not readable"):
        next(found)


@parametrize("name", ["zeros.gz", "letters.txt"])
def test_long_lines_take_bounded_memory(tmp_path, name):
    path = tmp_path / name
    _ = bomb(path, b"\0", 128) if name == "zeros.gz" else one_line(path, 32)
    imports = "from pairkit.base.system.text_lines import read_lines"
    says, mib = peak_mib(imports, "any(0 for _ in read_lines(Path(sys.argv[1])))", path)
    assert f"{name}:1: has a line of more than 16 MiB" in says
    assert mib < 48


@parametrize("name", ["a.csv.gz", "a.tsv.gz", "a.jsonl.gz", "a.json.gz"])
def test_limit_on_decompressed_tables(tmp_path, name, monkeypatch):
    monkeypatch.setattr(lines, "FREE_BYTES", MIB)
    with data_error("decompresses to more than 200 times its size"):
        read_table(bomb(tmp_path / name, b" " * 1000 + b"\n", 16))


def test_limit_on_whole_files(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text("[" + " " * 2 * MIB + "]")
    with data_error(r"a\.json: has more than 1 MiB; split the file"):
        read_whole(path, MIB)
    monkeypatch.setattr(lines, "MAX_WHOLE_BYTES", MIB)
    with data_error(r"name it \.jsonl"):
        read_table(path)


@parametrize(
    "data, found",
    [
        ("\ufeffone\r\ntwo\u2028three\n".encode(), ["one\r\n", "two\u2028three\n"]),
        *(
            ("eins\nzwölf\n".encode(code), ["eins\n", "zwölf\n"])
            for code in ("utf-16", "cp1252")
        ),
        (b"\xfe\xff" + "zwölf 😀\r\n".encode("utf-16-be"), ["zwölf 😀\r\n"]),
        (b"\xef\xbb\xbfNr\n\x80 5\n", ["Nr\n", "€ 5\n"]),
        (
            "zwölf\n".encode() + b"zw\xf6lf\n",
            "a.txt:2: is Windows-1252, but row 1 is UTF-8",
        ),
        (b"a\n\x81\n", r"a.txt:2: is not UTF-8, and as Windows-1252 it has "),
        *(
            (
                f"a\n{line}\n".encode(code),
                r"a.txt:2: is not UTF-8, .*`--encoding cp1250`",
            )
            for code, line in {
                "cp1251": "Привет",
                "cp1250": "Drukarka nie działa, proszę o pomoc",
                "iso8859-2": "Tiskárna nefunguje, příliš žluťoučký kůň",
                "cp1254": "Yazıcı çalışmıyor, lütfen yardım edin",
                "cp1257": "Spausdintuvas neveikia, ačiū už pagalbą",
                "iso8859-15": "Le cœur",
                "gb18030": "打印机坏了",
                "big5": "印表機",
                "shift_jis": "プリンター",
                "cp949": "프린터가",
                "iso2022_jp": "プリンター",
            }.items()
        ),
        (b"\xff\xfea", "a.txt:1: not readable"),
    ],
)
def test_encodings(tmp_path, data, found, caplog):
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    if isinstance(found, str):
        with data_error(found):
            list(read_text_lines(path))
        return
    assert (
        [*read_text_lines(path)] == [*read_text_lines(path)] == [*enumerate(found, 1)]
    )
    assert read_text(path) == "".join(found)
    shown = r"read as Windows-1252; row 2 has '(zwölf|€ 5)': if that is wrong"
    assert (
        len(re.findall(shown, caplog.text))
        == len(caplog.records)
        == ("Windows" in caplog.text)
    )


@parametrize(
    "line, says",
    [
        ("[" * 100_000, "too deep or too large"),
        ("9" * 100_000, "too deep or too large"),
        ('{"a": }', "not JSON"),
        ('["a"]', "list, expected a JSON object"),
        ('{"a": "\\ud83d"}', "lone surrogate"),
        ('{"\\udc00": 1}', "lone surrogate"),
    ],
)
def test_invalid_objects_name_their_row(tmp_path, line, says):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"a": "\\ud83d\\ude00"}}\n\n{line}\n')
    found = read_objects(path)
    assert next(found) == (1, {"a": "\U0001f600"})
    with data_error(r"a\.jsonl:3: .*" + says):
        next(found)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@parametrize("name", ["a.csv", "a.csv.gz"])
def test_pipes_are_refused(tmp_path, name):
    os.mkfifo(tmp_path / name)
    for read in (read_table, read_whole, lambda path: list(read_lines(path))):
        with data_error("is not a regular file"):
            read(tmp_path / name)
