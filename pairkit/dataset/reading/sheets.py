"""Read a spreadsheet in a process of its own, as the native reader can abort or take all memory."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from pairkit.base.errors import DataError
from pairkit.base.extras import needed_for
from pairkit.base.printable import one_line
from pairkit.base.system.text_lines import note_once, read_whole
from pairkit.dataset.reading.untrusted_tables import check_size, check_width

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_TOO_LARGE = "takes more memory or time than a file of this size may, perhaps for a cell far from the others"


def read_sheet(file: Path, sheet: str | None) -> pl.DataFrame:
    """A sheet of a spreadsheet; the first one unless named."""
    import polars as pl

    with needed_for("a spreadsheet"):
        import fastexcel  # noqa: F401
    data = read_whole(file)
    # -P: not from the current folder.
    command = [sys.executable, "-P", "-m", __name__, sheet or ""]
    with TemporaryFile() as output:
        process = subprocess.run(  # noqa: S603 - this interpreter on this module
            command,
            input=data,
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
        )
        if process.returncode:
            last_line = (
                process.stderr.decode("utf-8", "replace").rstrip().rpartition("\n")[2]
            )
            # With any other status, it was killed or aborted.
            reason = last_line if process.returncode == 1 else _TOO_LARGE
            message = f"not readable as a spreadsheet ({one_line(reason, 200)}); save it again as CSV"
            raise DataError(message, path=file)
        check_size(output.seek(0, 2), file, len(data))
        output.seek(0)
        names = json.loads(output.readline())
        table = pl.read_ipc_stream(output.read())
    if sheet is not None and sheet not in names:
        raise DataError(
            f"no sheet {sheet!r}; there are {one_line(', '.join(names))}", path=file
        )
    if sheet is None and len(names) > 1:
        note_once(
            "%s: read the sheet %s; give %s:NAME for another", file, names[0], file.name
        )
    check_width(table.width, file)
    return table


def _main() -> None:
    """Read the sheet named in the command, in a process for it."""
    # fastexcel warns of columns without a name.
    logging.getLogger("fastexcel").setLevel(logging.ERROR)
    try:
        _write_sheet(sys.stdin.buffer.read(), sys.argv[1])
    except MemoryError:
        sys.exit(_TOO_LARGE)
    except BaseException as error:  # noqa: BLE001 - also a panic in Rust
        sys.exit(str(error).partition("\n")[0])


def _write_sheet(data: bytes, wanted: str) -> None:
    """Write the names of all sheets as a line of JSON, then one sheet as an Arrow stream."""
    import fastexcel
    import pyarrow as pa

    _limit_resources(len(data))
    book = fastexcel.read_excel(data)
    names = book.sheet_names
    output = sys.stdout.buffer
    sheet = book.load_sheet(
        wanted if wanted in names else 0,
        schema_sample_rows=None,
        skip_whitespace_tail_rows=True,
    )
    rows = _without_empty_columns(sheet.to_arrow())
    output.write(json.dumps(names).encode() + b"\n")
    with pa.ipc.new_stream(output, rows.schema) as stream:
        stream.write_batch(rows)


def _without_empty_columns(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Drop columns without name and values, as formatted ones are; the others keep their numbers."""
    names = []
    used = []
    for number, name in enumerate(rows.column_names):
        is_unnamed = name.startswith("__UNNAMED__")
        names.append(f"column_{number + 1}" if is_unnamed else name)
        if not (is_unnamed and {*rows[number].unique().to_pylist()} <= {None, ""}):
            used.append(number)
    return rows.rename_columns(names).select(used)


def _limit_resources(size: int) -> None:
    """Limit the time of this process, and the memory beyond what it has, by the size of its input."""
    # Windows has no limits, and only Linux has one for memory.
    with suppress(ImportError, OSError, ValueError):
        import resource

        seconds = 20 + (size >> 18)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        taken = (
            int(Path("/proc/self/statm").read_text().split()[0])
            * resource.getpagesize()
        )
        memory = taken + (768 << 20) + 40 * size  # a cell of two bytes takes up to 60
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


if __name__ == "__main__":
    _main()
