"""Peak memory of code, measured in its own process."""

import subprocess
import sys
from pathlib import Path

import pytest

_MEASURE = """
import sys
from pathlib import Path

def peak():
    # Not getrusage, which starts at the parent's peak.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

{imports}
before = peak()
try:
    {code}
    print("done")
except DataError as error:
    print(error)
print((peak() - before) / 1024)
"""


def peak_mib(imports, code, path):
    """The output of `code` with `path` as `sys.argv[1]`, and its peak MiB without imports.

    What became of it is "done", or the words of a DataError.
    """
    if not Path("/proc/self/status").exists():
        pytest.skip("peaks are measured on Linux")
    script = _MEASURE.format(
        imports=f"from pairkit.base.errors import DataError\n{imports}", code=code
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    *words, mib = ran.stdout.splitlines()
    return "\n".join(words), float(mib)
