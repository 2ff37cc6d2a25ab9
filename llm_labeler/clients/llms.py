"""The LLMs that there are, built in or configured, and whether their keys are set."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llm_labeler.records import Provider
from llm_labeler.settings import RULES, LabelSettings, LlmSettings
from pairkit.app.result_table import Printed, ResultTable


@dataclass(frozen=True, slots=True)
class Llm:
    """One LLM.

    Attributes:
        name: What `llms` and `--llm` know it by.
        kind: How it is reached: a server's protocol, or `wordnet`.
        model: The server's name for it.
        base_url: Its server; None: the maker's own, or none.
        key_variable: The environment variable with its key; None: it needs none.
        has_key: Whether that is set.
        price_in: US dollars per million tokens of prompts; None: unknown.
        price_out: The same of answers.
    """

    name: str
    kind: str
    model: str
    base_url: str | None
    key_variable: str | None
    has_key: bool
    price_in: float | None
    price_out: float | None


_SHORT = {"openai_compatible": "server"}  # another name for it


class Llms(Printed, tuple[Llm, ...]):
    """LLMs in order of their names; shows itself as a table."""

    def table(self) -> ResultTable:
        """One LLM a row."""
        left = ("kind", "model", "server", "key")
        from llm_labeler.clients.server import AS_OF

        caption = f"$ per million tokens (?: unknown); prices that no configuration states are of {AS_OF}"
        found = ResultTable("name", *left, "$ in / out", caption=caption, left=left)
        for one in self:
            key = (
                "none"
                if one.key_variable is None
                else one.key_variable + ("" if one.has_key else " (not set)")
            )
            prices = ["?" if price is None else f"{price:g}" for price in (one.price_in, one.price_out)]
            kind = _SHORT.get(one.kind, one.kind)
            found.add_row(one.name, kind, one.model, one.base_url or "-", key, " / ".join(prices))
        return found


def known_llms(settings: LabelSettings) -> Llms:
    """The LLMs that settings describe."""
    return Llms(_llm(name, settings) for name in sorted(settings.llm))


def _llm(name: str, settings: LabelSettings) -> Llm:
    entry = settings.llm[name]
    provider = build(name, entry)
    variable = provider.key_variable
    has_key = variable is not None and bool(os.environ.get(variable))
    prices = (provider.prices.prompt, provider.prices.completion)
    return Llm(name, entry.kind, entry.model, entry.base_url, variable, has_key, *prices)


def build(name: str, settings: LlmSettings, function: Callable[..., Any] | None = None) -> Provider:
    """The provider of one `[llm.NAME]`; nothing is loaded, read from a key or connected to yet."""
    # Each kind brings libraries of its own.
    if settings.kind == "function":
        from llm_labeler.clients.function import FunctionProvider

        return FunctionProvider(name, settings, function)
    if settings.kind == RULES:
        from llm_labeler.clients.wordnet import WordnetProvider

        return WordnetProvider(name, settings)
    from llm_labeler.clients.server import ServerProvider

    return ServerProvider(name, settings)
