"""Run `label` with LLMs on emulated servers."""

import json
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from tests.contract.conftest import environment, run_here
from tests.support.llm import Faults, Options, serve

MEMBERS = ("chatgpt", "llama", "chatglm")
KEYS = {"EMULATED_API_KEY": "the-right-secret-key"}
PASSING = Faults(share=0.3, first=3, retry_after_s=0.02)
BRIEF = replace(PASSING, kinds=("rate_limited", "unavailable"))  # with a Retry-After


def run_label(*arguments, keys=KEYS):
    return run_here("llm_labeler", *arguments, environ=environment(**keys))


def generate(source, out, *more, keys=KEYS):
    return run_label(
        "generate", "--data", source, "--out", out, *more, "--json", keys=keys
    )


def llms_file(path, urls, **more):
    """Write a configuration with the address of each LLM."""
    settings = {
        "price_in": 1.0,
        "price_out": 2.0,
        "api_key_env": "EMULATED_API_KEY",
        **more,
    }
    lines = []
    for name, url in urls.items():
        lines += [f"[llm.{name}]", 'kind = "openai_compatible"']
        entry = {"base_url": url, "model": name, **settings}
        lines += [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def one_llm(folder, url, **more):
    """The flags for the LLM `llama` at an address."""
    config = llms_file(
        folder / "l.toml", {"llama": url}, **{"model": "emulated", **more}
    )
    return ("--llm", "llama", "--config", str(config))


def sentences(path, number):
    """Write a file of distinct sentences."""
    things = (
        "The nurse",
        "A doctor",
        "My aunt",
        "The child",
        "Every patient",
        "An old man",
        "Her brother",
    )
    deeds = (
        "takes a pill",
        "drinks cold water",
        "walks slowly",
        "has a fever",
        "sleeps badly",
        "eats fruit",
    )
    times = (
        "in the morning",
        "before lunch",
        "at night",
        "after work",
        "on Monday",
        "when it rains",
    )
    lines = [
        f"{things[n % 7]} {deeds[n // 7 % 6]} {times[n // 42 % 6]} for {n // 252 + 2} weeks."
        for n in range(number)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def tree(folder):
    """The bytes of every file of a dataset."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@contextmanager
def ensemble(folder, faults=None, *, latency_s=0.0):
    """Serve the papers' three LLMs, each on its own server; the flags for them."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(
                serve(
                    Options((name,), latency_s=latency_s),
                    replace(faults, seed=seed) if faults else Faults(),
                )
            )
            for seed, name in enumerate(MEMBERS)
        ]
        urls = {
            name: server.base_url for name, server in zip(MEMBERS, servers, strict=True)
        }
        yield (
            (
                "--llm",
                "ensemble",
                "--config",
                str(llms_file(folder / "llms.toml", urls)),
            ),
            servers,
        )


def requests(servers):
    return sum(server.stats.requests for server in servers)
