"""Finding and loading a backbone: a folder, a Hub id, or a packaged one by name. Never pickled weights."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from aoe_train.model.backbones.packaged import PACKAGED, quietly
from aoe_train.model.folder_checks import ADAPTERS_FILE, check_settings, read_object
from pairkit.app.errors import ConfigError, DataError, RemoteError
from pairkit.app.printable import one_line

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast


_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
# Where the Hub's library keeps what it fetched.
_SNAPSHOT = re.compile(r"/models--(?P<name>[^/]+)/snapshots/(?P<commit>[0-9a-f]{40})/?$")
_NAMES = " or ".join(PACKAGED)
# Tokenizer, configuration, safetensors, digests of training texts; no pickles, no other frameworks' weights.
_WANTED = ["*.json", "*.safetensors", "*.txt", "*.model", "*.py", "training_texts.npy"]


@dataclass(frozen=True)
class LoadedBackbone:
    """A backbone with its tokenizer, and the folder that both came from."""

    backbone: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    folder: Path


def check_pin(source: str | Path, revision: str | None, *, trust_remote_code: bool) -> None:
    """Refuse to run code of the Hub that may change after it was read; call it before anything is fetched."""
    local = str(source) in PACKAGED or Path(source).is_dir()
    if trust_remote_code and not (local or _COMMIT.fullmatch(revision or "")):
        raise ConfigError(
            f"{source}: trust_remote_code runs the model's code; pin the commit you have read with --revision"
            " (40 hexadecimal digits)"
        )


def check_name(source: str | Path) -> None:
    """Refuse what is no model's folder and can't be a Hub id; nothing is fetched, and torch is not needed."""
    name, path = str(source), Path(source)
    if name in PACKAGED:
        return
    if path.is_dir():
        files = ("config.json", ADAPTERS_FILE, "modules.json")
        if not any((path / file).is_file() for file in files):
            raise ConfigError(f"{source}: no config.json; expected the folder of a transformers model")
        return
    if path.exists():
        raise ConfigError(f"{source}: a file; expected a model's folder")
    if name.startswith((".", "/", "~")) or not _HUB_ID.fullmatch(name):
        raise ConfigError(f"{source}: no such folder; expected a model's folder, a Hub id, or {_NAMES}")
    if close := get_close_matches(name.lower(), PACKAGED, 1, cutoff=0.8):
        raise ConfigError(f"{source}: no such folder or packaged model; did you mean {close[0]}?")


def find_folder(source: str | Path, *, revision: str | None = None) -> Path:
    """The folder of a model, fetched first if `source` is a Hub id."""
    if str(source) in PACKAGED:
        return PACKAGED[str(source)].folder()
    if Path(source).is_dir():
        return Path(source)
    check_name(source)
    from pairkit.dataset.hub import fetch_model

    name, instead = str(source), f"use a folder or {_NAMES}"
    return fetch_model(name, revision, _WANTED, called=name, instead=instead)


def load_backbone(
    source: str | Path,
    *,
    revision: str | None = None,
    trust_remote_code: bool = False,
    dtype: torch.dtype | None = None,
    quantization: Any = None,
    layers: int | None = None,
    inference_only: bool = False,
) -> LoadedBackbone:
    """Load model and tokenizer."""
    check_pin(source, revision, trust_remote_code=trust_remote_code)
    import torch

    from aoe_train.model.backbones.static import is_static, read_static

    folder = find_folder(source, revision=revision)
    if is_static(folder):
        static = read_static(folder, dtype or torch.float32)
        return LoadedBackbone(cast("Any", static.table), static.tokenizer, folder)
    _check_model(folder)
    if inference_only and (bert := _read_bert(folder, dtype or torch.float32)) is not None:
        return bert
    from transformers import AutoTokenizer

    import aoe_train.model.ran  # noqa: F401 - as in `outline`

    adapted = (folder / ADAPTERS_FILE).is_file()
    base = _find_base(folder, trust_remote_code=trust_remote_code) if adapted else folder
    if trust_remote_code:
        for part in {folder, base}:
            _check_code(part)
    options = {"quantization_config": quantization} if quantization else {}
    try:
        with quietly():
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
            backbone, report = model_class(base).from_pretrained(
                base,
                dtype=dtype or torch.float32,
                use_safetensors=True,
                trust_remote_code=trust_remote_code,
                output_loading_info=True,
                **options,
            )
            reports = {base: report}
            if adapted and layers is not None:
                from aoe_train.model.backbones.depth import keep_layers

                keep_layers(backbone, layers)
            if adapted:  # given the adapters' folder, transformers would look for the base once more, by name
                reports[folder] = backbone.load_adapter(str(folder)).to_dict()
    except Exception as error:  # whatever a damaged file makes transformers, tokenizers or safetensors raise
        raise _explained(folder, error) from error
    for part, found in reports.items():
        _check_weights(part, backbone, found)
    join_embeddings(backbone)
    return LoadedBackbone(backbone, cast("Any", tokenizer), folder)


def _read_bert(folder: Path, dtype: torch.dtype) -> LoadedBackbone | None:
    """Without transformers' code for models; None where that is needed, if only to say what is wrong."""
    from transformers import AutoTokenizer

    from aoe_train.model.backbones.packed_bert import read_bert

    try:
        with quietly():
            backbone = read_bert(folder, dtype)
            if backbone is None:
                return None
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # as where transformers loads the model
        raise _explained(folder, error) from error
    return LoadedBackbone(cast("Any", backbone), cast("Any", tokenizer), folder)


def outline(folder: Path) -> PreTrainedModel:
    """The network that a folder describes, without its weights; of adapters, the one that they are for."""
    import torch
    from transformers import AutoConfig

    import aoe_train.model.ran  # noqa: F401 - makes transformers know it

    if (folder / ADAPTERS_FILE).is_file():
        folder = _find_base(folder, trust_remote_code=False)
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        with quietly(), torch.device("meta"):
            return network(config)
    except Exception as error:  # whatever odd values make transformers and torch raise
        raise _explained(folder, error) from error


def _check_model(folder: Path) -> None:
    check_settings(folder)
    if not any((folder / name).is_file() for name in ("config.json", ADAPTERS_FILE)):
        raise ConfigError(f"{folder}: no config.json; expected the folder of a transformers model")
    if not any(folder.glob("*.safetensors")):
        pickled = sorted(
            path.name for path in folder.iterdir() if path.suffix in (".bin", ".pt", ".pth", ".ckpt")
        )
        raise ConfigError(
            f"{folder}: weights only as {pickled[0]}, a pickle, which can run code when loaded; convert it to"
            " model.safetensors if you trust it"
            if pickled
            else f"{folder}: no weights; expected model.safetensors"
        )


def hub_origin(folder: str | Path) -> tuple[str, str] | None:
    """Hub id and commit of a folder that was fetched from there; None for any other."""
    found = _SNAPSHOT.search(Path(folder).as_posix())
    return None if found is None else (found["name"].replace("--", "/"), found["commit"])


def _find_base(folder: Path, *, trust_remote_code: bool) -> Path:
    """The folder of the model that adapters were made for, at the commit that they name, if they do."""
    about = read_object(folder / ADAPTERS_FILE)
    base, revision = about.get("base_model_name_or_path"), about.get("revision")
    if not base:
        raise DataError("names no base_model_name_or_path", path=folder / ADAPTERS_FILE)
    try:
        check_pin(base, revision, trust_remote_code=trust_remote_code)
        found = find_folder(base, revision=revision)
        _check_model(found)
    except (ConfigError, RemoteError) as error:
        raise type(error)(f"{folder}: holds adapters for {base}, which can't be loaded: {error}") from error
    if (found / ADAPTERS_FILE).is_file():
        raise ConfigError(
            f"{folder}: its base {base} holds adapters itself; merge those into their base first"
        )
    return found


def _check_code(folder: Path) -> None:
    """Refuse code of another repository, which no pinned commit covers."""
    for path in (folder / "config.json", folder / "tokenizer_config.json"):
        named = json.dumps(read_object(path).get("auto_map"))
        if "--" in named:  # how transformers parts the repository from the class
            raise ConfigError(
                f"{path}: its code is in another repository ({named}), which --revision does not pin; copy"
                " the code that you have read into the folder, and name it there without the repository"
            )


def _check_weights(folder: Path, backbone: PreTrainedModel, report: Any) -> None:
    missing = sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise DataError(
            f"weights lack {len(missing)} of what config.json describes, such as {missing[0]}: they are of"
            " another configuration",
            path=folder,
        )
    strange = sorted(key for key in report["unexpected_keys"] if ".layer" in key or key.startswith("layer"))
    if strange:
        raise DataError(
            f"weights have {len(strange)} that config.json has no place for, such as {strange[0]}: they are"
            " of another configuration",
            path=folder,
        )
    pooler: Any = getattr(backbone, "pooler", None)
    if (
        pooler is not None
    ):  # sentence vectors come from the hidden states; what takes no part must not be trained
        if any(key.startswith("pooler.") for key in report["missing_keys"]):
            cast("Any", backbone).pooler = None
        else:
            pooler.requires_grad_(requires_grad=False)


def _explained(folder: Path, error: Exception) -> Exception:
    text = one_line(str(error), 200)
    if "trust_remote_code" in str(error):  # at the end of a long one
        return ConfigError(
            f"{folder}: this model needs code of its own; give --trust-remote-code and a --revision"
        )
    if "does not recognize this architecture" in text or "Unrecognized model" in text:
        return ConfigError(f"{folder}: an architecture that the installed transformers doesn't know ({text})")
    if "mismatch" in text:
        return DataError(
            f"weights don't fit config.json: they are of another configuration ({text})", path=folder
        )
    try:
        read_object(folder / "tokenizer.json")
    except DataError as damaged:  # which transformers does not name
        return damaged
    return DataError(f"not loadable ({type(error).__name__}: {text}); copy or download it again", path=folder)


_ENCODERS = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel", "umt5": "UMT5EncoderModel"}


def model_class(folder: Path) -> Any:
    """The class whose `from_pretrained` reads the model in `folder`, whose files may be read."""
    import transformers

    told = read_object(folder / "config.json")
    kind = None if "auto_map" in told else told.get("model_type")
    return getattr(transformers, _ENCODERS.get(str(kind), "AutoModel"))


def network(config: PretrainedConfig) -> PreTrainedModel:
    """A network as `config` says, with weights that mean nothing."""
    import transformers

    if (name := _ENCODERS.get(config.model_type)) is not None:
        model: PreTrainedModel = getattr(transformers, name)(config)
        return model
    return transformers.AutoModel.from_config(config, trust_remote_code=False)  # type: ignore[no-any-return, no-untyped-call]


def join_embeddings(backbone: Any) -> None:
    """Let a T5 have one embedding, where transformers makes two layers of one weight; in place."""
    if type(backbone).__name__ in _ENCODERS.values():
        backbone.encoder.embed_tokens = backbone.get_input_embeddings()


def recompute_layers(backbone: Any) -> None:
    """Let `backbone` run its layers again in the backward pass, and keep nothing of what they computed."""
    # transformers 5.17 calls it gradient checkpointing; 5.23 calls it so, and warns of the old name.
    newer = getattr(backbone, "activation_checkpointing_enable", None)
    (newer or backbone.gradient_checkpointing_enable)({"use_reentrant": False})
