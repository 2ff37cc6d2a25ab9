"""Running what awaits from code that does not: in scripts, and in notebooks, where a loop runs already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


def run_anywhere(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, in a thread of its own where this one has a running loop; Ctrl-C ends it in both."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main)
    cancel: Future[Callable[[], object]] = Future()

    async def told() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        cancel.set_result(lambda: loop.call_soon_threadsafe(task.cancel) if task else None)
        return await main

    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(asyncio.run, told())
        try:
            return ended.result()
        except KeyboardInterrupt:  # the pool waits for its thread, which would go on
            with suppress(RuntimeError):  # it has just ended
                cancel.result()()
            raise
