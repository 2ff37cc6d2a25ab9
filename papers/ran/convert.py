"""Converts published TensorFlow checkpoints to our model, by a table of variables and parameters.

rannet/ran-3/encode-attn/dense-q/kernel  (in, out)   ->   a third of ran.layers.3.window.attention.qkv.weight
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from aoe_train import ran
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.files import whole_folder
from papers.ran.corpus import load_tokenizer
from papers.ran.masked_lm import RanForMaskedLM
from papers.ran.tensor_bundle import read_bundle

Sources = dict[str, list[str]]

_MAX_SIZE = 1 << 16
_EMBEDDINGS = "rannet/token-embedding/embeddings"
_LAYER = re.compile(r"rannet/ran-\d+/")


def convert(
    checkpoint: Path, vocab: Path, out: Path, *, heads: int | None, cased: bool
) -> RanForMaskedLM:
    """Convert a published checkpoint to a model folder."""
    if out.exists():
        raise ConfigError(f"{out}: already exists; choose another folder or remove it")
    tokenizer = load_tokenizer(vocab, lowercase=not cased)
    model = convert_checkpoint(checkpoint, heads=heads)
    if len(tokenizer) > model.config.vocab_size:
        raise ConfigError(
            f"{vocab}: {len(tokenizer)} tokens, the checkpoint has {model.config.vocab_size}; use its own"
            " vocabulary"
        )
    with whole_folder(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return model


def convert_checkpoint(source: Path, *, heads: int | None = None) -> RanForMaskedLM:
    """Read a published checkpoint."""
    prefix = _prefix(source)
    variables = read_bundle(prefix)
    published = _published_config(prefix.parent)
    config = _config(variables, heads or published.get("head_num"), published, prefix)
    model = RanForMaskedLM(config)
    model.load_state_dict(_state(model, variables, prefix))
    model.tie_weights()
    return model.eval()  # type: ignore[no-any-return, no-untyped-call]


def _prefix(source: Path) -> Path:
    if not source.is_dir():
        return source.with_suffix("") if source.suffix == ".index" else source
    found = sorted(source.glob("*.index"))
    if len(found) != 1:
        raise DataError(
            f"{len(found)} checkpoints (*.index) in the folder, expected one",
            path=source,
        )
    return found[0].with_suffix("")


def _published_config(folder: Path) -> dict[str, int]:
    path = folder / "config.json"
    if not path.is_file():
        return {}
    values = json.loads(path.read_text(encoding="utf-8"))
    sizes = {}
    for name in ("head_num", "window_size", "min_window_size"):
        value = values.get(name)
        if value is None:
            continue
        if type(value) is not int or not 1 <= value <= _MAX_SIZE:
            raise DataError(
                f"{name} = {value!r}: expected a number from 1 to {_MAX_SIZE}",
                path=path,
            )
        sizes[name] = value
    return sizes


def _config(
    variables: Mapping[str, np.ndarray],
    heads: int | None,
    published: Mapping[str, int],
    prefix: Path,
) -> ran.RanConfig:
    query = variables.get("rannet/ran-0/encode-attn/dense-q/kernel")
    embeddings = variables.get(_EMBEDDINGS)
    if query is None or embeddings is None:
        raise DataError(
            f"no variables of a RAN, such as {_EMBEDDINGS}; found {', '.join(list(variables)[:3])} …",
            path=prefix,
        )
    if heads is None:
        raise ConfigError(
            f"{prefix}: the number of heads is unknown, because there is no config.json; set --heads"
        )
    if query.ndim != 2 or embeddings.ndim != 2:
        raise DataError(
            "its embeddings or queries aren't matrices; download the checkpoint again",
            path=prefix,
        )
    inner = query.shape[1]
    if heads < 1 or inner % heads or inner // heads % 2:
        raise ConfigError(
            f"{heads} heads don't divide {inner} dimensions into heads of an even size"
        )
    layers = {name.split("/")[1] for name in variables if _LAYER.match(name)}
    return ran.RanConfig(
        vocab_size=embeddings.shape[0],
        hidden_size=embeddings.shape[1],
        num_hidden_layers=len(layers),
        num_attention_heads=heads,
        head_dim=inner // heads,
        window_size=published.get("window_size", 256),
        min_window_size=published.get("min_window_size", 16),
        ln_style="second-moment",
        memory_start="carried",
    )


def _state(
    model: RanForMaskedLM, variables: Mapping[str, np.ndarray], prefix: Path
) -> dict[str, Tensor]:
    layers = model.config.num_hidden_layers
    sources = _sources(layers)
    known = _unused(layers).union(*sources.values())
    missing = sorted(known - variables.keys())
    left = sorted(variables.keys() - known)
    if missing or left:
        raise DataError(
            f"not the variables of a RAN: missing {missing[:5] or 'none'}, unknown {left[:5] or 'none'} "
            f"({len(missing)} and {len(left)} in all); export the checkpoint without the optimiser",
            path=prefix,
        )
    expected = model.state_dict()
    state = {}
    for target, names in sources.items():
        value = _joined(names, variables)
        if value.shape != expected[target].shape:
            raise DataError(
                f"{names} make {tuple(value.shape)}, expected {tuple(expected[target].shape)} "
                f"for {target}",
                path=prefix,
            )
        state[target] = value
    state["lm_head.weight"] = state["ran.embed_tokens.weight"]
    return state


def _joined(names: list[str], variables: Mapping[str, np.ndarray]) -> Tensor:
    """Concatenate variables along `out`; kernels are (in, out) in TensorFlow and (out, in) here."""
    joined = np.concatenate([variables[name] for name in names], axis=-1)
    if names[0].endswith("/kernel"):
        joined = joined.T
    return torch.from_numpy(np.array(joined, np.float32, order="C"))


def _sources(layers: int) -> Sources:
    """The variables of each parameter."""
    sources = {
        "ran.embed_tokens.weight": [_EMBEDDINGS],
        "lm_head.bias": ["rannet/mlm-matching/bias"],
    }
    sources |= _norm("ran.norm", "rannet/embedding-layernorm")
    sources |= _dense("head.dense", "rannet/mlm-hidden/dense") | _norm(
        "head.norm", "rannet/mlm-hidden/layernorm"
    )
    for number in range(layers):
        sources |= _layer(f"ran.layers.{number}", f"rannet/ran-{number}")
    return sources | _start("ran.layers.0.start", "rannet/ran-0")


def _layer(target: str, name: str) -> Sources:
    window = f"{target}.window"
    review = f"{target}.review"
    encode = f"{name}/encode-attn"
    output = f"{name}/output-attn"
    return (
        _norm(f"{window}.input_norm", f"{name}/concat-layernorm")
        | _dense(
            f"{window}.attention.qkv", *(f"{encode}/dense-{part}" for part in "qkv")
        )
        | _dense(f"{window}.attention.output", f"{encode}/dense-o")
        | _glu(f"{window}.attention.glu", f"{encode}/glu")
        | _norm(f"{window}.attention.norm", f"{encode}/layernorm")
        | _glu(f"{window}.glu", f"{name}/cell-glu")
        | _norm(f"{window}.memory_norm", f"{name}/cell-residual-layernorm")
        | _dense(f"{review}.query", f"{output}/dense-q")
        | _dense(f"{review}.key_value", f"{output}/dense-k", f"{output}/dense-v")
        | _dense(f"{review}.output", f"{output}/dense-o")
        | _glu(f"{review}.glu", f"{output}/glu")
        | _norm(f"{review}.norm", f"{output}/layernorm")
    )


def _start(target: str, name: str) -> Sources:
    kernel = {f"{target}.dense.weight": [f"{name}/cell-initializer/kernel"]}
    return kernel | _norm(f"{target}.norm", f"{name}/cell-initializer-layernorm")


def _unused(layers: int) -> set[str]:
    """Initialisers of all layers but the first, which are saved but never used."""
    names: set[str] = set()
    for number in range(1, layers):
        names.update(*_start("", f"rannet/ran-{number}").values())
    return names


def _dense(target: str, *names: str) -> Sources:
    return {
        f"{target}.weight": [f"{name}/kernel" for name in names],
        f"{target}.bias": [f"{name}/bias" for name in names],
    }


def _glu(target: str, name: str) -> Sources:
    return _dense(f"{target}.value_gate", f"{name}/dense-t", f"{name}/dense-g")


def _norm(target: str, name: str) -> Sources:
    return {f"{target}.weight": [f"{name}/gamma"], f"{target}.bias": [f"{name}/beta"]}
