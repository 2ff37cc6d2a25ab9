"""The provider against a real server with a real, if random, LLaMA: plumbing, never quality."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.llm_labeler.llm_server import an_ask, check, provider, replies, run
from tests.support.llm import Faults, Options, serve

NEEDED = ("torch", "transformers", "fastapi", "uvicorn")
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>"


def save_random_llama(folder: Path) -> None:
    """Two layers, and a token for each byte."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed

    names = ["<|pad|>", "<|end|>", "<|user|>", "<|system|>", "<|assistant|>"]
    signs = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {sign: number for number, sign in enumerate([*names, *signs])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(names)
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=names[0], eos_token=names[1])
    wrapped.chat_template = TEMPLATE
    wrapped.save_pretrained(folder)
    set_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=1024,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The base URL of `transformers serve`, and the model that it has."""
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed; pip install 'transformers[serving]'")
    folder = tmp_path_factory.mktemp("llama")
    save_random_llama(folder)
    cache = tmp_path_factory.mktemp("hub")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    code = "from transformers.cli.transformers import main; main()"
    flags = ["serve", str(folder), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    environ = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(cache)}
    log = cache / "log"
    with log.open("w") as file:
        child = subprocess.Popen([sys.executable, "-c", code, *flags], env=environ, stdout=file, stderr=file)
        try:
            _wait(f"http://127.0.0.1:{port}/health", child, log)
            yield f"http://127.0.0.1:{port}/v1", str(folder)
        finally:
            child.terminate()
            child.wait(timeout=30)


def _wait(url: str, child: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if child.poll() is not None:
            raise AssertionError(log.read_text()[-2000:])
        try:
            if requests.get(url, timeout=1).ok:
                return
        except requests.ConnectionError:
            time.sleep(0.1)
    raise AssertionError(f"no answer at {url}")


@pytest.mark.slow
def test_a_real_llama_answers(served: tuple[str, str]) -> None:
    url, model = served
    fields = {"model": model, "max_tokens": 12, "temperature": 0.0, "timeout_s": 120.0, "concurrency": 4}
    check(provider(url, **fields))
    asked = provider(url, **fields)
    found = run(replies(asked, map(an_ask, range(6))))
    assert len(found) == 6
    for reply in found:
        assert reply.usage is not None
        assert 0 < reply.usage.completion_tokens <= 12
        assert reply.usage.prompt_tokens <= asked.bound(an_ask(0)).prompt_tokens
        assert reply.finish in ("length", "stop")
    again = run(replies(provider(url, **fields), [an_ask(0)]))
    assert again[0].raw == found[0].raw


def test_a_server_that_lists_no_models_and_cuts_its_answers() -> None:
    with serve(Options(lists_models=False), Faults(1.0, ("cut",))) as server:
        check(provider(server.base_url))
        found = run(replies(provider(server.base_url, max_tokens=12), map(an_ask, range(6))))
    assert [reply.finish for reply in found] == ["length"] * 6
    assert all(reply.usage and 0 < reply.usage.completion_tokens <= 12 for reply in found)
