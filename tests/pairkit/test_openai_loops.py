"""Awaiting in a script and in a notebook."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from pairkit.openai_api.loops import run_anywhere


async def doubled(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def within_a_loop(call: Callable[[], Any]) -> Any:
    """As in a cell of a notebook, whose loop takes no notice of SIGINT."""

    async def cell() -> Any:
        return call()

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(cell())
    finally:
        loop.close()


def test_with_and_without_a_running_loop() -> None:
    assert run_anywhere(doubled(2)) == 4
    assert within_a_loop(lambda: run_anywhere(doubled(3))) == 6


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_a_notebook_ends_what_runs_in_the_thread() -> None:
    ended: list[str] = []

    async def long() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    def call() -> None:
        main: Coroutine[Any, Any, None] = long()
        run_anywhere(main)

    with pytest.raises(KeyboardInterrupt):
        within_a_loop(call)
    assert ended == ["cancelled"]
