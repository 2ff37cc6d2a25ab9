"""List the built-in and configured LLMs, and build their providers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llm_labeler.records import Provider
from llm_labeler.settings import RULES, LabelSettings, LlmSettings
from pairkit.base.cli.result_table import Printed, ResultTable


@dataclass(frozen=True, slots=True)
class Llm:
    """One LLM.

    Attributes:
        name: Name for `llms` and `--llm`.
        kind: Kind of server or `wordnet`.
        model: The server's name of the model.
        base_url: Address of the server; None: the maker's server, or no server.
        key_variable: Environment variable with the key; None: no key is needed.
        has_key: Whether this variable is set.
        price_in: US dollars per million prompt tokens; None: unknown.
        price_out: US dollars per million answer tokens; None: unknown.
    """

    name: str
    kind: str
    model: str
    base_url: str | None
    key_variable: str | None
    has_key: bool
    price_in: float | None
    price_out: float | None


_SHORT = {"openai_compatible": "server"}  # alias of the kind


class Llms(Printed, tuple[Llm, ...]):
    """LLMs sorted by name, printed as a table."""

    def table(self) -> ResultTable:
        """One row per LLM."""
        left = ("kind", "model", "server", "key")
        from llm_labeler.clients.llm_server import AS_OF

        caption = f"$ per million tokens (?: unknown); prices that are not configured are those of {AS_OF}"
        table = ResultTable("name", *left, "$ in / out", caption=caption, left=left)
        for llm in self:
            key = llm.key_variable or "none"
            if llm.key_variable and not llm.has_key:
                key += " (not set)"
            prices = ["?" if price is None else f"{price:g}" for price in (llm.price_in, llm.price_out)]
            kind = _SHORT.get(llm.kind, llm.kind)
            table.add_row(llm.name, kind, llm.model, llm.base_url or "-", key, " / ".join(prices))
        return table


def known_llms(settings: LabelSettings) -> Llms:
    """The LLMs that settings describe."""
    rows = []
    for name, entry in sorted(settings.llm.items()):
        provider = build(name, entry)
        variable, prices = provider.key_variable, (provider.prices.prompt, provider.prices.completion)
        has_key = variable is not None and bool(os.environ.get(variable))
        rows.append(Llm(name, entry.kind, entry.model, entry.base_url, variable, has_key, *prices))
    return Llms(rows)


def build(name: str, settings: LlmSettings, function: Callable[..., Any] | None = None) -> Provider:
    """Make the provider of one `[llm.NAME]`, without reading keys or connecting."""
    # Import only the libraries of this kind.
    if settings.kind == "function":
        from llm_labeler.clients.function import FunctionProvider

        return FunctionProvider(name, settings, function)
    if settings.kind == RULES:
        from llm_labeler.clients.wordnet import WordnetProvider

        return WordnetProvider(name, settings)
    from llm_labeler.clients.llm_server import ServerProvider

    return ServerProvider(name, settings)
