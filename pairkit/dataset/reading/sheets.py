"""Read a spreadsheet in a process of its own, as the native reader can abort or take all memory."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from pairkit.base.errors import DataError
from pairkit.base.extras import needed_for
from pairkit.base.printable import one_line
from pairkit.base.system.text_lines import note_once, read_whole
from pairkit.dataset.reading.untrusted_tables import check_size, check_width

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_UNNAMED = "__UNNAMED__"  # fastexcel's prefix for the names of columns without one
_MEMORY, _MEMORY_PER_BYTE = 768 << 20, 40  # of reading; a cell of a few bytes takes up to 60
_SECONDS, _BYTES_PER_SECOND = 20, 1 << 18
_TOO_LARGE = "takes more memory or time than a file of this size may, perhaps for a cell far from the others"


def read_sheet(file: Path, sheet: str | None) -> pl.DataFrame:
    """A sheet of a spreadsheet; the first one unless named."""
    import polars as pl

    with needed_for("a spreadsheet"):
        import fastexcel  # noqa: F401
    data = read_whole(file)
    with TemporaryFile() as output:
        _run_reader(data, sheet, output, file)
        check_size(output.tell(), file, len(data))
        output.seek(0)
        names = json.loads(output.readline())
        if sheet is not None and sheet not in names:
            raise DataError(f"no sheet {sheet!r}; there are {one_line(', '.join(names))}", path=file)
        if sheet is None and len(names) > 1:
            note_once("%s: read the sheet %s; give %s:NAME for another", file, names[0], file.name)
        table = pl.read_ipc_stream(output.read())
    check_width(table.width, file)
    return table


def _run_reader(data: bytes, sheet: str | None, output: IO[bytes], file: Path) -> None:
    """Run this module as a command; after it `output` is at its end."""
    command = [sys.executable, "-P", "-m", __name__]  # -P: not from the current folder
    command += [] if sheet is None else [sheet]
    done = subprocess.run(command, input=data, stdout=output, stderr=subprocess.PIPE, check=False)  # noqa: S603
    output.seek(0, 2)
    if done.returncode == 0:
        return
    reason = _TOO_LARGE  # of a reader that was killed or that aborted
    if done.returncode == 1:
        reason = one_line(done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2], 200)
    raise DataError(f"not readable as a spreadsheet ({reason}); save it again as CSV", path=file)


def _write_sheet(data: bytes, wanted: str | None, output: IO[bytes]) -> None:
    """Write the names of all sheets as a line of JSON, then the sheet as an Arrow stream."""
    import fastexcel
    import pyarrow as pa

    logging.getLogger("fastexcel").setLevel(logging.ERROR)  # it warns of columns without a name
    _limit_resources(len(data))
    book = fastexcel.read_excel(data)
    names = book.sheet_names
    output.write(json.dumps(names).encode() + b"\n")
    if wanted is None or wanted in names:
        sheet = book.load_sheet(wanted or 0, schema_sample_rows=None, skip_whitespace_tail_rows=True)
        rows = _without_empty_columns(sheet.to_arrow())
        with pa.ipc.new_stream(output, rows.schema) as stream:
            stream.write_batch(rows)


def _without_empty_columns(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Drop columns without name and values, as formatted ones are; the others keep their numbers."""
    names, used = list[str](), list[int]()
    for number, name in enumerate(rows.column_names):
        is_named = not name.startswith(_UNNAMED)
        names.append(name if is_named else f"column_{number + 1}")
        if is_named or not {*rows.column(number).unique().to_pylist()} <= {None, ""}:
            used.append(number)
    return rows.rename_columns(names).select(used)


def _limit_resources(size: int) -> None:
    """Limit this process's memory beyond what it has, and its time, by the size of its input."""
    with suppress(ImportError, OSError, ValueError):  # not on Windows, and memory only on Linux
        import resource

        seconds = _SECONDS + size // _BYTES_PER_SECOND
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        memory = taken + _MEMORY + _MEMORY_PER_BYTE * size
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _main() -> None:
    try:
        _write_sheet(sys.stdin.buffer.read(), next(iter(sys.argv[1:]), None), sys.stdout.buffer)
    except MemoryError:
        sys.exit(_TOO_LARGE)
    except BaseException as error:  # noqa: BLE001 - also a panic in Rust
        sys.exit(str(error).partition("\n")[0] or type(error).__name__)


if __name__ == "__main__":
    _main()
