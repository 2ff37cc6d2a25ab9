"""Read untrusted files, plain or gzipped, with limits on line length and decompressed size."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import logging
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from pairkit.base.cli.options import ENCODING
from pairkit.base.errors import DataError, spoken
from pairkit.base.printable import one_line

_LOG = logging.getLogger(__name__)
MAX_LINE_BYTES = 16 << 20  # 250 times GitHub's longest text
MAX_WHOLE_BYTES = 512 << 20  # of a file that can't be streamed, such as a JSON array
# Decompressed to compressed size: it is 3 to 20 for text, and 300 for one repeated line.
MAX_RATIO = 200
FREE_BYTES = 64 << 20  # allowed at any ratio
_BLOCK_BYTES = 1 << 20

JAPANESE_MAIL = b"\x1b$"  # ISO-2022-JP, whose bytes are all ASCII
_ODD = re.compile(r"[^ -~\t]")
_NO_CHARACTER = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
# What other encodings become in Windows-1252: symbols between letters, runs of letters with accents, and
# letters that no language has together (from Turkish, Romanian, Baltic; Czech; Hungarian; Croatian).
_NOT_WINDOWS = re.compile(
    r"[^\W\d_][¡-¦¨¬¯±-³¸¹¼-¿×÷†‡‰ˆ˜•‚„€][^\W\d_]|[À-ÿ]{4}|[^\x00-\x7f]{5}|[£-¦¨¬¯±-³¸¹¼-¾×÷]{2}"
    r"|\A(?=.*[ðýþÐÝÞ]).*[ÀÂÃÇÈÊËÎÔÛÜàâãçèêëîôûü]|\A(?=.*[øØ]).*[ìùÌÙ]|\A(?=.*[õÕ]).*[ûÛ]|\A(?=.*[èÈ]).*[šžæŠŽÆ]"
)

_MAX_NAMES = 1000  # that are compared with a missing one


def read_lines(
    path: Path, *, pass_over: Callable[[int], None] | None = None, as_utf8: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Lines with numbers from 1 and line feeds; `as_utf8` converts UTF-16 with a byte order mark.

    Raises DataError for a line above `MAX_LINE_BYTES`; with `pass_over`, calls it with the line's number instead.
    """
    row = 0
    with _bytes_of(path, lambda: row + 1, as_utf8=as_utf8) as file:
        while line := file.readline(MAX_LINE_BYTES + 1):
            row += 1
            if len(line) <= MAX_LINE_BYTES:
                yield row, line
                continue
            if pass_over is None:
                message = f"has a line of more than {MAX_LINE_BYTES >> 20} MiB; expected one text per line"
                raise DataError(message, path=path, row=row)
            pass_over(row)
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE_BYTES)


def read_text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines as text without a byte order mark."""
    decoder = _Decoder(path)
    for row, line in read_lines(path, as_utf8=True):
        yield row, decoder.decode(line, row)


class _Decoder:
    """Decodes lines as UTF-8, or as Windows-1252 if only ASCII is also UTF-8 and looks like text."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Encoding and row of the first line beyond ASCII.
        self._first: tuple[str, int] | None = None

    def decode(self, line: bytes, row: int) -> str:
        if line.isascii():  # most are, and this is the fastest check
            if JAPANESE_MAIL in line:
                raise self._unknown(row, line.decode("ascii"))
            return line.decode("ascii")
        if row == 1 and line.startswith(codecs.BOM_UTF8):
            return self.decode(line.removeprefix(codecs.BOM_UTF8), row)
        try:
            text = line.decode()
            encoding = "UTF-8"
        except UnicodeDecodeError:
            text = self._as_windows(line, row)
            encoding = "Windows-1252"
        if self._first is None:
            self._first = (encoding, row)
        first_encoding, first_row = self._first
        if encoding != first_encoding:
            message = f"is {encoding}, but row {first_row} is {first_encoding}; save all rows as UTF-8"
            raise DataError(message, path=self._path, row=row)
        return text

    def _as_windows(self, line: bytes, row: int) -> str:
        text = line.decode("cp1252", errors="replace")
        if _NO_CHARACTER.search(line) or _NOT_WINDOWS.search(text):
            raise self._unknown(row, text)
        if self._first is None:
            note_once(
                "%s: not UTF-8, so read as Windows-1252; row %d has %r: if that is wrong, save it as UTF-8 in"
                " the program that wrote it",
                *(self._path, row, _excerpt(text)),
            )
        return text

    def _unknown(self, row: int, text: str) -> DataError:
        return DataError(
            f"is not UTF-8, and as Windows-1252 it has {_excerpt(text)!r}; save it as UTF-8, or give commands"
            " its encoding, such as `--encoding cp1250`",
            path=self._path,
            row=row,
        )


def _excerpt(text: str) -> str:
    """The text around its first character that isn't printable ASCII."""
    match = _ODD.search(text)
    start = match.start() if match else 0
    return one_line(text[max(0, start - 15) : start + 15])


def _as_utf8(data: bytes, encoding: str, path: Path) -> bytes:
    """The bytes of a text in UTF-8; they may be so already."""
    with suppress(UnicodeDecodeError):
        data.decode()
        if JAPANESE_MAIL not in data:
            return data
    try:
        return data.decode(encoding).encode()
    except UnicodeError as error:
        raise DataError(
            f"is not {encoding} ({one_line(str(error))}); give another --encoding",
            path=path,
        ) from error


@lru_cache(1000)
def note_once(message: str, *values: object) -> None:
    """Log a warning, but not again when the file is read again."""
    _LOG.warning("%s", spoken(message % values))


def read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The JSON value of each non-blank line, with its number."""
    for row, line in read_text_lines(path):
        if line.strip():
            yield row, parse_json(line.rstrip(), path, row)


def read_objects(
    path: Path, broken: Callable[[DataError], None] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """JSON objects with line numbers; `broken` gets the errors of lines, which are raised without it."""
    decoder = _Decoder(path)
    for row, line in read_lines(path, as_utf8=True):
        try:
            text = decoder.decode(line, row)
            value = _object(text, path, row) if text.strip() else None
        except DataError as error:
            if broken is None:
                raise
            broken(error)
            continue
        if value is not None:
            yield row, value


def _object(line: str, path: Path, row: int) -> dict[str, Any]:
    value = parse_json(line.rstrip(), path, row)
    if not isinstance(value, dict):
        raise DataError(
            f'{type(value).__name__}, expected a JSON object, such as {{"anchor": …, "positive": …}};'
            " name a file of one array .json",
            path=path,
            row=row,
        )
    if "\\u" in line:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise DataError(
                "not JSON (lone surrogate \\ud800 to \\udfff); fix the file",
                path=path,
                row=row,
            ) from error
    return value


def parse_json(text: str, path: Path, row: int = 1) -> Any:
    """Parse JSON text that begins in this row of a file; raises DataError with the row of the error."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(
            f"not JSON ({error.msg}); fix the file",
            path=path,
            row=row + error.lineno - 1,
        ) from error
    except (ValueError, RecursionError) as error:
        raise DataError(
            "not JSON (too deep or too large); fix the file", path=path, row=row
        ) from error


def read_text(
    path: Path, max_bytes: int | None = None, *, remedy: str = "split the file"
) -> str:
    """The content of a text file; raises DataError if it is too large, or in no known encoding."""
    decoder = _Decoder(path)
    content = io.BytesIO(read_whole(path, max_bytes, remedy=remedy, as_utf8=True))
    return "".join(decoder.decode(line, row) for row, line in enumerate(content, 1))


def read_whole(
    path: Path,
    max_bytes: int | None = None,
    *,
    remedy: str = "split the file",
    as_utf8: bool = False,
) -> bytes:
    """The decompressed content of a file; `as_utf8` as for `read_lines`.

    Raises DataError above `max_bytes`.
    """
    limit = MAX_WHOLE_BYTES if max_bytes is None else max_bytes
    content = bytearray()
    with _bytes_of(path, lambda: None, as_utf8=as_utf8) as file:
        while block := file.read(_BLOCK_BYTES):
            content += block
            if len(content) > limit:
                raise DataError(f"has more than {limit >> 20} MiB; {remedy}", path=path)
    return bytes(content)


@contextmanager
def _bytes_of(
    path: Path, row: Callable[[], int | None], *, as_utf8: bool
) -> Iterator[io.BufferedIOBase]:
    """The bytes of a file, decompressed; `as_utf8`, which is for texts, UTF-16 with a byte order mark becomes UTF-8."""
    remedy = "fix the file or its permissions"
    with (
        readable(path, "", EOFError, zlib.error, remedy=remedy, row=row),
        _opened(path) as file,
    ):
        yield _in_utf8(file, path) if as_utf8 else file


def _in_utf8(file: io.BufferedReader, path: Path) -> io.BufferedIOBase:
    """The text of a file in UTF-8, if it has a byte order mark of UTF-16 or users gave its encoding."""
    start = file.peek(4)
    if start.startswith((b"\x1f\x8b", b"PK\3\4")):
        raise DataError(
            "is compressed; name a gzip file .gz, a spreadsheet .xlsx, or unpack it",
            path=path,
        )
    is_utf16 = start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    encoding = "utf-16" if is_utf16 else os.environ.get(ENCODING)
    if not encoding:
        return file
    data = file.read(MAX_WHOLE_BYTES + 1)
    if len(data) > MAX_WHOLE_BYTES:
        message = (
            f"has more than {MAX_WHOLE_BYTES >> 20} MiB of {encoding}; save it as UTF-8"
        )
        raise DataError(message, path=path)
    if is_utf16:
        return io.BytesIO(data.decode(encoding).encode())
    return io.BytesIO(_as_utf8(data, encoding, path))


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    """A file's bytes, decompressed up to a limit; pipes and devices are refused."""
    # A pipe without a writer would block forever.
    if path.exists() and not path.is_file() and not path.is_dir():
        raise DataError(
            "is not a regular file but a pipe or device; save its content in a file",
            path=path,
        )
    with path.open("rb") as compressed:
        if path.suffix.lower() != ".gz":
            yield compressed
            return
        size = path.stat().st_size
        with gzip.GzipFile(fileobj=compressed) as decompressed:
            bounded = _Bounded(decompressed, max(FREE_BYTES, MAX_RATIO * size), path)
            yield io.BufferedReader(bounded, _BLOCK_BYTES)


class _Bounded(io.RawIOBase):
    """A decompressed stream that raises an error after a number of bytes."""

    def __init__(self, stream: gzip.GzipFile, left: int, path: Path) -> None:
        self._stream = stream
        self._left = left
        self._path = path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # readinto1 returns the bytes before a corrupt block.
        count = self._stream.readinto1(buffer)
        self._left -= count
        if self._left < 0:
            raise DataError(
                f"decompresses to more than {MAX_RATIO} times its size, unlike files of texts; if it is"
                " valid, decompress it and give the plain file",
                path=self._path,
            )
        return count


def no_such_file(path: Path) -> str:
    """The message for a missing file: the most similar name in its folder, or where it was searched."""
    folder = path.parent
    close = []
    if not folder.is_dir():
        return f"no such file; there is no folder {one_line(str(folder))}"
    with suppress(OSError):
        names = [each.name for each in islice(folder.iterdir(), _MAX_NAMES)]
        close = get_close_matches(path.name, names, 1)
    if close:
        return f"no such file; did you mean {one_line(str(folder / close[0]))}?"
    return f"no such file in {one_line(str(folder.resolve()))}"


@contextmanager
def readable(
    path: Path,
    kind: str,
    *errors: type[BaseException],
    remedy: str = "write or download it again",
    row: Callable[[], int | None] = lambda: None,
) -> Iterator[None]:
    """Convert these errors, and those of the system, while this row of a file of this kind is read."""
    caught: tuple[type[BaseException], ...] = (*errors, OSError, UnicodeError)
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(no_such_file(path), path=path) from error
    except caught as error:
        text = getattr(error, "strerror", None) or str(error)
        reason = one_line(text.split("\n")[0], 200)
        problem = f"not readable as {kind}" if kind else "not readable"
        message = f"{problem} ({reason}); {remedy}"
        raise DataError(message, path=path, row=row()) from error
