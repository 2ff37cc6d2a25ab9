"""Encoder: from texts to vectors. The toolkit's Python interface."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch.nn.functional import normalize as unit

from aoe_train.model.backbones.decoder import (
    add_padding,
    has_lora,
    make_bidirectional,
    merge_lora,
    name_base,
)
from aoe_train.model.backbones.depth import keep_layers
from aoe_train.model.backbones.load import check_pin, find_folder, load_backbone
from aoe_train.model.backbones.packaged import quietly
from aoe_train.model.backbones.packed_bert import PackedBert
from aoe_train.model.backbones.static import StaticTable, refuse_static
from aoe_train.model.dense_layers import new_dense_layers, write_dense_layers
from aoe_train.model.device import arrived, one_thread, upload
from aoe_train.model.encoder_settings import (
    SETTINGS_FILE,
    resolved,
    store_settings,
    stored_heads,
    stored_settings,
)
from aoe_train.model.interchange import prompt_of_tokenizer, write_sentence_transformers
from aoe_train.model.memory import TOKENS_ACCELERATOR, batches, keep_freed_memory, tokens_at_once
from aoe_train.model.packing.run import can_pack, use_fast_layers
from aoe_train.model.precision import Int8Linear, use_int8, weights_dtype
from aoe_train.model.quantization import calibrated, checked_dim, named_quantize, quantized
from aoe_train.model.run_folder import hash_config, hash_tokenizer, hash_weights
from aoe_train.model.text_model import TextBatch, TextModel
from aoe_train.model.tokens.special_tokens import generic_tokenizer, holds_prompt, raw_tokenizer, with_prompt
from aoe_train.model.tokens.tokens import UNLIMITED, TokenStore
from aoe_train.settings.training import EncoderSettings
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line
from pairkit.app.progress import Display, Listener, Progress
from pairkit.app.settings import load_settings
from pairkit.system.machine import is_out_of_memory

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from aoe_train.model.dense_layers import DenseLayers
    from aoe_train.model.quantization import Quantize
    from aoe_train.settings.training import EncodingPrecision

_LITTLE = 1 << 30  # multiplications, some 10 ms of a core: not worth a second one


class Encoder:
    """A tokenizer and a text model, with all that their vectors depend on.

    Attributes:
        model: The network.
        tokenizer: Puts special tokens around each text; prompts are none of its business.
        settings: Resolved: nothing is "auto" any more.
    """

    def __init__(
        self, model: TextModel, tokenizer: PreTrainedTokenizerFast, settings: EncoderSettings
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.settings = settings

    @classmethod
    def load(
        cls,
        source: str | Path,
        *,
        revision: str | None = None,
        trust_remote_code: bool = False,
        device: str | torch.device | None = None,
        precision: EncodingPrecision = "auto",
        packing: bool = True,
        quantization: Any = None,
        inference_only: bool = False,
        **overrides: Any,
    ) -> Encoder:
        """Load a model: one of ours, a sentence-transformers folder, or any transformers encoder or decoder.

        A static model (of `aoe distill` or Model2Vec) can be encoded with, and not trained or saved.

        Args:
            source: A folder, a Hub id, `minilm` or `smollm2` (all-MiniLM-L6-v2 and SmolLM2-135M-Instruct, as
                packages bring them).
            revision: Branch, tag or commit on the Hub.
            trust_remote_code: Run the model's own code; needs a pinned commit.
            device: Such as `cuda:1`; by default the accelerator where there is one, else the CPU.
            precision: Of weights and computation; `auto` is bf16 on accelerators that have it, else fp32.
                With int8 linear layers multiply int8, on a CPU; such an encoder is for encoding only.
            packing: Run without padding where the backbone allows it.
            quantization: A quantisation configuration of transformers.
            inference_only: The encoder will only encode, not be trained or saved. Then a BERT is loaded
                without transformers' code for models, which saves seconds; its vectors are the same.
            **overrides: Fields of `EncoderSettings` that shall differ from what the model says of itself;
                `prompts` are added to the model's, or replace those of the same names.

        Raises:
            ConfigError: No such model or device, or settings that it can't have.
            DataError: A damaged model.
            RemoteError: The Hub could not be reached.
        """
        check_pin(source, revision, trust_remote_code=trust_remote_code)
        place = _named_device(device) if device else _best_device()
        folder = find_folder(source, revision=revision)
        stored = stored_settings(folder)
        lower = stored.pop("do_lower_case", False)
        given = {key: value for key, value in overrides.items() if value is not None}
        if isinstance(more := given.get("prompts"), Mapping):
            given["prompts"] = {**stored.get("prompts", {}), **more}
        settings = load_settings(EncoderSettings, flags={**stored, **given})
        loaded = load_backbone(
            folder,
            trust_remote_code=trust_remote_code,
            dtype=weights_dtype(precision, place),
            quantization=quantization,
            layers=stored.get("layers"),
            inference_only=inference_only
            and packing
            and quantization is None
            and not (trust_remote_code or settings.bidirectional),
        )
        heads = stored_heads(folder, stored, settings, loaded.backbone)
        if quantization is None:
            cast("Any", loaded.backbone).to(place)
        tokenizer = loaded.tokenizer
        if (folder / SETTINGS_FILE).is_file() and holds_prompt(tokenizer):
            tokenizer = with_prompt(tokenizer, "")  # it is among the settings
        encoder = cls.build(loaded.backbone, tokenizer, settings, packing=packing, lower=lower, heads=heads)
        if quantization is not None or precision == "int8":
            refuse_static(loaded.backbone, f"{source}: fewer bits")
        if precision == "int8":
            merge_lora(loaded.backbone)
            use_int8(loaded.backbone)
        return encoder

    @classmethod
    def build(
        cls,
        backbone: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        settings: EncoderSettings,
        *,
        packing: bool = True,
        lower: bool = False,
        heads: DenseLayers | None = None,
    ) -> Encoder:
        """Put a loaded backbone and tokenizer together.

        Args:
            backbone: A transformers model without a head.
            tokenizer: Its tokenizer.
            settings: "auto" and None are resolved here.
            packing: Run without padding where the backbone allows it.
            lower: Lower-case texts first.
            heads: The trained dense layers; None for fresh ones if the settings ask for any.

        Raises:
            ConfigError: The backbone can't do what the settings ask for.
        """
        if getattr(backbone.config, "is_encoder_decoder", False):
            raise ConfigError(
                f"{type(backbone).__name__}: encoders and decoders only; this is both in one; use a model"
                " such as BERT or LLaMA"
            )
        static = isinstance(backbone, StaticTable)
        if settings.layers is not None and not static:
            keep_layers(backbone, settings.layers)
        if settings.bidirectional and not static:
            make_bidirectional(backbone)
        settings = resolved(settings, backbone)
        if lower:
            tokenizer = _lowered(tokenizer)
        # As the saved tokenizer shall cut texts for others too.
        tokenizer.model_max_length, tokenizer.truncation_side = settings.max_length or UNLIMITED, "right"
        if not static:  # whose tokenizer may have no special tokens at all
            add_padding(tokenizer)
        use_fast_layers(backbone)
        known = static or isinstance(backbone, PackedBert) or hasattr(backbone, "forward_packed")
        packed = packing and (known or can_pack(backbone))
        if heads is None and settings.dense:
            heads = new_dense_layers(settings.dense, int(backbone.config.hidden_size))
        model = TextModel(backbone, settings.pooling, packed=packed, heads=heads)
        model.to(next(backbone.parameters()).device)
        checked_dim(settings.dim, model.dim)
        return cls(model.eval(), tokenizer, settings)

    def __repr__(self) -> str:
        settings, kind = self.settings, type(self.model.backbone).__name__
        longest = "any number of" if settings.max_length is None else settings.max_length
        told = f"{kind}, {self.dim} dimensions, pooling {settings.pooling}, {longest} tokens"
        return f"Encoder({told}, {self.device.type})"

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return self.size()

    def size(self, dim: int | None = None) -> int:
        """Numbers in a vector where `dim` of them are asked for; None for as many as the settings say.

        Raises:
            ConfigError: The vectors have fewer.
        """
        return checked_dim(self.settings.dim if dim is None else dim, self.model.dim)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    @property
    def prompts(self) -> dict[str, str]:
        """What `prompt_name` may name: the model's own prompts, and `query` and `document`."""
        return dict(self.settings.named_prompts.known)

    def encode(
        self,
        texts: str | Sequence[str],
        *,
        prompt_name: str | None = None,
        prompt: str | Sequence[str] | None = None,
        normalize: bool | None = None,
        dim: int | None = None,
        quantize: Quantize | None = None,
        calibration: np.ndarray | None = None,
        batch_tokens: int | None = None,
        halve: bool = True,
        progress: bool | Listener = False,
    ) -> np.ndarray:
        """Vectors of texts.

        On a CPU under Linux the process keeps its freed memory from then on (`keep_freed_memory`).

        Args:
            texts: A text, or any number of them in any order.
            prompt_name: One of the model's `prompts`; by default its default one, if it has one.
            prompt: Words before each text, or around `{text}`, one prompt for all or one for each; then
                `prompt_name` is not asked for. Empty for none.
            normalize: Scale to length 1; None does as the model's settings say.
            dim: Keep so many numbers of each vector, the first ones, which are then scaled. Those that the
                settings keep of themselves are cut from the scaled vector, as sentence-transformers does.
            quantize: float32, int8, binary or ubinary: in which numbers; see `aoe_train.model.quantization`.
            calibration: Of int8: vectors (any, dim) whose lowest and highest values it spans, or these two
                alone; by default those of `texts`.
            batch_tokens: Tokens that run at once; less needs less memory.
            halve: Go on with half as many texts at once where memory is short.
            progress: Shown on stderr, or told to a function.

        Returns:
            float32 (text, dim); (dim,) for a single text. Of int8 int8, of bits (text, dim / 8).

        Raises:
            ConfigError: No such prompt or size, a prompt that leaves no room for a text, int8 of one text
                without calibration, or not enough memory for a single text.
            RuntimeError, MemoryError: Not enough memory, and not `halve`.
            DataError: A text that is no string, or that the tokenizer makes no token of.
        """
        if prompt is not None and prompt_name is not None:
            warnings.warn(f"prompt_name {prompt_name!r} is not asked for: prompt is given", stacklevel=2)
        words = self._words(prompt, prompt_name)
        if isinstance(texts, str):
            (vector,) = self.encode(
                [texts],
                prompt=words,
                normalize=normalize,
                dim=dim,
                quantize=quantize,
                calibration=calibration,
                batch_tokens=batch_tokens,
            )
            return np.asarray(vector)
        if not hasattr(texts, "__getitem__") or not hasattr(texts, "__len__"):
            raise DataError(f"expected a text, or a list of texts; found {type(texts).__name__}")
        for position, text in enumerate(texts):
            if not isinstance(text, str):
                raise DataError(f"text {position} (from 0) is {type(text).__name__}; expected a string")
        size, how = self.size(dim), named_quantize(quantize)
        ranges = None if calibration is None else calibrated(calibration, size)
        vectors = np.empty((len(texts), size), dtype=np.float32)
        budget = batch_tokens or TOKENS_ACCELERATOR
        if self.device.type == "cpu":
            keep_freed_memory()
            budget = batch_tokens or self._tokens_on_cpu
        training = self.model.training
        self.model.eval()
        with torch.inference_mode(), Display(progress) as show:
            store, done = self.tokens(texts, words, progress=show), 0
            show(Progress("encode", 0, len(texts)))
            coming = self._embedded(store, batches(store.lengths, budget), halve=halve)
            for batch, found in arrived((batch, self._cut(whole, dim, normalize)) for batch, whole in coming):
                vectors[batch] = found
                done += len(batch)
                show(Progress("encode", done, len(texts)))
            show(Progress("encode", done, len(texts), ended=True))
        self.model.train(training)
        return quantized(vectors, how, ranges)

    def encode_query(self, texts: str | Sequence[str], **options: Any) -> np.ndarray:
        """Vectors of what is searched with, by the prompt `query` unless `options` ask for another.

        The options are those of `encode`.
        """
        return self._encode_as(self.settings.named_prompts.query, texts, options)

    def encode_document(self, texts: str | Sequence[str], **options: Any) -> np.ndarray:
        """Vectors of what is searched; the options are those of `encode`.

        Unless they ask for another prompt, it is that of `document`, `passage` or `corpus`, the first of them
        that has words.
        """
        return self._encode_as(self.settings.named_prompts.document, texts, options)

    def _words(self, prompt: str | Sequence[str] | None, name: str | None) -> str | Sequence[str]:
        if prompt is None or isinstance(prompt, str):
            return self.settings.named_prompts.chosen(prompt=prompt, name=name)
        return prompt

    def _cut(self, whole: torch.Tensor, dim: int | None, normalize: bool | None) -> torch.Tensor:
        if dim is None and normalize is None:
            return (unit(whole) if self.settings.normalize else whole)[:, : self.size()]
        found = whole[:, : self.size(dim)]
        return unit(found) if (self.settings.normalize if normalize is None else normalize) else found

    def _encode_as(self, words: str, texts: str | Sequence[str], options: Mapping[str, Any]) -> np.ndarray:
        asked = options.get("prompt") is not None or options.get("prompt_name") is not None
        return self.encode(texts, **(options if asked else {**options, "prompt": words}))

    def tokens(
        self,
        texts: Sequence[str],
        prompts: str | Sequence[str] = "",
        *,
        cache_dir: str | Path | None = None,
        progress: Listener | None = None,
    ) -> TokenStore:
        """The tokens of `texts`, with one prompt or a prompt each, as this model reads them.

        Raises:
            ConfigError, DataError: See `TokenStore.build`.
        """
        return TokenStore.build(
            texts,
            self.tokenizer,
            max_length=self.settings.max_length or UNLIMITED,
            empty=isinstance(self.model.backbone, StaticTable),
            prompts=prompts,
            include_prompt=self.settings.include_prompt,
            long_text=self.settings.long_text,
            overlap=self.settings.overlap,
            cache_dir=None if cache_dir is None else Path(cache_dir),
            progress=progress,
        )

    def token_batches(
        self, texts: Sequence[str], *, prompt: str | None = None, batch_tokens: int = TOKENS_ACCELERATOR
    ) -> Iterator[tuple[np.ndarray, TextBatch]]:
        """Batches of tokens for `model`, each with its texts' places in the list: for a pooling of your own.

        Args:
            texts: Any number of texts in any order.
            prompt: Words before each text, or around `{text}`; None for the default one.
            batch_tokens: Tokens of a batch.
        """
        store = self.tokens(texts, self._words(prompt, None))
        for places in batches(store.lengths, batch_tokens):
            batch = store.batch(places)
            tokens = upload(batch["input_ids"], self.device)
            numbers = torch.from_numpy(places.copy())
            yield (
                places,
                TextBatch(tokens, batch["lengths"], batch.get("prompt_lengths"), numbers, numbers[:, None]),
            )

    def identity(self) -> dict[str, str | dict[str, Any]]:
        """What tells this model's vectors from another's: hashes, settings, precision and device, as JSON."""
        return {
            "weights": hash_weights(self.model),
            "tokenizer": hash_tokenizer(self.tokenizer),
            "config": hash_config(self.model.backbone.config),
            "settings": self.settings.model_dump(mode="json"),
            "precision": self._precision,
            "device": self.device.type,
        }

    def save(self, folder: str | Path) -> None:
        """Write a model folder, which sentence-transformers loads too.

        Raises:
            ConfigError: Loaded with `inference_only`, or in int8; a static model.
        """
        refuse_static(self.model.backbone, f"{folder}: a copy with other settings")
        if self._is_int8:
            raise ConfigError(f"{folder}: int8 is for encoding only; load the model in fp32 to save it")
        if isinstance(self.model.backbone, PackedBert):
            raise ConfigError(
                f"{folder}: this encoder was loaded with inference_only; load it without, to save it"
            )
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with quietly():
            self.model.backbone.save_pretrained(folder)
            words = prompt_of_tokenizer(folder, self.settings)
            tokenizer = self.tokenizer if words is None else with_prompt(self.tokenizer, words)
            tokenizer.save_pretrained(folder)
        if has_lora(self.model.backbone):
            name_base(folder, self.model.backbone)
        if self.model.heads is not None:
            write_dense_layers(folder, self.model.heads)
        store_settings(folder, self.settings)
        write_sentence_transformers(folder, self.settings, self.model.token_dim)

    @property
    def _is_int8(self) -> bool:
        return any(isinstance(part, Int8Linear) for part in self.model.modules())

    @property
    def _precision(self) -> str:
        return "int8" if self._is_int8 else str(next(self.model.parameters()).dtype).removeprefix("torch.")

    @cached_property  # asked for with each call, be it for one text
    def _tokens_on_cpu(self) -> int:
        return tokens_at_once(cast("Any", self.model.backbone))

    @cached_property
    def _products_a_token(self) -> int:
        layers = (part for part in self.model.modules() if not isinstance(part, torch.nn.Embedding))
        return sum(weight.numel() for layer in layers for weight in layer.parameters(recurse=False))

    def _embedded(
        self, store: TokenStore, batches: Iterable[np.ndarray], *, halve: bool
    ) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
        """Texts and their vectors, a batch at a time; where memory is short in halves, from then on."""
        parts = 1
        for batch in batches:
            waiting = np.array_split(batch, min(parts, len(batch)))
            while waiting:
                texts = waiting.pop()
                found = self._vectors_if_memory(store, texts) if halve else self._vectors(store, texts)
                if found is not None:
                    yield texts, found
                    continue
                parts = 2 * len(batch) // len(texts)
                waiting += np.array_split(texts, 2)
                if torch.accelerator.is_available():
                    torch.accelerator.empty_cache()

    def _vectors_if_memory(self, store: TokenStore, texts: np.ndarray) -> torch.Tensor | None:
        """The vectors; None where they were too many at once."""
        try:
            return self._vectors(store, texts)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            if len(texts) == 1:
                raise ConfigError(
                    f"out of memory: not enough for one text of {store.lengths[texts[0]]} tokens; lower"
                    " max_length or take a smaller model"
                ) from error
            return None

    def _vectors(self, store: TokenStore, texts: np.ndarray) -> torch.Tensor:
        batch = store.batch(texts)
        tokens = upload(batch["input_ids"], self.device)
        little = self.device.type == "cpu" and len(tokens) * self._products_a_token <= _LITTLE
        with one_thread() if little else nullcontext():
            found: torch.Tensor = self.model(
                tokens, batch["lengths"], batch["pieces"], batch.get("prompt_lengths")
            )
        return found


def _named_device(name: str | torch.device) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter from a torch that was built without it
        raise ConfigError(
            f"device {name}: is not there ({one_line(str(error), 100)}); give cpu, or one that is, as cuda:0"
        ) from error
    return device


def _best_device() -> torch.device:
    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator() or torch.device("cpu")
    return torch.device("cpu")


def _lowered(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """A copy that lower-cases texts first, and still does when it is saved and loaded."""
    from tokenizers import normalizers

    raw = copy.deepcopy(raw_tokenizer(tokenizer))
    first = [normalizers.Lowercase()]
    raw.normalizer = normalizers.Sequence([*first, raw.normalizer] if raw.normalizer else first)
    return generic_tokenizer(tokenizer, raw)
