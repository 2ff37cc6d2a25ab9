"""The kinds of credentials, and what a shape of one is.

A pattern begins with characters that are fixed, or behind a character that can't stand in its own midst, and
its repetitions are bounded or never taken back, so that each is linear in the length of a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

# As they are counted, and what a dataset's card calls them.
KINDS = {
    "secret_private_key": "private keys (PEM, OpenSSH, PGP, PuTTY, age)",
    "secret_github": "GitHub tokens",
    "secret_gitlab": "GitLab tokens",
    "secret_aws": "AWS access keys, secret keys, session tokens and signatures",
    "secret_azure": "Azure storage keys, client secrets and shared access signatures",
    "secret_google": "Google API keys, OAuth tokens and client secrets",
    "secret_llm": "keys of LLM services and Hugging Face tokens",
    "secret_chat": "Slack, Discord, Telegram and Teams tokens and webhooks",
    "secret_registry": "tokens of package and image registries",
    "secret_service": "keys of other services that bear their issuer's mark",
    "secret_jwt": "JSON web tokens",
    "secret_url_password": "passwords in URLs",
    "secret_authorization": "values of Authorization and API key headers",
    "secret_cookie": "values of cookies and session ids",
    "secret_password": "passwords by the name or command before them, and their hashes",
    "secret_assignment": "random values given to a name such as `token`, `secret` or `api_key`",
    "email": "e-mail addresses",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape of a kind of credential.

    Attributes:
        kind: One of `KINDS`.
        gates: The pattern is tried only where one of these stands in the text (lower case).
        pattern: What it looks like. What goes is its group `value`, or all of the match.
        accepts: What else must be true of what goes.
    """

    kind: str
    gates: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] | None = None


def shape(kind: str, gates: str, pattern: str, accepts: Callable[[str], bool] | None = None) -> Shape:
    """A shape of `secret_` + `kind`, from gates with blanks between and a verbose pattern."""
    return Shape(f"secret_{kind}", tuple(gates.split()), re.compile(pattern, re.VERBOSE), accepts)
