"""Running what awaits from code that does not: in scripts, and in notebooks, where a loop runs already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from threading import Event, Thread
from typing import Any, TypeVar

T = TypeVar("T")


def run_anywhere(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, in a thread of its own where this one has a running loop; Ctrl-C ends it in both."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main)
    ended: Future[T] = Future()
    cancel: Future[Callable[[], object]] = Future()
    given_up = Event()

    async def told() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        cancel.set_result(lambda: loop.call_soon_threadsafe(task.cancel) if task else None)
        if given_up.is_set():  # before it was known how to cancel
            main.close()
            raise asyncio.CancelledError
        return await main

    def run() -> None:
        try:
            ended.set_result(asyncio.run(told()))
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            ended.set_exception(error)

    try:
        Thread(target=run).start()
        return ended.result()
    except KeyboardInterrupt:
        given_up.set()
        if cancel.done():
            with suppress(RuntimeError):  # its loop is closed: it has just ended
                cancel.result()()
            ended.exception()  # comes when all that it awaits has been left
        raise
