"""The processor that a speed was measured on."""

from __future__ import annotations

import platform
from pathlib import Path

# Instruction sets that decide the speed of matrix products, as Linux names them.
_SETS = (
    "avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16", "asimd", "i8mm",
    "bf16",
)  # fmt: skip


def processor() -> str:
    """The name of the processor."""
    return _cpuinfo_line("model name") or platform.processor()


def instruction_sets() -> str:
    """The processor's instruction sets for matrix products, if known."""
    flags = (_cpuinfo_line("flags") or _cpuinfo_line("Features")).split()
    return (
        ", ".join(name for name in _SETS if name in flags) or "instruction sets unknown"
    )


def _cpuinfo_line(what: str) -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith(what)), ""
    )
