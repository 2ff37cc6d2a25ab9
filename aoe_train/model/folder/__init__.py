"""Model folders of others: checked before a library opens them, so that no code of theirs runs.

`settings`: config.json and adapter_config.json; `modules`: modules.json of sentence-transformers. Weights are
read from safetensors only.
"""

from aoe_train.model.folder.settings import ADAPTERS_FILE, check_settings

__all__ = ["ADAPTERS_FILE", "check_settings"]
