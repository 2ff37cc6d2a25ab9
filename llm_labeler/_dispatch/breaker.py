"""When most calls to a server fail, or all in the same words, asking on only costs."""

from __future__ import annotations

import re
from collections import Counter, deque

from llm_labeler._provider import CallFailed
from llm_labeler._settings import BreakerSettings
from pairkit.errors import RemoteError

_DETAIL_CHARS = 200
_VARIES = re.compile(r"[\W\d_]+")  # counts and ids differ from one refusal to the next


class Breaker:
    """Looks at the last attempts with one LLM; 429s take no part, they are the gate's business."""

    def __init__(self, llm: str, settings: BreakerSettings, concurrency: int) -> None:
        """Begin with no attempts.

        Args:
            llm: Its name.
            settings: How many attempts, and which share of them may fail.
            concurrency: Calls at a time. The window holds two such rounds at least: all calls that were under
                way when a connection broke are one mishap.
        """
        self._llm, self._max_failures = llm, settings.max_failures
        self._most_alike, self._alike, self._gist = settings.refusals, 0, ""
        self._window: deque[tuple[str, str] | None] = deque(maxlen=max(settings.window, 2 * concurrency))

    def note(self, failed: CallFailed | None) -> None:
        """Note how an attempt ended; None: with an answer.

        Raises:
            RemoteError: the window is full and too many of it are failures, or the server turns down one
                question after the other in the same words, which then are about none of them.
        """
        self._note_refusal(failed)
        window = self._window
        window.append(None if failed is None else (failed.reason, failed.detail))
        if failed is None or len(window) < (window.maxlen or 0):
            return
        failures = [entry for entry in window if entry is not None]
        if len(failures) < self._max_failures * len(window):
            return
        ((reason, _),) = Counter(reason for reason, _ in failures).most_common(1)
        detail = next(detail for why, detail in reversed(failures) if why == reason)
        raise RemoteError(
            f"{self._llm}: {len(failures)} of the last {len(window)} calls failed, most with {reason} "
            f"({detail[:_DETAIL_CHARS]}); what was answered is kept: check the server, or "
            f"[llm.{self._llm}], then run the same command again to continue"
        )

    def _note_refusal(self, failed: CallFailed | None) -> None:
        if failed is None:
            self._alike = 0
        elif not failed.retry and not failed.final:
            gist = _VARIES.sub(" ", failed.detail)
            self._alike = self._alike + 1 if gist == self._gist else 1
            self._gist = gist
            if self._alike >= self._most_alike:
                raise RemoteError(
                    f"{self._llm}: the server turned down {self._alike} questions in a row in the same words "
                    f"({failed.detail[:_DETAIL_CHARS]}); they are asked again by the next run: check the "
                    f"server, or [llm.{self._llm}], or raise breaker.refusals if each of them is at fault"
                )
