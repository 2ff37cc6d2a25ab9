"""One worker a token. A job that fails does so alone, unless what it met concerns every job."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from gis_builder._github.client import Stopped
from gis_builder._github.route import Route
from pairkit.errors import AuthError, RateLimited, RemoteError

Job = Callable[[Route], None]
Jobs = queue.SimpleQueue[tuple[str, Job]]
Done = Callable[[str, Route, RemoteError | None], None]

_POLL_S = 0.2


def work_off(jobs: Mapping[str, Job], routes: Sequence[Route], stop: threading.Event, done: Done) -> None:
    """Share jobs among routes, each of which does one at a time.

    Args:
        jobs: What is to be done, by name.
        routes: One for each token.
        stop: Set when an error ends everything, which also ends all waiting.
        done: Called after each job, from the worker's thread, with name, route and any failure.

    Raises:
        AuthError: a token is refused.
        RateLimited: a limit lasts longer than the settings allow to wait.
        ConfigError: the store can't be written.
        DataError: the store is damaged.
    """
    todo: Jobs = queue.SimpleQueue()
    for job in jobs.items():
        todo.put(job)
    threads, is_left = ThreadPoolExecutor(len(routes), "crawl"), False
    try:
        running = {threads.submit(_work, route, todo, stop, done) for route in routes}
        while running:
            # Not for ever: a library may have seen to it that Ctrl-C does not wake who waits.
            ended, running = wait(running, _POLL_S, FIRST_EXCEPTION)
            for future in ended:
                future.result()
    except BaseException as error:
        stop.set()
        is_left = isinstance(error, KeyboardInterrupt)  # a person does not wait for a server that hangs
        raise
    finally:
        threads.shutdown(wait=not is_left)


def _work(route: Route, todo: Jobs, stop: threading.Event, done: Done) -> None:
    """Do one job after the other, as long as there are any."""
    while not stop.is_set():
        try:
            name, job = todo.get_nowait()
        except queue.Empty:
            return
        failure: RemoteError | None = None
        try:
            job(route)
        except (AuthError, RateLimited):
            done(name, route, None)
            raise
        except Stopped:
            pass
        except RemoteError as error:
            failure = error
        done(name, route, failure)
