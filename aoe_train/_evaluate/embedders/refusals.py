"""What a server's refusal of an embeddings request means to whoever evaluates."""

from __future__ import annotations

from pairkit.errors import AuthError, ConfigError, DataError, PairkitError, RateLimited, RemoteError
from pairkit.openai_api.credentials import Key
from pairkit.openai_api.refusals import NoAnswer, Refused
from pairkit.printable import one_line

_WAIT_S = 60.0  # where a server does not say how long


def explain_refusal(refused: Refused, where: str, key: Key | None, texts: list[str]) -> PairkitError:
    """One of ours for a refusal.

    Args:
        refused: What the server said.
        where: Model and address, for messages.
        key: What it was asked with.
        texts: What it was asked about.
    """
    refusal = refused.refusal
    said = f"HTTP {refusal.status}: {refusal.message}"
    if refusal.is_exhausted:
        return RemoteError(f"{where}: the account is exhausted ({said}); add credit, then run it again")
    if refusal.is_about_key:
        held = f"the key in {key.source}" if key else "a request without a key"
        # What comes with a 401 may repeat part of the key.
        told = f"HTTP {refusal.status}" if refusal.status == 401 else said
        return AuthError(
            f"{where}: refused {held} ({told}); name the variable with a key that may use the model as "
            "--api-key-env"
        )
    if refusal.status == 429:
        wait_s = refused.retry_after_s or _WAIT_S
        return RateLimited(
            f"{where}: asks to wait {wait_s:g} s ({said}); run the same command again then", wait_s
        )
    if refusal.is_about_model or 300 <= refusal.status < 400:
        to = one_line(refused.headers.get("location", "").partition("?")[0])
        moved = f"; it redirects to {to}, which is not followed" if to else ""
        return ConfigError(
            f"{where}: no such model or address ({said}){moved}; --endpoint is what comes before /embeddings "
            "and usually ends in /v1"
        )
    if refusal.status in (400, 413, 422):
        longest = max(texts, key=len)
        return DataError(
            f"{where}: refused {len(texts)} texts ({said}); the longest has {len(longest):,} characters and "
            f"begins {longest[:60]!r}: shorten it or leave it out if it is too long"
        )
    return RemoteError(f"{where}: {said}; run the same command again, or see the server's log")


def explain_silence(missed: NoAnswer, where: str) -> RemoteError:
    """One of ours for an exchange that brought no answer."""
    if missed.reason == "connection":
        return RemoteError(f"{where}: can't be reached ({missed.detail}); start the server or fix --endpoint")
    return RemoteError(f"{where}: {missed.detail}; run the same command again")
