"""What tokens cost where the configuration does not say. An unknown price stays unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address

from llm_labeler.clients.provider import Prices
from llm_labeler.settings.labelling import LlmSettings
from pairkit.openai_api.credentials import key_variable
from pairkit.system.address import Address

AS_OF = "June 2026"

# US dollars per million tokens, prompt and completion, as published by OpenAI.
_OPENAI: Mapping[str, tuple[float, float]] = {
    "gpt-3.5-turbo": (0.50, 1.50),
    "gpt-4o": (2.50, 10.00),
    "gpt-4o-2024-05-13": (5.00, 15.00),
    "gpt-4o-mini": (0.15, 0.60),
    "gpt-4.1": (2.00, 8.00),
    "gpt-4.1-mini": (0.40, 1.60),
    "gpt-4.1-nano": (0.10, 0.40),
    "gpt-5": (1.25, 10.00),
    "gpt-5-mini": (0.25, 2.00),
    "gpt-5-nano": (0.05, 0.40),
}
# bigmodel.cn bills in yuan; these it gives away.
_BIGMODEL = dict.fromkeys(("glm-4-flash", "glm-4-flash-250414", "glm-4.5-flash", "glm-4.7-flash"), (0.0, 0.0))
_ZAI: Mapping[str, tuple[float, float]] = {
    "glm-4.5": (0.60, 2.20),
    "glm-4.5-air": (0.20, 1.10),
    "glm-4.5-flash": (0.0, 0.0),
    "glm-4.6": (0.60, 2.20),
    "glm-4.7": (0.60, 2.20),
    "glm-4.7-flash": (0.0, 0.0),
}
_HOSTS = {"api.openai.com": _OPENAI, "open.bigmodel.cn": _BIGMODEL, "api.z.ai": _ZAI}
_PARTS = re.compile(r"[/:@]")  # of a name: a gateway's or maker's, the model's, a variant's or version's
# Models whose weights only their makers have: whatever serves one passes the call on.
_CLOSED = re.compile(r"gpt-[3-9]|chatgpt|o[134](?:-|$)|claude|gemini|grok-[3-9]")
# Names that no public server has; one without a dot is of the own network, too.
_OWN_NETWORK = (".localhost", ".local", ".internal", ".home.arpa")
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")


def find_prices(settings: LlmSettings, address: Address) -> Prices:
    """What a model's tokens cost: the entry's own prices, else published ones (see `AS_OF`), else unknown.

    A server of one's own is free: one that is marked as local, or that is on this machine or in a private
    network and asked without a key. A model that only its maker has is never free: a gateway passes the bill
    on, so it has its published price wherever it is served. A variant of it, like `gpt-4o:extended`, has a
    price of its own, which is unknown.
    """
    prompt, completion = _published(settings, address) or (None, None)
    return Prices(
        prompt if settings.price_in is None else settings.price_in,
        completion if settings.price_out is None else settings.price_out,
    )


def _published(settings: LlmSettings, address: Address) -> tuple[float, float] | None:
    if address.host in _HOSTS:
        return _look_up(_HOSTS[address.host], settings.model)
    model = settings.model.rpartition("/")[2]  # gateways put the maker before it: openai/gpt-4o
    if closed := _look_up(_OPENAI, model):
        return closed
    if any(map(_CLOSED.match, _PARTS.split(settings.model.casefold()))):
        return None
    return (0.0, 0.0) if _is_own(settings, address) else _look_up(_ZAI, model)


def _is_own(settings: LlmSettings, address: Address) -> bool:
    """Whether nobody sends a bill: who does wants a key, or is elsewhere."""
    if settings.local:
        return True
    return key_variable(address.host, settings.api_key_env) is None and _is_near(address.host)


def _is_near(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_private
    except ValueError:
        return "." not in host or host.endswith(_OWN_NETWORK)


def _look_up(table: Mapping[str, tuple[float, float]], model: str) -> tuple[float, float] | None:
    folded = model.casefold()
    return table.get(folded) or table.get(_DATE.sub("", folded))
