"""A model's folder, looked at before any library opens it: it may come from a stranger.

transformers, peft, tokenizers and sentence-transformers do what the JSON files in a folder tell them to. Some
of that runs code, reads files elsewhere, or takes memory and time without end. What they may be told is on
lists here; all else is refused in one line that names file and remedy.

```
files        what may be read: whole files of this folder, of sensible size; JSON that is no trap
config       config.json: no kernels or quantisers that fetch code, no sizes out of all proportion
adapters     adapter_config.json: low-rank adapters and nothing else
tokenizer    tokenizer.json: no rule that makes a short text endless
modules      modules.json of sentence-transformers: which modules, with which settings
```
"""

from __future__ import annotations

from pathlib import Path

from aoe_train._model_folder.adapters import ADAPTERS_FILE, check_adapters
from aoe_train._model_folder.config import check_config
from aoe_train._model_folder.files import check_files
from aoe_train._model_folder.tokenizer import check_tokenizer

__all__ = ["ADAPTERS_FILE", "check_files", "check_settings"]


def check_settings(folder: Path) -> None:
    """Refuse settings that would make a library run code, or work without end.

    Args:
        folder: Of a model of transformers, of adapters for one, or of a module. `check_files` has looked at
            it, or at the whole model that it is part of.

    Raises:
        ConfigError: It asks for what is not on the lists.
        DataError: A file is damaged, or a value absurd.
    """
    check_config(folder)
    check_adapters(folder)
    check_tokenizer(folder)
