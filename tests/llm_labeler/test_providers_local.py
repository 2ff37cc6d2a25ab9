"""An LLM in this process: a random LLaMA of two layers; its answers mean nothing and never change."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from llm_labeler.clients.local import BatchQueue, LocalProvider
from llm_labeler.clients.local_model import LocalModel, sampling
from llm_labeler.clients.provider import CallFailed, Completion, Prices, Provider, TokenizedPrompt
from llm_labeler.records import Ask, AskKey, LlmReply, Message, TokenUsage
from llm_labeler.settings import LlmSettings
from pairkit.app.errors import ConfigError, DataError, RemoteError

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|bot|>{% endif %}{{ style }}"
)
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TEMPLATE
SENTENCES = (
    "Rain fell.",
    "A long sentence about a cat that sat on a mat all day.",
    "Yes",
    "The sky is blue now.",
)


@pytest.fixture(scope="module")
def bare_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a byte tokenizer and no chat template."""
    folder = tmp_path_factory.mktemp("model")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast: Any = PreTrainedTokenizerFast
    fast(tokenizer_object=tokenizer, eos_token="</s>").save_pretrained(folder)
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=257,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=600,
        eos_token_id=256,
        bos_token_id=None,
        initializer_range=0.5,  # so that logits differ
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def chat_model(bare_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model with a chat template."""
    return with_template(bare_model, tmp_path_factory.mktemp("chat") / "model", TEMPLATE)


def with_template(model: Path, folder: Path, template: str) -> Path:
    shutil.copytree(model, folder)
    (folder / "chat_template.jinja").write_text(template)
    return folder


def entry(folder: Path | str, **fields: Any) -> LlmSettings:
    return LlmSettings(kind="local", model=str(folder), **({"max_tokens": 12} | fields))


def ask(*contents: str) -> Ask:
    roles: tuple[Any, ...] = ("user",) if len(contents) == 1 else ("system", "user")
    messages = tuple(Message(role, content) for role, content in zip(roles, contents, strict=True))
    return Ask(AskKey("t", "llm", "positive", "p", "q"), messages)


def answers(wanted: LlmSettings, asks: Sequence[Ask]) -> list[LlmReply]:
    async def main() -> list[LlmReply]:
        provider: Provider = LocalProvider("mine", wanted)
        await provider.check()
        try:
            return await asyncio.gather(*(provider.reply(each) for each in asks))
        finally:
            await provider.close()

    return asyncio.run(main())


def loaded(folder: Path, **fields: Any) -> LocalModel:
    return LocalModel("mine", folder, entry(folder, **fields))


# Batches and padding


def test_batch_mates_change_no_greedy_answer(chat_model: Path) -> None:
    asks = [ask(sentence) for sentence in SENTENCES]
    together = answers(entry(chat_model, batch_size=4), asks)
    alone = [answers(entry(chat_model, batch_size=1), [each])[0] for each in asks]
    assert together == alone
    assert len({reply.raw for reply in together}) > 1  # the prompt matters at all


def test_greedy_answers_are_those_of_plain_generation(chat_model: Path) -> None:
    text = SENTENCES[0]
    model: Any = LlamaForCausalLM.from_pretrained(chat_model)
    ids = list(f"<|user|>{text}<|bot|>".encode())
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [
        letters.index(pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(chr(i))[0][0])
        for i in ids
    ]
    for _ in range(12):  # one token after another, no cache, no padding
        tokens.append(int(model(input_ids=torch.tensor([tokens])).logits[0, -1].argmax()))
    own = loaded(chat_model)
    prompt = own.prompt_ids(ask(text).messages)
    assert list(prompt) == tokens[:-12]
    (found,) = own.complete([TokenizedPrompt(prompt, 0)])
    assert found.text == own._tokenizer.decode(tokens[-12:])
    assert (found.tokens, found.finish) == (12, "length")


def test_samples_depend_on_the_question_and_the_seed_alone(chat_model: Path) -> None:
    asks = [ask(sentence) for sentence in SENTENCES]
    wanted = entry(chat_model, batch_size=4, temperature=1.0, top_p=0.9, seed=1)
    together = answers(wanted, asks)
    assert together == answers(wanted, list(reversed(asks)))[::-1]
    assert together[:1] == answers(wanted, asks[:1])
    assert together != answers(entry(chat_model, batch_size=4, temperature=1.0, top_p=0.9, seed=2), asks)
    assert together != answers(entry(chat_model, batch_size=4), asks)


def test_sampling_follows_the_softmax() -> None:
    logits = torch.tensor([0.7, 0.2, 0.1]).log()
    steps = sampling(1.0, None, range(4000), torch.device("cpu"))
    drawn = steps(torch.zeros(4000, 1, dtype=torch.long), logits.expand(4000, 3).clone()).argmax(-1)
    shares = torch.bincount(drawn, minlength=3) / 4000
    assert shares.tolist() == pytest.approx([0.7, 0.2, 0.1], abs=0.03)
    narrow = sampling(1.0, 0.6, range(100), torch.device("cpu"))  # only the first makes up 60 %
    assert set(
        narrow(torch.zeros(100, 1, dtype=torch.long), logits.expand(100, 3).clone()).argmax(-1).tolist()
    ) == {0}
    assert not sampling(0.0, 0.5, [1], torch.device("cpu"))


# Prompts


def test_the_chat_template_makes_the_prompt_and_is_no_part_of_the_answer(chat_model: Path) -> None:
    model = loaded(chat_model, extra={"style": "!"})
    ids = model.prompt_ids(ask("Be brief.", "Hi").messages)
    assert model._tokenizer.decode(ids) == "<|system|>Be brief.<|user|>Hi<|bot|>!"
    (reply,) = answers(entry(chat_model), [ask("Hi")])
    assert "<|user|>" not in reply.raw
    assert reply.usage == TokenUsage(len("<|user|>Hi<|bot|>"), 12)


def test_a_model_without_template_reads_the_plain_text(bare_model: Path) -> None:
    model = loaded(bare_model)
    assert model._tokenizer.decode(model.prompt_ids(ask("One", "Two").messages)) == "One\n\nTwo"


def test_a_template_without_system_turns_gets_one_turn(bare_model: Path, tmp_path: Path) -> None:
    model = loaded(with_template(bare_model, tmp_path / "m", NO_SYSTEM))
    assert (
        model._tokenizer.decode(model.prompt_ids(ask("One", "Two").messages)) == "<|user|>One\n\nTwo<|bot|>"
    )


def test_a_template_that_never_works_is_said(bare_model: Path, tmp_path: Path) -> None:
    model = loaded(with_template(bare_model, tmp_path / "m", "{{ raise_exception('set mood') }}"))
    with pytest.raises(ConfigError, match=r"set mood.*llm\.mine\.extra"):
        model.prompt_ids(ask("One").messages)


def test_bytes_bound_the_prompt(chat_model: Path) -> None:
    provider = LocalProvider("mine", entry(chat_model))
    model = loaded(chat_model)
    for text in ("", "a", "naïve 猫 " * 9):
        bound = provider.bound(ask(text))
        assert bound.prompt_tokens >= len(model.prompt_ids(ask(text).messages))
        assert bound.completion_tokens == 12


def test_a_question_longer_than_the_model_reads_is_rejected(chat_model: Path) -> None:
    with pytest.raises(CallFailed, match="more than the 600") as caught:
        answers(entry(chat_model), [ask("x" * 600)])
    assert (caught.value.reason, caught.value.retry) == ("rejected", False)


# The end of an answer


def test_an_answer_that_ends_is_told_from_one_that_is_cut(
    chat_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded(chat_model)
    plain = model._model.generate

    def ends_early(**options: Any) -> torch.Tensor:
        found = plain(**options)
        found[0, -9] = 256  # the first row ends with its fourth token
        return found

    monkeypatch.setattr(model._model, "generate", ends_early)
    prompts = [TokenizedPrompt(model.prompt_ids(ask(text).messages), 0) for text in ("Hello", "Hi")]
    first, second = model.complete(prompts)
    assert (first.finish, first.tokens, second.finish, second.tokens) == ("stop", 4, "length", 12)
    assert len(first.text) <= 3


def test_an_answer_is_given_when_it_ends_and_not_when_its_batch_does(
    chat_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, early = loaded(chat_model), []
    prompts = [TokenizedPrompt(model.prompt_ids(ask(text).messages), 0) for text in SENTENCES]
    plain = [model.complete([prompt])[0] for prompt in prompts]
    third = model._model.generate(torch.tensor([prompts[0].ids]), max_new_tokens=3)[0, -1].item()
    monkeypatch.setattr(model, "_ends", (third,))
    model._model.generation_config.eos_token_id = [third]
    monkeypatch.setattr(model, "on_end", lambda prompt, found: early.append((prompt, found)))
    found = model.complete(prompts)
    assert (found[0].finish, found[0].text) != (plain[0].finish, plain[0].text)
    stopped = [(prompt, one) for prompt, one in zip(prompts, found, strict=True) if one.finish == "stop"]
    assert {id(prompt): one for prompt, one in early} == {id(prompt): one for prompt, one in stopped}


def test_who_waits_has_an_answer_before_the_rest_of_the_batch() -> None:
    first_is_there = threading.Event()

    def complete(prompts: Sequence[TokenizedPrompt]) -> list[Completion]:
        found = echo(prompts)
        batches.ended(prompts[0], found[0])
        assert first_is_there.wait(10)
        return found

    async def first() -> str:
        said = await batches.answer(prompts_of(1)[0])
        first_is_there.set()
        return said.text

    async def main() -> tuple[str, Completion]:
        return await asyncio.gather(first(), batches.answer(prompts_of(2)[0]))

    batches = batches_over(complete, 2)
    said, other = asyncio.run(main())
    assert (said, other.text) == ("1", "2")


# Memory


def prompts_of(*lengths: int) -> list[TokenizedPrompt]:
    return [TokenizedPrompt(tuple(range(length)), length) for length in lengths]


def batches_over(complete: Callable[[Sequence[TokenizedPrompt]], list[Completion]], size: int) -> BatchQueue:
    return BatchQueue("mine", complete, size, ThreadPoolExecutor(1), lambda: None)


async def gather_answers(batches: BatchQueue, prompts: list[TokenizedPrompt]) -> list[Completion]:
    return await asyncio.gather(*(batches.answer(prompt) for prompt in prompts))


def echo(prompts: Sequence[TokenizedPrompt]) -> list[Completion]:
    return [Completion(str(prompt.seed), len(prompt.ids), "stop") for prompt in prompts]


def test_out_of_memory_halves_the_batch_and_goes_on(
    chat_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = [ask(sentence) for sentence in SENTENCES]
    wanted = answers(entry(chat_model, batch_size=4), asks)
    plain, sizes = LlamaForCausalLM.generate, []

    def full_once(self: Any, **options: Any) -> Any:
        sizes.append(len(options["input_ids"]))
        if sizes == [4]:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return plain(self, **options)

    monkeypatch.setattr(LlamaForCausalLM, "generate", full_once)
    assert answers(entry(chat_model, batch_size=4), asks) == wanted
    assert sizes == [4, 2, 2]


def test_out_of_memory_with_one_question_says_what_to_lower() -> None:
    def full(_: Sequence[TokenizedPrompt]) -> list[Completion]:
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 9 bytes")

    with pytest.raises(
        ConfigError, match=r"llm\.mine: not enough memory for one question of 3 tokens; lower max_tok"
    ):
        asyncio.run(gather_answers(batches_over(full, 2), prompts_of(3, 3)))


def test_another_failure_of_the_model_ends_the_run() -> None:
    def broken(_: Sequence[TokenizedPrompt]) -> list[Completion]:
        raise RuntimeError("size mismatch")

    with pytest.raises(ConfigError, match="RuntimeError: size mismatch"):
        asyncio.run(gather_answers(batches_over(broken, 2), prompts_of(1)))


@settings(max_examples=50)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(1, 9))
def test_every_question_gets_its_own_answer_in_full_batches(lengths: list[int], size: int) -> None:
    seen: list[int] = []

    def complete(prompts: Sequence[TokenizedPrompt]) -> list[Completion]:
        seen.append(len(prompts))
        return echo(prompts)

    found = asyncio.run(gather_answers(batches_over(complete, size), prompts_of(*lengths)))
    assert [each.text for each in found] == [str(length) for length in lengths]
    assert sum(seen) == len(lengths)
    assert len(seen) == -(-len(lengths) // size)  # as few batches as can be


def test_batches_hold_neighbours_in_length_and_the_oldest_first() -> None:
    seen: list[list[int]] = []

    def complete(prompts: Sequence[TokenizedPrompt]) -> list[Completion]:
        seen.append([len(prompt.ids) for prompt in prompts])
        return echo(prompts)

    asyncio.run(gather_answers(batches_over(complete, 2), prompts_of(9, 1, 8, 2)))
    assert seen == [[8, 9], [1, 2]]


def test_a_question_that_is_given_up_disturbs_no_other() -> None:
    async def main() -> list[Completion]:
        batches = batches_over(echo, 2)
        gone = asyncio.create_task(batches.answer(prompts_of(5)[0]))
        await asyncio.sleep(0)
        gone.cancel()
        return await gather_answers(batches, prompts_of(1, 2))

    assert [each.text for each in asyncio.run(main())] == ["1", "2"]


def test_closing_ends_a_long_answer_and_gives_no_part_of_it(
    chat_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, begun, widths = LlamaForCausalLM.generate, threading.Event(), []

    def generate(self: Any, **options: Any) -> Any:
        begun.set()
        found = plain(self, **options)
        widths.append(found.shape[1])
        return found

    async def main() -> None:
        provider = LocalProvider("mine", entry(chat_model, max_tokens=550, batch_size=1))
        await provider.check()
        asked = [asyncio.create_task(provider.reply(ask(text))) for text in ("a", "b")]
        while not begun.is_set():
            await asyncio.sleep(0.001)
        await provider.close()
        assert [type(end) for end in await asyncio.gather(*asked, return_exceptions=True)] == [
            asyncio.CancelledError,
            asyncio.CancelledError,
        ]

    monkeypatch.setattr(LlamaForCausalLM, "generate", generate)
    asyncio.run(main())
    assert len(widths) == 1  # the second question was never begun
    assert widths[0] < 500  # nor the first one finished


# What is refused


def test_pickled_weights_are_refused(bare_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    shutil.copytree(bare_model, folder)
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=r"pytorch_model\.bin, a pickle"):
        answers(entry(folder), [])


def test_a_model_with_code_of_its_own_is_refused(bare_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    shutil.copytree(bare_model, folder)
    config = {"model_type": "own", "auto_map": {"AutoConfig": "own.C", "AutoModelForCausalLM": "own.M"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text("raise SystemExit('it was run')")
    with pytest.raises(ConfigError, match="needs code of its own, which is not run here"):
        answers(entry(folder), [])


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("", "no model"),
        ("./nowhere", "no such folder"),
        ("/no/where", "no such folder"),
        ("a/b/c", "no such folder"),
        ("models/llama-q4.gguf", r"GGUF, which is not loaded here; serve it with llama\.cpp"),
    ],
)
def test_a_model_that_is_nowhere_is_said(model: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        LocalProvider("mine", entry(model))


def test_a_hub_that_can_not_be_reached_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(RemoteError, match="set `model` to a folder"):
        answers(entry("nobody/nothing"), [])


def test_damaged_files_are_said(bare_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    shutil.copytree(bare_model, folder)
    (folder / "model.safetensors").write_bytes(b"\x00" * 40)
    with pytest.raises(DataError, match="not loadable"):
        answers(entry(folder), [])
    (folder / "config.json").write_text('{"model_type": "hal9000"}')
    with pytest.raises(ConfigError, match="no language model that the installed transformers knows"):
        answers(entry(folder), [])
    (folder / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"no config\.json"):
        answers(entry(folder), [])
    (folder / "model.safetensors").rename(folder / "model.gguf")
    with pytest.raises(ConfigError, match=r"model\.gguf is GGUF"):
        answers(entry(folder), [])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_four_bits_need_a_gpu(bare_model: Path) -> None:
    with pytest.raises(ConfigError, match="load_in_4bit needs a CUDA GPU"):
        answers(entry(bare_model, load_in_4bit=True), [])


def test_without_torch_the_remedy_is_said(bare_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llm_labeler.clients.local_model", None)
    with pytest.raises(ConfigError, match=r"pip install 'aoe-toolkit\[train\]'"):
        answers(entry(bare_model), [])


def test_forced_json_is_refused(bare_model: Path) -> None:
    with pytest.raises(ConfigError, match="structured = strict"):
        LocalProvider("mine", entry(bare_model, structured="strict"))


# The face of a provider


def test_the_digest_follows_what_shapes_answers(bare_model: Path) -> None:
    def digest_of(**fields: Any) -> str:
        return LocalProvider("mine", entry(bare_model, **fields)).parameters

    assert digest_of() == digest_of(batch_size=3, concurrency=99, timeout_s=5.0)
    changed = [{"temperature": 0.5}, {"top_p": 0.5}, {"seed": 3}, {"max_tokens": 9}, {"extra": {"a": 1}}]
    assert len({digest_of(), *(digest_of(**fields) for fields in changed)}) == 6
    with pytest.raises(ConfigError, match="extra is no JSON"):
        digest_of(extra={"a": Path()})


def test_it_costs_nothing_stays_here_and_fills_batches(bare_model: Path) -> None:
    provider = LocalProvider("mine", entry(bare_model, concurrency=4, batch_size=8))
    assert (provider.prices, provider.leaves_machine, provider.concurrency) == (Prices(0.0, 0.0), False, 16)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_on_a_gpu_the_weights_are_bf16(chat_model: Path) -> None:
    model = loaded(chat_model)
    assert next(model._model.parameters()).dtype == torch.bfloat16
    assert model.complete([TokenizedPrompt(model.prompt_ids(ask("Hi").messages), 0)])[0].tokens == 12
