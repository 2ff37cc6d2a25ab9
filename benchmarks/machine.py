"""What a figure of speed was measured on."""

from __future__ import annotations

import platform
from pathlib import Path

# By which products of matrices differ, as Linux names them.
_SETS = (
    "avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16", "asimd", "i8mm",
    "bf16",
)  # fmt: skip


def processor() -> str:
    """The processor's name, where Linux tells it."""
    named = _cpuinfo_line("model name")
    return named or platform.processor()


def instruction_sets() -> str:
    """The sets of instructions for products of matrices that the processor has, where Linux tells them."""
    flags = (_cpuinfo_line("flags") or _cpuinfo_line("Features")).split()
    return ", ".join(name for name in _SETS if name in flags) or "instruction sets unknown"


def _cpuinfo_line(what: str) -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(what)), "")
