"""Finding and loading a backbone: a folder, a Hub id or a packaged model. Pickled weights are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train.model.backbones.packaged import PACKAGED, quietly
from aoe_train.model.folder_checks import (
    ADAPTERS_FILE,
    check_settings,
    panics_as_errors,
    read_modules,
    read_object,
)
from pairkit.base.errors import (
    AuthError,
    ConfigError,
    DataError,
    PairkitError,
    RemoteError,
)
from pairkit.base.printable import one_line
from pairkit.base.system.machine import is_out_of_memory

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast


_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_NAMES = " or ".join(PACKAGED)
# Words of transformers' message on a model without a tokenizer.
_NO_TOKENIZER = "backend tokenizer"
# An empty T5 or DeBERTa tokenizer has one or two tokens beside the special ones.
_FEWEST_TOKENS = 4
_LFS_POINTER = b"version https://git-lfs"
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
# Kinds of models whose encoder has a class of its own.
_T5 = ("t5", "mt5", "umt5")
# Tokenizer, configuration, safetensors, hashes of training texts; no pickles, no other frameworks' weights.
_FETCHED = ["*.json", "*.safetensors", "*.txt", "*.model", "*.py", "training_texts.npy"]
_IGNORED = ["onnx/*", "openvino/*", "original/*", "metal/*"]  # weights in other formats


def check_name(source: str | Path) -> None:
    """Refuse a source that is neither a model folder nor a valid Hub id, without a download or torch."""
    name = str(source)
    path = Path(source)
    if name in PACKAGED:
        return
    if path.is_dir():
        _check_has_files(path, "config.json", ADAPTERS_FILE, "modules.json")
        return
    if path.exists():
        raise ConfigError(f"{source}: is a file; expected a model folder")
    if name.startswith((".", "/", "~")) or not _HUB_ID.fullmatch(name):
        raise ConfigError(
            f"{source}: no such folder; expected a model folder, a Hub id, or {_NAMES}"
        )
    close = get_close_matches(name.lower(), PACKAGED, 1, cutoff=0.8)
    if close:
        raise ConfigError(
            f"{source}: no such folder or packaged model; did you mean {close[0]}?"
        )


def _check_has_files(folder: Path, *names: str) -> None:
    """Refuse a folder without any of these files."""
    if not any((folder / name).is_file() for name in names):
        raise ConfigError(
            f"{folder}: no config.json; expected the folder of a transformers model"
        )


def find_folder(
    source: str | Path,
    *,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> Path:
    """The folder of a model; downloads a Hub id first, which needs a pinned commit to run its code."""
    name = str(source)
    if name in PACKAGED:
        return PACKAGED[name].folder()
    if Path(source).is_dir():
        return Path(source)
    if trust_remote_code and not _COMMIT.fullmatch(revision or ""):
        raise ConfigError(
            f"{name}: --trust-remote-code runs the model's code; pin the commit that you reviewed with"
            " --revision (40 hexadecimal digits)"
        )
    check_name(source)
    return _fetch_model(name, revision)


def _fetch_model(name: str, revision: str | None) -> Path:
    """The folder of a model from the Hub, downloaded unless it is cached."""
    from huggingface_hub import errors, snapshot_download

    try:
        folder = snapshot_download(
            name,
            revision=revision,
            allow_patterns=_FETCHED,
            ignore_patterns=_IGNORED,
        )
    except errors.GatedRepoError as error:
        raise AuthError(
            f"{name}: accept its terms on the Hub and set HF_TOKEN to your token"
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise ConfigError(
            f"{name}: no such folder or model on the Hub (a private model needs HF_TOKEN)"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ConfigError(f"{name}: has no revision {revision!r}") from error
    except Exception as error:  # of the network, a proxy or the disk
        reason = one_line(str(error), 100)
        raise RemoteError(
            f"{name}: no such folder, and the Hub could not be reached ({reason}); check name and network, or"
            f" use a folder or {_NAMES}"
        ) from error
    return Path(folder)


def refuse_classifier(folder: Path) -> None:
    """Refuse a reranker or classifier as an embedding model."""
    config = read_object(folder / "config.json")
    if "ForSequenceClassification" in str(config.get("architectures")):
        raise ConfigError(
            f"{folder}: is a classifier or reranker, not an embedding model: it scores pairs and has no"
            " vectors of texts; a reranker's scores can teach (--teacher-scores)"
        )


def load_backbone(
    folder: Path,
    *,
    trust_remote_code: bool,
    dtype: torch.dtype,
    quantization: object,
    layers: int | None,
    inference_only: bool,
) -> tuple[Any, PreTrainedTokenizerFast]:
    """Load a model of transformers, a `PackedBert` or a `StaticTable`, with its tokenizer."""
    from aoe_train.model.backbones.packed_bert import read_bert
    from aoe_train.model.backbones.static import is_static, read_static

    if is_static(folder):
        return read_static(folder, dtype)
    modules = read_modules(folder)
    if modules:  # sentence-transformers before 2.0 has a folder for the network
        folder = folder / modules[0].path
    base = _checked_base(folder, trust_remote_code=trust_remote_code)
    if trust_remote_code:
        for part in {folder, base}:
            _check_code(part)
    options: dict[str, Any] = {"dtype": dtype, "trust_remote_code": trust_remote_code}
    if quantization:
        options["quantization_config"] = quantization
    with _explained_errors(folder):
        # A plain BERT can encode without transformers' model code.
        bert = read_bert(folder, dtype) if inference_only else None
        tokenizer = _read_tokenizer(folder, trust_remote_code=trust_remote_code)
        if bert is not None:
            return bert, tokenizer
        backbone, reports = _load_network(folder, base, layers, options)
    for part, report in reports.items():
        _check_weights(part, report)
    _leave_out_pooler(backbone, reports[base]["missing_keys"])
    return backbone, tokenizer


def _load_network(
    folder: Path,
    base: Path,
    layers: int | None,
    options: Mapping[str, object],
) -> tuple[Any, dict[Path, Any]]:
    """The network, with any adapters of `folder`, and transformers' reports by folder."""
    import aoe_train.model.ran  # noqa: F401 - registers it with transformers

    kind = model_class(base)
    backbone, report = kind.from_pretrained(
        base, use_safetensors=True, output_loading_info=True, **options
    )
    if kind.__name__ != "AutoModel":
        backbone.config.is_encoder_decoder = False
        # transformers loads two copies of their embeddings.
        backbone.encoder.embed_tokens = backbone.get_input_embeddings()
        report["unexpected_keys"] = [
            key for key in report["unexpected_keys"] if not key.startswith("decoder.")
        ]
    reports = {base: report}
    if base != folder:
        if layers is not None:
            from aoe_train.model.backbones.changes import keep_layers

            keep_layers(backbone, layers)
        # The adapters are loaded separately, because from_pretrained would search for the base by name.
        reports[folder] = backbone.load_adapter(str(folder)).to_dict()
    return backbone, reports


def _read_tokenizer(
    folder: Path, *, trust_remote_code: bool
) -> PreTrainedTokenizerFast:
    """The tokenizer of a folder; without its files transformers makes one that knows no words."""
    from transformers import AutoTokenizer

    with panics_as_errors("on its own rules"):
        tokenizer: Any = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=trust_remote_code
        )
    if len(tokenizer) - len(tokenizer.all_special_ids) < _FEWEST_TOKENS:
        raise ValueError(_NO_TOKENIZER)
    return tokenizer  # type: ignore[no-any-return]


def outline(folder: Path) -> Any:
    """The network of a folder without its weights; for adapters, the network of their base."""
    import torch
    import transformers

    import aoe_train.model.ran  # noqa: F401 - registers it with transformers

    folder = _checked_base(folder, trust_remote_code=False)
    with _explained_errors(folder), torch.device("meta"):
        config = transformers.AutoConfig.from_pretrained(
            folder, trust_remote_code=False
        )
        kind = model_class(folder)
        if kind is not transformers.AutoModel:
            return kind(config)
        return kind.from_config(config, trust_remote_code=False)  # type: ignore[no-untyped-call]


def _check_model(folder: Path) -> None:
    """Refuse a folder that would run code when it is opened, or has no weights to load."""
    check_settings(folder)
    _check_has_files(folder, "config.json", ADAPTERS_FILE)
    weights = "*.safetensors"
    if (folder / ADAPTERS_FILE).is_file():
        # Without this file, transformers would load adapters from a pickle.
        weights = "adapter_model.safetensors"
    if any(folder.glob(weights)):
        return
    pickled = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
    if not pickled:
        raise ConfigError(f"{folder}: no weights; expected {weights}")
    raise ConfigError(
        f"{folder}: its only weights are {pickled[0]}, a pickle, which can run code when loaded; if you"
        " trust it, load and save the model with a new release of the library that wrote it"
    )


def _checked_base(folder: Path, *, trust_remote_code: bool) -> Path:
    """The checked folder itself, or of adapters their base, at the commit that they name, if any."""
    _check_model(folder)
    path = folder / ADAPTERS_FILE
    if not path.is_file():
        return folder
    config = read_object(path)
    name = config.get("base_model_name_or_path")
    revision = config.get("revision")
    if not (name and isinstance(name, str) and isinstance(revision, str | None)):
        raise DataError(
            "expected base_model_name_or_path, and perhaps revision, as text",
            path=path,
        )
    try:
        base = find_folder(name, revision=revision, trust_remote_code=trust_remote_code)
        _check_model(base)
    except (ConfigError, RemoteError) as error:
        raise type(error)(
            f"{folder}: the base of its adapters, {name}, can't be loaded: {error}"
        ) from error
    if (base / ADAPTERS_FILE).is_file():
        raise ConfigError(
            f"{folder}: its base {name} consists of adapters; merge them into their base first"
        )
    return base


def _check_code(folder: Path) -> None:
    """Refuse code from another repository, which no pinned commit covers."""
    for path in (folder / "config.json", folder / "tokenizer_config.json"):
        classes = json.dumps(read_object(path).get("auto_map"))
        if "--" in classes:  # transformers' separator of repository and class
            raise ConfigError(
                f"{path}: its code is in another repository ({classes}), which --revision does not pin; copy"
                " the code that you reviewed into the folder, and remove the repository from auto_map"
            )


def _check_weights(folder: Path, report: Mapping[str, Collection[str]]) -> None:
    """Refuse weights that are not those of the network; the pooler's may be missing."""
    missing = [key for key in report["missing_keys"] if not key.startswith("pooler.")]
    unexpected = [
        key
        for key in report["unexpected_keys"]
        if ".layer" in key or key.startswith("layer")
    ]
    for problem, keys in (("missing", missing), ("unexpected", unexpected)):
        if keys:
            raise DataError(
                f"the weights don't match config.json: {len(keys)} are {problem}, such as {min(keys)}; copy or"
                " download the model again",
                path=folder,
            )


def _leave_out_pooler(backbone: Any, missing: Collection[str]) -> None:
    """Text vectors don't use the pooler: without weights it is removed, with weights it isn't trained."""
    if any(key.startswith("pooler.") for key in missing):
        backbone.pooler = None
    elif getattr(backbone, "pooler", None) is not None:
        backbone.pooler.requires_grad_(requires_grad=False)


@contextmanager
def _explained_errors(folder: Path) -> Iterator[None]:
    """Silence transformers, and convert what it and torch raise for damaged files, which can be anything."""
    try:
        with quietly():
            yield
    except PairkitError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise _explained(folder, error) from error


def _explained(folder: Path, error: Exception) -> PairkitError:
    """An error of a library in words that say what to do."""
    text = one_line(str(error), 200)
    if _NO_TOKENIZER in text:
        return DataError(
            "has no tokenizer; copy its tokenizer.json into the folder", path=folder
        )
    if "trust_remote_code" in str(error):  # often at the end of a long message
        return ConfigError(
            f"{folder}: needs its own code; give --trust-remote-code and a --revision"
        )
    if isinstance(error, ImportError) or "pip install" in text:
        return ConfigError(f"{folder}: needs another package ({text})")
    if "does not recognize this architecture" in text or "Unrecognized model" in text:
        return ConfigError(
            f"{folder}: the installed transformers doesn't support this architecture ({text})"
        )
    if "mismatch" in text:
        return DataError(
            f"the weights don't match config.json ({text}); copy or download the model again",
            path=folder,
        )
    try:
        read_object(folder / "tokenizer.json")
    except DataError as damaged:  # transformers does not name the file
        return damaged
    for path in folder.glob("*.safetensors"):
        with path.open("rb") as file:
            if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
                return DataError(
                    "its weights are a pointer of Git LFS; run `git lfs pull` there",
                    path=folder,
                )
    return DataError(
        f"not loadable ({type(error).__name__}: {text}); copy or download it again",
        path=folder,
    )


def model_class(folder: Path) -> Any:
    """The class whose `from_pretrained` reads the model in a checked folder."""
    import transformers

    config = read_object(folder / "config.json")
    kind = config.get("model_type")
    if kind in _T5 and "auto_map" not in config:
        return getattr(transformers, f"{kind.upper()}EncoderModel")
    return transformers.AutoModel
