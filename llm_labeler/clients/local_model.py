"""A causal language model in this process: chats to token ids, batches of them to answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock
from typing import Any

import torch
import transformers
from jinja2 import TemplateError
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    TemperatureLogitsWarper,
    TopPLogitsWarper,
)

from llm_labeler.clients.provider import Completion, TokenizedPrompt
from llm_labeler.records import Message
from llm_labeler.settings import LlmSettings
from pairkit.app.errors import ConfigError, DataError
from pairkit.system.machine import is_out_of_memory

_TINY = 1e-20  # keeps the logarithms finite


class GumbelNoise(LogitsProcessor):
    """Noise that makes the greatest logit a sample of the softmax, drawn for each row from a seed of its own.

    argmax(logit + Gumbel noise) is distributed as softmax(logits) is (Gumbel, 1954), so greedy search over it
    samples; one generator a row, where `do_sample` has one for the whole batch.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        self._generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        """Scores with this step's noise."""
        noise = torch.stack(
            [
                torch.rand(scores.shape[-1], generator=generator, device=scores.device)
                for generator in self._generators
            ]
        )
        return scores.float() - torch.log(-torch.log(noise + _TINY) + _TINY)


def sampling(
    temperature: float | None, top_p: float | None, seeds: Sequence[int], device: torch.device
) -> LogitsProcessorList:
    """What turns greedy search into sampling; empty where the temperature is None or 0."""
    steps = LogitsProcessorList()
    if temperature:
        steps.append(TemperatureLogitsWarper(temperature))
        if top_p is not None and top_p < 1:
            steps.append(TopPLogitsWarper(top_p))
        steps.append(GumbelNoise(seeds, device))
    return steps


# Untyped, or typed more narrowly than they are.
_hf: Any = transformers
# Llama's templates put today's date into the prompt, and tomorrow's answers would differ.
_FIXED = {"date_string": "26 Jul 2024"}


class _Stopped(StoppingCriteria):
    """Stops a batch at an event, and reports each row when it ends."""

    def __init__(
        self, event: Event, ends: Collection[int], rows: int, on_end: Callable[[int, Any], None]
    ) -> None:
        self._event, self._ends, self._on_end = event, ends, on_end
        self._open = [*range(rows)]

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:  # noqa: ARG002
        last = input_ids[:, -1].tolist()
        for place in [place for place in self._open if last[place] in self._ends]:
            self._open.remove(place)
            self._on_end(place, input_ids[place])
        return torch.full((input_ids.shape[0],), self._event.is_set(), device=input_ids.device)


class LocalModel:
    """Model and tokenizer of one folder."""

    def __init__(self, name: str, folder: Path, settings: LlmSettings) -> None:
        self._name, self._settings = name, settings
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        options = _load_options(name, settings, self._device)
        _hf.logging.set_verbosity_error()  # the terminal is the command's
        _hf.logging.disable_progress_bar()
        try:
            self._tokenizer: Any = _hf.AutoTokenizer.from_pretrained(
                folder, trust_remote_code=False, padding_side="left"
            )
            self._model: Any = _hf.AutoModelForCausalLM.from_pretrained(
                folder, trust_remote_code=False, use_safetensors=True, **options
            )
        except Exception as error:  # whatever damaged files make transformers, tokenizers, safetensors raise
            raise _explained(name, folder, error) from error
        if not settings.load_in_4bit:
            self._model.to(self._device)
        self._model.eval()
        self._ends = _end_tokens(self._model, self._tokenizer)
        self._pad = self._tokenizer.pad_token_id
        if self._pad is None:
            self._pad = self._ends[0] if self._ends else 0
        # Only what is set here: a model's own defaults would sample.
        self._model.generation_config = _hf.GenerationConfig(
            do_sample=False,
            max_new_tokens=settings.max_tokens,
            pad_token_id=self._pad,
            eos_token_id=list(self._ends) or None,
        )
        self._stop = Event()
        # Called with each answer as soon as it ends, before the others of its batch.
        self.on_end: Callable[[TokenizedPrompt, Completion], None] = lambda *_: None
        # Prompts are read in one thread and answers decoded in another.
        self._tokenizing = Lock()

    @property
    def context(self) -> int | None:
        """Tokens that prompt and answer may have together; None if the configuration tells none."""
        limit = getattr(self._model.config, "max_position_embeddings", None)
        return limit if isinstance(limit, int) and limit > 0 else None

    def prompt_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """The chat in the model's own template; of a model without one the plain text."""
        if not self._tokenizer.chat_template:
            text = "\n\n".join(message.content for message in messages)
            with self._tokenizing:
                return tuple(self._tokenizer(text)["input_ids"])
        chat = [{"role": message.role, "content": message.content} for message in messages]
        with suppress(TemplateError):
            return self._templated(chat)
        # Some templates know no system turn: what it says then opens the user's.
        try:
            return self._templated(
                [{"role": "user", "content": "\n\n".join(turn["content"] for turn in chat)}]
            )
        except TemplateError as error:
            raise ConfigError(
                f"llm.{self._name}: its chat template can't be used ({error}); set what it wants in "
                f"[llm.{self._name}.extra]"
            ) from error

    def complete(self, prompts: Sequence[TokenizedPrompt]) -> list[Completion]:
        """Answers to a batch, in order."""
        width = max(len(prompt.ids) for prompt in prompts)
        pads = [width - len(prompt.ids) for prompt in prompts]
        rows = [[self._pad] * pad + list(prompt.ids) for pad, prompt in zip(pads, prompts, strict=True)]
        seen = [[0] * pad + [1] * (width - pad) for pad in pads]
        settings = self._settings

        def on_end(place: int, row: torch.Tensor) -> None:
            self.on_end(prompts[place], self._completion(row[width:].tolist()))

        with torch.inference_mode():
            found = self._model.generate(
                input_ids=torch.tensor(rows, device=self._device),
                attention_mask=torch.tensor(seen, device=self._device),
                logits_processor=sampling(
                    settings.temperature, settings.top_p, [prompt.seed for prompt in prompts], self._device
                ),
                stopping_criteria=[_Stopped(self._stop, self._ends, len(prompts), on_end)],
            )
        return [self._completion(row) for row in found[:, width:].tolist()]

    def stop(self) -> None:
        """Make a `complete` in another thread end at its next token, for good."""
        self._stop.set()

    def _templated(self, chat: list[dict[str, str]]) -> tuple[int, ...]:
        variables = {**_FIXED, **self._settings.extra}
        with self._tokenizing:
            found = self._tokenizer.apply_chat_template(
                chat, tokenize=True, return_dict=True, add_generation_prompt=True, **variables
            )
        return tuple(found["input_ids"])

    def _completion(self, ids: list[int]) -> Completion:
        end = next((place for place, token in enumerate(ids) if token in self._ends), None)
        written = ids if end is None else ids[:end]
        with self._tokenizing:
            text = self._tokenizer.decode(written, skip_special_tokens=True)
        return Completion(text, len(ids) if end is None else end + 1, "length" if end is None else "stop")


def free_memory() -> None:
    """Give back what a failed batch left in the GPU's cache."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _load_options(name: str, settings: LlmSettings, device: torch.device) -> dict[str, Any]:
    if not settings.load_in_4bit:
        return {"dtype": torch.bfloat16 if device.type == "cuda" else torch.float32}
    if device.type != "cuda":
        raise ConfigError(f"llm.{name}: load_in_4bit needs a CUDA GPU, and there is none; leave it out")
    try:
        import bitsandbytes  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"llm.{name}: load_in_4bit needs `pip install bitsandbytes`") from error
    wanted = _hf.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
    )
    return {"quantization_config": wanted, "device_map": {"": 0}}


def _end_tokens(model: Any, tokenizer: Any) -> tuple[int, ...]:
    own = model.generation_config.eos_token_id
    found = own if isinstance(own, list) else [own]
    return tuple(dict.fromkeys(token for token in (*found, tokenizer.eos_token_id) if token is not None))


def _explained(name: str, folder: Path, error: Exception) -> Exception:
    text = " ".join(str(error).split())[:200]
    if is_out_of_memory(error):
        return ConfigError(f"llm.{name}: {folder}: not enough memory to load it; take a smaller model")
    if "trust_remote_code" in str(error):
        return ConfigError(
            f"llm.{name}: {folder}: this model needs code of its own, which is not run here; reach it through"
            " a server"
        )
    if "does not recognize this architecture" in text or "Unrecognized" in text:
        return ConfigError(
            f"llm.{name}: {folder}: no language model that the installed transformers knows ({text})"
        )
    return DataError(f"not loadable ({type(error).__name__}: {text}); fetch it again", path=folder)
