"""Where mteb keeps results. Imports mteb, which takes seconds: to be imported where it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mteb.cache import ResultCache

from pairkit.files import write_errors


class Results(ResultCache):
    """mteb's own folder of results; what can't be written there, and that alone, is our error."""

    def __init__(self, folder: Path) -> None:
        """Open or make the folder.

        Raises:
            ConfigError: It can't be made.
        """
        with write_errors(folder):
            super().__init__(folder)

    def save_to_cache(self, *args: Any, **kwargs: Any) -> None:
        """Keep a task's result; see mteb.

        Raises:
            ConfigError: It can't be written.
        """
        with write_errors(self.cache_path):
            super().save_to_cache(*args, **kwargs)
