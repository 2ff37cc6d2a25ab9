"""The encoding of text files that aren't UTF-8."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line

ENCODING = "AOE_ENCODING"  # a variable of the environment, which processes inherit


@contextmanager
def files_in(encoding: str | None) -> Iterator[None]:
    """Read text files that aren't UTF-8 in this encoding, if there is one."""
    if not encoding:
        yield
        return
    try:
        b"a".decode(encoding)
    except LookupError as error:
        raise ConfigError(
            f"--encoding {one_line(encoding)}: unknown; expected a name such as cp1250, gb18030 or shift_jis"
        ) from error
    os.environ[ENCODING] = encoding
    try:
        yield
    finally:
        del os.environ[ENCODING]
