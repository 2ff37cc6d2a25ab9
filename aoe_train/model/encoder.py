"""The toolkit's main class: an `Encoder` turns texts into vectors."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pydantic import PositiveInt
from torch.nn.functional import normalize as unit

from aoe_train.model.backbones.changes import (
    apply_settings,
    cut_length,
    merge_lora,
    name_base,
)
from aoe_train.model.backbones.load_backbone import (
    find_folder,
    load_backbone,
    refuse_classifier,
)
from aoe_train.model.backbones.packaged import quietly
from aoe_train.model.backbones.packed_bert import PackedBert
from aoe_train.model.backbones.static import StaticTable, refuse_static
from aoe_train.model.batch_runner import TOKENS_ACCELERATOR, BatchRunner, batches
from aoe_train.model.device import (
    downloaded,
    evaluation_mode,
    find_device,
    memory_errors,
    upload,
)
from aoe_train.model.encoder_settings import (
    SETTINGS_FILE,
    needs_toolkit,
    store_settings,
    stored_dense_layers,
    stored_settings,
    with_overrides,
    write_sentence_transformers,
)
from aoe_train.model.packing.sequences import can_pack, use_fast_layers
from aoe_train.model.precision import Int8Linear, use_int8, weights_dtype
from aoe_train.model.quantization import (
    Quantize,
    calibrated,
    checked_dim,
    named_quantize,
    quantized,
)
from aoe_train.model.run_folder import hash_config, hash_tokenizer, hash_weights
from aoe_train.model.text_model import (
    DenseLayers,
    PackedBackbone,
    TextBatch,
    TextModel,
    new_dense_layers,
    write_dense_layers,
)
from aoe_train.model.tokenised import UNLIMITED, TokenStore, list_texts
from aoe_train.model.tokenizer import (
    add_padding,
    holds_prompt,
    lower_casing,
    with_prompt,
)
from aoe_train.settings.train_settings import EncoderSettings, EncodingPrecision
from pairkit.base.cli.progress import Display, Listener, Progress
from pairkit.base.errors import ConfigError
from pairkit.base.settings import argument
from pairkit.base.system.files import apply_umask, write_errors
from pairkit.base.system.text_lines import note_once

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


class Encoder:
    """A tokenizer, a text model, and all settings that affect the vectors.

    Attributes:
        model: The network.
        tokenizer: Adds special tokens to each text, but no prompts.
        settings: Resolved settings; no value is "auto".
        folder: The folder that it was loaded from, if any.
    """

    def __init__(
        self,
        model: TextModel,
        tokenizer: PreTrainedTokenizerFast,
        settings: EncoderSettings,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.settings = settings
        self.folder: Path | None = None
        self._runner = BatchRunner(model)

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
        quantization: object = None,
        inference_only: bool = False,
        **overrides: object,
    ) -> Encoder:
        """Load an aoe or sentence-transformers model, or any transformers encoder or decoder.

        A static model (from `aoe distill` or Model2Vec) can encode, but can't be trained or saved.

        Args:
            source: A folder, a Hub id, `minilm` or `smollm2` (all-MiniLM-L6-v2 and SmolLM2-135M-Instruct,
                from Python packages).
            revision: Branch, tag or commit on the Hub.
            trust_remote_code: Run the model's own code; requires a pinned commit.
            device: Such as `cuda:1`; by default the accelerator if there is one, else the CPU.
            precision: Type of weights and computation; `auto` is bf16 on accelerators that support it, else
                fp32. `int8` computes linear layers in int8, on a CPU and for encoding only.
            packing: Run without padding if the backbone supports it.
            quantization: A quantization configuration of transformers.
            inference_only: The encoder will not be trained or saved. A BERT is then loaded without
                transformers' model code, which saves seconds; its vectors are the same.
            **overrides: Fields of `EncoderSettings` that override the model's own; `prompts` are added to
                the model's prompts and replace those of the same name.

        Raises:
            ConfigError: No such model or device, or settings that the model doesn't support.
            DataError: The model's files are damaged.
            RemoteError: The Hub could not be reached.
        """
        folder = find_folder(
            source, revision=revision, trust_remote_code=trust_remote_code
        )
        chosen_device = find_device(device)
        stored = stored_settings(folder)
        if inference_only:
            refuse_classifier(folder)
        lower = stored.pop("do_lower_case", False)
        settings = with_overrides(stored, overrides)
        needs_transformers = trust_remote_code or settings.bidirectional
        is_plain = packing and quantization is None and not needs_transformers
        with memory_errors(f"loading {source}; use a smaller model, or another device"):
            backbone, tokenizer = load_backbone(
                folder,
                trust_remote_code=trust_remote_code,
                dtype=weights_dtype(precision, chosen_device),
                quantization=quantization,
                layers=stored.get("layers"),
                inference_only=inference_only and is_plain,
            )
            if quantization is None:
                backbone.to(chosen_device)
        dense = stored_dense_layers(folder, stored, settings, backbone)
        settings = cut_length(settings, stored, backbone)
        if (folder / SETTINGS_FILE).is_file() and holds_prompt(tokenizer):
            # The settings contain the same prompt, so the tokenizer must not add it.
            tokenizer = with_prompt(tokenizer, "")
        encoder = cls.build(
            backbone, tokenizer, settings, packing=packing, lower=lower, dense=dense
        )
        encoder.folder = folder
        pooling = encoder.settings.pooling
        if inference_only and settings.pooling == "auto" and pooling != "avg":
            note_once(
                "%s: stores no pooling, so texts are pooled by %s (sentence-transformers: mean); to choose,"
                " save Encoder.load(folder, pooling='avg')",
                source,
                pooling,
            )
        if quantization is not None or precision == "int8":
            refuse_static(backbone, f"{source}: fewer bits")
        if precision == "int8":
            merge_lora(backbone)
            use_int8(backbone)
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
        dense: DenseLayers | None = None,
    ) -> Encoder:
        """Make an encoder from a loaded backbone and tokenizer.

        Args:
            backbone: A transformers model without a head.
            tokenizer: Its tokenizer.
            settings: May contain "auto" and None, which are resolved here.
            packing: Run without padding if the backbone supports it.
            lower: Lower-case texts first.
            dense: Trained dense layers; None initialises those that the settings request.

        Raises:
            ConfigError: The backbone doesn't support the settings.
        """
        if getattr(backbone.config, "is_encoder_decoder", False):
            raise ConfigError(
                f"{type(backbone).__name__} is an encoder-decoder, which isn't supported; use an encoder such"
                " as BERT or a decoder such as LLaMA"
            )
        settings = apply_settings(settings, backbone)
        if lower:
            tokenizer = lower_casing(tokenizer)
        # The tokenizer saves this limit, so other libraries truncate texts in the same way.
        tokenizer.model_max_length = settings.max_length or UNLIMITED
        tokenizer.truncation_side = "right"
        # A static model's tokenizer may have no special tokens.
        if not isinstance(backbone, StaticTable):
            add_padding(tokenizer)
        use_fast_layers(backbone)
        packed = packing and (
            isinstance(backbone, PackedBackbone | PackedBert) or can_pack(backbone)
        )
        if dense is None:
            dense = new_dense_layers(settings.dense, backbone.config.hidden_size)
        model = TextModel(backbone, settings.pooling, packed=packed, heads=dense)
        model.to(next(backbone.parameters()).device)
        checked_dim(settings.dim, model.dim)
        return cls(model.eval(), tokenizer, settings)

    def __repr__(self) -> str:
        name = type(self.model.backbone).__name__
        limit = self.settings.max_length or "any number of"
        summary = f"{name}, {self.dim} dimensions, pooling {self.settings.pooling}, {limit} tokens"
        return f"Encoder({summary}, {self.device.type})"

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return self.size()

    def size(self, dim: int | None = None) -> int:
        """Dimensions of a vector that is truncated to `dim`; None uses the settings.

        Raises:
            ConfigError: The model has fewer dimensions.
        """
        return checked_dim(self.settings.dim if dim is None else dim, self.model.dim)

    @property
    def device(self) -> torch.device:
        """The model's device."""
        return next(self.model.parameters()).device

    @property
    def prompts(self) -> dict[str, str]:
        """Values of `prompt_name`: the model's own prompts, and `query` and `document`."""
        return self.settings.named_prompts.known

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
        """Encode texts as vectors.

        On a CPU under Linux, the process no longer returns freed memory (see `keep_freed_memory`).

        Args:
            texts: One text, or a list of texts in any order.
            prompt_name: The name of one of the model's `prompts`; by default its default prompt, if any.
            prompt: Words to put before each text, or around `{text}`: one prompt for all texts or one for
                each. It replaces `prompt_name`; an empty string means no prompt.
            normalize: Scale vectors to length 1; None uses the model's settings.
            dim: Truncate vectors to their first `dim` numbers, then scale. A `dim` in the settings truncates
                the scaled vector instead, as in sentence-transformers.
            quantize: Number type: float32, int8, binary or ubinary; see `aoe_train.model.quantization`.
            calibration: For int8: vectors (any, dim) that set the range of each dimension, or only its
                minimum and maximum as two rows; by default the vectors of `texts`.
            batch_tokens: Tokens per batch; fewer need less memory.
            halve: If memory runs out, continue with batches of half the size.
            progress: True shows a progress bar on stderr; a function receives each update.

        Returns:
            float32 (text, dim), or (dim,) for one text; int8 for int8; (text, dim / 8) bytes for binary.

        Raises:
            ConfigError: Unknown prompt or invalid size, a prompt that leaves no room for text, int8 of one
                text without calibration, or not enough memory for one text.
            RuntimeError, MemoryError: Out of memory, and `halve` is false.
            DataError: A text isn't a string, or has no tokens.
        """
        if prompt is None:
            prompt = self.settings.named_prompts.chosen(name=prompt_name)
        elif prompt_name is not None:
            warnings.warn(
                f"prompt_name {prompt_name!r} is ignored, because prompt is set",
                stacklevel=2,
            )
        is_single = isinstance(texts, str)
        texts = list_texts(texts)
        batch_tokens = argument("batch_tokens", batch_tokens, PositiveInt | None)
        size = self.size(dim)
        number_type = named_quantize(quantize, calibration)
        ranges = None if calibration is None else calibrated(calibration, size)
        # The settings truncate the scaled vector, as in sentence-transformers.
        truncate_first = dim is not None or normalize is not None
        scale = self.settings.normalize if normalize is None else normalize

        def shortened(batch: torch.Tensor) -> torch.Tensor:
            if truncate_first:
                batch = batch[:, :size]
            if scale:
                batch = unit(batch)
            return batch[:, :size]

        vectors = np.empty((len(texts), size), dtype=np.float32)
        num_encoded = 0
        with (
            evaluation_mode(self.model),
            torch.inference_mode(),
            Display(progress) as show,
        ):
            computed = self._runner.vectors(
                self, texts, prompt, batch_tokens, show, halve=halve
            )
            for indices, batch in downloaded(
                (indices, shortened(batch)) for indices, batch in computed
            ):
                vectors[indices] = batch
                num_encoded += len(indices)
                show(Progress("encode", num_encoded, len(vectors)))
            show(Progress("encode", num_encoded, len(vectors), ended=True))
        result = quantized(vectors, number_type, ranges)
        return result[0] if is_single else result

    def encode_query(self, texts: str | Sequence[str], **options: object) -> np.ndarray:
        """Encode search queries with the prompt `query`, unless `options` (see `encode`) name another."""
        return self._encode_as(self.settings.named_prompts.query, texts, options)

    def encode_document(
        self, texts: str | Sequence[str], **options: object
    ) -> np.ndarray:
        """Encode the texts to be searched; the options are those of `encode`.

        The default prompt is the first of `document`, `passage` and `corpus` that isn't empty.
        """
        return self._encode_as(self.settings.named_prompts.document, texts, options)

    def _encode_as(
        self, prompt: str, texts: str | Sequence[str], options: dict[str, Any]
    ) -> np.ndarray:
        if options.get("prompt") is None and options.get("prompt_name") is None:
            options["prompt"] = prompt
        return self.encode(texts, **options)

    def tokens(
        self,
        texts: Sequence[str],
        prompts: str | Sequence[str] = "",
        *,
        cache_dir: str | Path | None = None,
        progress: Listener | None = None,
    ) -> TokenStore:
        """Tokenise `texts` with one prompt for all, or one for each.

        Raises:
            ConfigError: A number of prompts other than of texts, or a prompt that leaves no room for text.
            DataError: The tokenizer fails on a text, or a text has no tokens.
        """
        return TokenStore.build(
            texts,
            self.tokenizer,
            max_length=self.settings.max_length or UNLIMITED,
            empty=isinstance(self.model.backbone, StaticTable),
            prompts=prompts,
            include_prompt=self.settings.include_prompt,
            cache_dir=None if cache_dir is None else Path(cache_dir),
            progress=progress,
        )

    def token_batches(
        self,
        texts: str | Sequence[str],
        *,
        prompt: str | None = None,
        batch_tokens: int = TOKENS_ACCELERATOR,
    ) -> Iterator[tuple[np.ndarray, TextBatch]]:
        """Batches of tokens for `model`, with the texts' indices: for your own pooling.

        Args:
            texts: One text, or a list of texts in any order.
            prompt: Words before each text, or around `{text}`; None uses the default prompt.
            batch_tokens: Tokens per batch.
        """
        texts = list_texts(texts)
        store = self.tokens(texts, self.settings.named_prompts.chosen(prompt=prompt))
        for indices in batches(store.lengths, batch_tokens):
            batch = store.batch(indices)
            text_batch = TextBatch(
                upload(batch["input_ids"], self.device),
                batch["lengths"],
                batch.get("prompt_lengths"),
                texts=torch.from_numpy(indices.copy()),
                rows=torch.arange(len(indices))[:, None],
            )
            yield indices, text_batch

    def identity(self) -> dict[str, str | dict[str, object]]:
        """Everything that the vectors depend on: hashes, settings, precision and device, as JSON."""
        dtype = next(self.model.parameters()).dtype
        return {
            "weights": hash_weights(self.model),
            "tokenizer": hash_tokenizer(self.tokenizer),
            "config": hash_config(self.model.backbone.config),
            "settings": self.settings.model_dump(mode="json"),
            "precision": "int8" if self._is_int8 else str(dtype).removeprefix("torch."),
            "device": self.device.type,
        }

    def save(self, folder: str | Path) -> None:
        """Write a model folder, which sentence-transformers can load as well.

        Raises:
            ConfigError: The model was loaded with `inference_only` or in int8, is static, or can't be written.
        """
        backbone = self.model.backbone
        refuse_static(backbone, f"{folder}: saving")
        if self._is_int8 or isinstance(backbone, PackedBert):
            raise ConfigError(
                f"{folder}: a model loaded in int8 or with inference_only can't be saved; load it without"
            )
        folder = Path(folder)
        with quietly(), write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            backbone.save_pretrained(folder)
            if isinstance(backbone, PackedBackbone):
                # `save_pretrained` writes no configuration beside adapters.
                backbone.config.save_pretrained(folder)
            for path in folder.glob("*.safetensors"):
                apply_umask(path)
            tokenizer = self.tokenizer
            prompt = self.settings.named_prompts.around_all
            if prompt is not None and not needs_toolkit(folder, self.settings):
                # Other libraries don't support words after the text, but use the tokenizer's template.
                tokenizer = with_prompt(tokenizer, prompt)
            tokenizer.save_pretrained(folder)
        name_base(folder, backbone)
        write_dense_layers(folder, self.model.heads)
        store_settings(folder, self.settings)
        write_sentence_transformers(folder, self.settings, self.model.token_dim)

    @property
    def _is_int8(self) -> bool:
        return any(isinstance(part, Int8Linear) for part in self.model.modules())
