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

_POLL_S = 0.2


class Workers:
    """Shares jobs among routes, each of which does one at a time.

    Args:
        routes: One for each token.
        stop: Set when an error ends everything, which also ends all waiting.
        done: Called after each job, from the worker's thread, with name, route and any failure.
    """

    def __init__(
        self,
        routes: Sequence[Route],
        stop: threading.Event,
        done: Callable[[str, Route, RemoteError | None], None],
    ) -> None:
        self._routes, self._stop, self._done = routes, stop, done

    def run(self, jobs: Mapping[str, Job]) -> None:
        """Do all jobs.

        Raises:
            AuthError: a token is refused.
            RateLimited: a limit lasts longer than the settings allow to wait.
            ConfigError: the store can't be written.
            DataError: the store is damaged.
        """
        todo: Jobs = queue.SimpleQueue()
        for job in jobs.items():
            todo.put(job)
        threads, is_left = ThreadPoolExecutor(len(self._routes), "crawl"), False
        try:
            running = {threads.submit(self._work, route, todo) for route in self._routes}
            while running:
                # Not for ever: a library may have seen to it that Ctrl-C does not wake who waits.
                ended, running = wait(running, _POLL_S, FIRST_EXCEPTION)
                for future in ended:
                    future.result()
        except BaseException as error:
            self._stop.set()
            is_left = isinstance(error, KeyboardInterrupt)  # a person does not wait for a server that hangs
            raise
        finally:
            threads.shutdown(wait=not is_left)

    def _work(self, route: Route, todo: Jobs) -> None:
        while not self._stop.is_set():
            try:
                name, job = todo.get_nowait()
            except queue.Empty:
                return
            self._try(name, job, route)

    def _try(self, name: str, job: Job, route: Route) -> None:
        try:
            job(route)
        except Stopped:
            self._done(name, route, None)
        except (AuthError, RateLimited):
            self._done(name, route, None)
            raise
        except RemoteError as error:
            self._done(name, route, error)
        else:
            self._done(name, route, None)
