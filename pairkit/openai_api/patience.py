"""Asking again where that may help: with waits that double, or as long as the server says."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pairkit.openai_api.refusals import NoAnswer, Refused

T = TypeVar("T")

BACKOFF_S = LONGEST_WAIT_S = 60.0  # at most: between two tries, and when a server wishes for more


async def patiently(call: Callable[[], Awaitable[T]], *, tries: int, pause_s: float) -> T:
    """What `call` brings, at the latest at the last try.

    Args:
        call: Made anew each time.
        tries: Calls at most, the first one included.
        pause_s: Seconds before the second; doubled each time, with jitter so that a crowd does not come back
            as one.

    Raises:
        Refused: for good, at the last try, or with a wish for a wait that nobody sits through.
        NoAnswer: at the last try.
    """
    for tried in range(1, tries):
        wish_s = 0.0
        try:
            return await call()
        except Refused as refused:
            wish_s = refused.retry_after_s or 0.0
            if not refused.refusal.may_pass or wish_s > LONGEST_WAIT_S:
                raise
        except NoAnswer:
            pass
        backoff_s = pause_s * 2.0 ** (tried - 1) * random.uniform(0.75, 1.25)  # noqa: S311 - no secret
        await asyncio.sleep(max(wish_s, min(BACKOFF_S, backoff_s)))
    return await call()
